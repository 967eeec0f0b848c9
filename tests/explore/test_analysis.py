from math import inf, log

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tplrepro.explore.analysis import Inputs, analyse, check_same_states, critical_budget
from tplrepro.explore.matrices import EXAMPLES, KINDS, example, generate
from tplrepro.explore.report import critical_words, problem_html, schemes_html, summary_html
from tplrepro.explore.schemes import PENDING, SCHEMES, mean_error
from tplrepro.explore.sequences import from_dataset, from_text

BACKWARD, FORWARD = map(tpl.PrivacyLossFunction, example("Fig. 8 of TKDE 2019"))


def inputs(epsilon=0.1, horizon=6, alpha=1.0, backward=BACKWARD, forward=FORWARD, sensitivity=2.0):
    return Inputs(backward, forward, np.full(horizon, epsilon), alpha, sensitivity)


def test_everything_is_what_the_package_says():
    result = analyse(inputs())
    expected = tpl.temporal_privacy_leakage([0.1] * 6, BACKWARD, FORWARD)
    for kind in ("bpl", "fpl", "tpl"):
        assert np.array_equal(getattr(result.leakage, kind), getattr(expected, kind))
    equal, seven, eight, best = (scheme.budgets for scheme in result.schemes)
    assert np.array_equal(equal, np.full(6, 1 / 6))
    assert np.array_equal(seven, np.full(6, tpl.allocate_by_upper_bound(1.0, BACKWARD, FORWARD)))
    assert np.array_equal(eight, tpl.allocate_by_quantification(1.0, BACKWARD, FORWARD, 6))
    assert np.array_equal(best, tpl.allocation.allocate_optimally(1.0, BACKWARD, FORWARD, 6))
    assert mean_error(best, 2.0) < mean_error(eight, 2.0) == pytest.approx(np.mean(2.0 / eight))
    for scheme in result.schemes:
        tpl_of_scheme = tpl.temporal_privacy_leakage(scheme.budgets, BACKWARD, FORWARD).tpl.max()
        assert scheme.largest_tpl == tpl_of_scheme <= 1.0
    for side, function in zip(result.sides, (BACKWARD, FORWARD), strict=True):
        assert np.array_equal(side.losses, function(side.alphas))
        assert side.supremum == function.supremum(0.1) < side.alphas[-1]
    assert result.supremum == BACKWARD.supremum(0.1) + FORWARD.supremum(0.1) - 0.1


@pytest.mark.parametrize(("backward", "forward"), [(BACKWARD, None), (None, FORWARD)])
def test_one_side_only(backward, forward):
    result = analyse(inputs(backward=backward, forward=forward))
    expected = tpl.temporal_privacy_leakage([0.1] * 6, backward, forward)
    assert np.array_equal(result.leakage.tpl, expected.tpl)
    (side,) = result.sides
    assert side.function is (backward or forward)
    assert result.supremum == side.supremum


def test_breakpoints_are_points_of_the_curve():
    function = tpl.PrivacyLossFunction(example("Example 4 of TKDE 2019")[1])
    (side,) = analyse(inputs(alpha=3.0, backward=None, forward=function)).sides
    assert np.array_equal(side.breakpoints, function.breakpoints)
    assert np.isin(side.breakpoints, side.alphas).all()
    assert (np.diff(side.alphas) > 0).all()


def test_witness_is_that_of_the_step_to_the_largest_leakage():
    result = analyse(inputs())
    backward, forward = result.sides
    assert backward.witness == BACKWARD.witness(result.leakage.bpl[-2])
    assert forward.witness == FORWARD.witness(result.leakage.fpl[1])
    assert backward.witness.loss + 0.1 == pytest.approx(result.leakage.bpl.max(), rel=1e-14)


# --- the budget below which the supremum is finite -------------------------------------------------------------------


def test_critical_budget_of_the_four_cases():
    assert critical_budget(tpl.PrivacyLossFunction([[0.8, 0.2], [0.1, 0.9]])) == inf  # d > 0
    assert critical_budget(tpl.PrivacyLossFunction([[0.5, 0.5], [0.5, 0.5]])) == inf  # L = 0
    assert critical_budget(tpl.PrivacyLossFunction([[0.8, 0.2], [0.0, 1.0]])) == pytest.approx(log(1 / 0.8), rel=1e-14)
    assert critical_budget(tpl.PrivacyLossFunction([[1.0, 0.0], [0.0, 1.0]])) == 0.0  # d = 0, q = 1


@settings(max_examples=60)
@given(st.integers(2, 6), st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 0.6]))
def test_supremum_is_finite_below_the_critical_budget_and_only_there(n, seed, zeros):
    function = tpl.PrivacyLossFunction(tpl.random_matrix(n, seed, zeros=zeros))
    critical = critical_budget(function)
    if critical == inf:
        assert function.supremum(50.0) < inf
        return
    assert function.supremum(max(critical * (1 + 1e-12), 1e-12)) == inf
    if critical > 0:
        assert function.supremum(critical * (1 - 1e-12)) < inf
        # By its meaning: no budget below alpha - L(alpha) for large alpha is ever overtaken.
        assert 500.0 - function(500.0) == pytest.approx(critical, abs=1e-12)


@pytest.mark.parametrize("rest", [0.3, 1e-3, 1e-9, 1e-13])
def test_critical_budget_keeps_its_digits_where_q_is_almost_1(rest):
    matrix = tpl.TransitionMatrix([[1.0 - rest, rest], [0.0, 1.0]])
    mpmath.mp.dps = 40
    exact = float(-mpmath.log1p(-mpmath.mpf(float(matrix.probabilities[0, 1]))))
    found = critical_budget(tpl.PrivacyLossFunction(matrix))
    assert found == pytest.approx(exact, rel=1e-14)
    assert found <= exact


def test_both_sides_must_be_bounded():
    bounded, moderate = FORWARD, tpl.PrivacyLossFunction([[0.8, 0.2], [0.0, 1.0]])
    result = analyse(inputs(epsilon=0.25, backward=moderate, forward=bounded))
    assert result.critical == critical_budget(moderate)
    assert result.supremum == inf
    assert "below 0.22314 nats" in summary_html(result)
    assert "grows without bound" in summary_html(result)
    assert analyse(inputs(epsilon=0.2, backward=moderate, forward=bounded)).supremum < inf


def test_schemes_without_budgets_say_why():
    strongest = tpl.PrivacyLossFunction(tpl.strongest(3))
    result = analyse(inputs(backward=strongest, forward=None))
    seven = result.schemes[list(SCHEMES).index("Algorithm 7 (any T)")]
    assert seven.budgets is None
    assert "has no finite supremum for any budget" in seven.message
    assert seven.message.split(":")[0] in schemes_html(result)
    assert result.schemes[0].budgets is not None
    assert critical_words(result.critical) == "for no budget: the leakage grows without bound"


# --- nothing is computed twice ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, {"leakage", "sides", "schemes"}),
        ({"sensitivity": 1.0}, {"leakage", "sides", "schemes"}),
        ({"epsilon": 0.2}, {"schemes"}),
        ({"alpha": 2.0}, {"leakage"}),
        ({"horizon": 7}, set()),
        ({"forward": None}, set()),
    ],
)
def test_only_what_depends_on_the_change_is_computed(changes, kept):
    first = analyse(inputs())
    result, fresh = analyse(inputs(**changes), first), analyse(inputs(**changes))
    assert np.array_equal(result.leakage.tpl, fresh.leakage.tpl)
    same = {part for part in ("leakage", "sides") if getattr(result, part) is getattr(first, part)}
    assert same | ({"schemes"} if result.schemes == first.schemes else set()) == kept


def test_long_calculations_wait_and_are_not_lost():
    quick = analyse(inputs(), complete=False)
    assert quick.pending
    assert [scheme.message for scheme in quick.schemes] == ["", "", "", PENDING]
    assert PENDING in schemes_html(quick)
    full = analyse(inputs(), quick)
    assert not full.pending
    assert full.schemes[2] is quick.schemes[2]
    assert analyse(inputs(epsilon=0.3), full, complete=False).schemes[3] is full.schemes[3]


def test_numbers_out_of_range_are_refused():
    for changes in ({"epsilon": np.nan}, {"alpha": -1.0}, {"sensitivity": 0.0}):
        with pytest.raises(ValueError, match="greater than 0; found"):
            analyse(inputs(**changes))


def test_matrices_must_be_over_the_same_states():
    two, swapped = (tpl.TransitionMatrix([[0.5, 0.5], [0.5, 0.5]], states=states) for states in ("ab", "ba"))
    for matrix in (two, tpl.strongest(2), None):
        check_same_states(two, matrix)
    for matrix, found in ((tpl.strongest(3), "and 3 states, .*; sort them"), (swapped, "and 2 states, .'b', 'a'")):
        with pytest.raises(ValueError, match=f"same states in the same order, found 2 states, .'a', 'b'. {found}"):
            check_same_states(two, matrix)


# --- matrices to begin with ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_pairs_over_the_same_states(name):
    backward, forward = example(name)
    check_same_states(backward, forward)
    analyse(inputs(backward=tpl.PrivacyLossFunction(backward), forward=tpl.PrivacyLossFunction(forward)))


def test_generated_matrices():
    for kind, matrix in zip(KINDS, (tpl.strongest(5), tpl.random_matrix(5, 7)), strict=True):
        assert np.array_equal(generate(kind, 5, 0.1, 7), tpl.smoothed(matrix, 0.1))
    with pytest.raises(ValueError, match="n must be at most 300 states here, found 301"):
        generate(KINDS[0], 301, 0.1, 0)


def test_sequences_give_both_matrices():
    sequences = [["b", "a", "a"], ["b", "c", "b", "a"]]  # more often from b to a than back
    backward, forward = from_text("b,a,a\nb,c,b,a").matrices(smoothing=0.5)
    for matrix, direction in ((backward, "backward"), (forward, "forward")):
        expected = tpl.TransitionMatrix.from_sequences(sequences, smoothing=0.5, direction=direction)
        assert np.allclose(matrix.probabilities, expected.probabilities, rtol=1e-15)
        assert list(matrix.states) == ["a", "b", "c"]
    assert not np.allclose(backward.probabilities, forward.probabilities)


def test_states_that_are_never_left_need_smoothing_or_are_left_out():
    observed = from_text("a,b,a,b,end")
    with pytest.raises(ValueError, match="no step starts at state 'end' .*; give smoothing > 0, or drop those states"):
        observed.matrices(0.0)
    with pytest.raises(ValueError, match="smoothing must be finite and at least 0, found -1"):
        observed.matrices(-1.0)
    backward, _ = observed.matrices(0.0, drop=True)
    assert list(backward.states) == ["a", "b"]
    assert observed.matrices(0.1)[1].n_states == 3


@pytest.mark.parametrize("name", ["Kosarak", "Gaze"])
def test_a_missing_data_set_is_replaced_by_a_stand_in_that_is_called_synthetic(name, monkeypatch, tmp_path):
    monkeypatch.delenv("TPLREPRO_DATA", raising=False)
    monkeypatch.setenv("TPLREPRO_CACHE", str(tmp_path))
    observed = from_dataset(name)
    assert observed.synthetic
    assert observed.title.startswith(name)
    assert observed.title.endswith(" (synthetic data)")
    assert 2 <= len(observed.states) <= 40
    assert observed.matrices(1.0)[0].n_states == len(observed.states)


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["Gaze", "Gowalla"])
def test_real_data_are_read_where_they_are(name):
    observed = from_dataset(name)
    assert not observed.synthetic
    assert "synthetic" not in observed.title


# --- words -----------------------------------------------------------------------------------------------------------


def test_labels_are_escaped_wherever_they_are_shown():
    evil = "<script>alert(1)</script>"
    matrix = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=[evil, "b"])
    function = tpl.PrivacyLossFunction(matrix)
    result = analyse(inputs(backward=function, forward=None))
    assert evil in str(result.sides[0])
    for page in (summary_html(result), schemes_html(result), problem_html([evil])):
        assert "<script" not in page


def test_no_correlation_is_said_to_give_nothing():
    function = tpl.PrivacyLossFunction([[0.5, 0.5], [0.5, 0.5]])
    result = analyse(inputs(backward=function, forward=None))
    assert "gains nothing from the correlation" in str(result.sides[0])
    assert result.supremum == 0.1
