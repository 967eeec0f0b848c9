"""The page without a browser: what the fields cause, and what is said about mistakes."""

import asyncio
import re
from base64 import b64decode
from io import StringIO

import numpy as np
import pandas as pd
import pytest

import tplrepro as tpl
from page import leakage_page, matrices
from page.leakage_page import OBSERVATIONS, REST, LeakagePage
from page.plots import CHOSEN, PANELS
from tests.page.serving import PATIENCE, upload
from tests.work import lines_run
from tplfrontier import allocate_noise
from tplreport.reading.matrices import parse_releases
from tplreport.reporting.allocation_schemes import rounded_down
from tplreport.reporting.sentences import rounded_up

FORWARD, BACKWARD = (
    matrices.parse_cycle(text)[0] for text in matrices.EXAMPLES["Fig. 8 of TKDE 2019"]
)
KEYS = [(title, name) for (title, _), panel in PANELS.items() for name in panel]


@pytest.fixture
def page():
    return LeakagePage()


def drawn(page, name, panel="Leakage over time"):
    return page.panel.children[0].data[KEYS.index((panel, name))].y


def test_buttons_for_files_have_a_tooltip_in_words(page):
    for field in (page.matrix_file, page.data_file):
        assert len(field.entry.tooltip or "") > 10  # without one a browser shows "null"


def test_curves_verdict_and_table_are_what_the_package_says(page):
    page.epsilon.slider.value = 0.3
    expected = tpl.temporal_privacy_leakage(np.full(10, 0.3), BACKWARD, FORWARD)
    for name in ("BPL", "FPL", "TPL"):
        assert np.array_equal(drawn(page, name), getattr(expected, name.lower()))
    sides = [tpl.PrivacyLossFunction(matrix) for matrix in (BACKWARD, FORWARD)]
    supremum = sum(side.supremum(0.3) for side in sides) - 0.3
    assert drawn(page, "supremum of TPL, these matrices").tolist() == [supremum] * 2
    assert (
        f"No: 10 releases at ε = 0.3 each time leak {rounded_up(expected.tpl.max())} nats"
        in page.verdict.value
    )
    schemes = {
        "Algorithm 7 (any T)": np.full(10, tpl.allocate_by_upper_bound(1.0, BACKWARD, FORWARD)),
        "Algorithm 8 (T known)": tpl.allocate_by_quantification(1.0, BACKWARD, FORWARD, 10),
        "smallest error (T known)": tpl.allocate_optimally(1.0, BACKWARD, FORWARD, 10),
    }
    for name, budgets in schemes.items():
        assert np.array_equal(drawn(page, name, "Budgets of each scheme"), rounded_down(budgets))
        assert np.array_equal(drawn(page, name, "What it costs"), 2.0 / rounded_down(budgets))
        page.kind.entry.value = name
        assert np.array_equal(drawn(page, CHOSEN, "Budgets of each scheme"), rounded_down(budgets))
        assert "✓ Yes: 10 releases" in page.verdict.value
    assert page.table.value.count("✓ yes") == 5


def test_the_adversary_knows_one_side_or_both_and_noise_at_a_delta_is_gaussian(page):
    for known, sides in {
        "backward only": (BACKWARD, None),
        "forward only": (None, FORWARD),
    }.items():
        page.adversary.entry.value = known
        assert np.array_equal(
            drawn(page, "TPL"), tpl.temporal_privacy_leakage(np.full(10, 0.1), *sides).tpl
        )
    assert np.isnan(page.analysis.gaussian)
    # with None the index depends on the hash seed
    assert (page.delta.entry.index, page.delta.value) == (0, 0.0)
    page.delta.entry.value = 1e-6
    error = allocate_noise(1.0, 1e-6, None, FORWARD, 10).max() * 2.0 / np.sqrt(np.pi)
    assert drawn(page, "Gaussian, α at δ", "What it costs") == pytest.approx(error, rel=1e-12)
    page.alpha.entry.value = 30.0
    assert page.problems == ["with a δ, α must be at most 20 nats here, found 30; choose pure ε"]


def test_examples_fill_the_matrices_and_files_do_as_well(page):
    for name, (forward, backward) in matrices.EXAMPLES.items():
        page.chain.entry.value = name
        assert (page.problems, page.forward.value, page.backward.value) == ([], forward, backward)
    upload(page.matrix_file, b"x,y\n0.75,0.25\n0.5,0.5\n")
    forward = tpl.TransitionMatrix([[0.75, 0.25], [0.5, 0.5]])
    expected = tpl.temporal_privacy_leakage(np.full(10, 0.1), forward.reverse(), forward)
    assert np.array_equal(page.analysis.leakage.tpl, expected.tpl)
    assert "&#x27;x&#x27;" in page.verdict.value
    upload(page.matrix_file, b"PK\x03\x04\xff")
    assert "is damaged or encrypted" in page.matrix_file.error.value
    upload(page.matrix_file, b"x,y\n0.75,0.25\n\xff,0.5\n")
    assert "there must be text in UTF-8, found data that are not" in page.matrix_file.error.value
    with pytest.raises(ValueError, match="matrices must be one of .*, found 'Fig. 99'; choose one"):
        LeakagePage("Fig. 99")


def test_a_typed_forward_matrix_has_no_backward_matrix_of_the_example(page):
    page.forward.entry.value = "0.6,0.4\n0.3,0.7"
    assert page.backward.value == ""
    forward = tpl.TransitionMatrix([[0.6, 0.4], [0.3, 0.7]])
    expected = tpl.temporal_privacy_leakage(np.full(10, 0.1), forward.reverse(), forward)
    assert np.array_equal(page.analysis.leakage.tpl, expected.tpl)
    page.chain.entry.value = "Fig. 3 of TKDE 2019, moderate"
    assert page.backward.value == "0.8, 0.2\n0, 1"
    page.backward.entry.value = "0.5,0.5\n0.5,0.5"
    assert "still the example" in page.forward.note.value
    page.forward.entry.value = "0.6,0.4\n0.3,0.7"
    assert page.backward.value == "0.5,0.5\n0.5,0.5"  # typed, and kept
    assert "labels may stand" in page.forward.note.value


def test_saved_budgets_count_releases_as_the_page_does(page):
    """Release 4 of the verdict is row 4 of the file."""
    link = re.search(
        r"download='alpha-1-T-10-budgets.csv' href='data:text/csv;base64,([^']+)'",
        page.advice.value,
    )
    saved = b64decode(link[1]).decode()
    assert saved.splitlines()[0] == "t,epsilon,bpl,fpl,tpl"
    assert parse_releases(saved).column("epsilon").tolist() == [0.1] * 10
    table = pd.read_csv(StringIO(saved), index_col="t")
    assert f"at release {table['tpl'].idxmax()}." in page.verdict.value


def test_each_mistake_is_said_beside_its_field_and_leaves_the_last_result(page):
    before = page.analysis
    mistakes = {
        page.epsilon: (0.0, "ε (nats) must be a finite number greater than 0, found 0"),
        page.alpha: (float("inf"), "Target α must be a finite number greater than 0, found inf"),
        page.horizon: (
            2.5,
            "Releases T must be a whole number greater than 0 and at most 1000, found 2.5",
        ),
        page.forward: ("0.8 0.3\n0.1 0.9", "rows must sum to 1, found 1.1 in line 1; correct it"),
        page.backward: ("1", "all matrices must have the same states in the same order"),
    }
    for field, (bad, message) in mistakes.items():
        good, field.entry.value = field.value, bad
        assert message in page.problems[0]
        assert message[:40] in field.error.value
        assert "tplr-invalid" in field._dom_classes
        assert [one for one in page.fields if one.error.value] == [field]
        assert "tplr-stale" in page.results._dom_classes
        assert page.analysis is before
        field.entry.value = good
        assert (page.problems, field.error.value, page.status.value) == ([], "", "")
        before = page.analysis
    page.chain.entry.value = "strongest correlation"
    page.kind.entry.value = "Algorithm 7 (any T)"
    assert "Algorithm 7 (any T) has no budgets: " in page.kind.error.value
    page.kind.entry.value, page.chain.entry.value = "ε at each release", OBSERVATIONS
    assert page.problems == ["no file has been chosen yet; choose one"]
    upload(page.data_file, b"1" * 5_100_000)
    assert "file.csv must be at most 5 MB here, found 5.1 MB" in page.problems[0]


def test_a_fault_in_the_page_itself_is_shown_as_a_message(page, monkeypatch):
    monkeypatch.setattr(leakage_page, "analyse", lambda *args, **kwargs: 1 / 0)
    page.epsilon.entry.value = 0.2
    assert page.problems[0].startswith("Unexpected ZeroDivisionError: division by zero.")


def test_a_typed_number_stays_though_a_slider_rounds_it(page):
    page.epsilon.entry.value = 0.123456
    page.epsilon.slider.value = 0.1235  # what a browser sends back
    assert page.epsilon.value == 0.123456
    page.horizon.entry.value = 500  # beyond the slider
    assert (page.horizon.slider.value, page.analysis.inputs.horizon) == (100, 500)


def test_slow_parts_wait_for_the_last_change_and_a_figure_without_an_answer_is_replaced(
    page, monkeypatch
):
    """As on a machine that is too slow for anywidget."""
    monkeypatch.setattr(leakage_page, "ANSWER", 0.1)
    (before,) = page.panel.children

    async def change():
        page.alpha.slider.value = 2.0
        assert "being computed" in page.table.value
        await asyncio.sleep(REST / 2)
        page.epsilon.slider.value = 0.2
        while "being computed" in page.table.value or page.panel.children == (before,):
            await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(change(), PATIENCE))
    assert "being computed" not in page.table.value
    (after,) = page.panel.children
    assert after is not before
    assert np.array_equal(after.data[2].y, page.analysis.leakage.tpl)


@pytest.mark.parametrize("name", ["epsilon", "alpha"])
def test_moving_a_slider_runs_few_lines_of_code(page, name):
    """Some 40,000 lines of Python (20 ms) for 50 states and 100 releases, with what is sent."""
    page.chain.entry.value = "50 states, smoothed"
    page.horizon.entry.value = 100
    page._complete = lambda: None
    slider = getattr(page, name).slider
    for value in np.geomspace(0.05, 2.0, 5):
        assert 0 < lines_run(lambda value=value: setattr(slider, "value", value)) < 120_000
