"""Budgets for a series of unknown length, against series of known length, search and high
precision."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplfrontier as tf
import tplrepro as tpl
from tests.oracles import DIGITS, exact_loss, exact_supremum, recursion
from tests.tplrepro.allocation.problems import as_functions, assert_derivatives, problems
from tests.tplrepro.leakage.matrices import BACKWARD, FORWARD, KINDS, random_matrix
from tests.work import search_once
from tplfrontier.budgets import stopping
from tplfrontier.budgets.stopping import (
    Endless,
    EndlessBudgets,
    _local_optima,
    _numbers_of_first,
    _starting_shapes,
)
from tplrepro.leakage.temporal import loss_cycles


def exact_endless_tpl(endless, loss_b, loss_f, alpha):
    """The suprema over the length T of the TPL at the first times and in the tail's limit, with 50
    digits."""
    with mpmath.workdps(DIGITS):
        tail, ceiling = mpmath.mpf(endless.tail), mpmath.mpf(2 * alpha)
        budgets = [*(mpmath.mpf(float(epsilon)) for epsilon in endless.first), tail]
        limit_b, limit_f = (exact_supremum(loss, tail, ceiling) for loss in (loss_b, loss_f))
        bpl = recursion(budgets, loss_b, loss_f)[0]
        fpl = recursion([*budgets[:-1], limit_f], loss_b, loss_f)[1]
        at_times = [b + f - epsilon for b, f, epsilon in zip(bpl, fpl, budgets, strict=True)]
        return max([*at_times, limit_b + limit_f - tail])


ARGUMENTS = st.floats(0.2, 0.95), st.sampled_from(["absolute", "squared"])


@pytest.mark.parametrize(
    ("count", "kinds"),
    [
        (4, ("zeros", "sharp", "strong")),
        pytest.param(40, (*KINDS, "strong", None), marks=pytest.mark.slow),
    ],
)
def test_budgets_for_an_unknown_end_keep_alpha_and_are_no_worse_than_algorithm_7(count, kinds):
    @given(problems(kinds), *ARGUMENTS)
    @settings(max_examples=count)
    def check(problem, p, error):
        alpha, *sides = problem
        known = as_functions(*sides)
        try:
            constant = tpl.allocate_by_upper_bound(alpha, *known)
        except tpl.NoFiniteSupremumError:
            with pytest.raises(tpl.NoFiniteSupremumError):
                tf.allocate_with_stopping(alpha, *known, p, error=error)
            return
        endless = tf.allocate_with_stopping(alpha, *known, p, error=error)
        assert min([*endless.first, endless.tail]) > 0
        budgets = endless.budgets(200)
        assert tpl.temporal_privacy_leakage(budgets, *known).tpl.max() <= alpha
        if endless.first.size <= 60:
            largest = exact_endless_tpl(endless, *map(exact_loss, sides), alpha)
            assert largest <= alpha * (1 + mpmath.mpf(10) ** -38)  # the bisection's own error
        power = 1 if error == "absolute" else 2
        assert endless.expected_error(p, error) <= 1 / p / constant**power * (1 + 1e-12)

    check()


@pytest.mark.parametrize("error", ["absolute", "squared"])
@pytest.mark.parametrize(("p", "horizon"), [(0.2, 90), (0.5, 30)])
@pytest.mark.parametrize("alpha", [1.0, 6.0])
def test_budgets_for_an_unknown_end_are_those_of_falling_weights(alpha, p, horizon, error):
    # A series that ends asks for less and counts all but (1 - p)^T of the error, so its error is a
    # lower bound.
    weights = (1 - p) ** np.arange(horizon)
    known = tpl.allocate_optimally(alpha, BACKWARD, FORWARD, horizon, weights=weights, error=error)
    power = 1 if error == "absolute" else 2
    bound = (weights / known**power).sum()
    endless = tf.allocate_with_stopping(alpha, BACKWARD, FORWARD, p, error=error)
    assert bound * (1 - 1e-6) <= endless.expected_error(p, error) <= bound * (1 + 1e-5)
    series = (
        tpl.temporal_privacy_leakage(endless.budgets(T), BACKWARD, FORWARD) for T in range(1, 99)
    )
    largest = max(leakage.tpl.max() for leakage in series)
    assert alpha * (1 - 1e-9) < largest <= alpha


def test_budgets_for_an_unknown_end_tend_to_algorithm_7_for_long_series():
    constant, few = tpl.allocate_by_upper_bound(1.0, BACKWARD, FORWARD), (1e-2, 1e-4, 1e-6)
    endless = [tf.allocate_with_stopping(1.0, BACKWARD, FORWARD, p) for p in few]
    assert [one.tail for one in endless] == pytest.approx([constant] * 3, rel=1e-5)
    gains = [1 - p * constant * one.expected_error(p) for p, one in zip(few, endless, strict=True)]
    assert 0 < gains[2] < gains[1] / 50 < gains[0] / 2000


@pytest.mark.parametrize("count", [5, 50])
def test_derivatives_agree_with_differences(count):
    rng = np.random.default_rng(8)
    backward, forward = as_functions(*(random_matrix(rng, "dense", 4) for _ in range(2)))
    for sides in ((backward, forward), (backward, None), (None, forward)):
        assert_derivatives(
            Endless(1.3, loss_cycles(*sides), 0.1, 1, count), rng.uniform(0.1, 0.3, count + 1), rng
        )


def test_the_expected_error_is_that_of_drawn_lengths():
    endless = EndlessBudgets(np.array([0.5, 0.25]), 0.1)
    lengths = np.random.default_rng(1).geometric(0.3, 20000)
    drawn = np.cumsum(1 / endless.budgets(lengths.max()))[lengths - 1]
    assert endless.expected_error(0.3) == pytest.approx(
        drawn.mean(), abs=4 * drawn.std() / np.sqrt(20000)
    )
    assert endless.budgets(4).tolist() == [0.5, 0.25, 0.1, 0.1]
    assert endless.expected_error(0.5, "squared") == pytest.approx(4 + 0.5 * 16 + 0.25 / 0.5 * 100)


@pytest.mark.parametrize("count", [5, 6, 9])
def test_derivatives_for_a_cycle_agree_with_differences(count):
    rng = np.random.default_rng(9)
    backward, forward = [
        tpl.Cycle([random_matrix(rng, "dense", 3) for _ in range(p)]) for p in (3, 1)
    ]
    for sides in ((backward, forward), (forward, backward), (backward, None), (None, backward)):
        problem = Endless(1.3, loss_cycles(*sides), 0.1, 1, count)
        assert_derivatives(problem, rng.uniform(0.05, 0.15, count + 3), rng)


@pytest.mark.parametrize("start", ["habit", "any", [0.9, 0.1]])
@pytest.mark.parametrize("p", [0.02, 0.3])
def test_budgets_of_a_cycle_keep_alpha_however_long_the_series(p, start):
    cycle = tpl.Cycle(
        [[[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.4, 0.6]], [[0.6, 0.4], [0.5, 0.5]]]
    )
    back = cycle.reverse(start=start)
    endless = tf.allocate_with_stopping(1.0, back, cycle, p)
    assert endless.tail.shape == (3,)
    largest = 0.0
    for horizon in (1, 2, 3, 5, 8, 13, 30, 60, 200, 201, 202):
        leakage = tpl.temporal_privacy_leakage(endless.budgets(horizon), back, cycle)
        largest = max(largest, leakage.max())
    assert 0.999 < largest <= 1.0
    constant = tpl.allocate_by_upper_bound(1.0, back, cycle)
    reached = (1 - p) ** np.arange(5000)
    error_of_constant = (reached / np.resize(constant, 5000)).sum()
    found = (reached / endless.budgets(5000)).sum()
    assert endless.expected_error(p) == pytest.approx(found, rel=1e-9)
    assert found < error_of_constant * (1 + 1e-12)
    if p == 0.3:
        assert endless.first.size > 0
        assert found < 0.97 * error_of_constant


def test_a_long_cycle_has_budgets_for_ever_and_a_cycle_of_one_those_of_its_matrix(monkeypatch):
    monkeypatch.setattr(stopping, "_local_optima", search_once(_local_optima))
    rng = np.random.default_rng(3)
    week = tpl.Cycle([rng.dirichlet(np.full(3, 5.0), 3) for _ in range(168)])
    endless = tf.allocate_with_stopping(1.0, None, week, 0.1)
    assert (endless.first.size, endless.tail.shape) == (0, (168,))
    leakage = tpl.temporal_privacy_leakage(endless.budgets(400), None, week)
    assert leakage.max() <= 1.0
    alone = tf.allocate_with_stopping(1.0, BACKWARD, FORWARD, 0.3)
    of_cycles = tf.allocate_with_stopping(1.0, tpl.Cycle(BACKWARD), tpl.Cycle(FORWARD), 0.3)
    assert (of_cycles.tail, of_cycles.first.tolist()) == (alone.tail, alone.first.tolist())
    with pytest.raises(ValueError, match="every later step, found a list of 2"):
        tf.allocate_with_stopping(1.0, None, [FORWARD, FORWARD], 0.3)


TWO_PHASES = tpl.Cycle([[[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.4, 0.6]]])


def test_first_budgets_like_the_tail_become_part_of_it_and_smaller_ones_do_not():
    problem = Endless(1.0, loss_cycles(BACKWARD, FORWARD), 0.1, 1, 3)
    alike = problem.result(np.full(4, 0.1))
    assert alike.first.size == 0
    least_last = problem.result(np.array([0.1, 0.1, 0.05, 0.1]))
    assert least_last.first[2] == pytest.approx(least_last.tail / 2.0, rel=1e-9)
    one_more = problem.result(np.array([0.2, 0.1, 0.1, 0.1]))
    assert one_more.first.size == 1


def test_a_cycle_has_at_most_96_budgets_and_a_matrix_768_first_ones():
    assert _numbers_of_first(loss_cycles(BACKWARD, FORWARD))[-1] == 768
    for cycle in (TWO_PHASES, tpl.Cycle([BACKWARD] * 24 + [FORWARD])):
        losses = loss_cycles(None, cycle)
        assert max(_numbers_of_first(losses)) + len(losses) <= 96


@pytest.mark.parametrize(("cycle", "has_knots"), [(FORWARD, True), (TWO_PHASES, False)])
def test_first_budgets_lie_between_others_for_a_single_matrix_only(monkeypatch, cycle, has_knots):
    knots_of_searches = []

    def keep_start(_problem, start, knots=None):
        knots_of_searches.append(knots)
        return start

    monkeypatch.setattr(Endless, "solve", keep_start)
    losses = loss_cycles(cycle, cycle)
    constant = EndlessBudgets(np.empty(0), tpl.allocate_by_upper_bound(1.0, cycle, cycle))
    problem = Endless(1.0, losses, 0.2, 1, 6)
    optima = _local_optima(problem, constant, constant, 0.2)
    assert [knots is not None for knots in knots_of_searches] == [has_knots] * 3
    assert len(optima) == 3
    size = problem.weights.size
    shapes = [*_starting_shapes(problem, constant, 0.2)]
    assert [shape.size for shape in shapes] == [size, size]
    first = [shape[0] > constant.budgets(1)[0] * 1.01 for shape in shapes]
    assert first == [has_knots, True]
