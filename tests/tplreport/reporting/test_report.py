"""`tr.report`: the promise of the recommended plan, the checks, and what people read."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from tplreport.command import main
from tplreport.reporting import checks, plans
from tplreport.reporting.allocation_schemes import COMPOSED, equal_shares, rounded_down
from tplreport.reporting.believable import JudgedChain
from tplreport.reporting.html import figure_of
from tplreport.reporting.plans import ANYBODY, ESTIMATE, PRIOR_FREE, UPPER, WORST_USER, any_chain
from tplreport.reporting.sentences import rounded_up
from tplrepro import markov


def walks(matrix, users, length, rng):
    chain = tpl.TransitionMatrix(matrix)
    return {f"user {u}": chain.sample(length, rng=rng) for u in range(users)}


FADING = [[0.6, 0.4], [0.3, 0.7]]
WALKS = walks(FADING, 30, 60, np.random.default_rng(1))


@pytest.fixture(scope="module")
def advice():
    return tr.report(WALKS, 1.0, 12, title="<b>log</b>")


def upper_ends(sequences):
    """Backward and forward loss functions from counts that tell less of a row of one user, N steps
    as N / (1 + N v)."""
    counts, states = markov.count_transitions(sequences)
    judged = JudgedChain.of(markov.as_sequences(sequences))
    variation = judged.counted_for_anybody.variation
    assert 0.0 < variation < 0.002
    sides = []
    for side in (counts.T.toarray(), counts.toarray()):
        told = side / (1.0 + variation * side.sum(axis=1, keepdims=True))
        sides.append(tf.loss_from_counts(told, 0.975, states))
    return sides


def test_upper_ends_are_computed_once_for_all_adversaries(monkeypatch):
    computed = []

    def loss_from_counts(*arguments):
        computed.append(arguments)
        return tf.loss_from_counts(*arguments)

    monkeypatch.setattr(plans, "loss_from_counts", loss_from_counts)
    report = tr.report(WALKS, 1.0, 2, draws=0)
    assert {UPPER, WORST_USER} < {*report.adversaries}
    assert len(computed) == 2  # backward and forward


def test_the_recommended_plan_keeps_alpha_for_its_printed_budgets(advice):
    """Against the chain that made the data, the estimate, and the upper end."""
    plan = advice.recommendation
    printed = np.array([float(f"{budget:.6g}") for budget in plan.budgets])
    assert (printed == plan.budgets).all()
    backward = tpl.TransitionMatrix(FADING).reverse()
    assert tpl.temporal_privacy_leakage(printed, backward, FADING).tpl.max() <= 1.0
    upper = upper_ends(WALKS)
    assert tpl.temporal_privacy_leakage(printed, *upper).tpl.max() == plan.tpl[UPPER] <= 1.0
    assert plan.scheme != COMPOSED
    assert plan.against == UPPER
    assert plan.user_level == printed.sum()


def test_every_plan_keeps_alpha_against_its_adversary(advice):
    for plan in advice.plans:
        assert plan.tpl.get(plan.against, plan.user_level) <= 1.0
    composed = next(plan for plan in advice.plans if plan.scheme == COMPOSED)
    assert composed.user_level <= 1.0
    assert {plan.against for plan in advice.plans} == {
        "anybody",
        ESTIMATE,
        UPPER,
        PRIOR_FREE,
        WORST_USER,
    }


@given(st.integers(0, 1000), st.floats(0.1, 3.0), st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_a_recommendation_keeps_alpha_whatever_the_data(seed, alpha, horizon):
    rng = np.random.default_rng(seed)
    states, users, length = rng.integers((2, 1, 5), (5, 6, 31))
    sequences = {u: [0, 1, *rng.integers(0, states, length).tolist()] for u in range(users)}
    advice = tr.report(sequences, alpha, horizon, draws=0, anyway=True)
    plan = advice.recommendation
    assert plan.tpl[UPPER] <= alpha
    assert len(advice.sentences) == 5
    assert advice.sentences[4].endswith("checks read private data, and must not be published.")
    json.dumps(advice.to_dict(), allow_nan=False)
    if plan.scheme == COMPOSED:
        assert plan.user_level <= alpha


@given(st.floats(1e-9, 1e9))
def test_budgets_round_down_and_bounds_round_up(value):
    assert value * (1 - 1e-5) <= rounded_down([value])[0] <= value
    assert float(rounded_up(value)) >= value * (1 - 1e-12)


def test_alpha_over_T_is_recommended_where_it_is_within_5_percent_of_the_best():
    """Users who never move: leakage adds up, and no scheme is better."""
    advice = tr.report({u: [u % 2] * 50 for u in range(20)}, 1.0, 5, draws=0)
    assert advice.recommendation.scheme == COMPOSED
    assert "whole series" in advice.sentences[1]


STICKY, MOVING, EVEN = [[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.7], [0.7, 0.3]], [[0.5, 0.5], [0.5, 0.5]]


def departures(rng):
    """Departures from one first-order chain, by the check that doubts it."""
    first, second = walks(STICKY, 20, 40, rng), walks(STICKY, 20, 40, rng)
    # Two chains that alternate: the last place says nothing about the next, the one before does.
    yield (
        "order of the chain",
        {u: [x for pair in zip(first[u], second[u], strict=True) for x in pair] for u in first},
    )
    late = walks(EVEN, 20, 40, rng)
    yield "first and second half of the time", {u: first[u] + late[u] for u in first}
    moves = {f"{u}, other": walk for u, walk in walks(MOVING, 10, 80, rng).items()}
    yield checks.USERS, walks(STICKY, 10, 80, rng) | moves


class TestChecks:
    def test_data_of_one_chain_pass_all_checks(self, advice):
        rhythm, *others = advice.checks
        assert {check.verdict for check in others} == {checks.FINE}
        assert (rhythm.name, rhythm.verdict) == (checks.RHYTHM, checks.UNCHECKED)  # without times

    @pytest.mark.parametrize(("name", "sequences"), [*departures(np.random.default_rng(2))])
    def test_each_departure_from_one_chain_is_doubted_and_alpha_over_T_recommended(
        self, name, sequences
    ):
        advice = tr.report(sequences, 1.0, 10, draws=0)
        assert {check.name: check.verdict for check in advice.checks}[name] == checks.DOUBTFUL
        assert advice.recommendation.scheme == COMPOSED

    def test_a_recommendation_is_withheld_where_each_state_is_seen_once_unless_asked_for_anyway(
        self,
    ):
        """Every state is seen once, so that smoothing makes up half of a row or more."""
        sequences = {u: list(range(30 * u, 30 * u + 30)) for u in range(3)}
        advice = tr.report(sequences, 1.0, 10, draws=0)
        assert (advice.checks[-1].verdict, advice.withheld) == (checks.REFUSED, True)
        assert advice.warnings[0] in str(advice)
        assert "The recommendation is withheld" in advice.to_html(figures=False)
        assert not tr.report(sequences, 1.0, 10, draws=0, anyway=True).withheld


def test_labels_with_html_are_escaped(advice):
    page = advice.to_html()
    assert "<b>log" not in page
    assert "&lt;b&gt;log" in page
    assert "<script" not in page
    assert page.count("data:image/png;base64") == page.count("<td>recommended: ") == 1


def test_a_plan_has_one_name_which_says_against_whom_it_holds(advice):
    """In the sentence, the text, the page, JSON and the table of budgets."""
    name = advice.recommendation.name
    assert name.endswith(f", against {UPPER}")
    names = [plan.name for plan in advice.plans]
    assert len({*names}) == len(names)
    titles = [f"recommended: {one}" if one == name else one for one in names]
    assert advice.table["plan"].tolist() == titles
    assert [*advice.budgets] == ["t", *titles]
    assert f"by the scheme {name!r}" in advice.sentences[1]
    assert str(advice).count(f"recommended: {name}") == 1
    assert name.replace("'", "&#x27;") in advice.to_html(figures=False)
    assert [row["plan"] for row in advice.to_dict()["table"]] == titles
    assert advice.to_dict()["recommendation"]["plan"] == name


def test_the_verdict_judges_the_planned_releases():
    assert tr.report(WALKS, 1.0, 12, draws=0).sentences[0].startswith("No: ")
    assert tr.report(WALKS, 1.0, 12, epsilon=0.2, draws=0).sentences[0].startswith("Yes: ")
    within = tr.report(WALKS, 1.0, 12, epsilon=1 / 12, draws=0)
    assert "whole series" in within.sentences[0]


def test_a_report_with_a_delta_shows_gaussian_error_beside_laplace_error():
    """Of equal noise in two cells, against the upper end and against every chain."""
    found = tr.report(WALKS, 1.0, 12, delta=1e-6, draws=0)
    upper = upper_ends(WALKS)
    errors = found.table.set_index("plan")["error"]
    shown = {name: errors[f"Gaussian noise, equal, against {name}"] for name in (UPPER, ANYBODY)}
    for name, pair in {UPPER: upper, ANYBODY: any_chain()}.items():
        deviation = np.sqrt(2.0) * tf.allocate_noise(1.0, 1e-6, *pair, 12)[0]
        assert shown[name] == pytest.approx(deviation * np.sqrt(2.0 / np.pi), rel=1e-9)
    assert f"{shown[UPPER]:.3g}" in found.sentences[2]


def test_a_plan_against_the_worst_user_answers_differences_between_users():
    """Asked for, it keeps alpha for each user's own chain as `population_leakage` has it, and need
    not be α/T.

    It once had to leak at least half of its level by these estimates. Odd users now count with the
    upper ends of their own rows, so a plan that reaches alpha by those leaks .458 by the estimates:
    what is required is .45, and an error well below that of α/T, which the plan is there for."""
    rng = np.random.default_rng(9)
    calm, lively = (
        walks(m, 15, 200, rng) for m in ([[0.7, 0.3], [0.3, 0.7]], [[0.4, 0.6], [0.6, 0.4]])
    )
    sequences = calm | {f"{name}, other": walk for name, walk in lively.items()}
    doubted = tr.report(sequences, 1.0, 12, draws=0)
    assert doubted.recommendation.scheme == COMPOSED
    plan = tr.report(sequences, 1.0, 12, draws=0, against=WORST_USER, anyway=True).recommendation
    assert plan.scheme != COMPOSED
    weight = JudgedChain.of(markov.as_sequences(sequences)).checked.answers.users.best_weight
    found = tr.population_leakage(sequences, plan.budgets, smoothing=0.5, prior_weight=weight)
    assert found.tpl.max() <= plan.tpl[WORST_USER] <= 1.0
    assert found.tpl.max() >= 0.45 * plan.tpl[WORST_USER]
    assert plan.tpl[WORST_USER] >= 0.999
    assert plan.error <= 0.6 * doubted.recommendation.error
    with pytest.raises(ValueError, match="against must be one of 'the estimate', .* found 'me'"):
        tr.report(sequences, 1.0, 12, draws=0, against="me")


def walks_as_table(columns, times):
    """A row for each step of FADING, at these times of each user."""
    rows = [
        (user, time, state)
        for user, walk in walks(FADING, 20, len(times), np.random.default_rng(6)).items()
        for time, state in zip(times, walk, strict=True)
    ]
    return pd.DataFrame(rows, columns=columns)


def test_a_dataframe_is_read_as_its_file_is(tmp_path):
    frame = walks_as_table(["User ID", "day", "place"], range(40))
    path = tmp_path / "my.csv"
    frame.to_csv(path, index=False)
    of_frame = tr.report(frame, 1.0, 6, draws=0, progress=False)
    of_file = tr.report(path, 1.0, 6, draws=0, progress=False)
    assert of_frame.sentences == of_file.sentences
    assert "user from 'User ID', time from 'day', state from 'place'" in str(of_frame)


@pytest.mark.parametrize("time", ["time", "day"])
def test_irregular_rows_of_a_dataframe_are_no_steps_whatever_their_column_is_called(time):
    days = pd.to_datetime(np.cumsum(np.arange(40) % 7 + 1), unit="D")
    frame = walks_as_table(["user", time, "state"], days)
    with pytest.raises(ValueError, match="rows that are steps must lie one step apart") as error:
        tr.report(frame, 1.0, 6, draws=0, progress=False)
    assert error.value.__notes__ == [
        "report has no arguments for reading: give them to tr.read_sequences, and its result to "
        "report"
    ]


def test_the_command_writes_the_report_the_page_and_the_budgets(tmp_path, capsys):
    path, page, budgets = tmp_path / "my.csv", tmp_path / "my.html", tmp_path / "budgets.csv"
    rows = [
        (u, t, s)
        for u, walk in walks(FADING, 20, 40, np.random.default_rng(6)).items()
        for t, s in enumerate(walk)
    ]
    pd.DataFrame(rows, columns=["who", "day", "place"]).to_csv(path, index=False)
    words = [
        str(path),
        "--user",
        "who",
        "--time",
        "day",
        "--state",
        "place",
        "--alpha",
        "1",
        "--horizon",
        "6",
    ]
    assert (
        main(["report", *words, "--draws", "0", "--html", str(page), "--budgets", str(budgets)])
        == 0
    )
    read = "Read: user from 'who', time from 'day', state from 'place'\n"
    read += "Times: numbers, which order the rows, from 0 to 39; each row is a step, of 1\n"
    read += "Rows: 800 of 800 count\n"
    read += f"first row: user {rows[0][0]}, time 0, state {rows[0][2]}; last row: "
    read += f"user {rows[-1][0]}, time 39, state {rows[-1][2]}\n"
    printed = capsys.readouterr().out
    assert printed.startswith(
        f"my.csv\n{read}20 users, 20 sequences, 2 states, 780 steps\n1. No: 6 releases"
    )
    assert page.read_text().startswith("<!doctype html>")
    assert "</h1><p>Read: user from &#x27;who&#x27;, time from" in page.read_text()
    planned = pd.read_csv(budgets)
    assert main(["report", *words, "--draws", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (list(found)[:2], found["read"]["span"], found["read"]["rows"]) == (
        ["title", "read"],
        ["0", "39"],
        800,
    )
    found = found["recommendation"]
    assert found["budgets"] == planned[f"recommended: {found['plan']}"].tolist()
    assert found["plan"] == f"{found['scheme']}, against {found['against']}"
    assert main(["leakage", "--data", *words[:7], "--budgets", str(budgets), "--json"]) == 0
    leaked = json.loads(capsys.readouterr().out)
    assert [row["epsilon"] for row in leaked] == found["budgets"]
    assert max(row["tpl"] for row in leaked) <= 1.0
    pd.DataFrame({"who": 1, "day": range(20), "place": range(20)}).to_csv(path, index=False)
    assert main(["report", *words, "--draws", "0"]) == 3
    assert re.search("WARNING: share made up", capsys.readouterr().out)
    assert main(["report", str(tmp_path / "none.csv"), "--alpha", "1", "--horizon", "6"]) == 2
    assert "tplrepro report: " in capsys.readouterr().err


def test_no_step_leads_across_an_event_of_a_log_without_a_time(tmp_path):
    event = '<event><string key="concept:name" value="{}"/>{}</event>'
    time = '<date key="time:timestamp" value="2024-01-0{}T00:00:00Z"/>'
    events = [
        event.format(name, time.format(day) if day else "")
        for name, day in (("a", 1), ("b", 0), ("c", 3))
    ]
    path = tmp_path / "log.XES"
    path.write_text(f"<log><trace>{''.join(events)}</trace></log>")
    with pytest.raises(
        ValueError, match="found nothing in line 1 of .*; drop it by missing='drop'"
    ):
        tr.read_sequences(str(path))
    found = tr.read_sequences(str(path), missing="drop")
    assert (found.labels.tolist(), found.n_transitions) == (["a", "c"], 0)
    with pytest.raises(ValueError, match="there must be one column of user 'x'"):
        tr.read_sequences(str(path), user="x")


def test_in_the_figure_four_lines_at_most_share_a_panel_and_names_neither_overlap_nor_are_cut_off(
    advice,
):
    figure = figure_of(advice)
    figure.draw_without_rendering()
    *panels, below = figure.axes
    adversaries = [ESTIMATE, UPPER, PRIOR_FREE, WORST_USER]
    assert [panel.get_title() for panel in panels] == [
        f"Budgets against {name}" for name in adversaries
    ]
    for panel in panels:
        assert (
            len({(line.get_color(), line.get_linestyle()) for line in panel.lines})
            == len(panel.lines)
            == 4
        )
    boxes = [label.get_window_extent() for label in below.get_yticklabels()]
    assert len(boxes) == 13
    assert all(box.y0 > following.y1 for box, following in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0


def test_an_estimate_outside_its_interval_is_explained_beside_it(advice):
    now = advice.planned[ESTIMATE]
    outside = replace(advice, interval=replace(advice.interval, lower=1.1 * now, upper=1.2 * now))
    for said, reason in (
        (str(advice), False),
        (str(outside), True),
        (outside.to_html(figures=False), True),
    ):
        assert (
            f"; the estimate, {now:.4g}, is outside: leakage is a maximum, which noise" in said
        ) == reason


def test_a_single_thing_is_named_in_the_singular_and_default_budgets_are_not_called_planned():
    sequences = {"a": [0, 1, 0, 0, 1], "b": [1, 0, 1, 1, 0, 1]}
    one = str(tr.report({"a": [0, 1]}, 1.0, 1, smoothing=0.1, anyway=True, draws=4))
    several = str(tr.report(sequences, 1.0, 12, draws=4))
    for said in (one, several):
        assert re.findall(r"\b1 (?:nat|release|sequence|state|step|time|user)s\b", said) == []
        assert "planned" not in said
    assert re.search(
        "(?s)^1 user, 1 sequence, 2 states, 1 step\n"
        ".*Yes: 1 release at ε = α = 1 keeps .* within 1 nat[.]",
        one,
    )
    assert "nats at ε = α = 1 each time (50% interval)" in several


def test_errors_name_wrong_settings_and_data_without_steps():
    a_count, a_delta = "finite and greater than 0", r"a probability in \(0, 1\)"
    wrong = [
        *(("draws", wrong_draws, "0 or at least 3") for wrong_draws in (-1, 1, 2)),
        ("count", -5, a_count),
        ("count", "x", a_count),
        ("delta", 0, a_delta),
    ]
    for name, value, must in wrong:
        with pytest.raises(ValueError, match=f"{name} must be {must}, found (str|{value})"):
            tr.report([[0, 1, 0]], 1.0, 2, **{name: value})
    with pytest.raises(
        ValueError, match="steps between at least two states, found 3 steps and 1 state;"
    ):
        tr.report([[0, 0, 0, 0]], 1.0, 5)


@pytest.mark.parametrize(
    ("alpha", "horizon", "printed"),
    [(1.0, 10, "0.1"), (0.1, 3, "0.0333333"), (1 / 3, 365, "0.000913242"), (2.0, 1000, "0.002")],
)
def test_a_filter_accepts_every_release_of_alpha_over_t_which_is_printed_exactly(
    alpha, horizon, printed
):
    budgets = equal_shares(alpha, horizon)
    tpl.TemporalFilter(alpha, np.eye(2), np.eye(2)).spend(budgets[0], horizon)
    assert Fraction(budgets[0]) * horizon <= Fraction(alpha)
    assert f"{rounded_down(budgets)[0]:g}" == printed
