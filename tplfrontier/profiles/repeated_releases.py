"""Long runs of equal releases, and schedules that repeat, in fewer steps of the recursion of
profiles.

Where two rows have disjoint supports only the number of releases counts. Near a fixed point the
rest of a run is extrapolated, with a proof (`extrapolate_run`). A schedule that repeats is a run of
its periods: 3,000 releases of two alternating kinds take 0.3 s. So are equal releases about a cycle
of matrices, such as those of the hours of a week.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain, count, islice, pairwise, repeat

import numpy as np

from tplfrontier.profiles.pair_profiles import (
    PairProfiles,
    Profile,
    higher_profile,
    is_within,
    raise_bounds,
    stack_deltas,
)
from tplfrontier.profiles.privacy_profile import EPS, ROOM, Powers, PrivacyProfile
from tplrepro.leakage.loss_function import PrivacyLossFunction

# A run is extrapolated when the rest of it changes by less than SETTLED (relative) plus CHANGE
# (absolute); that is tried at 16 to 32 (MARKS) of the earlier profiles.
SETTLED = 1e-9
CHANGE = 1e-12
MARKS = 32
# the longest period that is looked for, in steps, and where matrices differ: the hours of a week
MOST_PERIOD = 32
MOST_PERIOD_OF_MATRICES = 168
REPEATS = 4  # how often a period of several steps must be repeated
# In runs of more than MANY releases, numbers of releases with the same leading BITS bits share a
# profile.
BITS = 8
MANY = 1000

#: An upper bound of a profile that is known, or that a call makes when it is needed.
Bound = Profile | Callable[[], Profile]


@dataclass(frozen=True)
class Step:
    """A step of correlation: the loss function of a product of `length` matrices, None if not
    known."""

    loss: PrivacyLossFunction | None
    length: int

    @property
    def is_identity(self) -> bool:
        """Whether two rows have disjoint supports, so that a whole profile may pass."""
        return self.loss is not None and self.loss.is_identity

    @property
    def forgets(self) -> bool:
        """Whether the step passes something, but never a whole profile."""
        return self.loss is not None and not self.loss.is_identity

    @property
    def kept_share(self) -> float:
        """The largest share of a total variation distance that the step leaves."""
        if self.loss is None:
            return 0.0
        return float(self.loss.hockey_stick(1.0))


@dataclass(frozen=True)
class Run:
    """`length` steps, each with the kind of the release before it, that repeat a `period` of
    them."""

    period: list[tuple[Step, int]]
    length: int

    @property
    def repetitions(self) -> int:
        """How often the period begins."""
        return -(-self.length // len(self.period))

    @property
    def is_repeated_enough(self) -> bool:
        return self.length >= REPEATS * len(self.period)

    @property
    def is_known(self) -> bool:
        return all(step.loss is not None for step, _ in self.period)

    @property
    def forgets(self) -> bool:
        """Whether each of its steps does."""
        return all(step.forgets for step, _ in self.period)

    @property
    def forgets_at_last(self) -> bool:
        """Whether one of its steps does, so that a whole period passes no whole profile."""
        return self.is_known and any(step.forgets for step, _ in self.period)

    def can_share_profiles(self, matrices_differ: bool) -> bool:
        """Whether repetitions of its period may share profiles: it is repeated enough, and each of
        its steps forgets, or one of them where the matrices of single steps differ."""
        if not self.is_repeated_enough:
            return False
        return self.forgets or (matrices_differ and self.forgets_at_last)

    @property
    def kept_share(self) -> float:
        """The largest share of a total variation distance that a whole period leaves."""
        kept = 1.0
        for step, _ in self.period:
            kept *= step.kept_share
        return kept


@dataclass(frozen=True)
class Stretch:
    """A profile, and after how many successive steps it is the profile."""

    profile: Profile
    length: int


@dataclass(frozen=True)
class Repetitions:
    """`count` successive repetitions of a period, and the profiles after each of its steps, which
    they share."""

    profiles: list[Profile]
    count: int


def profile_after(base: Profile, release: Profile, step: Step) -> Profile:
    """The profile after a release and a step of correlation; `base` is that of all releases before.

    A single profile is left without its bound on the loss, which `recursion` computes for each time
    of a run.
    """
    both = base.compose(release)
    base = both.correlated(step.loss, step.length)
    if base.largest == 0.0 or isinstance(base, PairProfiles):
        return base
    return PrivacyProfile(base.deltas + ROOM, base.grid)


def profiles_after_steps(
    base: Profile,
    steps: list[Step],
    released: list[int],
    kinds: Sequence[Profile],
    nothing: Profile,
) -> Iterator[Stretch]:
    """The profiles after each of the steps of one side.

    Parameters
    ----------
    base : PrivacyProfile or PairProfiles
        That of all releases before these.
    steps : list (S,)
        The step of correlation after each release.
    released : list of int (S,), or longer
        The kind of the release before each step.
    kinds : sequence
        The profiles of the different releases.
    nothing : PrivacyProfile or PairProfiles
        That of no release.

    Returns
    -------
    iterator over Stretch
        Their lengths add up to S.
    """
    powers = Powers(kinds)
    for run in find_runs(steps, released):
        for stretch in _profiles_along_run(base, run, powers, nothing):
            yield stretch
            base = stretch.profile


def _profiles_along_run(
    base: Profile, run: Run, powers: Powers, nothing: Profile
) -> Iterator[Stretch]:
    """The profiles after each step of a run, arguments as of `repeat_period`."""
    groups = repeat_period(base, run, powers, nothing)
    if len(run.period) == 1:
        for group in groups:
            yield Stretch(group.profiles[0], group.count)
        return
    each = chain.from_iterable(group.profiles * group.count for group in groups)
    for profile in islice(each, run.length):
        yield Stretch(profile, 1)


def find_runs(steps: list[Step], released: list[int]) -> Iterator[Run]:
    """Cut the steps, and the releases before them, into runs that each repeat a period.

    A period of several steps is repeated `REPEATS` times, and each of its steps forgets; where the
    matrices of single steps differ, one that forgets is enough.
    """
    single_steps = {step.loss for step in steps if step.length == 1}
    matrices_differ = len(single_steps) > 1
    start = 0
    while start < len(steps):
        run = _longest_run(steps, released, start, matrices_differ)
        yield run
        start += run.length


def _longest_run(steps: list[Step], released: list[int], start: int, matrices_differ: bool) -> Run:
    """The longest run of steps and releases, by kind, from `start` on that repeats a period, as
    `find_runs` wants it."""
    most_period = MOST_PERIOD
    if matrices_differ:
        most_period = MOST_PERIOD_OF_MATRICES
    repeated = _count_repeated(steps, released, start, 1)
    longest = Run(_period_from(steps, released, start, 1), repeated)
    if longest.length > most_period:
        return longest  # no longer period would last longer
    for length in range(2, most_period + 1):
        repeated = _count_repeated(steps, released, start, length)
        if repeated == length:
            continue  # it does not repeat
        run = Run(_period_from(steps, released, start, length), repeated)
        if run.length > longest.length and run.can_share_profiles(matrices_differ):
            longest = run
        if run.length >= length + most_period:
            break
    return longest


def _period_from(
    steps: list[Step], released: list[int], start: int, length: int
) -> list[tuple[Step, int]]:
    """So many steps from `start` on, each with the kind of the release before it."""
    end = start + length
    return [*zip(steps[start:end], released[start:end], strict=False)]


def _count_repeated(steps: list[Step], released: list[int], start: int, period: int) -> int:
    """After how many steps from `start` on the releases, by kind, and steps no longer repeat the
    first `period` of them."""

    def is_repeated(first: int, last: int) -> bool:
        return all(
            moves[first:last] == moves[first - period : last - period]
            for moves in (released, steps)
        )

    end = start + period
    if end >= len(steps) or not is_repeated(end, end + 1):  # most periods end here
        return min(end, len(steps)) - start
    while end < len(steps) and is_repeated(end, end + MANY):
        end += MANY
    while end < len(steps) and is_repeated(end, end + 1):
        end += 1
    return min(end, len(steps)) - start


def repeat_period(
    base: Profile, run: Run, powers: Powers, nothing: Profile
) -> Iterator[Repetitions]:
    """Put the repetitions of a run's period into groups, and give each group profiles that bound
    those of all its repetitions.

    `base` is the profile before the run, `powers` holds the profiles of the kinds of releases, and
    `nothing` is that of no release.
    """
    step, kind = run.period[0]
    ends = group_ends(run.repetitions)
    sizes = [end - begin for begin, end in pairwise([0, *ends])]
    cycles: Iterator[list[Profile]]
    is_single = len(run.period) == 1
    if step.loss is None:
        cycles = repeat([nothing])
    # not all pairs pass such a step unchanged
    elif is_single and step.is_identity and isinstance(base, PrivacyProfile):
        cycles = ([base.compose(powers.profile(kind, end))] for end in ends)
    else:
        forgotten = max(1.0 - run.kept_share, EPS) / len(run.period)
        functions = [
            partial(profile_after, release=powers.profile(kind, 1), step=step)
            for step, kind in run.period
        ]
        cycles = highest_of_groups(repeat_steps(base, functions, forgotten), sizes)
    for cycle, size in zip(cycles, sizes, strict=False):
        yield Repetitions(cycle, size)


def group_ends(number: int) -> list[int]:
    """The last of each group of 1, ..., `number` repetitions that share a profile."""
    numbers = np.arange(1, number + 1)
    if number > MANY:
        bits = np.frexp(numbers)[1]
        unit = 1 << np.maximum(bits - BITS, 0)
        rounded_up = -(-numbers // unit) * unit
        numbers = np.unique(np.minimum(rounded_up, number))
    return numbers.tolist()


def highest_of_groups(cycles: Iterator[list[Bound]], sizes: list[int]) -> Iterator[list[Profile]]:
    """The highest profiles of each group of successive cycles, which are endless and stay the same
    once two in a row are the same."""
    cycle: list[Bound] = []
    for size in sizes:
        before = cycle
        cycle = next(cycles)
        highest = cycle
        for _ in range(size - 1):
            if cycle is before:
                break
            before = cycle
            cycle = next(cycles)
            highest = _higher_cycle(highest, cycle)
        yield [make_profile(bound) for bound in highest]


def _higher_cycle(old: list[Bound], new: list[Bound]) -> list[Bound]:
    if old is new:
        return old
    return [_higher_bound(*bounds) for bounds in zip(old, new, strict=True)]


def _higher_bound(old: Bound, new: Bound) -> Bound:
    if callable(old):
        return new  # those of `approach_limit` rise
    return higher_profile(old, make_profile(new))


def repeat_steps(
    base: Profile, steps: Sequence[Callable[[Profile], Profile]], forgotten: float
) -> Iterator[list[Bound]]:
    """The profiles after each of some steps that are repeated without end, from `base` on; at last
    always the same list. Each step shrinks changes by the share `forgotten`, at least."""

    def after_all(base: Profile) -> Profile:
        return reduce(_apply_step, steps, base)

    ends = repeat_step(after_all, base, forgotten)
    before = None
    cycle: list[Bound] = []
    for begin, end in pairwise(chain([base], ends)):
        if begin is not before:
            cycle = []
            bound = begin
            for step in steps[:-1]:
                bound = _apply_step(bound, step)
                cycle.append(bound)
            cycle.append(end)
        yield cycle
        before = begin


def repeat_step(
    after: Callable[[Profile], Profile], base: Profile, forgotten: float
) -> Iterator[Bound]:
    """The profiles after 1, 2, ... equal steps from `base` on, without end; from some step on all
    are one bound. `after` leads from a profile to the next; it shrinks changes at least by the
    share `forgotten`, which pairs of profiles do not need."""
    if isinstance(base, PairProfiles):
        return _repeat_step_of_pairs(after, base)
    return _repeat_affine_step(after, base, forgotten)


def _repeat_step_of_pairs(
    after: Callable[[Profile], Profile], base: PairProfiles
) -> Iterator[Bound]:
    """`repeat_step` of pairs, whose steps are not affine: they end at a bound that a step keeps."""
    while True:
        before = base
        base = after(before)
        if base.largest == 0.0:
            yield from repeat(base)
        yield base
        hardly_changes = is_within(before, raise_bounds(base))
        if hardly_changes:
            limit = raise_bounds(before)
            if is_within(after(limit), limit):
                yield from repeat(limit)


def _repeat_affine_step(
    after: Callable[[Profile], Profile], base: PrivacyProfile, forgotten: float
) -> Iterator[Bound]:
    """`repeat_step` of a single profile, whose steps are affine: extrapolated as soon as it is
    proved."""
    marks: list[PrivacyProfile] = []
    lag = 1  # steps from a mark to the next
    for steps in count(1):
        base = after(base)
        if base.largest == 0.0:
            yield from repeat(base)
        yield base
        if steps % lag == 0:
            marks.append(base)
            yield from extrapolate_run(marks[-3:], lag, after, forgotten)
            if len(marks) == MARKS:
                marks = marks[1::2]
                lag *= 2


def extrapolate_run(
    marks: list[PrivacyProfile], lag: float, after: Callable[[Profile], Profile], forgotten: float
) -> Iterator[Bound]:
    """Upper bounds of the next profiles of a run without end; none while it still changes much.

    `after` is a step G, affine and increasing in the deltas. If profiles l <= u and a rate r < 1
    satisfy

        G(u) <= u   and   G(l) <= u - r (u - l),

    a profile of at most l is at most u - r^m (u - l) after m steps: a step takes this bound to (1 -
    r^m) G(u) + r^m G(l) <= u - r^(m+1) (u - l). So two evaluations of G prove all that follows.

    l is the last of the marks, and u and r come from `estimate_limit`. Without this, 8,000 releases
    of a chain that stays with probability 0.9985 take 31 s, and more take longer.

    Parameters
    ----------
    marks : list of up to three PrivacyProfile
        Profiles of the run, `lag` steps apart.
    lag : float
        A number of steps.
    after : callable
        The step G, from a profile to the next.
    forgotten : float
        The share by which a step shrinks changes, at least.

    Returns
    -------
    iterator over bounds
        Each is made by a call; the last is repeated without end.
    """
    if len(marks) < 3 or len({profile.grid for profile in marks}) > 1:
        return
    grid = marks[0].grid
    deltas = stack_deltas(marks)
    estimate = estimate_limit(*deltas)
    if estimate is None:
        return
    rate = estimate.rate ** (1.0 / lag)
    # above the rounding of a step; constants shrink, too
    rooms = ROOM / forgotten * 4.0 ** np.arange(5)
    for room in rooms:
        low = PrivacyProfile(np.minimum(deltas[-1] + room, 1.0), grid)
        limit = np.minimum(low.deltas + estimate.ahead, 1.0)
        rising_limit = np.maximum.accumulate(limit[::-1])
        falling_limit = rising_limit[::-1]
        high = PrivacyProfile(falling_limit, grid)
        proved = _prove_bounds(low, high, rate, after)
        if proved is not None:
            yield from approach_limit(proved.limit, proved.near, rate, grid)


@dataclass(frozen=True)
class LimitEstimate:
    """How far `ahead` the limit of a series of deltas is, and the `rate` at which its steps
    shrink."""

    ahead: np.ndarray
    rate: float


@dataclass(frozen=True)
class ProvedBounds:
    """Deltas of equal size, `near` <= `limit`, between which all following profiles are."""

    near: np.ndarray
    limit: np.ndarray


def _prove_bounds(
    low: PrivacyProfile, high: PrivacyProfile, rate: float, after: Callable[[Profile], Profile]
) -> ProvedBounds | None:
    """The deltas of l and u, `low` and `high`, if with the step `after` they satisfy both
    inequalities of `extrapolate_run`, else None, which proves nothing."""
    after_low = after(low)
    after_high = after(high)
    if not low.grid == after_low.grid == after_high.grid:
        return None
    near, limit, near_after, limit_after = stack_deltas([low, high, after_low, after_high])
    limit_is_kept = (limit_after <= limit).all()
    if limit_is_kept and (near_after <= limit - rate * (limit - near)).all():
        return ProvedBounds(near, limit)
    return None


def estimate_limit(old: np.ndarray, last: np.ndarray, new: np.ndarray) -> LimitEstimate | None:
    """How far above `new` the limit of a geometric series of deltas (J,) is, and its rate; None
    where both are too loose.

          old          last     new  ...  limit
           |  change / r  | change |  ahead  |        ahead = change r / (1 - r)

    In the end all deltas shrink by one rate, so the largest of them serves for all.
    """
    before = last - old
    change = new - last
    is_clear = np.abs(before) > CHANGE
    rates = np.divide(change, before, out=np.zeros_like(new), where=is_clear)
    rates = np.maximum(rates, 0.0)
    if rates.max() >= 1.0:
        return None
    rate = float(rates[change > 0.0].max(initial=0.0))
    ahead = np.maximum(change, 0.0) * (rate / (1.0 - rate))
    ahead_by_own_rate = change * rates / (1.0 - rates)
    if (ahead - ahead_by_own_rate > SETTLED * new + 8.0 * CHANGE).any():
        return None
    return LimitEstimate(ahead, rate)


def approach_limit(
    limit: np.ndarray, near: np.ndarray, rate: float, grid: float
) -> Iterator[Callable[[], PrivacyProfile]]:
    """Profiles with the deltas limit - rate^m (limit - near), rounded up, made when needed, for m =
    1, 2, ..., and then always the limit; `limit` and `near` (J + 1,) are at losses `grid` apart."""

    def profile_at(share: float) -> PrivacyProfile:
        mixture = share * near + (1.0 - share) * limit
        return PrivacyProfile(mixture + ROOM, grid)

    share = 1.0
    while (share * (limit - near) > SETTLED * near + CHANGE).any():
        share *= rate * (1.0 - EPS)
        yield partial(profile_at, share)
    end = PrivacyProfile(limit, grid)
    yield from repeat(lambda: end)


def make_profile(bound: Bound) -> Profile:
    """The profile of a bound, which may not have been made yet."""
    if callable(bound):
        return bound()
    return bound


def _apply_step(base: Bound, step: Callable[[Profile], Profile]) -> Profile:
    return step(make_profile(base))
