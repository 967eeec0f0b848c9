"""The recursion of privacy profiles along one side: the profile of all earlier releases about the value at each time.

One step composes the profile with that of the release and takes the result through the correlation (Eq. (13)
of [1] with profiles instead of numbers). Two kinds of runs of equal releases need no step per release: with
the identity matrix a run is a number of equal releases, and near a fixed point the rest of a run is
extrapolated. So is a schedule that repeats, by periods: 3,000 releases of two alternating kinds take 0.4 s.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, count, repeat
from math import inf, prod

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.profile import EPS, PrivacyProfile, loss_at
from tplrepro.leakage.temporal import accumulate_steps
from tplrepro.validation import FrozenArrays

#: A run is extrapolated when the rest of it changes by less than SETTLED (relative) plus CHANGE (absolute);
#: that is tried at 16 to 32 (MARKS) of the earlier profiles.
SETTLED, CHANGE, MARKS = 1e-9, 1e-12, 32
#: The longest period that is looked for, in steps, and its repetitions.
MOST_PERIOD, REPEATS = 32, 4
#: Each step adds this to a profile, so that a longer series reproduces earlier profiles within rounding.
ROOM = 2.0**-50
#: More than MANY different counts of equal releases are rounded up to this number of bits.
BITS, MANY = 8, 1000


@dataclass(frozen=True, eq=False)
class SideProfiles(FrozenArrays):
    """The profiles of one side about the value at each time, without the release at that time.

    At time t it is `bases[run[t]]` composed, for the identity matrix, with `count[t]` more releases of the
    kind `kinds[run[t]]`; `largest` (T,) bounds its loss.
    """

    bases: tuple[PrivacyProfile, ...]
    kinds: np.ndarray
    run: np.ndarray
    count: np.ndarray
    largest: np.ndarray


def side_profiles(
    kinds: tuple[PrivacyProfile, ...],
    grid: float,
    horizon: int,
    losses: list[PrivacyLossFunction | None],
    released: list[int],
    times: list[int],
    pauses: list[tuple[int, int, PrivacyLossFunction | None]],
) -> SideProfiles:
    """One side; `losses` lead from each of the `released` kinds to the next, and those of `pauses` to each pause."""
    recursion = Recursion(kinds, SideProfiles((PrivacyProfile.nothing(grid),), np.array([-1]), *np.zeros((3, 0))))
    run, number, largest = np.zeros(horizon, int), np.zeros(horizon, int), np.zeros(horizon)
    run[times], number[times] = recursion.along(losses, released)
    largest[times] = loss_bounds(losses, [kinds[kind].largest for kind in released])
    for time, before, loss in pauses:
        if loss is not None:
            last = times[before]
            run[time], number[time] = recursion.step((int(run[last]), int(number[last])), released[before], loss)
            largest[time] = _bound_after(loss, largest[last], kinds[released[before]].largest)
    return recursion.side(run, number, largest)


class Recursion:
    """The profiles at successive times; each state is a run and a number of equal releases since its base."""

    def __init__(self, releases: tuple[PrivacyProfile, ...], side: SideProfiles):
        self.releases, self.powers = releases, Powers(releases)
        self.bases, self.kinds = list(side.bases), side.kinds.tolist()
        self._steps: dict[tuple, tuple[int, int]] = {}

    def side(self, run: np.ndarray, number: np.ndarray, largest: np.ndarray) -> SideProfiles:
        """The profiles that the time points (T,) use, and the empty run 0."""
        used = np.bincount(run, minlength=len(self.bases)) > 0
        used[0] = True
        bases = tuple(self.bases[base] for base in np.flatnonzero(used).tolist())
        return SideProfiles(bases, np.array(self.kinds)[used], (np.cumsum(used) - 1)[run], number, largest)

    def along(
        self, losses: list, released: list[int], state: tuple[int, int] = (0, 0)
    ) -> tuple[np.ndarray, np.ndarray]:
        """The states (R,), (R,) before each release; `state` is the first."""
        run, number = np.zeros(len(released), int), np.zeros(len(released), int)
        run[:1], number[:1] = state
        start = 1
        for period, steps in periods([*zip(losses, released, strict=False)]):
            end = start + steps
            loss, kind = period[0]
            if loss is None:
                state = 0, 0
            elif loss.is_identity:
                base, first = self.step(state, kind, loss)
                run[start:end], number[start:end] = base, first + np.arange(end - start)
                state = base, int(number[end - 1])
            else:
                run[start:end] = self._run_of_periods(state, period, steps)
                state = int(run[end - 1]), 0
            start = end
        return run, number

    def _run_of_periods(self, state: tuple[int, int], period: list, steps: int) -> np.ndarray:
        """The runs (steps,) after each of a number of steps that forget and repeat a period."""
        run = np.zeros(steps, int)
        length, last = len(period), self._base(state)
        for done, base in zip(range(-(-steps // length)), self._following(last, period), strict=False):
            repeats = done > 0 and base is last
            bases = [*accumulate(period[:-1], self._after, initial=last), base][1:]
            if done < MANY or repeats or done % _unit(done + 1) == 0:
                latest = [self._run(base) for base in bases]
            else:  # one profile for several times, as for the counts of the identity
                for number, higher in zip(latest, bases, strict=True):
                    self.bases[number] = highest([self.bases[number], higher])
            start = done * length
            end = steps if repeats else min(start + length, steps)
            run[start:end] = np.resize(latest, end - start)
            if repeats:
                break
            last = base
        return run

    def step(self, state: tuple[int, int], kind: int, loss: PrivacyLossFunction) -> tuple[int, int]:
        """The state one step after a release."""
        run, number = state
        if loss.is_identity and kind == self.kinds[run]:
            return run, number + 1
        key = run, number, kind, loss
        if key not in self._steps:
            if loss.is_identity:
                self._steps[key] = self._run(self._base(state), kind), 1
            else:
                self._steps[key] = self._run(self._after(self._base(state), (loss, kind))), 0
        return self._steps[key]

    def _base(self, state: tuple[int, int]) -> PrivacyProfile:
        run, number = state
        base = self.bases[run]
        return base.compose(self.powers.of(self.kinds[run], number)) if number else base

    def _after(self, base: PrivacyProfile, release: tuple[PrivacyLossFunction, int]) -> PrivacyProfile:
        """The profile after a release and a step that forgets; `loss_bounds` computes its `largest`."""
        loss, kind = release
        base = base.compose(self.releases[kind]).correlated(loss)
        return replace(base, deltas=base.deltas + ROOM, largest=inf) if base.largest else base

    def _following(self, base: PrivacyProfile, period: list) -> Iterator[PrivacyProfile]:
        """The profiles after 1, 2, ... periods of releases; at the end the same profile without end."""

        def step(base: PrivacyProfile) -> PrivacyProfile:
            return reduce(self._after, period, base)

        kept = prod(float(loss.hockey_stick(1.0)) for loss, _ in period)
        marks, lag, forgotten = [], 1, max(1.0 - kept, EPS) / len(period)
        for done in count(1):
            base = step(base)
            yield from repeat(base) if base.largest == 0.0 else [base]
            if done % lag == 0:
                marks.append(base)
                yield from extrapolated(marks[-3:], lag, step, forgotten)
                if len(marks) == MARKS:
                    marks, lag = marks[1::2], 2 * lag

    def _run(self, base: PrivacyProfile, kind: int = -1) -> int:
        if kind < 0 and base.largest == 0.0:
            return 0
        self.bases.append(base)
        self.kinds.append(kind)
        return len(self.bases) - 1


def periods(steps: list) -> Iterator[tuple[list, int]]:
    """Consecutive runs of steps (loss function, release): a period that a run repeats, and its number of steps.

    Periods of several steps that forget count from `REPEATS` repetitions on.
    """
    numbers: dict[tuple, int] = {}
    codes = np.array([numbers.setdefault(step, len(numbers)) for step in steps], int)
    forgets = np.array([loss is not None and not loss.is_identity for loss, _ in numbers], bool)
    start = 0
    while start < len(steps):
        lengths = range(1, MOST_PERIOD + 1) if forgets[codes[start]] else []
        length = next((p for p in lengths if _repeats(codes, start, p) and forgets[codes[start : start + p]].all()), 1)
        differ = np.flatnonzero(codes[start + length :] != codes[start:-length])
        count = length + int(differ[0]) if differ.size else len(steps) - start
        yield steps[start : start + length], count
        start += count


def _repeats(codes: np.ndarray, start: int, length: int) -> bool:
    window = codes[start : start + REPEATS * length]
    return window.size == REPEATS * length and np.array_equal(window[length:], window[:-length])


class Powers:
    """Profiles of numbers of equal releases, each composed once."""

    def __init__(self, kinds: tuple[PrivacyProfile, ...]):
        self._composed = {(number, 1): kind for number, kind in enumerate(kinds)}

    def of(self, kind: int, number: int) -> PrivacyProfile:
        """The profile of `number` releases of a kind."""
        if (kind, number) not in self._composed:
            low = number & -number
            rest = (number - low, low) if low < number else (number // 2, number // 2)
            self._composed[kind, number] = self.of(kind, rest[0]).compose(self.of(kind, rest[1]))
        return self._composed[kind, number]


def extrapolated(
    marks: list[PrivacyProfile], lag: int, step: Callable[[PrivacyProfile], PrivacyProfile], forgotten: float
) -> Iterator[PrivacyProfile]:
    """Upper bounds of the next profiles of a run without end; none while it still changes much.

    What it buys: a million releases of a chain that stays with probability 0.9985 take seconds (17 s on a
    busy core); without it, 8,000 take 31 s, and the time grows with their number.

    `marks` are three profiles, `lag` steps apart. In the end, differences shrink by one rate r per step,
    the largest at any loss (constant differences shrink by 1 - `forgotten`). This gives a candidate for the
    limit. A step F is affine and increasing in the deltas, so F(limit) <= limit and
    F(near) <= limit - r (limit - near) prove that m steps from below `near` end below
    limit - r^m (limit - near).
    """
    if len(marks) < 3 or len({profile.grid for profile in marks}) > 1:
        return
    grid, (old, last, new) = marks[0].grid, together(marks)
    before, change = last - old, new - last
    rates = np.divide(change, before, out=np.zeros_like(new), where=np.abs(before) > CHANGE)
    rates = np.maximum(rates, 0.0)
    if rates.max() >= 1.0:
        return
    rate = float(rates[change > 0.0].max(initial=0.0))
    ahead = np.maximum(change, 0.0) * (rate / (1.0 - rate))
    if (ahead - change * rates / (1.0 - rates) > SETTLED * new + 8.0 * CHANGE).any():
        return
    rate **= 1.0 / lag
    for room in ROOM / forgotten * 4.0 ** np.arange(5):  # above the rounding of a step
        near = PrivacyProfile(np.minimum(new + room, 1.0), grid)
        ends = np.maximum.accumulate(np.minimum(near.deltas + ahead, 1.0)[::-1])[::-1]
        candidates = [near, PrivacyProfile(ends, grid)]
        steps = [step(profile) for profile in candidates]
        if {profile.grid for profile in steps} == {grid}:
            low, high, after_low, after_high = together(candidates + steps)
            if (after_high <= high).all() and (after_low <= high - rate * (high - low)).all():
                yield from _converging(high, low, rate, grid)


def _converging(limit: np.ndarray, near: np.ndarray, rate: float, grid: float) -> Iterator[PrivacyProfile]:
    """limit - rate^m (limit - near), rounded up, for m = 1, 2, ..., and then the same limit without end."""
    share = 1.0
    while (share * (limit - near) > SETTLED * near + CHANGE).any():
        share *= rate * (1.0 - EPS)
        yield PrivacyProfile(share * near + (1.0 - share) * limit + ROOM, grid)
    yield from repeat(PrivacyProfile(limit, grid))


def is_within(new: PrivacyProfile, old: PrivacyProfile) -> bool:
    """Whether a profile after a step, without its ROOM, is bounded by another, including rounding errors."""
    if new.grid != old.grid:
        return False
    above, below = together([new, old])
    return bool((above - below).max() <= ROOM / 2.0)


def loss_bounds(losses: list[PrivacyLossFunction | None], largest: list[float]) -> np.ndarray:
    """Bounds on the loss of all releases before each release, (R,), by the recursion of [1], rounded up."""
    return accumulate_steps(losses, np.array([0.0, *largest[:-1]]), _bound_after)


def _bound_after(loss: PrivacyLossFunction | None, bound: float | None, largest: float) -> float:
    return 0.0 if loss is None or bound is None else loss_at(loss, (bound + largest) * (1.0 + EPS))


def distinct_rows(labels: list[np.ndarray], counts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The different rows of columns (T,), and the position of each row among them; many counts are rounded up."""
    table = np.column_stack(labels + counts)
    changes = _changes(table)
    if np.count_nonzero(changes) > MANY:
        numbers = table[:, len(labels) :]
        unit = _unit(numbers)
        numbers[:] = -(-numbers // unit) * unit
        changes = _changes(table)
    distinct, position = np.unique(table[changes], axis=0, return_inverse=True)
    return distinct, position.ravel()[np.cumsum(changes) - 1]


def _unit(numbers: ArrayLike) -> np.ndarray:
    """The powers of 2 whose multiples near `numbers` have BITS bits."""
    return 1 << np.maximum(np.frexp(numbers)[1] - BITS, 0)


def _changes(table: np.ndarray) -> np.ndarray:
    return np.append(True, (table[1:] != table[:-1]).any(axis=1))


def highest(profiles: list[PrivacyProfile]) -> PrivacyProfile:
    """The largest of several profiles at each loss."""
    grid = max(profile.grid for profile in profiles)
    return PrivacyProfile(np.max(together([profile.on(grid) for profile in profiles]), axis=0), grid)


def together(profiles: list[PrivacyProfile]) -> np.ndarray:
    """The deltas of profiles on one grid as rows, padded with the last of each."""
    size = max(profile.deltas.size for profile in profiles)
    return np.array([np.pad(profile.deltas, (0, size - profile.deltas.size), "edge") for profile in profiles])
