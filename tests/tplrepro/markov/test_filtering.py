"""Filters of hidden chains against the sum over all paths of states, in 60 digits."""

import itertools
from operator import mul

import mpmath
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tplrepro import TransitionMatrix, dphmm
from tplrepro.markov import filtering
from tplrepro.markov.filtering import forward_backward, log_likelihoods_before, log_product


def over_all_paths(log_likelihoods, matrices, initial):
    """Priors, posteriors, smoothed and evidence in logarithms; None if the outputs are
    impossible."""
    with mpmath.workdps(60):
        T, n = np.shape(log_likelihoods)
        likelihoods = [[mpmath.exp(mpmath.mpf(float(x))) for x in row] for row in log_likelihoods]
        weights = np.full((3, T, n), mpmath.mpf(0))
        for path in itertools.product(range(n), repeat=T):
            moves = [initial[path[0]], *(matrices[t][path[t]][path[t + 1]] for t in range(T - 1))]
            chain = [*itertools.accumulate(map(mpmath.mpf, moves), mul)]
            products = [
                *itertools.accumulate(
                    [1, *(likelihoods[t][state] for t, state in enumerate(path))], mul
                )
            ]
            for t, state in enumerate(path):
                # A path up to t, without and with the output of t; each is met once for all
                # continuations.
                if not any(path[t + 1 :]):
                    weights[:2, t, state] += [chain[t] * products[t], chain[t] * products[t + 1]]
                weights[2, t, state] += chain[-1] * products[-1]
        evidence = weights[2, 0].sum()
        if not evidence:
            return None
        log = np.vectorize(lambda value: float(mpmath.log(value)) if value else -np.inf)
        return log(weights / weights.sum(axis=-1, keepdims=True)), float(mpmath.log(evidence))


@st.composite
def chains(draw):
    """A hidden chain with exact zeros, logs of any size and a matrix for each step, some sparse."""
    n, T = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    weight = st.one_of(st.just(0.0), st.floats(1e-3, 1), st.just(1e-300))

    def distribution():
        row = np.array(draw(st.lists(weight, min_size=n, max_size=n)))
        row[draw(st.integers(0, n - 1))] += 1.0
        return row / row.sum()

    likelihood = st.one_of(st.floats(-3, 3), st.floats(-3000, 0), st.just(-np.inf))
    logs = np.array(
        draw(st.lists(st.lists(likelihood, min_size=n, max_size=n), min_size=T, max_size=T))
    )
    matrices = [np.array([distribution() for _ in range(n)]) for _ in range(T - 1)]
    return logs, matrices, distribution()


@settings(max_examples=40)
@given(chains(), st.sampled_from([np.asarray, scipy.sparse.csr_array]))
def test_forward_backward_is_the_sum_over_all_paths_for_each_of_several_runs(chain, kind):
    logs, rows, initial = chain
    matrices = [TransitionMatrix(kind(matrix)) for matrix in rows]
    runs = [np.zeros_like(logs), logs]
    truth = [over_all_paths(run, rows, initial) for run in runs]
    if truth[1] is None:
        with pytest.raises(filtering.ImpossibleOutputError):
            forward_backward(runs, matrices, initial)
        return
    result = forward_backward([runs], matrices, initial)
    found = np.array([result.log_priors, result.log_posteriors, result.log_smoothed])[:, 0]
    for run, (expected, evidence) in enumerate(truth):
        # -inf where that is
        np.testing.assert_allclose(found[:, run], expected, rtol=1e-12, atol=1e-12)
        assert result.log_evidence[0, run] == pytest.approx(evidence, rel=1e-12, abs=1e-12)
    assert np.array_equal(
        [result.priors[0], result.posteriors[0], result.smoothed[0]], np.exp(found)
    )


@pytest.mark.parametrize("background", [0.02, 0.0])
@pytest.mark.parametrize("transpose", [False, True])
def test_a_sparse_product_is_the_dense_one_and_is_never_made_dense(
    background, transpose, monkeypatch
):
    rng = np.random.default_rng(2)
    stored = (
        scipy.sparse.random_array((30, 30), density=0.1, rng=rng) + 0.5 * scipy.sparse.eye_array(30)
    ).tocsr()
    stored.data[5:9] = [0.0, 1e-3, 1e-200, 0.0]  # less than the background
    P = TransitionMatrix(stored, background=background, normalize=True)
    dense = P.toarray()
    monkeypatch.setattr(TransitionMatrix, "toarray", None)
    spread = rng.normal(0, 400, (4, 30))
    alone = np.where(np.eye(30)[:4] > 0, 0.0, -np.inf)
    for weights in (spread, alone, np.zeros((1, 30)), np.full((1, 30), -np.inf)):
        with np.errstate(divide="ignore"):
            expected = np.logaddexp.reduce(
                weights[..., None] + np.log(dense.T if transpose else dense), axis=-2
            )
        found = log_product(weights, P, transpose=transpose)
        if not background:
            np.testing.assert_array_equal(
                found, log_product(weights, P.probabilities, transpose=transpose)
            )
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-11)  # -inf where that is


def test_messages_know_nothing_after_an_unknown_step():
    assert log_likelihoods_before(np.log([[0.9, 0.1], [0.5, 0.7], [0.2, 0.3]]), [np.eye(2), None])[
        2
    ].tolist() == [0, 0]


@pytest.mark.parametrize("n_first", [0, 1])
def test_a_cycle_is_the_list_of_its_steps(n_first):
    rng = np.random.default_rng(0)
    first = [TransitionMatrix.random(3, rng=rng) for _ in range(n_first)]
    cycle = tpl.Cycle([TransitionMatrix.random(3, rng=rng) for _ in range(2)], first=first)
    steps = cycle.over(5)
    likelihoods = rng.random((6, 3))
    initial = [0.2, 0.3, 0.5]
    of_cycle = forward_backward(np.log(likelihoods), cycle, initial)
    of_list = forward_backward(np.log(likelihoods), steps, initial)
    assert (of_cycle.log_smoothed == of_list.log_smoothed).all()
    given_cycle = tpl.condition_on(cycle, initial, likelihoods)
    given_list = tpl.condition_on(steps, initial, likelihoods)
    for found, expected in zip(given_cycle.backward, given_list.backward, strict=True):
        assert (found.toarray() == expected.toarray()).all()
    budgets = [0.1, 0.2, 0.3, 0.1, 0.2, 0.3]
    exact = tpl.exact_leakage(budgets, None, cycle)
    assert (exact.tpl == tpl.exact_leakage(budgets, None, steps).tpl).all()
    worst = tpl.worst_outputs(budgets, None, cycle, time=1)
    assert (worst.high == tpl.worst_outputs(budgets, None, steps, time=1).high).all()
    allocated = tpl.allocate_by_exact_leakage(1.0, None, cycle, 6)
    assert (allocated == tpl.allocate_by_exact_leakage(1.0, None, steps, 6)).all()
    graph = dphmm.PolicyGraph.complete(3)
    answers = np.eye(3)
    truth = [0, 1, 2, 0, 1, 2]
    of_cycle = dphmm.release(truth, graph, answers, 1.0, cycle, initial, rng=1)
    of_list = dphmm.release(truth, graph, answers, 1.0, steps, initial, rng=1)
    for found, expected in zip(of_cycle, of_list, strict=True):
        assert (found.posterior == expected.posterior).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_chain_given_evidence_has_the_shares_of_all_its_paths(seed):
    rng = np.random.default_rng(seed)
    n, horizon = 3, 4
    steps = rng.dirichlet(np.ones(n), (horizon - 1, n))
    initial = rng.dirichlet(np.ones(n))
    evidence = rng.random((horizon, n)) * (rng.random((horizon, n)) < 0.8) + [0.0, 1e-3, 0.0]
    weights = initial * evidence[0]
    for t in range(horizon - 1):  # of each path, one axis for each time
        weights = weights[..., None] * steps[t] * evidence[t + 1]
    given = tpl.condition_on(list(steps), initial, evidence)
    for t in range(horizon - 1):
        others = tuple(time for time in range(horizon) if time not in (t, t + 1))
        joint = weights.sum(axis=others)
        now, later = joint.sum(axis=1) > 0, joint.sum(axis=0) > 0
        assert given.possible[t].tolist() == now.tolist()
        assert given.possible[t + 1].tolist() == later.tolist()
        forward = joint[now] / joint[now].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(given.forward[t].toarray()[now], forward, rtol=1e-12)
        backward = joint[:, later] / joint[:, later].sum(axis=0)
        np.testing.assert_allclose(given.backward[t].toarray()[later], backward.T, rtol=1e-12)


def test_evidence_with_labels_is_taken_by_them():
    P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["home", "office"])
    evidence = pd.DataFrame([[0.9, 0.2], [0.3, 0.6]], columns=["home", "office"])
    one = tpl.condition_on(P, [0.5, 0.5], evidence)
    other = tpl.condition_on(P, [0.5, 0.5], evidence[["office", "home"]])
    plain = tpl.condition_on(P, [0.5, 0.5], evidence.to_numpy())
    for labelled in (one, other):
        assert labelled.forward[0].toarray().tolist() == plain.forward[0].toarray().tolist()


def test_an_error_names_the_phase_of_a_step_without_a_matrix_also_after_a_first_step():
    matrix = tpl.TransitionMatrix([[0.9, 0.1], [0.3, 0.7]])
    loss = tpl.PrivacyLossFunction(matrix)
    cycle = tpl.Cycle([matrix, loss], ["night", "day"], first=[matrix])
    with pytest.raises(ValueError, match="at phase 'day'"):
        tpl.condition_on(cycle, [0.5, 0.5], [[1, 1], [1, 0]])


def test_a_bound_for_several_laws_is_no_chain():
    backward = tpl.Cycle([[[0.9, 0.1], [0.3, 0.7]]]).reverse(start="any")
    with pytest.raises(ValueError, match="each step must have a matrix here, found AnyLaw"):
        tpl.condition_on(backward, [0.5, 0.5], [[1, 1], [1, 0]])
    for function in (tpl.exact_leakage, tpl.worst_outputs):
        options = {} if function is tpl.exact_leakage else {"time": 0}
        with pytest.raises(ValueError, match='AnyLaw, .* reverse the cycle with start="habit"'):
            function([0.1, 0.1], backward, None, **options)
    with pytest.raises(ValueError, match='AnyLaw, .* reverse the cycle with start="habit"'):
        tpl.allocate_by_exact_leakage(1.0, backward, None, 3)


def test_a_sparse_matrix_may_be_its_background_alone():
    background = tpl.TransitionMatrix(
        scipy.sparse.csr_array((3, 3)), background=np.full(3, 1 / 3), states="abc"
    )
    logs = np.log([[0.2, 0.3, 0.5]])
    np.testing.assert_allclose(log_product(logs, background), np.log([[1 / 3] * 3]), rtol=1e-14)
