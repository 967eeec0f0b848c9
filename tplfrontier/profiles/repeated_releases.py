"""Long runs of equal releases, and schedules that repeat, in fewer steps of the recursion of
profiles.

Where two rows have disjoint supports only the number of releases counts. Near a fixed point the
rest of a run is extrapolated, with a proof (`extrapolated`). A schedule that repeats is a run of
its periods: 3,000 releases of two alternating kinds take 0.3 s.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import accumulate, chain, count, islice, pairwise, repeat
from math import prod
from typing import NamedTuple

import numpy as np

from tplfrontier.profiles.pair_profiles import (
    PairProfiles,
    Profile,
    higher,
    is_within,
    raised,
    together,
)
from tplfrontier.profiles.privacy_profile import EPS, ROOM, Powers, PrivacyProfile
from tplrepro.leakage.loss_function import PrivacyLossFunction

#: A run is extrapolated when the rest of it changes by less than SETTLED (relative) plus CHANGE (absolute);
#: that is tried at 16 to 32 (MARKS) of the earlier profiles.
SETTLED, CHANGE, MARKS = 1e-9, 1e-12, 32
#: The longest period that is looked for, in steps, and how often it must be repeated.
MOST_PERIOD, REPEATS = 32, 4
#: In runs of more than MANY releases, numbers of releases with the same leading BITS bits share a profile.
BITS, MANY = 8, 1000


class Step(NamedTuple):
    """A step of correlation: the loss function of a product of `length` matrices, None if not
    known."""

    loss: PrivacyLossFunction | None
    length: int

    @property
    def is_identity(self) -> bool:
        """Whether two rows have disjoint supports, so that a whole profile may pass."""
        return self.loss is not None and self.loss.is_identity


def after_release(base: Profile, release: Profile, step: Step) -> Profile:
    """The profile after a release and a step of correlation.

    The bound on the loss of a single profile is left out: it is computed beside, for each time of a
    run.
    """
    base = base.compose(release).correlated(*step)
    if base.largest == 0.0 or isinstance(base, PairProfiles):
        return base
    return PrivacyProfile(base.deltas + ROOM, base.grid)


def along(
    base: Profile,
    steps: list[Step],
    released: list[int],
    kinds: Sequence[Profile],
    nothing: Profile,
) -> Iterator[tuple[Profile, int]]:
    """The profiles after each of the steps, each with the kind of the release before it, from
    `base` on.

    Each comes with the number of successive steps after which it is the profile.
    """
    powers = Powers(kinds)
    for period, number in periods(steps, released):
        cycles = repetitions(base, period, -(-number // len(period)), powers, nothing)
        if len(period) > 1:
            each = chain.from_iterable(cycle * times for cycle, times in cycles)
            cycles = (([base], 1) for base in islice(each, number))
        for (base,), times in cycles:
            yield base, times


def periods(steps: list[Step], released: list[int]) -> Iterator[tuple[list[tuple[Step, int]], int]]:
    """Runs of steps and releases before them: a period that the run repeats, and its number of
    steps.

    A period of several steps is repeated `REPEATS` times, and each of its steps forgets.
    """
    start, both = 0, (released, steps)
    while start < len(steps):
        period, number = [], 0
        for length in range(1, MOST_PERIOD + 1):
            at = start + length
            while at < len(steps) and all(
                x[at : at + MANY] == x[at - length : at - length + MANY] for x in both
            ):
                at += MANY
            other = (t for t in range(at, len(steps)) if any(x[t] != x[t - length] for x in both))
            lasts = next(other, len(steps)) - start
            repeated = [
                *zip(steps[start : start + length], released[start : start + length], strict=False)
            ]
            longer = length == 1 or (lasts > number and lasts >= REPEATS * length)
            if longer and (
                length == 1
                or not any(step.loss is None or step.is_identity for step, _ in repeated)
            ):
                period, number = repeated, lasts
            if lasts >= length + MOST_PERIOD:
                break  # no longer period would last longer
        yield period, number
        start += number


def repetitions(
    base: Profile, period: list, times: int, powers: Powers, nothing: Profile
) -> Iterator[tuple[list[Profile], int]]:
    """The profiles after each step of a period, of groups of repetitions, which share the highest;
    and their sizes."""
    step, kind = period[0]
    groups = [*pairwise([0, *ends_of_groups(times)])]
    if step.loss is None:
        cycles: Iterator = repeat([nothing])
    # not all pairs pass such a step unchanged
    elif step.is_identity and isinstance(base, PrivacyProfile):
        cycles = ([base.compose(powers.of(kind, end))] for _, end in groups)
    else:
        kept = prod(float(step.loss.hockey_stick(1.0)) for step, _ in period)
        functions = [
            partial(after_release, release=powers.of(kind, 1), step=step) for step, kind in period
        ]
        cycles = highest_of_groups(
            endless(base, functions, max(1.0 - kept, EPS) / len(period)), groups
        )
    for cycle, (begin, end) in zip(cycles, groups, strict=False):
        yield cycle, end - begin


def highest_of_groups(
    each: Iterator[list[Profile]], groups: list[tuple[int, int]]
) -> Iterator[list[Profile]]:
    """The highest of each group of cycles without end, which stay the same once two in a row are
    the same."""
    cycle: list[Profile] = []
    for begin, end in groups:
        before, cycle = cycle, next(each)
        highest = cycle
        for _ in range(begin + 1, end):
            if cycle is before:
                break
            before, cycle = cycle, next(each)
            highest = _higher(highest, cycle)
        yield [made(profile) for profile in highest]


def ends_of_groups(number: int) -> list[int]:
    """The last of each group of 1, ..., `number` repetitions that share a profile."""
    numbers = np.arange(1, number + 1)
    if number > MANY:
        unit = 1 << np.maximum(np.frexp(numbers)[1] - BITS, 0)
        numbers = np.unique(np.minimum(-(-numbers // unit) * unit, number))
    return numbers.tolist()


def endless(base: Profile, steps: Sequence[Callable], forgotten: float) -> Iterator[list[Profile]]:
    """The profiles after each of some steps that are repeated without end; at last always the
    same."""
    ends = following(lambda base: reduce(_applied, steps, base), base, forgotten)
    before, cycle = None, []
    for begin, end in pairwise(chain([base], ends)):
        if begin is not before:
            cycle = [*[*accumulate(steps[:-1], _applied, initial=begin)][1:], end]
        yield cycle
        before = begin


def following(after: Callable, base: Profile, forgotten: float) -> Iterator[Profile]:
    """The profiles after 1, 2, ... equal steps, constant in the end; each shrinks changes by the
    share `forgotten`."""
    marks: list[PrivacyProfile] = []
    lag = 1
    for done in count(1):
        before, base = base, after(base)
        if base.largest == 0.0:
            yield from repeat(base)
        yield base
        if isinstance(base, PairProfiles):  # whose steps are not affine
            # it hardly changes: is there a bound that a step keeps?
            if is_within(before, raised(base)):
                limit = raised(before)
                if is_within(after(limit), limit):
                    yield from repeat(limit)
        elif done % lag == 0:
            marks.append(base)
            yield from extrapolated(marks[-3:], lag, after, forgotten)
            if len(marks) == MARKS:
                marks, lag = marks[1::2], 2 * lag


def extrapolated(
    marks: list[PrivacyProfile], lag: int, after: Callable, forgotten: float
) -> Iterator:
    """Upper bounds, to be `made`, of the next profiles of a run without end; none while it still
    changes much.

    `after` is a step G, affine and increasing in the deltas. If profiles l <= u and a rate r < 1
    satisfy

        G(u) <= u   and   G(l) <= u - r (u - l),

    a profile of at most l is at most u - r^m (u - l) after m steps: a step takes this bound to (1 -
    r^m) G(u) + r^m G(l) <= u - r^(m+1) (u - l). So two evaluations of G prove all that follows.

    `marks` are three profiles, `lag` steps apart; l is the last one, and u and r come from
    `limit_and_rate`. Without this, 8,000 releases of a chain that stays with probability 0.9985
    take 31 s, and more take longer.
    """
    if len(marks) < 3 or len({profile.grid for profile in marks}) > 1:
        return
    grid, deltas = marks[0].grid, together(marks)
    guess = limit_and_rate(*deltas)
    if guess is None:
        return
    ahead, rate = guess[0], guess[1] ** (1.0 / lag)
    # above the rounding of a step; constants shrink, too
    for room in ROOM / forgotten * 4.0 ** np.arange(5):
        near = PrivacyProfile(np.minimum(deltas[-1] + room, 1.0), grid)
        ends = np.maximum.accumulate(np.minimum(near.deltas + ahead, 1.0)[::-1])[::-1]
        candidates = [near, PrivacyProfile(ends, grid)]
        steps = [after(profile) for profile in candidates]
        if {profile.grid for profile in steps} == {grid}:
            low, high, after_low, after_high = together(candidates + steps)
            if (after_high <= high).all() and (after_low <= high - rate * (high - low)).all():
                yield from converging(high, low, rate, grid)


def limit_and_rate(
    old: np.ndarray, last: np.ndarray, new: np.ndarray
) -> tuple[np.ndarray, float] | None:
    """How far above `new` the limit of a geometric series is, and its rate; None where both are too
    loose.

          old          last     new  ...  limit
           |  change / r  | change |  ahead  |        ahead = change r / (1 - r)

    In the end all deltas shrink by one rate, so the largest of them serves for all.
    """
    before, change = last - old, new - last
    rates = np.divide(change, before, out=np.zeros_like(new), where=np.abs(before) > CHANGE)
    rates = np.maximum(rates, 0.0)
    if rates.max() >= 1.0:
        return None
    rate = float(rates[change > 0.0].max(initial=0.0))
    ahead = np.maximum(change, 0.0) * (rate / (1.0 - rate))
    if (ahead - change * rates / (1.0 - rates) > SETTLED * new + 8.0 * CHANGE).any():
        return None
    return ahead, rate


def converging(
    limit: np.ndarray, near: np.ndarray, rate: float, grid: float
) -> Iterator[Callable[[], PrivacyProfile]]:
    """limit - rate^m (limit - near), rounded up, `made` when needed, for m = 1, 2, ..., and then
    always the limit."""
    share = 1.0
    while (share * (limit - near) > SETTLED * near + CHANGE).any():
        share *= rate * (1.0 - EPS)
        yield partial(
            lambda share: PrivacyProfile(share * near + (1.0 - share) * limit + ROOM, grid), share
        )
    end = PrivacyProfile(limit, grid)
    yield from repeat(lambda: end)


def made(profile: Profile | Callable[[], Profile]) -> Profile:
    return profile() if callable(profile) else profile


def _applied(base: Profile, step: Callable) -> Profile:
    return step(made(base))


def _higher(one: list[Profile], other: list[Profile]) -> list[Profile]:
    pairs = () if one is other else zip(one, other, strict=True)
    # `converging` rises
    return [new if callable(old) else higher(old, made(new)) for old, new in pairs] or one
