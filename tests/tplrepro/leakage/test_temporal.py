"""Leakages over time against the recursion by brute force, and their compositions against all
windows."""

import copy
import pickle
from dataclasses import FrozenInstanceError
from functools import partial
from itertools import pairwise

import mpmath
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import tplfrontier as tf
import tplrepro as tpl
from tests.oracles import brute_force_loss, exact_loss, recursion
from tests.tplrepro.leakage.matrices import BACKWARD, FIG_3, matrices
from tplfrontier.budgets.stopping import EndlessBudgets
from tplrepro.leakage.accumulation import accumulate_leakages
from tplrepro.leakage.temporal import (
    ROUNDING_PER_RELEASE,
    dense_array,
    loss_cycles,
    steps_of_both_sides,
)


@st.composite
def series(draw, longest=6):
    epsilons = 10.0 ** np.array(draw(st.lists(st.floats(-3, 0.5), min_size=1, max_size=longest)))
    side = st.lists(matrices(4), min_size=epsilons.size - 1, max_size=epsilons.size - 1)
    return epsilons, draw(side), draw(side)


@given(series())
@settings(max_examples=60)
def test_leakage_is_the_recursion_with_the_matrix_of_each_step(case):
    epsilons, backward, forward = case
    r = tpl.temporal_privacy_leakage(epsilons, backward or None, forward or None)
    losses = ([partial(brute_force_loss, P) for P in side] for side in (backward, forward))
    bpl, fpl, both = recursion(epsilons, *losses)
    np.testing.assert_allclose(r.bpl, bpl, rtol=1e-11)
    np.testing.assert_allclose(r.fpl, fpl, rtol=1e-11)
    np.testing.assert_allclose(r.tpl, both, rtol=1e-10)
    assert r.bpl.shape == r.fpl.shape == r.tpl.shape == epsilons.shape


@given(series(longest=30))
@settings(max_examples=40)
def test_each_leakage_lies_between_that_of_one_release_and_of_all(case):
    """Remark 1 of [1]: each leakage lies between that of one release and that of all."""
    epsilons, backward, forward = case
    r = tpl.temporal_privacy_leakage(epsilons, backward or None, forward or None)
    total = epsilons.sum() * (1 + 1e-14)
    for leakage in (r.bpl, r.fpl):
        assert np.all(epsilons <= leakage)
        assert np.all(leakage <= total)
    assert np.all(np.maximum(r.bpl, r.fpl) <= r.tpl * (1 + 1e-14))
    assert np.all(r.tpl <= total)
    more = tpl.temporal_privacy_leakage(epsilons * 1.5, backward or None, forward or None)
    assert np.all(more.bpl >= r.bpl)
    assert np.all(more.fpl >= r.fpl)


#: What takes a matrix of each side, for two releases, and gives numbers.
ANALYSES = {
    "temporal": lambda *sides: tpl.temporal_privacy_leakage([0.1, 0.2], *sides).tpl,
    "at all times": lambda *sides: (
        tpl.leakage_at_all_times([0.3], *sides, times=[1], horizon=2).tpl
    ),
    "exact": lambda *sides: tpl.exact_leakage([0.1, 0.2], *sides).tpl,
    "worst": lambda *sides: tpl.worst_outputs([0.1, 0.2], *sides, time=1).high,
    "mechanism": lambda *sides: tf.mechanism_leakage(np.exp(np.eye(2)), *sides, horizon=2).tpl,
    "measured": lambda *sides: tf.measured_leakage(np.eye(2), *sides).tpl,
    "quantification": lambda *sides: tpl.allocate_by_quantification(1.0, *sides, 2),
    "optimal": lambda *sides: tpl.allocate_optimally(1.0, *sides, 2),
    "by exact leakage": lambda *sides: tpl.allocate_by_exact_leakage(1.0, *sides, 2),
    "upper bound": lambda *sides: tpl.allocate_by_upper_bound(0.1, *sides),
    "stopping": lambda *sides: tf.allocate_with_stopping(1.0, *sides, 0.3).budgets(3),
    "profile": lambda *sides: tf.temporal_privacy_profile([0.1, 0.2], *sides).epsilon(1e-3),
    "account": lambda *sides: tpl.TemporalAccountant(*sides).compose(0.1, 2).tpl,
}
each_analysis = pytest.mark.parametrize("analysis", ANALYSES.values(), ids=ANALYSES)


@each_analysis
def test_every_form_of_a_matrix_gives_the_same(analysis):
    P, names = BACKWARD, ["a", "b"]
    expected = np.asarray(analysis(P, P)).tolist()
    matrix, sparse, frame = (
        tpl.TransitionMatrix(P, names),
        scipy.sparse.csr_matrix(P),
        pd.DataFrame(P, names, names),
    )
    forms = [P.tolist(), matrix, sparse, frame, tpl.PrivacyLossFunction(P), np.asfortranarray(P)]
    for backward, forward in pairwise(forms):
        assert np.asarray(analysis(backward, forward)).tolist() == expected


@each_analysis
def test_both_sides_have_the_same_states(analysis):
    named = [tpl.TransitionMatrix(FIG_3, states) for states in (["a", "b"], ["b", "a"])]
    for other in (
        named[1],
        tpl.PrivacyLossFunction(named[1]),
        pd.DataFrame(FIG_3, ["b", "a"], ["b", "a"]),
    ):
        with pytest.raises(
            ValueError, match=r"same states in the same order, found \['a', 'b'\] and \['b', 'a'\]"
        ):
            analysis(named[0], other)
    with pytest.raises(ValueError, match=r"same states in the same order, found \[2, 3\]"):
        analysis(FIG_3, np.eye(3))


def test_one_budget_serves_all_releases_and_frames_and_plots_show_the_leakage():
    r = tpl.temporal_privacy_leakage(0.1, FIG_3, FIG_3, horizon=3)
    assert r.tpl.tolist() == tpl.temporal_privacy_leakage([0.1] * 3, FIG_3, FIG_3).tpl.tolist()
    assert (
        tpl.leakage_at_all_times(0.1, FIG_3, FIG_3, times=[0, 1, 2], horizon=3).tpl.tolist()
        == r.tpl.tolist()
    )
    for frame in (
        r.to_frame(),
        tpl.TemporalAccountant(FIG_3, FIG_3).compose(0.1, 3).leakage.to_frame(),
    ):
        assert frame.index.name == "time"
        assert frame.to_dict("list") == {
            "epsilon": [0.1] * 3,
            "bpl": [*r.bpl],
            "fpl": [*r.fpl],
            "tpl": [*r.tpl],
        }
    axes = r.plot()
    assert r.plot(axes) is axes
    assert [line.get_label() for line in axes.get_lines()] == ["ε", "BPL", "FPL", "TPL"] * 2
    assert axes.get_lines()[3].get_ydata().tolist() == r.tpl.tolist()
    assert axes.get_lines()[3].get_xdata().tolist() == [1, 2, 3]  # as in [1], not 0, 1, 2
    assert axes.get_xlabel() == "time $t$"
    assert 0 not in axes.get_xticks()


def test_a_list_holds_a_matrix_for_each_step():
    epsilons, L = [0.1, 0.2, 0.3], tpl.PrivacyLossFunction(FIG_3)
    expected = tpl.temporal_privacy_leakage(epsilons, L, L).tpl.tolist()
    rows, sparse = FIG_3.tolist(), scipy.sparse.csr_matrix(FIG_3)
    for form in (
        [FIG_3, FIG_3],
        (L, rows),
        np.stack([FIG_3, FIG_3]),
        [sparse, L],
        [pd.DataFrame(FIG_3), sparse],
    ):
        assert tpl.temporal_privacy_leakage(epsilons, form, form).tpl.tolist() == expected
        assert tf.temporal_privacy_profile(epsilons, form, form).delta(0.7).shape == (3,)
    for none in (None, FIG_3, []):  # one release has no steps
        assert tpl.temporal_privacy_leakage([0.7], none, none).tpl.tolist() == [0.7]
    with pytest.raises(ValueError, match="same states"):
        tpl.temporal_privacy_leakage(epsilons, [FIG_3, np.eye(3)], None)


def test_each_side_has_as_many_steps_as_lie_between_the_time_points():
    one, other = tpl.TransitionMatrix(FIG_3), tpl.TransitionMatrix(BACKWARD)
    for matrices_of_side in (one, [one, other], tpl.Cycle([one, other]), None):
        steps = steps_of_both_sides(lambda matrix: matrix, matrices_of_side, matrices_of_side, 3)
        assert len(steps.backward) == len(steps.forward) == 2


def test_a_sparse_matrix_becomes_dense_up_to_a_number_of_states():
    for P in (scipy.sparse.eye_array(3), np.eye(4)):
        assert (
            dense_array(tpl.TransitionMatrix(P), 3, "of sparse states").tolist()
            == np.eye(P.shape[0]).tolist()
        )


def test_a_long_series_is_the_plain_recursion():
    """The runs of equal budgets, cut short at their fixed point, against one step after the
    other."""
    P = tpl.smoothed(tpl.strongest(5), 0.01)
    L = tpl.PrivacyLossFunction(P)
    epsilons = np.repeat([0.5, 0.1, 0.9], [4000, 3000, 3000])
    r = tpl.temporal_privacy_leakage(epsilons, backward=L, forward=None)
    assert r.bpl.tolist() == recursion(epsilons, L.at, np.zeros_like)[0]
    assert accumulate_leakages([], np.empty(0)).size == 0
    assert r.bpl[3999] == pytest.approx(L.supremum(0.5), rel=1e-12)


@pytest.mark.parametrize("stay", [0.9, 1 - 1e-5, 1 - 1e-12])
@pytest.mark.parametrize("horizon", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_the_rounding_errors_of_a_long_series_are_within_what_it_says(stay, horizon):
    """Each L may be off to either side, and hardly any later step makes an error less where
    users hardly move."""
    P = np.array([[stay, 1.0 - stay], [0.3 * (1.0 - stay), 1.0 - 0.3 * (1.0 - stay)]])
    epsilons = np.random.default_rng(horizon).uniform(0.001, 0.1, horizon)
    r = tpl.temporal_privacy_leakage(epsilons, P, P)
    loss = exact_loss(P)
    with mpmath.workdps(30):
        budgets = [mpmath.mpf(epsilon) for epsilon in epsilons.tolist()]
        exact = recursion(budgets, loss, loss)
        for found, truth in zip((r.bpl, r.fpl, r.tpl), exact, strict=True):
            most = ROUNDING_PER_RELEASE * horizon * max(truth)
            errors = [abs(a - b) for a, b in zip(found.tolist(), truth, strict=True)]
            assert max(errors) <= most
    assert f"{ROUNDING_PER_RELEASE:g} T" in tpl.temporal_privacy_leakage.__doc__


@given(series(longest=9))
@settings(max_examples=60)
def test_composition_and_w_event_are_those_of_all_windows(case):
    """Theorem 3 of [1] over every window; the w-event level is the worst window (Table 2)."""
    epsilons, backward, forward = case
    r = tpl.temporal_privacy_leakage(epsilons, backward or None, forward or None)
    T, levels = epsilons.size, []
    for w in range(1, T + 1):
        windows = []
        for first in range(T - w + 1):
            last = first + w - 1
            between = epsilons[first + 1 : last].sum() if w > 1 else -epsilons[first]
            windows.append(r.bpl[first] + r.fpl[last] + between)
            assert r.composed(first, last) == pytest.approx(windows[-1], rel=1e-12)
        levels.append(r.w_event(w))
        assert levels[-1] == pytest.approx(max(windows), rel=1e-12)
    assert np.all(np.diff(levels) >= -1e-12 * r.user_level)  # a wider window leaks no less
    assert levels[-1] <= r.user_level * (1 + 1e-12)
    # Corollary 1 of [1]: correlation does not change the user level.
    assert r.user_level == pytest.approx(epsilons.sum(), rel=1e-14)
    assert r.composed(0, T - 1) == pytest.approx(r.user_level if T > 1 else r.tpl[0], rel=1e-12)


@pytest.mark.parametrize(
    "result_of",
    [
        lambda e, P: tpl.temporal_privacy_leakage(e, P, P),
        lambda e, P: tpl.leakage_at_all_times(e, P, P, times=[0, 2], horizon=3),
        lambda e, P: tpl.exact_leakage(e, P, P),
        lambda e, P: tf.mechanism_leakage(P, P, P, horizon=2),
        lambda e, P: tf.measured_leakage(P, P, P),
        lambda e, P: tpl.worst_outputs(e, P, P, time=0),
        lambda e, P: EndlessBudgets(e, 0.1),
    ],
)
def test_results_are_frozen_copies(result_of):
    epsilons, P = np.array([0.1, 0.2]), np.array([[0.7, 0.3], [0.4, 0.6]])
    result, expected = result_of(epsilons, P), pickle.dumps(result_of(epsilons.copy(), P.copy()))
    epsilons[:] = P[:] = 9.0
    for copied in (result, copy.copy(result), copy.deepcopy(result), pickle.loads(expected)):
        for name, values in vars(copied).items():
            with pytest.raises(FrozenInstanceError):
                setattr(copied, name, values)
            if isinstance(values, np.ndarray):
                assert not values.flags.writeable
                np.testing.assert_array_equal(values, getattr(pickle.loads(expected), name))


def test_phases_of_two_cycles_have_the_names_of_a_cycle_that_is_as_long_as_both():
    day = tpl.Cycle([FIG_3, BACKWARD], phases=["day", "night"])
    three = tpl.Cycle([FIG_3, BACKWARD, FIG_3])
    assert loss_cycles(FIG_3, day).phases == ["day", "night"]
    assert loss_cycles(three, day).phases == [0, 1, 2, 3, 4, 5]
