"""Temporal privacy profiles: what a series of releases by any mechanisms leaks, at every (epsilon, delta).

BPL becomes a profile: that about the value at t - 1 of the releases until then, taken through one step of the backward
correlation, composed with that of release t (Eq. (13) of [1] with profiles for numbers); FPL likewise from the end. At
time t the releases before, at and after t are independent given the value, so their profiles compose (Eq. (11)).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import count, groupby, repeat, starmap
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.partial import Timeline
from tplrepro.leakage.profile import PrivacyProfile, event_key, loss_at
from tplrepro.leakage.temporal import Correlation, accumulate_steps, check_span, check_window
from tplrepro.validation import FrozenArrays, check_alpha, check_delta, check_horizon, check_level, one_number

__all__ = ["ProfileSeries", "TemporalPrivacyProfile", "automatic_grid", "profiles_along", "temporal_privacy_profile"]

EPS = float(np.finfo(float).eps)
#: Later profiles of a run of equal releases are told ahead within this share of delta, and so much (absolute); that is
#: tried at 16 to 32 of the profiles before.
SETTLED, CHANGE, MARKS = 1e-9, 1e-12, 32
#: What one step adds to a profile, so that a series that goes on meets what was known before within rounding.
ROOM = 2.0**-50
#: Numbers of equal releases in a run beyond `MANY`, all different, are rounded up to so many digits (bits).
BITS, MANY = 8, 1000
#: The coarsest grid that is chosen, nats; and how many points it has for the total variation distance of a release.
COARSEST, FINEST, RESOLUTION = 1e-3, 1e-5, 16


@dataclass(frozen=True, eq=False)
class ProfileSeries(FrozenArrays):
    """The privacy profiles of T time points: that of t is `profiles[position[t]]`, with `largest[t]` for its bound."""

    profiles: tuple[PrivacyProfile, ...]
    position: np.ndarray
    largest: np.ndarray

    def __len__(self) -> int:
        return self.position.size

    def epsilon(self, delta: float) -> np.ndarray:
        """The smallest epsilon known for (epsilon, delta)-DP at each time, (T,), nats; inf if there is none."""
        delta = one_number(check_delta(delta), "delta")
        return np.minimum(np.array([profile.epsilon(delta) for profile in self.profiles])[self.position], self.largest)

    def delta(self, epsilon: float) -> np.ndarray:
        """The smallest delta known for (epsilon, delta)-DP at each time, (T,); epsilon in nats, finite and >= 0."""
        epsilon = one_number(check_alpha(epsilon, "epsilon"), "epsilon")
        deltas = np.array([profile.delta(epsilon) for profile in self.profiles])[self.position]
        return np.where(epsilon >= self.largest, 0.0, deltas)

    def profile_at(self, t: int) -> PrivacyProfile:
        """The profile of one time point, 0 <= t < T; negative ones count from the end."""
        if not -len(self) <= t < len(self):
            raise ValueError(f"t must be a time point in 0..{len(self) - 1}, found {t}; times count from 0")
        return replace(self.profiles[self.position[t]], largest=float(self.largest[t]))


@dataclass(frozen=True, eq=False)
class _Side(FrozenArrays):
    """What one side tells about the value at each time, without the release at that time.

    At time t it is `bases[run[t]]` and, where nothing is forgotten (the identity), `count[t]` more releases of the kind
    `kinds[run[t]]`; `largest` (T,) bounds its loss.
    """

    bases: tuple[PrivacyProfile, ...]
    kinds: np.ndarray
    run: np.ndarray
    count: np.ndarray
    largest: np.ndarray


@dataclass(frozen=True, eq=False)
class TemporalPrivacyProfile(FrozenArrays):
    """The privacy profiles of T time points against one adversary, and of several together.

    `releases` (T,) holds the number of each time's release among the different `kinds`, -1 where there is none. The
    profiles are worked out when they are first asked for. In a run of more than 1,000 equal releases without a fixed
    point (the identity matrix has none) numbers of releases are rounded up to 8 bits, by less than 1 %.
    """

    kinds: tuple[PrivacyProfile, ...]
    releases: np.ndarray
    _before: _Side
    _after: _Side
    #: Compositions made here, and those of a shorter series that are of use again.
    _made: dict = field(default_factory=dict, repr=False)
    _earlier: dict = field(default_factory=dict, repr=False)

    def followed_by(
        self,
        kinds: tuple[PrivacyProfile, ...],
        releases: np.ndarray,
        backward: PrivacyLossFunction | None,
        forward: PrivacyLossFunction | None,
    ) -> "TemporalPrivacyProfile":
        """The profiles of a longer series of `releases`, numbers among `kinds`, both of which begin with its own.

        All time points have a release, and each side has one correlation. What was known before each release stays;
        what is known after it is worked out anew back to where it hardly changes.
        """
        every, new = releases.tolist(), releases[self.releases.size :].tolist()
        before, after = _Walk(kinds, self._before), _Walk(kinds, self._after)
        state = int(self._before.run[-1]), int(self._before.count[-1])
        run, count = before.along([backward] * len(new), every[self.releases.size - 1 :], state)
        ahead = np.append(self._before.run, run[1:]), np.append(self._before.count, count[1:])
        if forward is None or forward.is_identity:
            run, count = after.along([forward] * (len(every) - 1), every[::-1])
        else:
            run, count = after.along([forward] * len(new), [*new[::-1], 0])
            changed, known = [int(run[-1])], self._after.run[::-1].tolist()
            for kind, old in zip(self.releases[::-1].tolist(), known, strict=True):
                if _within(after.bases[changed[-1]], after.bases[old]):
                    break
                changed.append(after.step((changed[-1], 0), kind, forward)[0])
            unchanged = known[len(changed) - 1 :]
            run = np.concatenate((run[:-1], changed[:-1], unchanged)).astype(int)
            count = np.zeros_like(run)
        bounds = [kinds[kind].largest for kind in every]
        return TemporalPrivacyProfile(
            kinds,
            releases,
            before.side(*ahead, _bounds([backward] * (len(every) - 1), bounds)),
            after.side(run[::-1], count[::-1], _bounds([forward] * (len(every) - 1), bounds[::-1])[::-1]),
            _earlier=self._made if "both" in vars(self) else self._earlier,
        )

    @cached_property
    def backward(self) -> ProfileSeries:
        """The profiles of BPL: about the value at t, of the releases up to t."""
        return self._series(self._before)

    @cached_property
    def forward(self) -> ProfileSeries:
        """The profiles of FPL: about the value at t, of the releases from t on."""
        return self._series(self._after)

    @cached_property
    def both(self) -> ProfileSeries:
        """The profiles of TPL: about the value at t, of all releases."""
        return self._series(self._before, self._after)

    def epsilon(self, delta: float) -> np.ndarray:
        """The smallest epsilon known for (epsilon, delta)-DP_T at each time, (T,), nats; inf if there is none."""
        return self.both.epsilon(delta)

    def delta(self, epsilon: float) -> np.ndarray:
        """The smallest delta known for (epsilon, delta)-DP_T at each time, (T,); epsilon in nats, finite and >= 0."""
        return self.both.delta(epsilon)

    def profile_at(self, t: int) -> PrivacyProfile:
        """The profile of all releases about the value at time t, 0 <= t < T; negative ones count from the end."""
        return self.both.profile_at(t)

    def composed(self, first: int, last: int) -> PrivacyProfile:
        """The profile about all the data from time `first` to `last`, both included (Theorem 3 of [1])."""
        check_span(first, last, self.releases.size)
        return self._windows(np.array([first]), last - first + 1)

    def w_event(self, w: int) -> PrivacyProfile:
        """The profile of w-event privacy: the largest of any w consecutive time points (Table 2 of [1])."""
        w, windows = check_window(w, self.releases.size)
        return self._windows(np.arange(windows), w)

    @property
    def user_level(self) -> PrivacyProfile:
        """The profile about all of a user's data: of all releases, whatever the correlation (Corollary 1 of [1])."""
        return self._windows(np.zeros(1, int), self.releases.size)

    def _series(self, *sides: _Side) -> ProfileSeries:
        number, largest = (self.releases >= 0).astype(int), self._bounds
        others = []
        for side in sides:
            same = side.kinds[side.run] == self.releases
            number += np.where(same, side.count, 0)
            others.append(np.where(same, 0, side.count))
            largest = (largest + side.largest) * (1.0 + EPS)
        distinct, position = _distinct([self.releases, *(side.run for side in sides)], [number, *others])
        profiles = []
        for row in distinct.tolist():
            kind, *runs = row[: len(sides) + 1]
            kinds = [kind, *(int(side.kinds[run]) for side, run in zip(sides, runs, strict=True))]
            bases = [side.bases[run] for side, run in zip(sides, runs, strict=True)]
            profiles.append(self._composition(bases, zip(kinds, row[len(sides) + 1 :], strict=True)))
        return ProfileSeries(tuple(profiles), position, largest)

    def _windows(self, first: np.ndarray, length: int) -> PrivacyProfile:
        """The largest profile of so many consecutive time points from each of `first` on."""
        last, before, after = first + length - 1, self._before, self._after
        sums = np.zeros((self.releases.size + 1, len(self.kinds)), dtype=int)
        np.cumsum(self.releases[:, None] == np.arange(len(self.kinds)), axis=0, out=sums[1:])
        numbers = list((sums[last + 1] - sums[first]).T)
        labels = [before.run[first], after.run[last]]
        distinct, _ = _distinct(labels, [before.count[first], after.count[last], *numbers])
        bounds = np.concatenate(([0.0], np.cumsum(np.where(self._bounds < inf, self._bounds, 0.0))))
        unbounded = np.concatenate(([0], np.cumsum(self._bounds == inf)))
        largest = (bounds[last + 1] - bounds[first]) + before.largest[first] + after.largest[last]
        largest = np.where(unbounded[last + 1] > unbounded[first], inf, largest)
        # differences of sums, of which the rounding is bounded by the sums'
        bound = float(largest.max()) + 4.0 * EPS * bounds.size * float(bounds[-1] + largest.max())
        profiles = []
        for run_b, run_f, count_b, count_f, *numbers in distinct.tolist():
            parts = [(int(before.kinds[run_b]), count_b), (int(after.kinds[run_f]), count_f), *enumerate(numbers)]
            profiles.append(self._composition([before.bases[run_b], after.bases[run_f]], parts))
        return replace(_highest(profiles), largest=bound)

    @cached_property
    def _bounds(self) -> np.ndarray:
        """The bound on the loss of each time's release, 0 where there is none."""
        return np.append([kind.largest for kind in self.kinds], 0.0)[self.releases]

    @cached_property
    def _powers(self) -> "_Powers":
        return _Powers(self.kinds)

    def _composition(self, bases: list[PrivacyProfile], parts: Iterable[tuple[int, int]]) -> PrivacyProfile:
        counts: dict[int, int] = {}
        for kind, number in parts:
            if number:
                counts[kind] = counts.get(kind, 0) + number
        key = tuple(sorted(bases, key=id)), tuple(sorted(counts.items()))
        made = self._made.get(key) or self._earlier.get(key)
        if made is None:
            *others, last = bases
            known = [self._composition(others, counts.items())] if others else starmap(self._powers.of, counts.items())
            made = reduce(PrivacyProfile.compose, known, last)
        self._made[key] = made
        return made


def temporal_privacy_profile(
    events: Sequence[Any],
    backward: Correlation = None,
    forward: Correlation = None,
    *,
    grid: float | None = None,
) -> TemporalPrivacyProfile:
    """The privacy profiles of a series of releases by any mechanisms: BPL, FPL and TPL at every (epsilon, delta).

    Parameters
    ----------
    events : list of T releases
        Each a DpEvent of `dp_accounting`, an epsilon (nats) of which only pure DP is known, a PrivacyProfile, or None
        for a time point without a release; (event, count) stands for so many time points. An event's profile is that
        between any two values of a user at that time (`tplrepro.leakage.events`).
    backward, forward : as in `temporal_privacy_leakage`
    grid : float, the distance in nats between the losses at which profiles are kept
        All results are upper bounds. Epsilon is above that of an infinitely fine grid by a share of up to about
        (grid / s)^2 / 4, where s is the standard deviation of the loss of a release; halving the grid lowers it, until
        rounding shows (1e-13 in delta for each release that the chain remembers). None: a 16th of the smallest total
        variation distance of a release, from 1e-5 to 1e-3. Grids of more than 16,384 points are made twice as coarse.

    ValueError for events that are not known or out of range, and as in `temporal_privacy_leakage`.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> P = [[0.8, 0.2], [0.1, 0.9]]
    >>> r = temporal_privacy_profile([(GaussianDpEvent(2.0), 6)], P, P)
    >>> r.backward.epsilon(1e-5).round(3).tolist()
    [1.993, 2.485, 2.669, 2.743, 2.774, 2.788]
    >>> r.epsilon(1e-5).round(3).tolist()
    [2.788, 3.194, 3.332, 3.332, 3.194, 2.788]
    >>> round(r.w_event(2).epsilon(1e-5), 3), round(r.user_level.epsilon(1e-5), 3)
    (3.998, 5.545)
    """
    kinds, releases, grid = _read(events, grid)
    timeline = Timeline.of(backward, forward, releases.size, np.flatnonzero(releases >= 0))
    return profiles_along(kinds, releases, grid, timeline)


def profiles_along(
    kinds: tuple[PrivacyProfile, ...], releases: np.ndarray, grid: float, timeline: Timeline
) -> TemporalPrivacyProfile:
    """The profiles of `releases` (T,), numbers among `kinds` or -1 for none, along a timeline."""
    times, last = timeline.times, releases.size - 1
    released = releases[times].tolist()
    before = timeline.backward, released, times.tolist(), [pause[:3] for pause in timeline.pauses]
    pauses = [(last - time, times.size - 1 - after, loss) for time, _, _, after, loss in timeline.pauses[::-1]]
    after = timeline.forward[::-1], released[::-1], (last - times[::-1]).tolist(), pauses
    known = _known(kinds, grid, releases.size, *before)
    later = known if before == after else _known(kinds, grid, releases.size, *after)
    later = replace(later, run=later.run[::-1], count=later.count[::-1], largest=later.largest[::-1])
    return TemporalPrivacyProfile(kinds, releases, known, later)


def _read(events: Sequence[Any], grid: float | None) -> tuple[tuple[PrivacyProfile, ...], np.ndarray, float]:
    """The different releases, the number of each time's among them (-1: none), and the grid."""
    if isinstance(events, (str, bytes)) or not isinstance(events, Iterable):
        raise ValueError(f"events must be a list with one event a time point, found {events!r}; give [event] * T")
    different: dict[Any, tuple[int, Any]] = {}
    found, counts = [], []
    for entry in events:
        event, count = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, 1)
        counts.append(check_horizon(count, "the count of an event"))
        known = (-1, None) if event is None else different.setdefault(event_key(event), (len(different), event))
        found.append(known[0])
    if not different:
        raise ValueError("events must hold at least one release, found none; give [event] * T")
    kinds = [event for _, event in different.values()]
    grid = automatic_grid(kinds) if grid is None else check_level(grid, "grid")
    return tuple(PrivacyProfile.of_event(event, grid) for event in kinds), np.repeat(found, counts), grid


def automatic_grid(events: Iterable[Any]) -> float:
    """The distance between losses that suits the weakest of the events, nats."""
    variations = [float(PrivacyProfile.of_event(event, COARSEST).delta(0.0)) for event in events]
    finest = min((variation for variation in variations if variation > 0.0), default=1.0)
    return min(max(finest / RESOLUTION, FINEST), COARSEST)


def _known(
    kinds: tuple[PrivacyProfile, ...],
    grid: float,
    horizon: int,
    losses: list[PrivacyLossFunction | None],
    released: list[int],
    times: list[int],
    pauses: list[tuple[int, int, PrivacyLossFunction | None]],
) -> _Side:
    """One side: `losses` lead from one of the `released` kinds to the next, and from that before to each pause."""
    nothing = _Side((PrivacyProfile.nothing(grid),), np.array([-1]), *np.zeros((3, 0)))
    walk = _Walk(kinds, nothing)
    run, count, largest = np.zeros(horizon, int), np.zeros(horizon, int), np.zeros(horizon)
    run[times], count[times] = walk.along(losses, released)
    largest[times] = _bounds(losses, [kinds[kind].largest for kind in released])
    for time, before, loss in pauses:
        if loss is not None:
            at = times[before]
            run[time], count[time] = walk.step((int(run[at]), int(count[at])), released[before], loss)
            largest[time] = _bound_after(loss, largest[at], kinds[released[before]].largest)
    return walk.side(run, count, largest)


class _Walk:
    """What is known about the value at one time after another, as a pair of a run and a number of equal releases."""

    def __init__(self, releases: tuple[PrivacyProfile, ...], known: _Side):
        self.releases, self.powers = releases, _Powers(releases)
        self.bases, self.kinds = list(known.bases), known.kinds.tolist()
        self._steps: dict[tuple, tuple[int, int]] = {}

    def side(self, run: np.ndarray, count: np.ndarray, largest: np.ndarray) -> _Side:
        """What was met at the time points (T,), and nothing else but the empty run 0."""
        met = np.bincount(run, minlength=len(self.bases)) > 0
        met[0] = True
        bases = tuple(base for base, kept in zip(self.bases, met.tolist(), strict=True) if kept)
        return _Side(bases, np.array(self.kinds)[met], (np.cumsum(met) - 1)[run], count, largest)

    def along(
        self, losses: list, released: list[int], state: tuple[int, int] = (0, 0)
    ) -> tuple[np.ndarray, np.ndarray]:
        """The pairs (R,), (R,) before each release, of which `state` is the first."""
        run, count = np.zeros(len(released), int), np.zeros(len(released), int)
        run[:1], count[:1] = state
        at = 1
        for (loss, kind), group in groupby(zip(losses, released, strict=False)):
            end = at + sum(1 for _ in group)
            if loss is None:
                state = 0, 0
                run[at:end] = count[at:end] = 0
            elif loss.is_identity:
                state = self.step(state, kind, loss)
                run[at:end], count[at:end] = state[0], state[1] + np.arange(end - at)
                state = state[0], int(count[end - 1])
            else:
                last = None
                for time, base in zip(range(at, end), self._following(self._base(state), kind, loss), strict=False):
                    done = time - at
                    if done < MANY or base is last or done % _unit(done + 1) == 0:
                        state = self._run(base), 0
                    else:  # as many releases as told apart at the identity
                        self.bases[state[0]] = _highest([self.bases[state[0]], base])
                    run[time] = state[0]
                    if base is last:
                        run[time:end] = state[0]
                        break
                    last = base
            at = end
        return run, count

    def step(self, state: tuple[int, int], kind: int, loss: PrivacyLossFunction) -> tuple[int, int]:
        """The pair one step after a release."""
        run, count = state
        if loss.is_identity and kind == self.kinds[run]:
            return run, count + 1
        key = run, count, kind, loss
        if key not in self._steps:
            if not loss.is_identity:
                self._steps[key] = self._run(self._after(self._base(state), kind, loss)), 0
            else:
                self._steps[key] = self._run(self._base(state), kind), 1
        return self._steps[key]

    def _base(self, state: tuple[int, int]) -> PrivacyProfile:
        run, count = state
        return self.bases[run].compose(self.powers.of(self.kinds[run], count)) if count else self.bases[run]

    def _after(self, base: PrivacyProfile, kind: int, loss: PrivacyLossFunction) -> PrivacyProfile:
        """What is known after a release and a step that forgets; its bound is left to the recursion of [1]."""
        base = base.compose(self.releases[kind]).correlated(loss)
        return replace(base, deltas=base.deltas + ROOM, largest=inf) if base.largest else base

    def _following(self, base: PrivacyProfile, kind: int, loss: PrivacyLossFunction) -> Iterator[PrivacyProfile]:
        """What is known after 1, 2, ... releases of one kind; in the end, the same profile again and again."""

        def step(base: PrivacyProfile) -> PrivacyProfile:
            return self._after(base, kind, loss)

        marks, lag, spare = [], 1, max(1.0 - float(loss.hockey_stick(1.0)), EPS)
        for done in count(1):
            base = step(base)
            yield from repeat(base) if base.largest == 0.0 else [base]
            if done % lag == 0:
                marks.append(base)
                yield from _approach(marks[-3:], lag, step, spare)
                if len(marks) == MARKS:
                    marks, lag = marks[1::2], 2 * lag

    def _run(self, base: PrivacyProfile, kind: int = -1) -> int:
        if kind < 0 and base.largest == 0.0:
            return 0
        self.bases.append(base)
        self.kinds.append(kind)
        return len(self.bases) - 1


class _Powers:
    """Profiles of a number of equal releases, each composed once."""

    def __init__(self, kinds: tuple[PrivacyProfile, ...]):
        self._known = {(number, 1): kind for number, kind in enumerate(kinds)}

    def of(self, kind: int, count: int) -> PrivacyProfile:
        if (kind, count) not in self._known:
            low = count & -count
            rest = (count - low, low) if low < count else (count // 2, count // 2)
            self._known[kind, count] = self.of(kind, rest[0]).compose(self.of(kind, rest[1]))
        return self._known[kind, count]


def _approach(
    marks: list[PrivacyProfile], lag: int, step: Callable[[PrivacyProfile], PrivacyProfile], spare: float
) -> Iterator[PrivacyProfile]:
    """Bounds without end of the next profiles of a run, of which `marks` are every lag-th; none while it changes much.

    In the end, differences shrink by one rate r a step, the largest at any loss (and constant ones by 1 - `spare`):
    that gives a guess at the limit. It is right if F(limit) <= limit and F(near) <= limit - r (limit - near): a step F
    is affine in the deltas and rises with them, so m steps from below `near` end below limit - r^m (limit - near).
    """
    if len(marks) < 3 or len({profile.grid for profile in marks}) > 1:
        return
    grid, (old, last, new) = marks[0].grid, _together(marks)
    before, change = last - old, new - last
    rates = np.maximum(np.divide(change, before, out=np.zeros_like(new), where=np.abs(before) > CHANGE), 0.0)
    if rates.max() >= 1.0:
        return
    rate = float(rates[change > 0.0].max(initial=0.0))
    ahead = np.maximum(change, 0.0) * (rate / (1.0 - rate))
    if (ahead - change * rates / (1.0 - rates) > SETTLED * new + 8.0 * CHANGE).any():
        return
    rate **= 1.0 / lag
    for room in ROOM / spare * 4.0 ** np.arange(5):  # above the rounding of a step
        near = PrivacyProfile(np.minimum(new + room, 1.0), grid)
        ends = np.maximum.accumulate(np.minimum(near.deltas + ahead, 1.0)[::-1])[::-1]
        both = near, PrivacyProfile(ends, grid)
        steps = [step(profile) for profile in both]
        if {profile.grid for profile in steps} == {grid}:
            low, high, after, stays = _together([*both, *steps])
            if (stays <= high).all() and (after <= high - rate * (high - low)).all():
                yield from _towards(high, low, rate, grid)


def _towards(limit: np.ndarray, near: np.ndarray, rate: float, grid: float) -> Iterator[PrivacyProfile]:
    """limit - rate^m (limit - near), rounded up, for m = 1, 2, ..., and then the same limit for ever."""
    share = 1.0
    while (share * (limit - near) > SETTLED * near + CHANGE).any():
        share *= rate * (1.0 - EPS)
        yield PrivacyProfile(share * near + (1.0 - share) * limit + ROOM, grid)
    yield from repeat(PrivacyProfile(limit, grid))


def _within(new: PrivacyProfile, old: PrivacyProfile) -> bool:
    """Whether a profile after a step, without its room, is bounded by another, rounding errors included."""
    if new.grid != old.grid:
        return False
    above, below = _together([new, old])
    return bool((above - below).max() <= ROOM / 2.0)


def _bounds(losses: list[PrivacyLossFunction | None], alphas: list[float]) -> np.ndarray:
    """Bounds on what is known before each release, (R,), by the scalar recursion of [1], rounded up."""
    return accumulate_steps(losses, np.array([0.0, *alphas[:-1]]), _bound_after)


def _bound_after(loss: PrivacyLossFunction | None, known: float | None, alpha: float) -> float:
    return 0.0 if loss is None or known is None else loss_at(loss, (known + alpha) * (1.0 + EPS))


def _distinct(labels: list[np.ndarray], counts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The different rows of columns (T,), and where each row is among them; many different counts are rounded up."""
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
    """What whole numbers are rounded up to multiples of, so that they have `BITS` bits."""
    return 1 << np.maximum(np.frexp(numbers)[1] - BITS, 0)


def _changes(table: np.ndarray) -> np.ndarray:
    return np.append(True, (table[1:] != table[:-1]).any(axis=1))


def _highest(profiles: list[PrivacyProfile]) -> PrivacyProfile:
    """The largest of several profiles at each loss."""
    grid = max(profile.grid for profile in profiles)
    return PrivacyProfile(np.max(_together([profile.on(grid) for profile in profiles]), axis=0), grid)


def _together(profiles: list[PrivacyProfile]) -> np.ndarray:
    """The deltas of profiles on one grid as rows, the last of each as often as needed."""
    size = max(profile.deltas.size for profile in profiles)
    return np.array([np.pad(profile.deltas, (0, size - profile.deltas.size), "edge") for profile in profiles])
