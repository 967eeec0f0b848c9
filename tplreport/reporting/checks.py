"""Is a first-order chain that all users share believable? Each check ends in one sentence.

Three checks ask the same question: do steps counted by a context (the place before and how long the
user has stayed, the half of the time axis, the user) predict other steps better than steps counted
without it? Where habits follow the clock (`time_of_day`), steps are counted by phase in both cases,
so that a rhythm is not taken for something else. Each user's steps
are cut into four quarters of time; alternating quarters make two halves, and each half predicts the
other. With a context, a row is (c + w p) / (|c| + w) for its counts c, the row p without context,
and a weight w. The gain in log-likelihood is averaged over both directions, and its exponential
over `WEIGHTS`. If the context does not matter this average is at most 1 in expectation for a known
p, so that it exceeds 1 / `FALSE_ALARM` with at most that probability (Markov's inequality). As p is
estimated, a gain must also exceed `ERRORS` times its standard error over users, or over stretches
of time where there are few users.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tplreport.people.rhythm import stays
from tplrepro.display import count_noun, format_number
from tplrepro.markov.phases import SATURDAY, PhaseGroups
from tplrepro.markov.sequences import Sequences, steps_of_period
from tplrepro.markov.transition import DAY, WEEK

#: Weights w of the row without context, in steps.
WEIGHTS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
#: Probability with which a context that does not matter is taken for one that does.
FALSE_ALARM = 0.05
#: A gain must be so many times its standard error: 5 % of normal errors are larger.
ERRORS = 1.645
#: Parts of the day, of which each has fewer phases than a rhythm may have.
PARTS_OF_DAY = 4
#: Groups over which the error of a gain is taken.
FEWEST_GROUPS = 20
#: A state that is left fewer times is doubtful.
FEW_STEPS = 10.0
#: States left few times, or rows made up, are doubtful where users spend more of their time there.
MUCH_TIME = 0.01
#: More rows than this share made up by half or more are doubtful.
MANY_ROWS = 0.1
#: So are more states than this share that are left few times.
MANY_STATES = 0.5

#: More steps are checked on a part of the users, drawn at random, which limits the memory.
MOST_STEPS = 4_000_000
#: Of one or two users who have more, stretches of so many steps are drawn at random.
STRETCH = 1000

FINE = "fine"
DOUBTFUL = "doubtful"
REFUSED = "refused"
UNCHECKED = "not checked"
#: Names of the checks of the chain: does it depend on the hour, on more of the past than the last
#: place, on the half of the time, or on the user?
RHYTHM = "time of day and of week"
ORDER = "order of the chain"
HALVES = "first and second half of the time"
USERS = "differences between users"
OF_CHAIN = (RHYTHM, ORDER, HALVES, USERS)


@dataclass(frozen=True)
class Check:
    """One check of the model: `verdict` is "fine", "doubtful", "refused" or "not checked"."""

    name: str
    verdict: str
    sentence: str  # with what to do unless fine
    value: float  # nats of evidence, or a share


@dataclass(frozen=True, eq=False)
class Steps:
    """All steps of all users, or of users drawn at random, in their order; arrays (m,)."""

    before: np.ndarray  # codes of states
    after: np.ndarray
    earlier: np.ndarray  # the state before `before`, -1 at the start of a sequence
    user: np.ndarray  # codes of users
    quarter: np.ndarray  # of the user's own steps, 0 to 3
    stay: np.ndarray  # how long she has been in the state `before`, 0 to 2; -1 if not known
    phase: np.ndarray  # codes of groups of phases
    part_of_day: np.ndarray  # 0 to `PARTS_OF_DAY` - 1, if there are several phases
    part_of_week: np.ndarray  # 1 at the weekend, if that has phases of its own, else 0
    n_states: int
    n_phases: int = 1

    @classmethod
    def of(cls, data: Sequences, groups: PhaseGroups | None = None) -> "Steps":
        """The steps of `data`, or about `MOST_STEPS` of them if there are more."""
        if data.n_transitions > MOST_STEPS:
            data = _draw_steps(data)
        users, _ = pd.factorize(data.users, use_na_sentinel=False)
        data = data.select(np.argsort(users, kind="stable"))
        users = np.sort(users).astype(np.int32)
        inside = np.ones(data.values.size, dtype=bool)
        starts = data.offsets[:-1][data.lengths > 0]
        inside[starts] = False
        after = np.flatnonzero(inside)
        earlier = np.where(inside[after - 1], data.values[after - 2], -1)
        user = np.repeat(users, data.lengths)[after]
        steps_of_user = np.bincount(user, minlength=1)
        first_step = np.cumsum(steps_of_user) - steps_of_user
        place = np.arange(user.size) - first_step[user]
        quarter = (4 * place // np.maximum(steps_of_user[user], 1)).astype(np.int8)
        stay = (stays(data)[after - 1] - 1).astype(np.int8)
        phase = np.zeros(after.size, dtype=np.int32)
        part_of_day = phase
        part_of_week = phase
        n_phases = 1
        if groups is not None:
            phase = groups.of_values(data)[after - 1].astype(np.int32)
            part_of_day = _parts_of_day(data)[after - 1]
            if groups.period == WEEK:
                part_of_week = _parts_of_week(data)[after - 1]
            n_phases = groups.n_groups
        return cls(
            before=data.values[after - 1],
            after=data.values[after],
            earlier=earlier,
            user=user,
            quarter=quarter,
            stay=stay,
            phase=phase,
            part_of_day=part_of_day,
            part_of_week=part_of_week,
            n_states=data.n_states,
            n_phases=n_phases,
        )

    @property
    def row(self) -> np.ndarray:
        """A number of each step's phase and state `before`, below n_phases * n_states."""
        return self.phase * self.n_states + self.before

    def at_several_grains(self) -> list["Steps"]:
        """These steps; where there are several phases, also with the parts of a day, and with
        weekdays and the weekend, for phases."""
        if self.n_phases == 1:
            return [self]
        parts = self.part_of_week * PARTS_OF_DAY + self.part_of_day
        of_parts = replace(self, phase=parts, n_phases=2 * PARTS_OF_DAY)
        together = replace(self, phase=self.part_of_week, n_phases=2)
        return [self, of_parts, together]


def _parts_of_day(data: Sequences) -> np.ndarray:
    """The part of the day of each value, (m,); 0 where days are no whole steps."""
    if data.step is None or DAY % data.step:
        return np.zeros(data.values.size, dtype=np.int32)
    part = data.phases(DAY) * PARTS_OF_DAY // (DAY // data.step)
    return part.astype(np.int32)


def _parts_of_week(data: Sequences) -> np.ndarray:
    """1 for values at the weekend, else 0, (m,)."""
    day = data.phases(WEEK) * 7 // steps_of_period(data.step, WEEK)
    return (day >= SATURDAY).astype(np.int32)


def _draw_steps(data: Sequences) -> Sequences:
    """About `MOST_STEPS` steps: all of few users, since few of all would hide their habits."""
    users, names = pd.factorize(data.users, use_na_sentinel=False)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(names))
    steps_of_user = np.bincount(users, np.maximum(data.lengths - 1, 0))[order]
    enough = max(2, int(np.searchsorted(np.cumsum(steps_of_user), MOST_STEPS)))
    share = min(1.0, MOST_STEPS / steps_of_user[:enough].sum())
    longest = data.lengths.max()
    if share < 1.0:
        longest = STRETCH
    starts, stops, owner = data.stretches(longest)
    drawn = np.flatnonzero(np.isin(users[owner], order[:enough]))
    drawn = np.sort(rng.choice(drawn, max(1, int(share * drawn.size)), replace=False))
    return data.gather(starts[drawn], stops[drawn], owner[drawn])


class Evidence(NamedTuple):
    """How much better a context predicts: `nats` of log-likelihood on held-out steps, at the best
    `weight`."""

    nats: float
    weight: float
    error: float  # standard error of the nats

    @property
    def matters(self) -> bool:
        return self.nats > max(-np.log(FALSE_ALARM), ERRORS * self.error)

    @property
    def in_words(self) -> str:
        return f"{format_number(self.nats)} ± {format_number(self.error)} nats"


def evidence_for(context: np.ndarray, steps: Steps, order: int = 1) -> Evidence:
    """Evidence that a context matters to a chain of `order` 0 or 1, given the phase: that it
    predicts held-out steps better than the chain without it.

    `context` (m,) has a number for each of the steps, -1 where it is not known; such steps do not
    count.
    """
    n = steps.n_states
    chosen: Any = slice(None)
    if context.min(initial=0) < 0:
        chosen = context >= 0
    context = context[chosen]
    if order == 0:
        plain = steps.phase[chosen]
    else:
        plain = steps.row[chosen]
    after = steps.after[chosen]
    user = steps.user[chosen]
    half = (steps.quarter[chosen] + (user % 2).astype(np.int8)) % 2
    group = user
    if user.max(initial=0) < FEWEST_GROUPS - 1:
        group = np.arange(user.size) * FEWEST_GROUPS // user.size
    rows = _numbered(context, n * steps.n_phases, plain)
    cells = _numbered(rows, n, after)
    step = np.empty(cells.max(initial=-1) + 1, dtype=np.int64)  # one of each cell
    step[cells] = np.arange(cells.size)
    row = rows[step]
    plain_row = plain[step]
    del rows
    plain_cell = _numbered(plain, n, after)[step]
    gains = np.zeros((len(WEIGHTS), group.max(initial=0) + 1))
    for side in (0, 1):
        test = half != side
        count = np.bincount(cells[~test], minlength=step.size)
        total = _sum_over(row, count)
        plain_count = _sum_over(plain_cell, count)
        plain_total = _sum_over(plain_row, count)
        expected = (plain_count + 1.0 / n) / (plain_total + 1.0)
        test_cells = cells[test]
        test_groups = group[test]
        for k, weight in enumerate(WEIGHTS):
            ratio = np.log((count / expected + weight) / (total + weight))
            gains[k] += 0.5 * np.bincount(test_groups, ratio[test_cells], minlength=gains.shape[1])
    gain_of_weight = gains.sum(axis=1)
    best = int(np.argmax(gain_of_weight))
    error = float(np.std(gains[best]) * np.sqrt(gains.shape[1]))
    nats = float(np.logaddexp.reduce(gain_of_weight) - np.log(len(WEIGHTS)))
    return Evidence(nats, WEIGHTS[best], error)


def _sum_over(groups: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """For each entry the sum of the counts of its group."""
    return np.bincount(groups, counts)[groups]


def _numbered(first: np.ndarray, n: int, second: np.ndarray) -> np.ndarray:
    """A number (m,) for each pair of entries of `first` and `second` (m,), the same for equal
    pairs, without gaps; entries of `second` are below n."""
    pairs = np.multiply(first, n, dtype=np.int64)
    pairs += second
    return pd.factorize(pairs)[0].astype(np.int32)


@dataclass(frozen=True)
class CheckedChain:
    """All checks, and the weight of the shared chain that predicts each user's other steps best."""

    checks: tuple[Check, ...]
    weight: float


def check_chain(rhythm: Check, steps: Steps, counts: Any, smoothing: float) -> CheckedChain:
    """All checks, after that of the rhythm.

    `counts` (n, n) are those of the steps at all hours together, to each row of which smoothing
    adds `smoothing` steps.
    """
    users, weight = check_users(steps)
    order = check_order(steps)
    halves = check_stationarity(steps)
    checks = (rhythm, order, halves, users, *check_amount(counts, smoothing))
    return CheckedChain(checks, weight)


def evidence_at_any_grain(context: np.ndarray, steps: Steps) -> Evidence:
    """Evidence that the `context` (m,) matters, given the phase or fewer phases: differences that
    last for hours show better where these are counted together.

    As for weights, exponentials of gains are averaged. Of contexts that come with an hour, such as
    the place before, fewer phases would tell nothing.
    """
    found = [evidence_for(context, grain) for grain in steps.at_several_grains()]
    best = max(found, key=lambda evidence: evidence.nats)
    nats = np.logaddexp.reduce([evidence.nats for evidence in found]) - np.log(len(found))
    return best._replace(nats=float(nats))


def check_order(steps: Steps) -> Check:
    """Order 0, 1 or 2, by held-out likelihood; or does it matter how long a user has stayed?"""
    first = evidence_for(steps.before, steps, order=0)
    second = evidence_for(steps.earlier, steps)
    stay = evidence_for(steps.stay, steps)
    if first.matters:
        fine = (
            f"order 1 predicts held-out steps better than order 0 (by {first.in_words}), order 2 "
            "no better"
        )
    else:
        fine = (
            f"no correlation shows on held-out steps (order 1 gains {first.in_words}); plans "
            "withstand as much of it as the steps do not rule out"
        )
    if stay.matters and stay.nats > second.nats:
        doubtful = (
            "how long a user has been in a place predicts whether she stays (lengths of 1, 2 to 3 "
            f"and more steps gain {stay.in_words} on held-out steps): use states that say how "
            "long, such as home for 4 hours or more"
        )
        return Check(ORDER, DOUBTFUL, doubtful, stay.nats)
    doubtful = (
        "the place before the last one predicts the next as well (order 2 gains "
        f"{second.in_words} on held-out steps): use longer steps of time, or states that hold two "
        "places"
    )
    return _judged(ORDER, second, fine, doubtful)


def check_stationarity(steps: Steps) -> Check:
    """One chain in both halves of each user's time."""
    found = evidence_for(steps.quarter // 2, steps)
    fine = f"one chain predicts both halves (two gain {found.in_words})"
    doubtful = (
        f"the steps of the two halves differ (a chain for each gains {found.in_words} on held-out "
        "steps): report on the later half alone, and again when new data come"
    )
    return _judged(HALVES, found, fine, doubtful)


def check_users(steps: Steps) -> tuple[Check, float]:
    """One chain for all users, and the weight of the pooled chain that predicts each user's other
    steps best."""
    if not steps.user.any():
        words = (
            "there is a single user: nothing is known about how others differ; name the column of "
            "users if there is one"
        )
        return Check(USERS, UNCHECKED, words, 0.0), WEIGHTS[-1]
    found = evidence_at_any_grain(steps.user, steps)
    fine = f"the shared chain predicts each user (own chains gain {found.in_words})"
    doubtful = (
        f"users have habits of their own (own chains at weight {found.weight:g} gain "
        f"{found.in_words} on held-out steps): releases leak more to somebody who knows the habits "
        "of one user; use α/T, or a plan against the worst user's habits"
    )
    return _judged(USERS, found, fine, doubtful), found.weight


def _judged(name: str, evidence: Evidence, fine: str, doubtful: str) -> Check:
    """The check called `name`: doubtful, in the words of `doubtful`, where the context matters,
    else fine."""
    if evidence.matters:
        return Check(name, DOUBTFUL, doubtful, evidence.nats)
    return Check(name, FINE, fine, evidence.nats)


def check_amount(counts: Any, smoothing: float) -> list[Check]:
    """Steps from a state, and how much of a row smoothing makes up: by the share of users' time,
    not on average."""
    moves = np.asarray(counts.sum(axis=1)).ravel()
    arrivals = np.asarray(counts.sum(axis=0)).ravel()
    time = (moves + arrivals) / max((moves + arrivals).sum(), 1.0)
    return [_check_steps_of_states(moves, time), _check_made_up(moves, time, smoothing)]


def _check_steps_of_states(moves: np.ndarray, time: np.ndarray) -> Check:
    """How often states are left (n,), and in how much of users' time (n,) they are left seldom."""
    few = moves < FEW_STEPS
    time_in_few = float(time[few].sum())
    words = (
        f"the median state is left {count_noun(float(np.median(moves)), 'time', ',.4g')}; "
        f"{few.mean():.0%} of the states, in which users spend {time_in_few:.1%} of their time, "
        f"fewer than {FEW_STEPS:g} times"
    )
    if time_in_few <= MUCH_TIME and few.mean() <= MANY_STATES:
        return Check("steps a state", FINE, words, time_in_few)
    words += ": use fewer states (larger cells, bins, rare ones together) or more data"
    return Check("steps a state", DOUBTFUL, words, time_in_few)


def _check_made_up(moves: np.ndarray, time: np.ndarray, smoothing: float) -> Check:
    """How much of a row smoothing makes up, if it adds `smoothing` steps to each.

    `moves` (n,) says how often each state is left, `time` (n,) the share of the users' time in it.
    """
    made_up = smoothing / np.maximum(smoothing + moves, 1e-300)
    share = float(made_up.mean())
    half = made_up >= 0.5
    verdict = FINE
    words = (
        f"smoothing makes up {share:.1%} of a row on average, and half or more of "
        f"{half.mean():.0%} of them"
    )
    if share >= 0.5:
        verdict = REFUSED
        words += ": the correlation is a guess; use fewer states or more data"
    elif half.mean() > MANY_ROWS or time[half].sum() > MUCH_TIME:
        verdict = DOUBTFUL
        words += ": what is known of these is a guess; use fewer states or more data"
    return Check("share made up", verdict, words, share)
