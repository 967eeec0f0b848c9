"""Simulated data sets of all kinds: what reports on them say, and what is true."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from experiments import rhythms
from experiments.advice import kinds, recordings
from experiments.advice.judging import (
    DOUBTED,
    UNWARNED,
    VERDICTS,
    Judgement,
    judge,
    row_of,
    summarize_by_kind,
)
from experiments.claims import share_with_interval
from tplreport.reporting.plans import is_clearly_better

#: Those of `experiments.rhythms` with habits that follow the clock, which all users share.
BY_THE_CLOCK = "hours and weekends"
SHIFTED = "shifted hours"
KINDS = (*kinds.KINDS, BY_THE_CLOCK, SHIFTED)
AS_SEQUENCES = "sequences"
#: Of the table by kind: in how many data sets the reader wanted an argument.
ASKED = "reader asks"
#: Of shares by kind: of data sets whose plan would break without the checks.
POWER = "doubted or kept, of those that would break"
#: Of the results of the record, and its columns: for how many data sets what is so.
ONE_PLACE = "plans for one place"
PLANS = "plans"
BETTER = "clearly better than α/T"
ABOVE = "above α"
LARGEST = "largest TPL / alpha"
ALL_KINDS = "all kinds"


@dataclass(frozen=True)
class Outcome:
    """One simulated data set, and the report on it."""

    kind: str
    recording: str
    users: int
    is_asked: bool  # the reader refused the table without an argument
    judgement: Judgement


def judge_worlds(worlds: int, *, rng: np.random.Generator) -> pd.DataFrame:
    """The outcomes of so many random data sets, all kinds in turn.

    Parameters
    ----------
    worlds : int
        The number of data sets.
    rng : numpy.random.Generator
        Draws the users, their walks and what is recorded.

    Returns
    -------
    DataFrame
        A row for each data set, with the fields of `Outcome` and `Judgement`, and its verdict.
    """
    rows = []
    for number, own_rng in enumerate(rng.spawn(worlds)):  # so that each can be looked at alone
        turn, place = divmod(number, len(KINDS))
        recording = recordings.USUAL[(turn + place) % len(recordings.USUAL)]
        outcome = simulate(KINDS[place], recording, rng=own_rng)
        rows.append(row_of(outcome))
    return pd.DataFrame(rows)


def simulate(kind: str, recording: str, *, rng: np.random.Generator) -> Outcome:
    """The outcome of one data set of random size, laws, level and horizon.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    recording : str
        One of `recordings.USUAL`, which kinds with one way to record them ignore.
    rng : numpy.random.Generator

    Returns
    -------
    Outcome
    """
    if kind in (BY_THE_CLOCK, SHIFTED):
        return _simulate_by_the_clock(kind, rng)
    recording = kinds.RECORDING_OF.get(kind, recording)
    users = int(rng.choice(kinds.USERS_OF.get(kind, kinds.USERS)))
    length = int(rng.choice(kinds.STEPS_OF.get(kind, kinds.STEPS)))
    alpha = float(rng.choice([0.5, 1.0, 2.0]))
    horizon = int(rng.choice(kinds.HORIZONS_OF.get(kind, kinds.HORIZONS)))
    truth = kinds.random_truth(kind, users, rng=rng)
    walks = truth.walks(recordings.every_of(recording) * length, rng=rng)
    found = recordings.record(walks, recording, rng=rng)
    if found.sequences.n_states < 2 or found.sequences.n_transitions == 0:
        return simulate(kind, recording, rng=rng)  # there is nothing to report on
    judgement = judge(
        found.sequences, alpha, horizon, lambda budgets: truth.tpl(budgets, found.every)
    )
    return Outcome(kind, recording, users, found.is_asked, judgement)


def _simulate_by_the_clock(kind: str, rng: np.random.Generator) -> Outcome:
    habit = rhythms.SHIFTED
    if kind == BY_THE_CLOCK:
        habit = str(rng.choice(rhythms.SHARED_RHYTHMS))
    world = rhythms.random_world(habit, rng=rng)
    data = world.data(rng=rng)
    judgement = judge(data, world.alpha, world.horizon, world.tpl, world.time_of_first)
    return Outcome(kind, AS_SEQUENCES, world.of_user.size, False, judgement)


def summarize(outcomes: pd.DataFrame) -> pd.DataFrame:
    """What happened in how many of the `outcomes` of `judge_worlds`, by kind."""
    return summarize_by_kind(outcomes, **{ASKED: outcomes["is_asked"]})


def count_verdicts(outcomes: pd.DataFrame) -> pd.DataFrame:
    """How many data sets of each kind had each of `VERDICTS`."""
    counts = pd.crosstab(outcomes["kind"], outcomes["verdict"])
    in_order = [kind for kind in KINDS if kind in counts.index]
    return counts.reindex(index=in_order, columns=list(VERDICTS), fill_value=0)


def count_plans_for_one_place(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Data sets for which a report has plans for one place, those whose best such plan is clearly
    better than α/T, as it is where the report's sentences name it, and those where it leaks more
    than α about a place.

    Parameters
    ----------
    outcomes : DataFrame
        Of `judge_worlds`.

    Returns
    -------
    DataFrame
        A row for each kind of data with such plans, and one for all kinds; the last column is the
        largest TPL over α, NaN if there is no plan.
    """
    planned = outcomes[outcomes["one_place_tpl"].notna()]
    is_better = is_clearly_better(planned["one_place_error"], planned["error_of_shares"])
    facts = pd.DataFrame(
        {
            PLANS: 1,
            BETTER: is_better.astype(int),
            ABOVE: (planned["one_place_tpl"] > planned["alpha"]).astype(int),
            LARGEST: planned["one_place_tpl"] / planned["alpha"],
        },
        index=planned.index,
    )
    how = {PLANS: "sum", BETTER: "sum", ABOVE: "sum", LARGEST: "max"}
    by_kind = facts.groupby(planned["kind"], sort=False).agg(how)
    in_order = [kind for kind in KINDS if kind in by_kind.index]
    of_all = facts.agg(how).to_frame(ALL_KINDS).T.astype(facts.dtypes)
    return pd.concat([by_kind.loc[in_order], of_all]).rename_axis("kind")


def shares(outcomes: pd.DataFrame) -> dict[str, dict]:
    """Shares of all `outcomes` with exact 95 % intervals, by what they are of."""
    breaks = outcomes["model_tpl"] > outcomes["alpha"]
    is_cheaper = ~outcomes["model_composed"]
    is_clean = outcomes["kind"].isin(kinds.CLEAN)
    differ = (outcomes["kind"] == kinds.ALL_DIFFER) & outcomes["users_tpl"].notna()
    found = {
        "kept or warned of": ~outcomes["is_unwarned"],
        "kept without the checks": ~breaks,
        "doubted, of clean data": outcomes["doubted"][is_clean],
        "doubted, of those that would break": outcomes["doubted"][breaks],
        "doubted, of the cheaper that would be kept": outcomes["doubted"][is_cheaper & ~breaks],
        "kept by the plan for the worst user, where all differ": (
            outcomes["users_tpl"] <= outcomes["alpha"]
        )[differ],
    }
    return {name: share_with_interval(flags) for name, flags in found.items()}


def shares_by_kind(outcomes: pd.DataFrame) -> dict[str, dict[str, dict]]:
    """For each kind of data set the shares of plans above α without a warning, of doubted data
    sets, of those doubted or kept among those the model's plan of which would break, and of tables
    that the reader asked about."""
    breaks = outcomes["model_tpl"] > outcomes["alpha"]
    flags = {
        UNWARNED: outcomes["is_unwarned"],
        DOUBTED: outcomes["doubted"],
        POWER: ~outcomes["is_unwarned"][breaks],
        ASKED: outcomes["is_asked"],
    }
    return {name: shares_by(outcomes["kind"], values) for name, values in flags.items()}


def shares_by(names: pd.Series, flags: pd.Series) -> dict[str, dict]:
    """The share of true `flags` among the data sets of each name, with its exact 95 % interval."""
    of_flags = names.reindex(flags.index)
    return {str(name): share_with_interval(flags[of_flags == name]) for name in names.unique()}
