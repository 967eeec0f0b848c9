"""Draws against the Beta distribution and against resampling by hand; intervals against sorted
values."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, kstest

import tplrepro as tpl
from tplreport import bootstrap_draws, leakage_interval, posterior_draws
from tplreport.people.uncertainty import bootstrap_counts
from tplrepro.markov import Sequences

TABLE = np.array([[8.0, 2.0], [1.0, 9.0]])
LISTS = st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=5).filter(any)


def test_rows_follow_independent_beta_distributions_about_the_smoothed_estimate_for_any_prior():
    draws = posterior_draws(TABLE, smoothing=0.5, draws=4000, rng=np.random.default_rng(0))
    stays = np.array([P.probabilities[0, 0] for P in draws])
    assert kstest(stays, beta(8.5, 2.5).cdf).pvalue > 0.01
    assert np.quantile(stays, [0.05, 0.95]) == pytest.approx(
        beta(8.5, 2.5).ppf([0.05, 0.95]), abs=0.01
    )
    # The mean is the smoothed estimate, and rows are independent.
    counts = np.array([[5.0, 0.0, 1.0], [0.0, 0.0, 0.0], [2.0, 2.0, 2.0]])
    draws = np.array(
        [P.probabilities for P in posterior_draws(counts, 0.7, 4000, rng=np.random.default_rng(1))]
    )
    smoothed = tpl.TransitionMatrix.from_counts(scipy.sparse.csr_array(counts), 0.7).toarray()
    assert draws.mean(axis=0) == pytest.approx(smoothed, abs=0.015)
    assert abs(np.corrcoef(draws[:, 0, 0], draws[:, 2, 0])[0, 1]) < 0.05
    # A tiny prior does not underflow; without one, unseen steps stay impossible.
    for P in posterior_draws(np.zeros((30, 30)), 1e-4, 20, rng=np.random.default_rng(4)):
        assert P.probabilities.sum(axis=1) == pytest.approx(np.ones(30))
    P = next(posterior_draws([[3, 0], [1, 2]], 0.0, 1, rng=np.random.default_rng(5)))
    assert P.row(0).tolist() == [1.0, 0.0]
    assert 0 < P.probabilities[1, 0] < 1


@given(sequences=LISTS, seed=st.integers(0, 99), by_user=st.booleans())
@settings(max_examples=40)
def test_bootstrap_estimates_from_the_sequences_drawn_and_counts_their_steps(
    sequences, seed, by_user
):
    users = [i * i % 3 for i in range(len(sequences))] if by_user else list(range(len(sequences)))
    names = list(dict.fromkeys(users))
    flat = Sequences.from_flat(
        np.concatenate(sequences).astype(int), np.cumsum([0, *map(len, sequences)]), users
    )
    options = {"estimate": lambda sample: [sample.labels[s].tolist() for s in sample]}
    options["groups"] = users if by_user else None
    draws = bootstrap_draws(flat, 3, rng=np.random.default_rng(seed), **options)
    counts = bootstrap_counts(flat, 3, rng=np.random.default_rng(seed))
    rng, labels = np.random.default_rng(seed), flat.labels.tolist()
    for drawn, table in zip(draws, counts, strict=True):
        chosen = [names[k] for k in rng.integers(len(names), size=len(names))]
        assert drawn == [
            s for name in chosen for s, user in zip(sequences, users, strict=True) if user == name
        ]
        steps = Counter(pair for sequence in drawn for pair in pairwise(sequence))
        assert table.toarray().tolist() == [[steps[a, b] for b in labels] for a in labels]


def test_interval_ends_are_values_of_draws_rounded_outwards():
    values = np.append(np.random.default_rng(9).permutation(39).astype(float), np.inf)
    interval = leakage_interval(values, lambda v: v, confidence=0.9)
    assert (interval.lower, interval.median, interval.upper) == (1.0, 19.0, 38.0)
    assert leakage_interval(values, lambda v: v, confidence=0.95).upper == np.inf
    arrays = leakage_interval(range(40), lambda v: np.array([v, -v]))
    assert arrays.lower.tolist() == [1.0, -38.0]
    assert arrays.values.shape == (40, 2)
    draws = posterior_draws(TABLE * 10, 1.0, draws=40, rng=np.random.default_rng(10))
    interval = leakage_interval(
        draws, lambda P: tpl.temporal_privacy_leakage([0.1] * 5, P.reverse(), P).tpl
    )
    assert interval.upper.shape == (5,)
    assert (
        (interval.lower >= 0.1) & (interval.lower < interval.upper) & (interval.upper <= 0.5)
    ).all()
