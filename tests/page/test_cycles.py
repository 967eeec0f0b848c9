"""Habits that follow the clock on the page: a cycle by file or by text, over two periods."""

import re
from base64 import b64decode
from html import unescape

import numpy as np
import pytest

import tplrepro as tpl
from page import matrices
from page.analysis import EQUAL_PHASES, OF_SCHEDULE
from page.leakage_page import EQUAL, SCHEDULE, LeakagePage
from page.plots import PANELS, spacing_of_ticks
from page.tables import HEADINGS, OF_PHASES
from tests.page.serving import upload
from tplreport.reading.matrices import parse_by_phase, parse_releases
from tplreport.reporting.allocation_schemes import rounded_down

HABITS = tpl.Cycle(
    [
        [[0.98, 0.02], [0.5, 0.5]],
        [[0.3, 0.7], [0.2, 0.8]],
        [[0.3, 0.7], [0.1, 0.9]],
        [[0.95, 0.05], [0.8, 0.2]],
    ],
    step="6h",
)
KEYS = [(title, name) for (title, _), panel in PANELS.items() for name in panel]
LEAST_ERROR = "Algorithm 7 (any T)"


def text_of(cycle):
    """A cycle as a file has it."""
    lines = ["phase,home,office"]
    for phase, step in zip(cycle.phases, cycle, strict=True):
        lines += [f"{phase},{','.join(map(str, row))}" for row in step.probabilities.tolist()]
    return "\n".join(lines)


def page_of_habits():
    page = LeakagePage()
    upload(page.matrix_file, text_of(HABITS).encode())
    assert page.problems == []
    return page


@pytest.fixture
def page():
    return page_of_habits()


@pytest.fixture(scope="module")
def untouched():
    """A page for tests that only look at it."""
    return page_of_habits()


@pytest.fixture(scope="module")
def page_with_schedule():
    """A page for tests whose mistakes leave its analysis as it is."""
    page = page_of_habits()
    page.kind.entry.value = SCHEDULE
    return page


def drawn(page, name, panel="Leakage over time"):
    return page.panel.children[0].data[KEYS.index((panel, name))].y


def table_of_phases(page):
    """The cells of the table of phases by their columns."""
    table = unescape(page.table.value.partition("<details")[2])
    columns = re.findall("<thead>(.*?)</thead>", table)[0].split("</th>")[:-1]
    rows = re.findall("<tr><th>(.*?)</tr>", table.partition("<tbody>")[2])
    cells = [re.split("</t[hd]>(?:<td>)?", row)[:-1] for row in rows]
    names = [column.rpartition("<th>")[2] for column in columns]
    return dict(zip(names, zip(*cells, strict=True), strict=True))


def as_cells(budgets):
    return tuple(f"{budget:.6g}" for budget in budgets)


def test_a_cycle_is_shown_over_two_periods_with_its_suprema(untouched):
    page = untouched
    expected = tpl.temporal_privacy_leakage(np.full(8, 0.1), HABITS.reverse(), HABITS)
    assert page.horizon.value == 8
    for name in ("BPL", "FPL", "TPL"):
        assert np.array_equal(drawn(page, name), getattr(expected, name.lower()))
    suprema = tpl.leakage_suprema(0.1, HABITS.reverse(), HABITS)
    shown = drawn(page, "supremum of TPL, these matrices")
    assert np.array_equal(shown, np.tile(suprema.tpl, 2))
    assert (shown >= expected.tpl).all()
    assert f"Supremum if the largest ε of each phase is spent forever: {suprema.max():.4g}" in (
        page.verdict.value
    )
    table = table_of_phases(page)
    assert table["phase"] == ("00:00", "06:00", "12:00", "18:00")
    for name in ("BPL", "FPL", "TPL"):
        exact = getattr(suprema, name.lower())
        shown = np.array(table[f"supremum of {name}"], dtype=float)
        assert (shown >= exact).all()
        assert np.allclose(shown, exact, rtol=1e-3)


def test_states_are_told_apart_at_the_phase_of_the_largest_leakage(untouched):
    page = untouched
    verdict = unescape(page.verdict.value)
    peak = int(page.analysis.leakage.tpl.argmax())
    assert f"at release {peak + 1}, at phase {HABITS.phases[peak % 4]!r}." in verdict
    for side, cycle in (("Backward", HABITS.reverse()), ("Forward", HABITS)):
        said = re.search(
            f"{side}, from phase '(.*?)' to .*? probability (.*?) from the first", verdict
        )
        step = HABITS.phases.index(said[1])
        assert np.isclose(cycle[step].probabilities, float(said[2]), rtol=1e-3).any()


def test_a_schedule_has_a_budget_for_each_phase(page):
    page.kind.entry.value = SCHEDULE
    equal = parse_by_phase(page.schedule.value, "epsilon")
    assert equal == dict.fromkeys(HABITS.phases, 0.1)
    assert page.problems == []
    page.schedule.entry.value = "phase,epsilon\n06:00,0.3\n12:00,0.2\n18:00,0.1\n00:00,0.01\n"
    schedule = [0.01, 0.3, 0.2, 0.1]
    expected = tpl.temporal_privacy_leakage(schedule * 2, HABITS.reverse(), HABITS)
    assert np.array_equal(drawn(page, "TPL"), expected.tpl)
    suprema = tpl.leakage_suprema(schedule, HABITS.reverse(), HABITS)
    assert np.array_equal(drawn(page, "supremum of TPL, these matrices"), np.tile(suprema.tpl, 2))
    assert table_of_phases(page)["largest ε"] == as_cells(schedule)


def test_algorithm_7_has_budgets_for_the_phases(page):
    page.kind.entry.value = SCHEDULE
    page.schedule.entry.value = "phase,epsilon\n00:00,0.01\n06:00,0.3\n12:00,0.2\n18:00,0.1"
    sides = HABITS.reverse(), HABITS
    table = table_of_phases(page)
    shapes = {LEAST_ERROR: "least error", EQUAL_PHASES: None, OF_SCHEDULE: [0.01, 0.3, 0.2, 0.1]}
    for name, shape in shapes.items():
        budgets = rounded_down(tpl.allocate_by_upper_bound(1.0, *sides, shape=shape))
        assert table[OF_PHASES[name]] == as_cells(budgets)
        shown = drawn(page, name, "Budgets of each scheme")
        assert np.allclose(shown, np.tile(budgets, 2), rtol=1e-5)
        assert tpl.leakage_suprema(shown[:4], *sides).max() <= 1.0
    assert page.table.value.count("✓ yes") == 7


def test_users_who_may_start_anywhere_leak_more(page):
    in_the_habit = page.analysis
    assert "This holds for users who start in the habit" in page.verdict.value
    page.start.entry.value = "any"
    backward = HABITS.reverse(start="any")
    expected = tpl.temporal_privacy_leakage(np.full(8, 0.1), backward, HABITS)
    assert page.problems == []
    assert "This holds for all users, wherever they start." in page.verdict.value
    assert np.array_equal(page.analysis.leakage.tpl, expected.tpl)
    assert (page.analysis.suprema.tpl > in_the_habit.suprema.tpl).all()
    page.adversary.entry.value = "forward only"
    assert page.start.entry.disabled
    assert "This holds for" not in page.verdict.value
    page.forward.entry.value = "0,1\n1,0"
    page.adversary.entry.value = "both sides"
    assert page.problems[0].endswith("smooth the matrices, or let users start in the habit")


def test_first_releases_after_any_start_have_suprema_of_their_own(page):
    seldom = "0.9,0.1,0\n0.2,0.7,0.1\n0,0.3,0.7"
    page.forward.entry.value = seldom
    page.start.entry.value = "any"
    assert page.problems == []
    chain = tpl.Cycle([matrices.parse_cycle(seldom)[0]])
    suprema = tpl.leakage_suprema(0.1, chain.reverse(start="any"), chain)
    n_first = len(suprema) - 1
    assert n_first > 10
    assert np.array_equal(drawn(page, "supremum of TPL, these matrices"), suprema.tpl[:10])


def test_a_backward_cycle_takes_the_place_of_the_reversal(page):
    backward = HABITS.reverse(start="habit").map(lambda step: step)
    upload(page.backward_file, text_of(backward).encode())
    assert page.problems == []
    assert page.start.entry.disabled
    given = tpl.Cycle([step.probabilities for step in backward], step="6h")
    expected = tpl.temporal_privacy_leakage(np.full(8, 0.1), given, HABITS)
    assert np.allclose(page.analysis.leakage.tpl, expected.tpl, rtol=1e-12)
    turned = text_of(tpl.Cycle([step.probabilities for step in backward], step="6h"))
    page.backward.entry.value = turned.replace("phase,", "phase,", 1).replace("00:00", "night")
    assert page.problems != []


def test_sides_with_other_phases_are_refused(page):
    other = tpl.Cycle([step.probabilities for step in HABITS], ["a", "b", "c", "d"])
    page.backward.entry.value = text_of(other)
    assert page.problems == [
        "both cycles must have the same phases in the same order, found 4 from 'a' and 4 from "
        "'00:00'; reorder the backward cycle, or leave it empty"
    ]
    assert "same phases" in page.backward.error.value


def test_one_matrix_afterwards_clears_the_cycle(page):
    page.kind.entry.value = SCHEDULE
    page.forward.entry.value = "0.6,0.4\n0.3,0.7"
    assert page.problems == []
    assert (page.horizon.value, page.kind.value) == (10, EQUAL)
    assert "<details" not in page.table.value
    assert "phase" not in page.verdict.value
    axis = page.panel.children[0].layout.xaxis
    assert (axis.title.text, axis.ticktext) == ("release t", None)
    forward = tpl.TransitionMatrix([[0.6, 0.4], [0.3, 0.7]])
    expected = tpl.temporal_privacy_leakage(np.full(10, 0.1), forward.reverse(), forward)
    assert np.array_equal(page.analysis.leakage.tpl, expected.tpl)


def test_phases_stand_below_the_plots(page):
    for axis in ("xaxis", "xaxis2", "xaxis3"):
        shown = page.panel.children[0].layout[axis]
        assert shown.ticktext == (*HABITS.phases, *HABITS.phases)
        assert shown.tickvals == tuple(range(1, 9))
    page.forward.entry.value = (
        text_of(HABITS).replace("00:00", "<b>midnight</b>").replace(":00", " o'clock")
    )
    assert page.problems == []
    assert page.panel.children[0].layout.xaxis.ticktext[0] == "&lt;b&gt;midnight&lt;/b&gt;"
    assert "<b>" not in page.table.value + page.verdict.value
    assert spacing_of_ticks(24, 48) == 6


def test_each_column_of_a_table_has_its_heading(untouched):
    schemes, _, phases = untouched.table.value.partition("<details")
    for table in (schemes, phases):
        head, _, body = table.partition("</thead>")
        first_row, _, _ = body.partition("</tr><tr>")
        assert head.count("<th>") == first_row.count("<th>") + first_row.count("<td>")
    assert schemes.partition("</thead>")[0].count("<th>") == len(HEADINGS)


def test_saved_budgets_name_their_phases(untouched):
    link = re.search(r"href='data:text/csv;base64,([^']+)'", untouched.advice.value)
    saved = b64decode(link[1]).decode()
    assert saved.splitlines()[0] == "t,phase,epsilon,bpl,fpl,tpl"
    assert saved.splitlines()[5].startswith("5,00:00,0.1,")
    assert parse_releases(saved).column("epsilon").tolist() == [0.1] * 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("phase,epsilon\n00:00,0.1", "each of the 4 phases, found none for .'06:00', '12:00'"),
        ("phase,epsilon\nnoon,0.1", "and one for the unknown .'noon'.; give a line per phase"),
        (
            "phase,epsilon\n00:00,0\n06:00,0.1\n12:00,0.1\n18:00,0.1",
            "each ε must be greater than 0, found 0 at phase '00:00'",
        ),
        ("", "there must be a column phase"),
    ],
)
def test_each_mistake_in_a_schedule_is_said_beside_it(page_with_schedule, text, message):
    page = page_with_schedule
    before = page.analysis
    page.schedule.entry.value = text
    assert re.search(message, page.problems[0])
    assert message[:20] in unescape(page.schedule.error.value)
    assert page.analysis is before


def test_a_cycle_that_would_make_the_page_slow_is_refused(page):
    states = matrices.MAX_STATES // 4
    matrix = "\n".join(",".join(["1"] + ["0"] * (states - 1)) for _ in range(states))
    most = matrices.MAX_WORK // states**3
    many = [f"{k},{row}" for k in range(most + 1) for row in matrix.splitlines()]
    page.forward.entry.value = "phase\n" + "\n".join(many)
    assert page.problems[0] == (
        f"a cycle of matrices of {states} states must have at most {most} phases here, found "
        f"{most + 1}; take longer steps, or fewer states"
    )
    week = "\n".join(f"{k},1" for k in range(matrices.MAX_PHASES + 1))
    page.forward.entry.value = f"phase\n{week}"
    assert f"at most {matrices.MAX_PHASES} phases here" in page.problems[0]


def test_noise_at_a_delta_is_for_few_releases_about_a_cycle(page):
    page.horizon.entry.value = 101
    assert page.problems == []
    page.delta.entry.value = 1e-6
    assert page.problems == [
        "with a δ, the releases about a cycle must be at most 100 here, found 101; take fewer, or "
        "choose pure ε"
    ]
