"""Do habits follow the time of day or of the week? The check that comes before all others, and the
phases by which a report judges and recommends."""

from __future__ import annotations
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np

from tplreport.people.rhythm import (
    HeldOutGain,
    PhaseCandidate,
    Rhythm,
    choose_rhythm,
    evidence_of_finer_phases,
)
from tplreport.reporting.checks import DOUBTFUL, FINE, RHYTHM, UNCHECKED, Check
from tplreport.reporting.evidence import MORE_WEIGHTS, WEIGHTS, mean_variation
from tplrepro.display import count_noun, format_number
from tplrepro.markov.phases import PhaseGroups, group_phases
from tplrepro.markov.sequences import Sequences
from tplrepro.validation import check_choice

#: By which cycle a report judges: what the check finds, one that is asked for, or none.
AUTO = "auto"
DAY = "day"
WEEK = "week"
CYCLES = (AUTO, DAY, WEEK, None)
#: How a chain of data without times of day is checked.
WANTED = "read a column of dates with times of day, and give the step of time, such as 1h"


@dataclass(frozen=True, eq=False)
class TimeOfDay:
    """The check, and the phases by which a report judges."""

    check: Check
    groups: PhaseGroups | None = None  # None: all hours alike
    name: str = ""  # of the phases, such as "blocks of 6 hours"

    def doubting_unseen(self, steps: list[float]) -> TimeOfDay:
        """The same phases, doubted if no step was seen at one of them; `steps` are their numbers
        by group of phases."""
        unseen = steps.count(0)
        if self.groups is None or not unseen:
            return self
        period = DAY
        if self.groups.period == timedelta(weeks=1):
            period = WEEK
        words = (
            f"no step was seen at {unseen} of {len(steps)} phases ({self.name}), whose habits are "
            f"a guess: give data of each part of a {period}"
        )
        return replace(self, check=replace(self.check, verdict=DOUBTFUL, sentence=words))


def judge_time_of_day(data: Sequences, cycle: str | None = AUTO) -> TimeOfDay:
    """Whether habits follow the clock, and by which phases a report judges.

    Parameters
    ----------
    data : Sequences
    cycle : str or None
        "auto": the phases that predict other users best, or none; "day" or "week": those of a
        cycle that is asked for; None: one chain for all hours, which stays doubtful where these
        matter.

    Returns
    -------
    TimeOfDay

    Raises
    ------
    ValueError
        For another cycle, or one that is asked for although the times do not tell its phases.
    """
    check_choice(cycle, "cycle", CYCLES)
    reason = _why_unchecked(data)
    if not reason:
        try:
            return _judge_rhythm(choose_rhythm(data), cycle)
        except ValueError as error:  # such as of a step that divides no week
            reason = str(error)
    if cycle in (DAY, WEEK):
        raise ValueError(f"cycle={cycle!r} needs the phases of a {cycle}, but {reason}")
    return TimeOfDay(Check(RHYTHM, UNCHECKED, f"{reason}; one chain is taken for all hours", 0.0))


def variation_of_hours(data: Sequences, groups: PhaseGroups | None) -> float:
    """By how much rows of hours and days vary about those of the phases by which a report judges;
    see `mean_variation`. 0 where no times of day are known."""
    if _why_unchecked(data):
        return 0.0
    weights = (*WEIGHTS, *MORE_WEIGHTS)
    logs = []
    try:
        for evidence in evidence_of_finer_phases(data, groups):
            logs += [evidence.at(weight) - evidence.of_prior for weight in weights]
    except ValueError:  # such as of a step that divides no week
        return 0.0
    if not logs:
        return 0.0
    return mean_variation(np.array(logs), np.resize(weights, len(logs)))


def _why_unchecked(data: Sequences) -> str:
    """What is missing for a check, and how to give it; empty if nothing is."""
    if data.starts is None and data.times is None:
        return f"no times of day are known; {WANTED}"
    if data.step is None:
        return f"the steps of time are not equally long; {WANTED}"
    return ""


def _judge_rhythm(rhythm: Rhythm, cycle: str | None) -> TimeOfDay:
    """The phases by which a report judges, and what the check says about them; `cycle` is "auto",
    "day", "week" or None, for one chain at all hours."""
    candidate = _candidate_of(rhythm, cycle)
    clock = "the clock of the times as they are written"
    zone = rhythm.sequences.zone
    if zone is not None:
        clock = f"the clock of {zone}"
    if candidate.n_phases == 1:
        return TimeOfDay(_check_of_one_chain(rhythm, clock))
    groups = group_phases(candidate.phase, rhythm.sequences.step)
    missing = rhythm.chosen.phase.weekend and not candidate.phase.weekend
    return TimeOfDay(_check_of_cycle(rhythm, candidate, clock, missing), groups, candidate.name)


def _candidate_of(rhythm: Rhythm, cycle: str | None) -> PhaseCandidate:
    """The phases by which a report judges; `cycle` is "auto", "day", "week" or None, for one chain
    at all hours."""
    if cycle is None:
        return rhythm.candidates[0]
    if cycle == AUTO:
        return rhythm.chosen
    wants_week = cycle == WEEK
    if rhythm.matters and rhythm.chosen.phase.weekend == wants_week:
        return rhythm.chosen
    several = [one for one in rhythm.candidates if one.n_phases > 1]
    possible = [one for one in several if one.phase.weekend == wants_week]
    if not possible:
        step = rhythm.sequences.step
        raise ValueError(f"steps of {step} have no phases of a {cycle}; {WANTED}")
    return max(possible, key=lambda one: one.gain.nats)


def _check_of_one_chain(rhythm: Rhythm, clock: str) -> Check:
    """One chain for all hours: fine unless other phases predict better; `clock` says in words whose
    clock it is."""
    if rhythm.matters:
        chosen = rhythm.chosen
        words = (
            f"habits follow {clock} ({chosen.name} gain {_in_words(chosen.gain)} on held-out "
            "users): report by the cycle (cycle auto), which has a chain for each phase"
        )
        return Check(RHYTHM, DOUBTFUL, words, chosen.gain.nats)
    several = [one for one in rhythm.candidates if one.n_phases > 1]
    if not several:
        words = f"steps of {rhythm.sequences.step} have no time of day or of the week"
        return Check(RHYTHM, UNCHECKED, words, 0.0)
    best = max(several, key=lambda one: one.gain.nats)
    words = (
        f"one chain predicts all hours and days by {clock} ({best.name} gain "
        f"{_in_words(best.gain)} on held-out users)"
    )
    return Check(RHYTHM, FINE, words, best.gain.nats)


def _check_of_cycle(rhythm: Rhythm, candidate: PhaseCandidate, clock: str, missing: bool) -> Check:
    """A chain for each phase of the candidate: fine unless the weekend, which the candidate does
    not know, is `missing`; `clock` says in words whose clock it is."""
    gain = _in_words(candidate.gain)
    if missing:
        chosen = rhythm.chosen
        words = (
            f"the weekend differs by {clock} ({chosen.name} gain {_in_words(chosen.gain)} on "
            f"held-out users, {candidate.name} {gain}): report by the cycle of a week"
        )
        return Check(RHYTHM, DOUBTFUL, words, chosen.gain.nats)
    chains = count_noun(candidate.n_phases, "chain")
    words = (
        f"habits follow {clock}: {candidate.name} predict held-out users better than one chain (by "
        f"{gain}), so all plans are for {chains} in turn"
    )
    if not rhythm.matters:
        words = (
            f"all plans are for {chains} in turn, as asked for; one predicts held-out users about "
            f"as well by {clock} ({candidate.name} gain {gain})"
        )
    return Check(RHYTHM, FINE, words, candidate.gain.nats)


def _in_words(gain: HeldOutGain | Any) -> str:
    return f"{format_number(gain.nats)} ± {format_number(gain.error)} nats"
