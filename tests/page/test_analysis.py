from math import inf

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from page.analysis import PENDING, Inputs, analyse, critical_budget
from page.matrices import example
from page.report import critical_words, problem_html, schemes_html, summary_html
from page.sequences import from_file
from tplreport.schemes import mean_error

BACKWARD, FORWARD = map(tpl.PrivacyLossFunction, example("Fig. 8 of TKDE 2019"))
EXAMPLE_4 = tpl.PrivacyLossFunction(example("Example 4 of TKDE 2019")[1])


def inputs(alpha=1.0, backward=BACKWARD, forward=FORWARD, epsilon=0.1, horizon=6, sensitivity=2.0):
    return Inputs(backward, forward, np.full(horizon, epsilon), alpha, sensitivity)


@pytest.mark.parametrize("known", [(BACKWARD, FORWARD), (BACKWARD, None), (None, FORWARD), (EXAMPLE_4, EXAMPLE_4)])
def test_everything_is_what_the_package_says(known):
    result = analyse(inputs(3.0, backward=known[0], forward=known[1]))
    expected, found = tpl.temporal_privacy_leakage([0.1] * 6, *known), result.leakage
    assert np.array_equal([found.bpl, found.fpl, found.tpl], [expected.bpl, expected.fpl, expected.tpl])
    seven = tpl.allocate_by_upper_bound(3.0, *known)
    eight = tpl.allocate_by_quantification(3.0, *known, 6)
    best = tpl.allocate_optimally(3.0, *known, 6)
    assert mean_error(best, 2.0) < mean_error(eight, 2.0) == pytest.approx(np.mean(2.0 / eight))
    for scheme, budgets in zip(result.schemes, ([3.0 / 6] * 6, [seven] * 6, eight, best), strict=True):
        assert np.array_equal(scheme.budgets, budgets)
        assert scheme.largest_tpl == tpl.temporal_privacy_leakage(budgets, *known).tpl.max() <= 3.0
    functions = [function for function in known if function is not None]
    for side, function in zip(result.sides, functions, strict=True):
        assert side.function is function
        assert np.array_equal(side.losses, function(side.alphas))
        assert np.array_equal(side.breakpoints, function.breakpoints[function.breakpoints < side.alphas[-1]])
        assert np.isin(side.breakpoints, side.alphas).all()
        assert side.supremum == function.supremum(0.1) < side.alphas[-1]
        before = {"backward": found.bpl[-2], "forward": found.fpl[1]}  # the step to the largest leakage
        assert side.witness == function.witness(before[side.name])
    assert result.supremum == sum(function.supremum(0.1) for function in functions) - 0.1 * (len(functions) - 1)


@settings(max_examples=60)
@given(st.integers(2, 6), st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 0.6]))
def test_supremum_is_finite_below_the_critical_budget_and_only_there(n, seed, zeros):
    function = tpl.PrivacyLossFunction(tpl.TransitionMatrix.random(n, rng=np.random.default_rng(seed), zeros=zeros))
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
def test_critical_budget_is_right_to_4e_15_where_q_is_almost_1(rest):
    matrix = tpl.TransitionMatrix([[1.0 - rest, rest], [0.0, 1.0]])
    mpmath.mp.dps = 40
    exact = float(-mpmath.log1p(-mpmath.mpf(float(matrix.probabilities[0, 1]))))
    assert exact - 4e-15 <= critical_budget(tpl.PrivacyLossFunction(matrix)) <= exact


def test_it_is_said_whether_the_leakage_of_both_sides_is_bounded():
    result = analyse(inputs(backward=tpl.PrivacyLossFunction([[0.5, 0.5], [0.5, 0.5]]), forward=None))
    assert "gains nothing from the correlation" in str(result.sides[0])
    assert (result.supremum, result.critical) == (0.1, inf)
    moderate = tpl.PrivacyLossFunction([[0.8, 0.2], [0.0, 1.0]])
    result = analyse(inputs(epsilon=0.25, backward=moderate))
    assert (result.critical, result.supremum) == (critical_budget(moderate), inf)
    assert all(words in summary_html(result) for words in ("below 0.22314 nats", "grows without bound"))
    result = analyse(inputs(backward=tpl.PrivacyLossFunction(tpl.strongest(3)), forward=None))
    assert "has no finite supremum for any budget" in schemes_html(result)
    assert critical_words(result.critical) == "for no budget: the leakage grows without bound"


@pytest.mark.parametrize(
    "changes", [{}, {"sensitivity": 1}, {"epsilon": 2}, {"alpha": 2}, {"horizon": 7}, {"forward": None}]
)
def test_what_an_earlier_analysis_gives_is_what_a_fresh_one_says(changes):
    result, fresh = analyse(inputs(**changes), analyse(inputs())), analyse(inputs(**changes))
    assert np.array_equal(result.leakage.tpl, fresh.leakage.tpl)
    assert summary_html(result) == summary_html(fresh)
    assert schemes_html(result) == schemes_html(fresh)


def test_long_calculations_wait_and_are_not_lost():
    quick = analyse(inputs(), complete=False)
    assert [scheme.message for scheme in quick.schemes] == ["", "", "", PENDING]
    assert PENDING in schemes_html(quick)
    full = analyse(inputs(), quick)
    assert (quick.pending, full.pending) == (True, False)
    assert analyse(inputs(epsilon=0.3), full, complete=False).schemes[3] is full.schemes[3]


def test_more_states_than_the_page_can_show_are_refused():
    walk = "\n".join(["state", *(f"s{k}" for k in range(301))]).encode()
    with pytest.raises(ValueError, match="number of states must be at most 300 here, found 301"):
        from_file(walk, "walk.csv")


def test_labels_are_escaped_wherever_they_are_shown():
    evil = "<script>alert(1)</script>"
    matrix = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=[evil, "b"])
    result = analyse(inputs(backward=tpl.PrivacyLossFunction(matrix), forward=None))
    assert evil in str(result.sides[0])
    assert "<script" not in summary_html(result) + schemes_html(result) + problem_html([evil])
