"""Reports on simulated data sets: what they recommend, judged by the truth."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from experiments.advice import judging, kinds, outcomes, recordings

KEPT = judging.Judgement(
    alpha=1.0,
    horizon=5,
    doubted=False,
    relied_on=True,
    withheld=False,
    composed=False,
    model_composed=False,
    true_tpl=0.9,
    model_tpl=0.9,
    users_tpl=0.8,
    error=4.0,
    model_error=4.0,
    error_of_shares=10.0,
)
DOUBTED = replace(KEPT, doubted=True, relied_on=False, composed=True, true_tpl=0.7, error=10.0)


@pytest.mark.parametrize("kind", outcomes.KINDS)
def test_plans_are_recorded_and_doubted_ones_are_alpha_over_t(kind):
    outcome = outcomes.simulate(kind, recordings.SHUFFLED, rng=np.random.default_rng(8))
    judgement = outcome.judgement
    assert outcome.kind == kind
    assert outcome.recording == kinds.RECORDING_OF.get(kind, outcome.recording)
    assert judgement.error <= judgement.error_of_shares
    assert judgement.composed == (judgement.error == judgement.error_of_shares)
    assert judgement.true_tpl <= judgement.alpha or not judgement.composed


@pytest.mark.parametrize(
    ("kind", "number"),
    [(kinds.ALL_DIFFER, 760), (outcomes.BY_THE_CLOCK, 304), (outcomes.SHIFTED, 1019)],
)
def test_differences_that_are_too_weak_to_be_found_are_planned_for(kind, number):
    """A plan for the chain of all would leak more than α, though no check could be sure of it."""
    rng = np.random.default_rng(np.random.SeedSequence(2029, spawn_key=(number,)))
    judgement = outcomes.simulate(kind, recordings.IN_ORDER, rng=rng).judgement
    assert judgement.model_tpl > judgement.alpha
    assert not judgement.is_unwarned
    assert judgement.error <= judgement.error_of_shares


@pytest.mark.parametrize(
    ("judgement", "verdict"),
    [
        (KEPT, judging.KEPT),
        (replace(KEPT, true_tpl=1.1), judging.BROKEN),
        (replace(KEPT, true_tpl=1.1, doubted=True, relied_on=False), judging.BROKEN),
        (replace(KEPT, composed=True, model_composed=True), judging.AS_GOOD),
        (replace(DOUBTED, model_composed=True), judging.AS_GOOD),
        (DOUBTED, judging.WOULD_KEEP),
        (replace(DOUBTED, model_tpl=1.1), judging.WOULD_BREAK),
        (replace(DOUBTED, composed=False, withheld=True), judging.WOULD_KEEP),
    ],
)
def test_verdicts(judgement, verdict):
    assert judgement.verdict == verdict
    assert judgement.is_unwarned == (verdict == judging.BROKEN and judgement.relied_on)


def test_all_kinds_in_turn_in_all_recordings(monkeypatch):
    made = []

    def simulate(kind, recording, *, rng):
        made.append((kind, recording))
        return outcomes.Outcome(kind, recording, 5, False, KEPT)

    monkeypatch.setattr(outcomes, "simulate", simulate)
    table = outcomes.judge_worlds(4 * len(outcomes.KINDS), rng=np.random.default_rng(1))
    assert len(set(made)) == len(made)
    assert table["kind"].tolist() == list(outcomes.KINDS) * 4
    assert table["verdict"].eq(judging.KEPT).all()
    assert table["true_tpl"].eq(0.9).all()


def test_kinds_are_counted_apart():
    judgements = [KEPT, replace(KEPT, true_tpl=1.1, model_tpl=1.1), DOUBTED]
    found = [
        outcomes.Outcome(kind, recordings.IN_ORDER, 5, kind == "drift", judgement)
        for kind, judgement in zip(("drift", "drift", "order 0"), judgements, strict=True)
    ]
    table = pd.DataFrame([judging.row_of(outcome) for outcome in found])
    summary = outcomes.summarize(table)
    assert summary.index.tolist() == ["drift", "order 0"]
    assert summary[judging.WORLDS].tolist() == [2, 1]
    assert summary[outcomes.ASKED].tolist() == [2, 0]
    assert summary[judging.DOUBTED].tolist() == [0, 1]
    assert summary[judging.UNWARNED].tolist() == [1, 0]
    assert summary[judging.MODEL_BREAKS].tolist() == [1, 0]
    assert summary[judging.SHARE_OF_ERROR].tolist() == [0.4, 1.0]
    counts = outcomes.count_verdicts(table)
    assert counts.index.tolist() == ["order 0", "drift"]
    assert counts.loc["drift"].tolist() == [0, 1, 0, 0, 1]


def counts_of(judgements):
    """The rows of the counts of plans for one place, for kinds of data and judgements in pairs."""
    table = pd.DataFrame(
        [
            judging.row_of(outcomes.Outcome(kind, recordings.IN_ORDER, 5, False, judgement))
            for kind, judgement in judgements
        ]
    )
    return outcomes.count_plans_for_one_place(table).T.to_dict("list")


def test_plans_for_one_place_are_counted_where_there_are_some():
    kept = replace(DOUBTED, one_place_tpl=0.9, one_place_error=4.0)
    as_shares = replace(kept, one_place_tpl=1.0, one_place_error=9.6)
    broken = replace(kept, alpha=0.5, one_place_tpl=0.55, true_tpl=0.5)
    counts = counts_of(
        [
            (kinds.DRIFT, broken),
            (kinds.IN_TURN, kept),
            (kinds.ONE_CHAIN, KEPT),
            (kinds.IN_TURN, as_shares),
        ]
    )
    assert counts == {
        kinds.IN_TURN: [2, 1, 0, 1.0],
        kinds.DRIFT: [1, 1, 1, pytest.approx(1.1)],
        outcomes.ALL_KINDS: [3, 2, 1, pytest.approx(1.1)],
    }


def test_no_plan_for_one_place_is_counted_as_such():
    counts = counts_of([(kinds.ONE_CHAIN, KEPT)])
    assert counts == {outcomes.ALL_KINDS: [0, 0, 0, pytest.approx(np.nan, nan_ok=True)]}


def test_the_best_plan_for_one_place_is_judged_by_the_truth():
    """The true chain of order 2 is not just the estimated one, and this plan leaks more than α."""
    rng = np.random.default_rng(np.random.SeedSequence(2029, spawn_key=(8,)))
    recording = recordings.USUAL[kinds.KINDS.index(kinds.SECOND_ORDER) % len(recordings.USUAL)]
    judgement = outcomes.simulate(kinds.SECOND_ORDER, recording, rng=rng).judgement
    assert judgement.doubted
    assert judgement.alpha < judgement.one_place_tpl < 1.05 * judgement.alpha
    assert judgement.one_place_error < 0.7 * judgement.error_of_shares
    assert not judgement.is_broken


def test_shares_are_of_the_data_sets_that_they_name():
    doubted_clean = replace(DOUBTED, model_tpl=0.9)
    broken = replace(KEPT, true_tpl=1.1, model_tpl=1.1)
    caught = replace(DOUBTED, model_tpl=1.1)
    judgements = {
        kinds.ONE_CHAIN: (KEPT, KEPT, KEPT, doubted_clean),
        kinds.ALL_DIFFER: (broken, caught, caught, KEPT),
    }
    table = pd.DataFrame(
        [
            judging.row_of(outcomes.Outcome(kind, recordings.IN_ORDER, 5, False, judgement))
            for kind, several in judgements.items()
            for judgement in several
        ]
    )
    values = {name: share["value"] for name, share in outcomes.shares(table).items()}
    assert list(values.values()) == pytest.approx([7 / 8, 5 / 8, 1 / 4, 2 / 3, 1 / 5, 1.0])
    by_kind = outcomes.shares_by_kind(table)
    assert by_kind[judging.UNWARNED][kinds.ALL_DIFFER]["value"] == 1 / 4
    assert by_kind[judging.DOUBTED][kinds.ONE_CHAIN]["value"] == 1 / 4
    assert by_kind[outcomes.POWER][kinds.ALL_DIFFER]["value"] == pytest.approx(2 / 3)
    assert by_kind[outcomes.POWER][kinds.ONE_CHAIN]["repeats"] == 0


def test_users_none_of_whom_ever_moves_are_no_data_to_report_on():
    """The first draw of the 1,673rd data set of this seed."""
    rng = np.random.default_rng(3029).spawn(1673)[1672]
    outcome = outcomes.simulate(kinds.CHANGES, recordings.IN_ORDER, rng=rng)
    assert outcome.judgement.steps > 0
