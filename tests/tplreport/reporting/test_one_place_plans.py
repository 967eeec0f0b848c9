"""Plans of a report against a chain of order 2, where the order of the chain is doubtful."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from experiments.advice.truths import tpl_of_joint_law
from tplreport.command import main
from tplreport.reporting import checks
from tplreport.reporting.allocation_schemes import COMPOSED
from tplreport.reporting.believable import JudgedChain
from tplreport.reporting.html import figure_of
from tplreport.reporting.one_place_plans import FOR_EVER, T_KNOWN, plans_for_one_place
from tplreport.reporting.plans import ESTIMATE, ONE_PLACE, UPPER, largest_tpl
from tplrepro import markov

#: Who has just stayed stays with .7, who has just moved with .3.
STAYS_AGAIN = 0.7
HORIZON = 7


def walks_of_order_2(users, length, rng):
    walks = {}
    for user in range(users):
        walk = rng.integers(0, 2, 2).tolist()
        for _ in range(length):
            has_stayed = walk[-1] == walk[-2]
            stays = rng.random() < (STAYS_AGAIN if has_stayed else 1.0 - STAYS_AGAIN)
            walk.append(walk[-1] if stays else 1 - walk[-1])
        walks[f"user {user}"] = walk
    return walks


def joint_law(places):
    """The law of so many successive places (2,) * places; all pairs are as likely."""
    law = np.full((2, 2), 0.25)
    for _ in range(places - 2):
        has_stayed = np.array([[STAYS_AGAIN, 1.0 - STAYS_AGAIN], [1.0 - STAYS_AGAIN, STAYS_AGAIN]])
        same = np.eye(2)
        # by the place before the last one, the last one, and the next one
        rows = has_stayed[..., None] * same + (1.0 - has_stayed)[..., None] * (1.0 - same)
        law = law[..., None] * rows
    return law


WALKS = walks_of_order_2(30, 100, np.random.default_rng(4))


@pytest.fixture(scope="module")
def doubtful():
    return tr.report(WALKS, 1.0, HORIZON, draws=0)


def plans_of(advice):
    return {plan.scheme: plan for plan in advice.plans if plan.against == ONE_PLACE}


def test_a_report_that_doubts_the_order_has_plans_for_one_place_beside_the_recommended_one(
    doubtful,
):
    """Their budgets are the largest that keep alpha by the chain that is counted here by hand, and
    keep it by the law that made the data."""
    plans = plans_of(doubtful)
    assert [*plans] == [FOR_EVER, T_KNOWN]
    assert doubtful.recommendation.scheme == COMPOSED
    counts = {(a, b): np.full(2, 0.5) for a in (0, 1) for b in (0, 1)}
    for walk in WALKS.values():
        for before, last, following in zip(walk, walk[1:], walk[2:], strict=False):
            counts[before, last][following] += 1.0
    states = [*counts]
    rows = np.zeros((4, 4))
    for k, state in enumerate(states):
        for following in (0, 1):
            rows[k, states.index((state[1], following))] = counts[state][following]
    chain = tpl.TransitionMatrix(rows, states, normalize=True)
    for_ever = plans[FOR_EVER].budgets
    assert len({*for_ever}) == 1
    assert for_ever[0] == pytest.approx(tf.allocate_for_one_place(1.0, chain), rel=1e-5)
    assert tf.one_place_supremum(float(for_ever[0]), chain) <= 1.0
    known = plans[T_KNOWN].budgets
    assert tf.one_place_leakage(known, chain).max() <= 1.0
    assert tf.one_place_leakage(1.0003 * known, chain).max() > 1.0
    assert known[0] > for_ever[0] > 1.0 / HORIZON
    true_law = joint_law(HORIZON)
    assert tpl_of_joint_law(true_law, for_ever) <= 1.0
    assert 0.9 <= tpl_of_joint_law(true_law, known) <= 1.0


def test_each_plan_says_what_it_leaks_and_how_large_its_error_is(doubtful):
    for plan in plans_of(doubtful).values():
        assert 0.99 < plan.tpl[ONE_PLACE] <= 1.0
        for name, pair in doubtful.adversaries.items():
            assert plan.tpl[name] == largest_tpl(plan.budgets, pair)
        assert plan.error == pytest.approx(2.0 / plan.budgets[0])
    others = [plan for plan in doubtful.plans if plan.against != ONE_PLACE]
    assert not any(ONE_PLACE in plan.tpl for plan in others)
    column = doubtful.table.set_index("plan")[f"TPL to {ONE_PLACE}"]
    known = plans_of(doubtful)[T_KNOWN]
    assert column[known.name] == known.tpl[ONE_PLACE]
    assert column.drop([plan.name for plan in plans_of(doubtful).values()]).isna().all()


def test_the_plans_stand_in_the_sentences_the_page_the_json_and_the_file_of_budgets(
    tmp_path, capsys
):
    rows = [(u, t, x) for u, walk in WALKS.items() for t, x in enumerate(walk)]
    data = tmp_path / "walks.csv"
    pd.DataFrame(rows, columns=["user", "time", "state"]).to_csv(data, index=False)
    page = tmp_path / "page.html"
    budgets = tmp_path / "budgets.csv"
    words = ["report", str(data), "--alpha", "1", "--horizon", str(HORIZON), "--draws", "0"]
    assert main([*words, "--json", "--html", str(page), "--budgets", str(budgets)]) == 0
    found = json.loads(capsys.readouterr().out)
    name = f"{T_KNOWN}, against {ONE_PLACE}"
    row = next(row for row in found["table"] if row["plan"] == name)
    planned = pd.read_csv(budgets)[name]
    assert planned.tolist() == [row["smallest budget"]] * HORIZON
    assert f"TPL to {ONE_PLACE}" in row
    error = f"the plan {name!r} is off by {row['error']:.3g} (ε = {planned[0]:g} each time)"
    assert f"if each single place is the secret, {error}" in found["sentences"][2]
    assert f"the plan {name!r} assumes that single places are the secrets" in found["sentences"][3]
    assert "though" not in found["sentences"][3]
    assert "see whether a chain of order 2 allows more" in found["sentences"][1]
    assert f"<td>{name}</td>" in page.read_text()
    assert f"TPL to {ONE_PLACE}" in page.read_text()


def test_the_figure_has_a_panel_for_them_and_a_legend_with_all_schemes(doubtful):
    figure = figure_of(doubtful)
    panels = {panel.get_title(): panel for panel in figure.axes}
    lines = panels[f"Budgets against {ONE_PLACE}"].lines
    assert [line.get_label() for line in lines] == [COMPOSED, FOR_EVER, T_KNOWN]
    legends = [legend for part in figure.subfigs for legend in part.legends]
    labels = [text.get_text() for legend in legends for text in legend.get_texts()]
    assert {*labels} == {plan.scheme for plan in doubtful.plans}
    assert len(labels) == len({*labels})


def test_what_else_is_doubtful_is_said_beside_their_assumptions(doubtful):
    odd = checks.Check(checks.USERS, checks.DOUBTFUL, "users differ", 5.0)
    more = replace(doubtful, checks=(*doubtful.checks, odd))
    assert more.sentences[3].endswith(
        f"is just the estimated one, though more is doubtful ({checks.USERS})."
    )


def test_nothing_is_offered_where_it_is_hardly_better_than_shares_or_the_model_is_refused(doubtful):
    shares = next(plan for plan in doubtful.plans if plan.scheme == COMPOSED)
    for share, is_offered in ((0.94, True), (0.96, False)):
        plans = tuple(
            replace(plan, error=share * shares.error) if plan.against == ONE_PLACE else plan
            for plan in doubtful.plans
        )
        said = replace(doubtful, plans=plans).sentences
        assert ("is off by" in said[2]) == is_offered
        assert ("assumes that single places" in said[3]) == is_offered
    refused = checks.Check("share made up", checks.REFUSED, "a guess", 0.9)
    said = replace(doubtful, checks=(*doubtful.checks, refused)).sentences
    assert ONE_PLACE not in said[2]
    assert ONE_PLACE not in said[3]


def test_there_are_none_where_the_order_is_fine_or_habits_follow_the_clock():
    rng = np.random.default_rng(1)
    even = {user: rng.integers(0, 2, 60).tolist() for user in range(30)}
    advice = tr.report(even, 1.0, 5, draws=0)
    assert not plans_of(advice)
    assert advice.best_for_one_place is None
    assert [*advice.table] == [
        "plan",
        "error",
        "smallest budget",
        "largest budget",
        *(f"TPL to {name}" for name in advice.planned),
        "user level",
        "message",
    ]
    judged = JudgedChain.of(markov.as_sequences(WALKS))
    assert judged.doubts_order
    by_hour = replace(judged.counted, groups=object())
    assert not replace(judged, counted=by_hour).doubts_order
    rhythm = checks.Check(checks.RHYTHM, checks.DOUBTFUL, "hours matter", 9.0)
    unexplained = replace(judged.time_of_day, check=rhythm)
    assert not replace(judged, time_of_day=unexplained).doubts_order


@pytest.mark.parametrize(
    ("found", "order", "stay", "matters"),
    [
        ((checks.ORDER,), 9.0, 12.0, True),
        ((checks.ORDER, checks.STAYS), 9.0, 8.0, True),
        ((checks.STAYS, checks.ORDER), 8.0, 9.0, False),
        ((checks.STAYS,), 2.0, 9.0, False),
        ((checks.USERS,), 2.0, 2.0, False),
    ],
)
def test_a_matter_of_lengths_of_stay_is_not_one_of_the_place_before(found, order, stay, matters):
    nats = {checks.ORDER: order, checks.STAYS: stay}
    answers = checks.Answers(nats, found, users=None, shared_weight=1.0, lacking=0.0)
    assert answers.place_before_matters == matters
    said = checks.check_order(answers).sentence
    assert ("the place before the last one predicts" in said) == matters


def made_for(sequences, horizon):
    return plans_for_one_place(
        markov.as_sequences(sequences), 1.0, horizon, smoothing=1.0, adversaries={}, sensitivity=2.0
    )


def test_without_a_bound_for_ever_the_plan_says_so_and_shares_remain():
    """Each place is the one before the last one."""
    copying = [np.resize(pair, 200).tolist() for pair in ((0, 0), (0, 1), (1, 1))]
    for_ever, known = made_for(copying, 4)
    assert for_ever.budgets is None
    assert for_ever.message.startswith("no budget keeps alpha for every T")
    assert 0.25 * (1.0 - 1e-5) <= known.budgets[0] <= 0.6
    assert known.tpl[ONE_PLACE] <= 1.0


def test_many_releases_and_many_states_have_fewer_plans():
    assert [plan.scheme for plan in made_for(WALKS, 50)] == [FOR_EVER, T_KNOWN]
    assert [plan.scheme for plan in made_for(WALKS, 51)] == [FOR_EVER]
    around = [np.arange(63) % 21]
    (none,) = made_for(around, 5)
    assert (none.budgets, none.against) == (None, ONE_PLACE)
    assert none.message == "it is computed for up to 20 states, found 21"


def test_anyway_recommends_a_plan_that_also_keeps_alpha_at_the_upper_end():
    advice = tr.report(WALKS, 1.0, HORIZON, draws=0, anyway=True)
    assert advice.recommendation.against != ONE_PLACE
    assert advice.recommendation.tpl[UPPER] <= 1.0
    assert ESTIMATE in plans_of(advice)[T_KNOWN].tpl
