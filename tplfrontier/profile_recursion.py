"""The recursion of privacy profiles along one side: of all earlier releases about the value at each time.

One step composes the profile with that of the release and takes the result through the correlation (Eq. (13)
of [1] with profiles instead of numbers). Runs of equal releases take fewer steps: under the identity matrix
only their number counts, and near a fixed point the rest of a run is extrapolated. So is a schedule that
repeats, by periods: 3,000 releases of two alternating kinds take 0.3 s.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import accumulate, chain, count, islice, pairwise, repeat
from math import inf, prod
from typing import Self

import numpy as np

from tplfrontier.profile import EPS, Powers, PrivacyProfile
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import accumulate_steps
from tplrepro.validation import FrozenArrays

#: A run is extrapolated when the rest of it changes by less than SETTLED (relative) plus CHANGE (absolute);
#: that is tried at 16 to 32 (MARKS) of the earlier profiles.
SETTLED, CHANGE, MARKS = 1e-9, 1e-12, 32
#: The longest period that is looked for, in steps, and how often it must be repeated.
MOST_PERIOD, REPEATS = 32, 4
#: Each step adds this to a profile, so that a longer series reproduces earlier profiles within rounding.
ROOM = 2.0**-50
#: In runs of more than MANY releases, numbers of releases with the same leading BITS bits share a profile.
BITS, MANY = 8, 1000


@dataclass(frozen=True, eq=False)
class SideProfiles(FrozenArrays):
    """The profiles of one side about the value at each time, without the release at that time.

    At time t it is `bases[run[t]]`, and `largest[t]` bounds its loss.
    """

    bases: tuple[PrivacyProfile, ...]
    run: np.ndarray
    largest: np.ndarray

    @property
    def each(self) -> list[PrivacyProfile]:
        """The profile at each time."""
        return [self.bases[run] for run in self.run.tolist()]

    def reversed(self) -> Self:
        """The same from the last time to the first."""
        return replace(self, run=self.run[::-1], largest=self.largest[::-1])


@dataclass(frozen=True)
class Side:
    """The releases as one side meets them: `released` kinds at `times`, and the `losses` from each to the next.

    `pauses` are (time, position of the release before, loss function from there).
    """

    horizon: int
    losses: list[PrivacyLossFunction | None]
    released: list[int]
    times: list[int]
    pauses: list[tuple[int, int, PrivacyLossFunction | None]]

    @property
    def is_identity(self) -> bool:
        """Whether each value determines all others."""
        losses = [*self.losses, *(loss for *_, loss in self.pauses)]
        return all(loss is not None and loss.is_identity for loss in losses)

    def profiles(
        self, kinds: tuple[PrivacyProfile, ...], grid: float, first: Sequence = (), last: Sequence = ()
    ) -> SideProfiles:
        """The profiles about the value at each time, of all releases before.

        `first` are known. `last` are those of a shorter series, taken as soon as they bound the new ones.
        """
        each = [*first] or [PrivacyProfile.nothing(grid)]
        steps = [*zip(self.losses, self.released, strict=False)][len(each) - 1 :]
        more = len(self.released) - len(last)
        for profile in along(each[-1], steps, kinds, each[0]):
            each.append(profile)
            time = len(each) - 1
            if last and time >= more and profile is not each[-2] and is_within(profile, last[time - more]):
                each[time:] = last[time - more :]
                break
        numbers: dict[PrivacyProfile, int] = {}
        before = [numbers.setdefault(profile, len(numbers)) for profile in each]
        bases = [*numbers]
        run, largest = np.zeros(self.horizon, int), np.zeros(self.horizon)
        bounds = [kinds[kind].largest for kind in self.released]
        # The bounds on the loss of all releases before each by the recursion of [1], rounded up.
        largest[self.times] = accumulate_steps(self.losses, np.array([0.0, *bounds[:-1]]), _bound_after)
        run[self.times] = before
        made: dict[tuple, int] = {}
        for time, index, loss in self.pauses:
            if loss is not None:
                key = int(before[index]), self.released[index], loss
                if key not in made:
                    made[key] = len(bases)
                    bases.append(step(bases[key[0]], loss, kinds[key[1]]))
                run[time] = made[key]
                largest[time] = _bound_after(loss, largest[self.times[index]], bounds[index])
        return SideProfiles(tuple(bases), run, largest)


def periods(steps: list) -> Iterator[tuple[list, int]]:
    """Runs of steps: a period that the run repeats, and its number of steps.

    A period of several steps is repeated `REPEATS` times, and each of its steps forgets.
    """
    start = 0
    while start < len(steps):
        period, number = [], 0
        for length in range(1, MOST_PERIOD + 1):
            following = range(start + length, len(steps))
            lasts = next((time for time in following if steps[time] != steps[time - length]), len(steps)) - start
            repeated = steps[start : start + length]
            longer = length == 1 or (lasts > number and lasts >= REPEATS * length)
            if longer and (length == 1 or all(loss and not loss.is_identity for loss, _ in repeated)):
                period, number = repeated, lasts
            if lasts >= length + MOST_PERIOD:
                break  # no longer period would last longer
        yield period, number
        start += number


def along(
    base: PrivacyProfile, steps: list, kinds: tuple[PrivacyProfile, ...], nothing: PrivacyProfile
) -> Iterator[PrivacyProfile]:
    """The profiles after each step, a loss function (None: not known) and a kind of release, from `base` on."""
    powers = Powers(kinds)
    for period, number in periods(steps):
        groups = [*pairwise([0, *ends_of_groups(-(-number // len(period)))])]
        cycles = repeat([nothing]) if period[0][0] is None else cycles_of(base, period, groups, powers)
        repeated = (repeat(cycle, end - begin) for cycle, (begin, end) in zip(cycles, groups, strict=False))
        for base in islice(chain.from_iterable(chain.from_iterable(repeated)), number):
            yield base


def cycles_of(
    base: PrivacyProfile, period: list, groups: list[tuple[int, int]], powers: Powers
) -> Iterator[list[PrivacyProfile]]:
    """The profiles after each step of a period, the highest of each group (begin, end) of its repetitions."""
    loss, kind = period[0]
    if loss.is_identity:
        for _, end in groups:
            yield [base.compose(powers.of(kind, end))]
        return
    steps = [partial(step, loss=loss, release=powers.of(kind, 1)) for loss, kind in period]
    kept = prod(float(loss.hockey_stick(1.0)) for loss, _ in period)
    cycles = repetitions(base, steps, max(1.0 - kept, EPS) / len(steps))
    for begin, end in groups:
        yield reduce(_higher, islice(cycles, end - begin))


def repetitions(base: PrivacyProfile, steps: Sequence[Callable], forgotten: float) -> Iterator[list[PrivacyProfile]]:
    """The profiles after each of some steps that are repeated without end; at last always the same."""
    before: PrivacyProfile | None = None
    cycle: list[PrivacyProfile] = []
    for end in following(lambda base: reduce(_applied, steps, base), base, forgotten):
        if base is not before:
            cycle = [*accumulate(steps[:-1], _applied, initial=base), end][1:]
        yield cycle
        before, base = base, end


def step(base: PrivacyProfile, loss: PrivacyLossFunction, release: PrivacyProfile) -> PrivacyProfile:
    """The profile after a release and a step of correlation; its bound on the loss is computed elsewhere."""
    base = base.compose(release).correlated(loss)
    return replace(base, deltas=base.deltas + ROOM, largest=inf) if base.largest else base


def _applied(base: PrivacyProfile, step: Callable[[PrivacyProfile], PrivacyProfile]) -> PrivacyProfile:
    return step(base)


def ends_of_groups(number: int) -> list[int]:
    """The last of each group of 1, ..., `number` releases that share a profile."""
    numbers = np.arange(1, number + 1)
    if number > MANY:
        unit = 1 << np.maximum(np.frexp(numbers)[1] - BITS, 0)
        numbers = np.unique(np.minimum(-(-numbers // unit) * unit, number))
    return numbers.tolist()


def following(
    after: Callable[[PrivacyProfile], PrivacyProfile], base: PrivacyProfile, forgotten: float
) -> Iterator[PrivacyProfile]:
    """The profiles after 1, 2, ... equal steps, which forget a share of a change; at last the same without end."""
    marks, lag = [], 1
    for done in count(1):
        base = after(base)
        yield from repeat(base) if base.largest == 0.0 else [base]
        if done % lag == 0:
            marks.append(base)
            yield from extrapolated(marks[-3:], lag, after, forgotten)
            if len(marks) == MARKS:
                marks, lag = marks[1::2], 2 * lag


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


def _bound_after(loss: PrivacyLossFunction | None, bound: float | None, largest: float) -> float:
    return 0.0 if loss is None or bound is None else loss.at_most((bound + largest) * (1.0 + EPS))


def distinct_rows(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different rows of columns (T,), and the position of each row among them."""
    table = np.column_stack(columns)
    changes = np.append(True, (table[1:] != table[:-1]).any(axis=1))
    distinct, position = np.unique(table[changes], axis=0, return_inverse=True)
    return distinct, position.ravel()[np.cumsum(changes) - 1]


def _higher(one: list[PrivacyProfile], other: list[PrivacyProfile]) -> list[PrivacyProfile]:
    return one if one is other else [highest([*pair]) for pair in zip(one, other, strict=True)]


def highest(profiles: list[PrivacyProfile]) -> PrivacyProfile:
    """The largest of several profiles at each loss."""
    grid = max(profile.grid for profile in profiles)
    return PrivacyProfile(np.max(together([profile.on(grid) for profile in profiles]), axis=0), grid)


def together(profiles: list[PrivacyProfile]) -> np.ndarray:
    """The deltas of profiles on one grid as rows, padded with the last of each."""
    size = max(profile.deltas.size for profile in profiles)
    return np.array([np.pad(profile.deltas, (0, size - profile.deltas.size), "edge") for profile in profiles])
