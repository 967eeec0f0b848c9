"""What the page says with a delta: bounds of the package for each kind of noise, coarse ones while a slider moves."""

import io
import re
from dataclasses import replace
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent

import tplfrontier as tf
import tplrepro as tpl
from page.analysis import Inputs, analyse
from page.leakage_page import PURE_EPSILON, WITH_DELTA, LeakagePage
from page.matrices import example
from page.noises import GAUSSIAN, LAPLACE, LIVE, gaussian_multipliers, grid_of
from page.plots import PANELS, draw
from page.report import budgets_table, column_of, summary_html

SIDES = tuple(map(tpl.PrivacyLossFunction, example("Fig. 8 of TKDE 2019")))
BUDGETS = np.array([0.5, 0.2, 0.2, 0.3])
INPUTS = Inputs(*SIDES, BUDGETS, alpha=1.0, delta=1e-6, cells=3)


def bounds(events, sides, delta):
    profile = tf.temporal_privacy_profile(events, *sides, grid=grid_of(BUDGETS, True))
    return profile.epsilon(delta).tolist(), profile.user_level.epsilon(delta)


@pytest.mark.parametrize("sides", [SIDES, (SIDES[0], None), (None, SIDES[1])])
def test_bounds_are_those_of_the_package(sides):
    events = {
        LAPLACE: [LaplaceDpEvent(1 / epsilon) for epsilon in BUDGETS],
        GAUSSIAN: [GaussianDpEvent(m) for m in gaussian_multipliers(BUDGETS, 3)],
    }
    result = analyse(replace(INPUTS, backward=sides[0], forward=sides[1]))
    again = analyse(replace(result.inputs, delta=1e-3, alpha=2.0), result)
    for found, delta in ((result, 1e-6), (again, 1e-3)):
        assert [noise.name for noise in found.noises] == [LAPLACE, GAUSSIAN]
        for noise in found.noises:
            assert (noise.tpl.tolist(), noise.user_level) == bounds(events[noise.name], sides, delta)
    assert (result.noises[0].tpl <= result.leakage.tpl * (1 + 1e-12)).all()  # rounded up
    fresh = analyse(replace(result.inputs, cells=1), result).noises[1]
    assert (fresh.tpl > result.noises[1].tpl).all()


def test_gaussian_noise_has_the_variance_of_laplace_noise():
    sensitivity, cells = 3.0, 4
    changes = np.full(cells, sensitivity / cells)
    scales = gaussian_multipliers(BUDGETS, cells) * np.linalg.norm(changes)
    assert scales**2 == pytest.approx(2 * (sensitivity / BUDGETS) ** 2, rel=1e-14)
    for cells in range(1, 9):  # rounded down: the noise that is added may only be larger
        for multiplier, epsilon in zip(gaussian_multipliers(BUDGETS, cells), BUDGETS, strict=True):
            assert (Fraction(multiplier) * Fraction(epsilon)) ** 2 <= 2 * cells


@pytest.mark.parametrize("horizon", [LIVE, LIVE + 1])
def test_while_a_slider_moves_bounds_are_coarse_or_pending_and_never_below_those_at_rest(horizon):
    inputs = replace(INPUTS, epsilons=np.full(horizon, 0.5))
    moving = analyse(inputs, complete=False)
    full = analyse(inputs, moving)
    assert (moving.pending, full.pending) == (True, False)
    assert ("being computed" in summary_html(moving).split("Gaussian")[1]) == (horizon > LIVE)
    for coarse, fine in zip(moving.noises, full.noises, strict=True):
        assert coarse.grid > fine.grid
        assert (
            (coarse.tpl is None) if horizon > LIVE else ((fine.tpl <= coarse.tpl) & (coarse.tpl < 1.1 * fine.tpl)).all()
        )
    assert analyse(replace(inputs, alpha=2.0), full, complete=False).noises[0] is full.noises[0]


def test_the_switch_shows_a_panel_its_meaning_and_what_is_saved_has_its_delta(figures_folder):
    page, pure = LeakagePage(), [panel["title"] for panel in PANELS[:4]]
    page.browser.download = Mock()
    assert page.at_delta.layout.display == "none"
    page.privacy.value, page.delta.entry.value = WITH_DELTA, 1e-5
    assert page.at_delta.layout.display is None
    for words in ("at δ = 1e-05", "upper bounds", "not the exact", "deviation is 28.28, which is 20 times the L2"):
        assert words in page.about_delta.value
    shown = np.array(re.findall(r"at most ([0-9.]+) nats", summary_html(page.analysis)), dtype=float)
    levels = np.ravel([(noise.tpl.max(), noise.user_level) for noise in page.analysis.noises])
    assert ((levels <= shown) & (shown < 1.001 * levels)).all()
    figure = draw(page.analysis)
    assert [axis.get_title() for axis in figure.axes] == [*pure, "leakage at δ = 1e-05", ""]
    assert np.array_equal(figure.axes[4].lines[1].get_ydata(), page.analysis.noises[1].tpl)
    page.save["budgets"].click()
    name, _, content = page.browser.download.call_args.args
    assert name == "budgets-alpha-1-T-10-delta-1e-05.csv"
    table = np.genfromtxt(io.BytesIO(content), delimiter=",", names=True)
    assert (table["delta"] == 1e-5).all()
    assert table["gaussian_scale"] == pytest.approx(table["gaussian_multiplier"] * np.sqrt(2.0), rel=1e-12)
    for noise in page.analysis.noises:
        assert np.array_equal(table[column_of(noise.name)], noise.tpl)
    page.privacy.value = PURE_EPSILON
    assert (page.analysis.noises, page.about_delta.value) == ((), "")
    assert [axis.get_title() for axis in draw(page.analysis).axes] == pure
    assert [name for name in budgets_table(page.analysis) if "delta" in name] == []


def test_what_is_wrong_with_a_delta_is_said():
    page = LeakagePage()
    page.privacy.value = WITH_DELTA
    for control, bad, message in (
        (page.delta, 1.0, "noise: Probability δ must be a finite number greater than 0 and at most 0.5, found 1; move"),
        (page.cells, 0, "noise: Cells changed must be a whole number greater than 0, found 0"),
        (page.epsilon, 60.0, "budgets with a δ must be at most 50 nats"),
    ):
        good, control.entry.value = control.value, bad
        assert message in page.problems[0]
        control.entry.value = good
    assert page.problems == []
    page.delta.entry.value = 1e-300
    assert "no finite bound at so small a δ" in page.summary.value
