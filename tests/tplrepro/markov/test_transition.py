"""Transition matrices, dense and sparse alike: Bayes' rule, products, paths, smoothing by Eq. (28)
of [1]."""

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tplrepro.markov import (
    as_sequences,
    count_transitions,
    drop_dead_ends,
    forward_backward,
    stationary,
)

FIG_2_FORWARD = [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]]


def sparse_example(n=12):
    rng, names = np.random.default_rng(0), [f"s{i}" for i in range(n)]
    counts = scipy.sparse.random_array(
        (n, n), density=0.2, rng=rng, data_sampler=lambda size: rng.integers(1, 9, size)
    )
    return tpl.TransitionMatrix(
        counts.tocsr(), background=rng.random(n) * 0.1 + 0.01, normalize=True, states=names
    )


@pytest.mark.parametrize(
    "made", [lambda P: P, copy.deepcopy, lambda P: pickle.loads(pickle.dumps(P))]
)
def test_arrays_of_matrices_chains_and_sequences_cannot_be_changed(made):
    rows = np.array(FIG_2_FORWARD)
    dense, sparse = tpl.TransitionMatrix(rows, states="abc"), sparse_example()
    rows[0] = 0
    assert dense.probabilities[0].tolist() == FIG_2_FORWARD[0]
    assert sparse.excess.nnz
    filtered = forward_backward(np.zeros((2, 3)), FIG_2_FORWARD, [1, 0, 0])
    sequences = as_sequences([["x", "y"]])
    dense, sparse, filtered, sequences = map(made, (dense, sparse, filtered, sequences))
    arrays = [
        dense.probabilities,
        sparse.background,
        filtered.log_priors,
        sequences.values,
        sequences.labels,
    ]
    parts = (part for P in (sparse.probabilities, sparse.excess) for part in (P.data, P.indices))
    for array in [*arrays, *parts]:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    first = sparse.row(0)
    with pytest.raises(ValueError, match="read-only"):
        sparse.probabilities[0, 0] = 0.5
    for stored in (sparse.probabilities, sparse.excess):
        stored.data, stored.indices = 0 * stored.data, 0 * stored.indices
    with pytest.raises(AttributeError, match="cannot be changed"):
        sparse.probabilities = dense.probabilities
    assert (sparse.row(0) == first).all()
    assert np.eye(12)[0] @ sparse == pytest.approx(first)
    dense.states.append("another")
    assert dense.states == ["a", "b", "c"]


SWAPPED = pd.DataFrame([[0.8, 0.2], [0.1, 0.9]], index=["a", "b"], columns=["b", "a"])


def test_states_of_a_matrix_are_kept_by_another_and_rows_must_sum_to_one():
    assert tpl.TransitionMatrix(pd.DataFrame(np.eye(2))).states == range(2)
    of_counts = tpl.TransitionMatrix.from_counts(SWAPPED)
    assert (
        tpl.TransitionMatrix(SWAPPED).states
        == of_counts.states
        == drop_dead_ends(SWAPPED)[1]
        == ["a", "b"]
    )
    again = tpl.TransitionMatrix(sparse_example())
    assert (again.states, again.background.tolist()) == (
        sparse_example().states,
        sparse_example().background.tolist(),
    )
    tpl.TransitionMatrix([[0.5, 0.5 + 9e-10], [0.5, 0.5]])
    assert tpl.TransitionMatrix([[1, 3], [2, 2]], normalize=True).probabilities.tolist() == [
        [0.25, 0.75],
        [0.5, 0.5],
    ]


def test_reverse_has_the_shares_of_the_earlier_states_in_a_simulation():
    rng = np.random.default_rng(3)
    initial = np.array([0.2, 0.3, 0.5])
    draws = 200_000
    first = rng.choice(3, draws, p=initial)
    ends = np.cumsum(FIG_2_FORWARD, axis=1)[first]
    second = (rng.random(draws)[:, None] > ends).sum(axis=1)
    backward = tpl.TransitionMatrix(FIG_2_FORWARD).reverse(initial).probabilities
    for state in range(3):
        came_from = first[second == state]
        shares = np.bincount(came_from, minlength=3) / came_from.size
        standard_errors = np.sqrt(backward[state] * (1 - backward[state]) / came_from.size)
        assert (np.abs(shares - backward[state]) < 4 * standard_errors).all()


def test_reverse_is_bayes_rule():
    initial = np.array([0.2, 0.3, 0.5])
    P = tpl.TransitionMatrix(FIG_2_FORWARD, states=list("abc"))
    B = P.reverse(initial)
    joint = initial[:, None] * FIG_2_FORWARD
    assert B.probabilities == pytest.approx((joint / joint.sum(axis=0)).T)
    assert B.states == ["a", "b", "c"]
    # Reversing twice gives the chain back; without a background a sparse matrix stays sparse.
    assert B.reverse(initial @ P).probabilities == pytest.approx(P.probabilities)
    assert P.reverse().reverse().probabilities == pytest.approx(P.probabilities)
    sparse = tpl.TransitionMatrix(scipy.sparse.csr_array(FIG_2_FORWARD), states="abc").reverse(
        initial
    )
    assert (sparse.is_sparse, sparse.states) == (True, B.states)
    assert sparse.toarray() == pytest.approx(B.probabilities)
    assert not sparse_example().reverse().is_sparse


@settings(max_examples=40)
@given(n=st.integers(1, 7), seed=st.integers(0, 1000), zeros=st.floats(0, 0.8))
def test_stationary_distribution_is_kept_by_a_step(n, seed, zeros):
    P = tpl.TransitionMatrix.random(n, rng=np.random.default_rng(seed), zeros=zeros)
    if (np.abs(np.linalg.eigvals(P.probabilities) - 1) < 1e-9).sum() > 1:
        with pytest.raises(ValueError, match="closed classes"):
            P.stationary()
        return
    p = P.stationary()
    assert p @ P == pytest.approx(p, abs=1e-14)
    assert p.sum() == pytest.approx(1.0)
    leave, enter = 1e-14 * (1 + seed), 3e-14  # a nearly decomposed chain keeps its digits
    P = tpl.TransitionMatrix([[1 - leave, leave], [enter, 1 - enter]])
    assert P.stationary() == pytest.approx(
        [enter / (leave + enter), leave / (leave + enter)], rel=1e-12
    )
    # a transient state
    assert tpl.TransitionMatrix([[0.8, 0.2], [0.0, 1.0]]).stationary().tolist() == [0.0, 1.0]


def chain_with_two_wells(n):
    """The states in a row are drawn to its nearer end, and the middle belongs to the first one."""
    up = np.where(np.arange(n) < n // 2 + 3, 0.27, 0.63)[:-1]
    down = 0.9 - np.append(up, 0.63)[1:]
    steps = np.diag(up, 1) + np.diag(down, -1)
    return steps + np.diag(1.0 - steps.sum(axis=1))


def test_a_sparse_chain_between_two_wells_keeps_its_digits_or_is_refused(monkeypatch):
    P = chain_with_two_wells(80)
    expected = tpl.TransitionMatrix(P).stationary()
    sparse = tpl.TransitionMatrix(scipy.sparse.csr_array(P))
    assert sparse.stationary() == pytest.approx(expected, rel=1e-12)
    monkeypatch.setattr(stationary, "MOST_REDUCED", 79)
    with pytest.raises(ValueError, match=r"found two that differ by .* give `initial`"):
        sparse.stationary()


def test_powers_settle_at_what_states_are_reduced_to(monkeypatch):
    P = sparse_example()
    expected = P.stationary()
    monkeypatch.setattr(stationary, "MOST_REDUCED", 11)
    assert P.stationary() == pytest.approx(expected, abs=1e-12)
    some = tpl.TransitionMatrix(
        scipy.sparse.csr_array(np.kron(np.eye(3), [[0.5, 0.5], [0.3, 0.7]]))
    )
    monkeypatch.setattr(stationary, "MOST_REDUCED", 5)
    with pytest.raises(ValueError, match="found 3 closed classes"):
        some.stationary()


def test_sparse_agrees_with_its_dense_form():
    P = sparse_example()
    D = tpl.TransitionMatrix(P.toarray(), states=P.states)
    p = np.random.default_rng(1).dirichlet(np.ones(12))
    for product in (p @ P, p.tolist() @ P):
        assert product == pytest.approx(p @ D, abs=1e-15)
    assert P @ p == pytest.approx(D @ p, abs=1e-15)
    assert (P @ P).states == D.states
    assert (P @ P).to_numpy() == pytest.approx(D.to_numpy() @ D.to_numpy(), abs=1e-15)
    assert (len(P), P[3, 4]) == (12, D.probabilities[3, 4])
    assert P.stationary() == pytest.approx(D.stationary(), rel=1e-14)
    some = tpl.TransitionMatrix(
        scipy.sparse.csr_array([[0.5, 0.5], [0, 0.75]]), background=[0, 0.25]
    )
    assert some.stationary() == pytest.approx([1 / 3, 2 / 3])
    assert (P.row(3).tolist(), P.column(3).tolist()) == (D.row(3).tolist(), D.column(3).tolist())
    for take in (P.row, P.column, D.row, D.column):
        with pytest.raises(IndexError, match="found -1; see `states`"):
            take(-1)
    assert (P.shape, P.index("s4")) == ((12, 12), 4)
    assert repr(P).startswith("TransitionMatrix(12 states 's0', 's1', ..., 's11'; sparse, ")
    assert np.asarray(P) == pytest.approx(D.probabilities)


def test_entries_are_found_by_label_and_dense_and_sparse_forms_are_equal():
    P = tpl.TransitionMatrix(FIG_2_FORWARD, states=["a", ("b", 1), "c"])
    assert (P["a", ("b", 1)], P[0, ("b", 1)], P["c"].tolist()) == (0.3, 0.3, [0.6, 0.2, 0.2])
    assert P.to_frame().loc[[("b", 1)], "c"].tolist() == [0.8]
    assert pd.DataFrame(P).to_numpy().tolist() == [row.tolist() for row in P] == FIG_2_FORWARD
    for unknown in ("d", ("a", "d")):
        with pytest.raises(ValueError, match="unknown state 'd'"):
            P[unknown]
    sparse = sparse_example()
    stored = sparse.probabilities.tolil()
    stored[0, :] = sparse.row(0)  # also what equals the background
    again = tpl.TransitionMatrix(stored, background=sparse.background, states=sparse.states)
    dense = tpl.TransitionMatrix(sparse.toarray(), sparse.states)
    assert again.probabilities.nnz > sparse.probabilities.nnz
    assert {sparse, again, dense, tpl.TransitionMatrix(dense)} == {dense}
    rolled = tpl.TransitionMatrix(
        sparse.probabilities[:, np.arange(12) - 1], sparse.states, False, sparse.background
    )
    others = [tpl.TransitionMatrix(dense.toarray()), rolled, "P"]
    assert not any(P == other for other in others for P in (sparse, dense))


def test_chains_are_irreducible_and_aperiodic_as_powers_show():
    rng = np.random.default_rng(4)
    for n in (1, 2, 3, 4) * 25:
        P = tpl.TransitionMatrix.random(n, rng=rng, zeros=0.8)
        reached = [np.linalg.matrix_power(P.to_numpy() > 0, k) for k in range(1, 2 * n * n + 2)]
        assert P.is_irreducible == np.any(reached, axis=0).all()
        ever = np.any([np.diag(power) for power in reached], axis=0)  # states that come back
        back = [
            [k for k, power in enumerate(reached, 1) if power[i, i]] for i in np.flatnonzero(ever)
        ]
        assert P.is_aperiodic == all(np.gcd.reduce(times) == 1 for times in back)


def test_counts_with_their_states_are_taken_as_they_are_returned():
    sequences = [["home", "office", "home", "home"], ["office", "office", "home"]]
    counted = count_transitions(sequences)
    P = tpl.TransitionMatrix.from_counts(counted)
    assert list(P.states) == list(counted[1])
    counts = counted[0].toarray()
    expected = counts / counts.sum(axis=1, keepdims=True)
    assert P.toarray().tolist() == expected.tolist()


@settings(max_examples=40)
@given(
    sequences=st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=6), min_size=1, max_size=5)
)
def test_dropping_dead_ends_keeps_what_repeated_deletion_keeps(sequences):
    steps = {(a, b) for s in sequences for a, b in itertools.pairwise(s)}
    kept = set(range(6))
    for _ in range(6):
        inside = [(a, b) for a, b in steps if {a, b} <= kept]
        kept = {a for a, _ in inside} & {b for _, b in inside}
    names = list("abcdef")
    counts, _ = count_transitions(sequences, n_states=6)
    if not kept:
        with pytest.raises(ValueError, match="reached and left, found none of 6"):
            drop_dead_ends(counts)
        return
    smaller, states = drop_dead_ends(counts)
    assert states == sorted(kept)
    assert drop_dead_ends(counts, names)[1] == [names[state] for state in states]
    assert smaller.toarray().tolist() == counts.toarray()[np.ix_(states, states)].tolist()
    for counted in (smaller, smaller.T):
        tpl.TransitionMatrix.from_counts(counted)


def test_a_seed_makes_a_permutation_and_zeros_are_a_share():
    P, Q = (tpl.strongest(20, seed=1).probabilities for _ in range(2))
    assert (P @ Q.T == np.eye(20)).all()
    P = tpl.TransitionMatrix.random(40, rng=np.random.default_rng(5), zeros=0.3).probabilities
    assert 0.2 < (P == 0).mean() < 0.4


@pytest.mark.parametrize("s", [0.0, 0.005, 1.0, 50.0])
def test_smoothed_is_equation_28_as_printed(s):
    P = tpl.TransitionMatrix.random(6, rng=np.random.default_rng(2), zeros=0.5).probabilities
    for kind in (P, tpl.TransitionMatrix(scipy.sparse.csr_array(P)), sparse_example()):
        expected = [[(p + s) / sum(x + s for x in row) for p in row] for row in np.asarray(kind)]
        found = tpl.smoothed(kind, s)
        assert found.is_sparse == getattr(kind, "is_sparse", False)
        assert found.toarray() == pytest.approx(np.array(expected), rel=1e-14)


def test_rows_that_nearly_sum_to_one_are_divided_by_their_sums():
    """Else budgets, which are computed from 1 - q as well, leak more than alpha."""
    P = [
        [0.6666666667, 0.1666666667, 0.1666666667],
        [0.1666666667, 0.1666666667, 0.6666666667],
        [0.1, 0.7, 0.2],
    ]
    assert np.abs(tpl.TransitionMatrix(P).to_numpy().sum(axis=1) - 1).max() <= 2.0**-52
    budget = tpl.allocate_by_upper_bound(1.0, P, P)
    assert tpl.temporal_privacy_leakage(budget, P, P, horizon=1000).tpl.max() <= 1.0
    exact = tpl.TransitionMatrix([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]])
    assert exact[0].tolist() == [0.1, 0.2, 0.7]
    assert exact[1, 2] == 0.4


def test_a_range_that_does_not_begin_at_0_is_labels():
    P = tpl.TransitionMatrix(np.eye(3), states=range(1, 4))
    assert P.states == [1, 2, 3]
    with pytest.raises(
        ValueError, match=r"same states in the same order, found \[1, 2, 3\] and \[3, 2, 1\]"
    ):
        tpl.temporal_privacy_leakage([0.1], P, tpl.TransitionMatrix(np.eye(3), states=[3, 2, 1]))


def test_a_power_is_the_matrix_of_so_many_steps():
    P = tpl.TransitionMatrix(FIG_2_FORWARD, states="abc", step="1h")
    third = P**3
    expected = np.array(FIG_2_FORWARD) @ FIG_2_FORWARD @ FIG_2_FORWARD
    np.testing.assert_allclose(third.to_numpy(), expected, rtol=1e-14)
    assert (third.states, third.step) == (P.states, 3 * P.step)
    assert P**1 is P


def test_a_plot_colours_probabilities_from_0_to_1():
    [image] = tpl.TransitionMatrix([[0.5, 0.5], [0.4, 0.6]]).plot().images
    assert image.get_clim() == (0.0, 1.0)
