"""What `.plot()` draws: the numbers of the object, with labels and units."""

from dataclasses import replace

import numpy as np
from matplotlib import pyplot as plt

import tplreport as tr
import tplrepro as tpl
from tplreport.reporting.html import figure_of


def test_matrices_loss_functions_and_reports_draw_their_numbers_with_units():
    P = tpl.TransitionMatrix(
        [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]], states=["home", "office", "gym"]
    )
    axes = P.plot()
    assert np.array_equal(axes.images[0].get_array(), P.toarray())
    assert [label.get_text() for label in axes.get_yticklabels()] == ["home", "office", "gym"]
    assert axes.figure.axes[1].get_ylabel() == "probability"
    L, own = tpl.PrivacyLossFunction(P), plt.subplots()[1]
    assert L.plot(own, most=3.0) is own
    curve, marks = own.lines
    assert np.array_equal(curve.get_ydata(), L(curve.get_xdata()))
    assert marks.get_xdata().tolist() == L.breakpoints.tolist()
    assert own.get_ylabel() == "L (nats)"
    walk = np.random.default_rng(0).integers(0, 2, (30, 40))
    report = tr.report(list(walk), alpha=1.0, horizon=5, draws=0)
    axes = report.plot()
    assert axes.get_ylabel() == "budget (nats)"
    assert [line.get_label() for line in axes.lines] == [*report.budgets.columns[1:]]
    assert np.array_equal(axes.lines[1].get_ydata(), report.budgets.iloc[:, 2])


def test_budgets_on_a_logarithmic_axis_have_few_labels_of_plain_numbers():
    walk = np.random.default_rng(0).integers(0, 2, (30, 40))
    report = tr.report(list(walk), alpha=1.0, horizon=5, draws=0)
    figure = figure_of(report)
    axes_of_report = report.plot()
    for whole, axes in ((figure, figure.axes[0]), (axes_of_report.figure, axes_of_report)):
        whole.draw_without_rendering()
        ticks = axes.get_yticklabels(which="both")
        labels = [label.get_text() for label in ticks if label.get_text()]
        low, high = axes.get_ylim()
        shown = [label for label in labels if low <= float(label) <= high]  # no powers of ten
        assert 1 <= len(shown) <= 3 * (np.log10(high / low) + 1)


def test_errors_far_apart_are_drawn_on_a_logarithmic_axis_so_that_each_has_a_bar():
    walk = np.random.default_rng(0).integers(0, 2, (30, 40))
    report = tr.report(list(walk), alpha=1.0, horizon=5, draws=0)
    *near, last = report.plans
    far = [*near, replace(last, error=1e6)]
    assert figure_of(report).axes[-1].get_xscale() == "linear"
    errors = figure_of(replace(report, plans=far)).axes[-1]
    assert errors.get_xscale() == "log"
    left, _ = errors.get_xlim()
    assert all(bar.get_width() > left for bar in errors.patches)


def test_times_and_releases_are_counted_from_one_with_markers_of_the_settings():
    leakage = tpl.temporal_privacy_leakage(0.1, *[[[0.8, 0.2], [0.1, 0.9]]] * 2, horizon=12)
    report = tr.report([[0, 1, 0, 1, 1, 0]] * 30, alpha=1.0, horizon=12, draws=0)
    for shown in (leakage, report, report.plans[0]):
        assert list(shown.plot().get_xticks())[:3] == [1, 2, 4]
    lines = leakage.plot().lines
    assert {line.get_marker() for line in lines} == {"."}
    cycle = plt.cycler(color=["r", "g", "b", "k"]) + plt.cycler(marker=["o", "s", "^", "D"])
    with plt.rc_context({"axes.prop_cycle": cycle}):
        lines = leakage.plot(plt.subplots()[1]).lines
    assert [line.get_marker() for line in lines] == ["o", "s", "^", "D"]
