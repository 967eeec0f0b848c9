"""Draws against the Beta distribution and against resampling by hand; intervals against sorted values."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, kstest

import tplrepro as tpl
from tplrepro.markov import (
    bootstrap_draws,
    leakage_interval,
    posterior_draws,
)

TABLE = np.array([[8.0, 2.0], [1.0, 9.0]])
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("direction", "parameters"), [("forward", (8.5, 2.5)), ("backward", (8.5, 1.5))])
def test_rows_of_two_states_follow_a_beta_distribution(direction, parameters):
    draws = posterior_draws(TABLE, smoothing=0.5, draws=4000, rng=np.random.default_rng(0), direction=direction)
    stays = np.array([P.probabilities[0, 0] for P in draws])
    assert kstest(stays, beta(*parameters).cdf).pvalue > 0.01
    assert np.quantile(stays, [0.05, 0.95]) == pytest.approx(beta(*parameters).ppf([0.05, 0.95]), abs=0.01)


def test_rows_are_independent_and_their_mean_is_the_smoothed_estimate():
    counts = np.array([[5.0, 0.0, 1.0], [0.0, 0.0, 0.0], [2.0, 2.0, 2.0]])
    draws = np.array([P.probabilities for P in posterior_draws(counts, 0.7, 4000, np.random.default_rng(1))])
    assert draws.mean(axis=0) == pytest.approx(
        tpl.TransitionMatrix.from_counts(scipy.sparse.csr_array(counts), 0.7).toarray(), abs=0.015
    )
    assert abs(np.corrcoef(draws[:, 0, 0], draws[:, 2, 0])[0, 1]) < 0.05


def test_a_pair_describes_one_chain():
    """Both come from one table g: backward[j, i] / forward[i, j] = (row sum i) / (column sum j), of rank one."""
    counts = np.random.default_rng(2).integers(0, 9, (4, 4))
    for backward, forward in posterior_draws(counts, 1.0, 3, np.random.default_rng(3), direction="both"):
        log = np.log(backward.probabilities.T / forward.probabilities)
        assert log - log[:1] - log[:, :1] + log[0, 0] == pytest.approx(np.zeros((4, 4)), abs=1e-9)


def test_a_tiny_prior_neither_underflows_nor_fails():
    for P in posterior_draws(np.zeros((30, 30)), 1e-4, 20, np.random.default_rng(4)):
        assert P.probabilities.sum(axis=1) == pytest.approx(np.ones(30))


def test_without_a_prior_unseen_steps_stay_impossible():
    P = next(posterior_draws([[3, 0], [1, 2]], 0.0, 1, np.random.default_rng(5), states="ab"))
    assert P.row(P.index("a")).tolist() == [1.0, 0.0]
    assert 0 < P.probabilities[1, 0] < 1


sequences_of_states = st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=5).filter(any)


@settings(max_examples=50)
@given(sequences=sequences_of_states, seed=st.integers(0, 99), by_group=st.booleans())
def test_bootstrap_estimates_from_the_sequences_drawn(sequences, seed, by_group):
    groups = [i * i % 3 for i in range(len(sequences))] if by_group else list(range(len(sequences)))
    names = list(dict.fromkeys(groups))
    draws = bootstrap_draws(
        sequences, 3, np.random.default_rng(seed), smoothing=0.5, n_states=4, direction="both", groups=groups
    )
    rng = np.random.default_rng(seed)
    for backward, forward in draws:
        chosen = [names[k] for k in rng.integers(len(names), size=len(names))]
        again = [s for name in chosen for s, g in zip(sequences, groups, strict=True) if g == name]
        for P, direction in ((backward, "backward"), (forward, "forward")):
            counts = np.zeros((4, 4))
            for s in again:
                for a, b in itertools.pairwise(s):
                    counts[(a, b) if direction == "forward" else (b, a)] += 1
            assert P.toarray() == pytest.approx((counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True))


def test_bootstrap_can_estimate_otherwise():
    sequences = [[0, 1, 0], [1, 1], [0, 0]]
    for groups in (None, ["u", "v", "u"]):
        options = {"groups": groups, "smoothing": 0.5, "n_states": 2}
        plain = bootstrap_draws(sequences, 4, np.random.default_rng(1), **options)
        options = {"groups": groups, "estimate": lambda s: tpl.TransitionMatrix.from_sequences(s, smoothing=0.5)}
        own = bootstrap_draws(sequences, 4, np.random.default_rng(1), **options)
        for P, Q in zip(plain, own, strict=True):
            assert P.toarray() == pytest.approx(Q.toarray())


def test_bootstrap_keeps_labels_and_can_be_sparse():
    P = next(bootstrap_draws([["b", "a"], ["a", "b"]], 1, np.random.default_rng(0), smoothing=1.0, sparse=True))
    assert P.is_sparse
    assert P.states == ["a", "b"]


def test_interval_ends_are_values_of_draws_rounded_outwards():
    values = np.append(np.random.default_rng(9).permutation(39).astype(float), np.inf)
    interval = leakage_interval(values, lambda v: v, level=0.9)
    assert (interval.lower, interval.median, interval.upper) == (1.0, 19.0, 38.0)
    assert leakage_interval(values, lambda v: v, level=0.95).upper == np.inf
    arrays = leakage_interval(range(40), lambda v: np.array([v, -v]))
    assert arrays.lower.tolist() == [1.0, -38.0]
    assert arrays.values.shape == (40, 2)


def test_interval_of_a_leakage_over_time():
    draws = posterior_draws(TABLE * 10, 1.0, draws=40, rng=np.random.default_rng(10), direction="both")
    interval = leakage_interval(draws, lambda pair: tpl.temporal_privacy_leakage([0.1] * 5, *pair).tpl)
    assert interval.upper.shape == (5,)
    assert (interval.lower < interval.upper).all()
    assert (interval.lower >= 0.1).all()
    assert (interval.upper <= 0.5).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: posterior_draws(np.ones((2, 3)), 1.0, 1, RNG), r"square and not empty, found shape \(2, 3\)"),
        (lambda: posterior_draws([[1, -1], [1, 1]], 1.0, 1, RNG), "not negative, found -1"),
        (lambda: posterior_draws([[1, np.nan], [1, 1]], 1.0, 1, RNG), "finite and not negative, found nan"),
        (lambda: posterior_draws(TABLE, -0.1, 1, RNG), "at least 0, found -0.1"),
        (lambda: posterior_draws(TABLE, 1.0, 0, RNG), "draws must be at least 1"),
        (lambda: posterior_draws(TABLE, 1.0, 1, RNG, direction="up"), "direction must be one of .* found 'up'"),
        (lambda: posterior_draws([[1, 1], [0, 0]], 0.0, 1, RNG, states="ab"), r"starts at state 'b' \(1 such states\)"),
        (lambda: posterior_draws([[1, 0], [1, 0]], 0.0, 1, RNG, direction="both"), "no step starts at state 1"),
        (lambda: posterior_draws(scipy.sparse.eye_array(20_001), 1.0, 1, RNG), "at most 20000 states, found 20001"),
        (lambda: bootstrap_draws([[0, 1]], 0, RNG), "draws must be at least 1"),
        (lambda: bootstrap_draws([[0, 1]], 1, RNG, smoothing=np.nan), "at least 0, found nan"),
        (lambda: bootstrap_draws([[0, 1]], 1, RNG, direction="up"), "direction must be one of"),
        (lambda: bootstrap_draws([[0, 1], [1, 0]], 1, RNG, groups=[1]), "one group a sequence, 2, found 1"),
        (lambda: bootstrap_draws([], 1, RNG), "at least one observed state"),
        (lambda: list(bootstrap_draws([[0, 1], [1, 0]], 50, np.random.default_rng(0))), "every state must be left"),
        (lambda: leakage_interval([1.0] * 19, float), "level 0.9 needs at least 20 draws, found 19"),
        (lambda: leakage_interval([1.0] * 20, float, level=1.0), r"probability in \(0, 1\), found 1.0"),
        (lambda: leakage_interval([1.0] * 19 + [np.nan], float), "found NaN in draw 19"),
    ],
)
def test_bad_input_names_constraint_value_and_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()
