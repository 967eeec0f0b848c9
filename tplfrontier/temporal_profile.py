"""Temporal privacy profiles: the leakage of releases by any mechanisms, at every (epsilon, delta).

BPL is the profile of the releases until t - 1, taken through one step of the backward correlation, composed
with that of release t (Eq. (13) of [1] with profiles instead of numbers); FPL likewise from the end. At time
t the releases before, at and after t are independent given the value, so their profiles compose (Eq. (11)).
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum, inf
from typing import Any

import numpy as np

from tplfrontier.pair_profiles import PairSide, composed_pairs, largest_pair, with_release
from tplfrontier.pairwise import transition_matrix
from tplfrontier.profile import EPS, Powers, PrivacyProfile, Release, automatic_grid, check_grid
from tplfrontier.profile_recursion import Side, SideProfiles, distinct_rows, highest
from tplrepro.leakage.partial import Timeline
from tplrepro.leakage.temporal import Correlation, check_span, check_window, steps_of_both_sides
from tplrepro.validation import FrozenArrays, check_alpha, check_delta, check_horizon, check_time, one_number


@dataclass(frozen=True, eq=False)
class ProfileSeries(FrozenArrays):
    """The privacy profiles of T time points: at time t `profiles[position[t]]`, bounded by `largest[t]`."""

    profiles: tuple[PrivacyProfile, ...]
    position: np.ndarray
    largest: np.ndarray

    def __len__(self) -> int:
        return self.position.size

    def epsilon(self, delta: float) -> np.ndarray:
        """The smallest proven epsilon of (epsilon, delta)-DP at each time, (T,), nats; inf if none."""
        delta = one_number(check_delta(delta), "delta")
        epsilons = np.array([profile.epsilon(delta) for profile in self.profiles])
        return np.minimum(epsilons[self.position], self.largest)

    def delta(self, epsilon: float) -> np.ndarray:
        """The smallest proven delta of (epsilon, delta)-DP at each time, (T,); epsilon >= 0, nats."""
        epsilon = one_number(check_alpha(epsilon, "epsilon"), "epsilon")
        deltas = np.array([profile.delta(epsilon) for profile in self.profiles])[self.position]
        return np.where(epsilon >= self.largest, 0.0, deltas)

    def profile_at(self, t: int) -> PrivacyProfile:
        """The profile of one time point, 0 <= t < T; negative t counts from the end."""
        t = check_time(t, len(self), "t")
        return replace(self.profiles[self.position[t]], largest=float(self.largest[t]))


@dataclass(frozen=True, eq=False)
class TemporalPrivacyProfile(FrozenArrays):
    """The privacy profiles of T time points against one adversary, and of several time points together.

    `releases` (T,) is the number of each time's release among the different `kinds`, -1 for no release. In a
    run of more than 1,000 equal releases without a fixed point (the identity matrix has none) numbers of
    releases are rounded up to 8 bits, which adds up to 1.2 % to an epsilon.
    """

    kinds: tuple[PrivacyProfile, ...]
    releases: np.ndarray
    _past: Side | PairSide
    _future: Side | PairSide  # from the last time to the first
    _grid: float
    #: Compositions by their parts, and those of a shorter series that may be used again.
    _composed: dict = field(default_factory=dict, repr=False)
    _earlier: dict = field(default_factory=dict, repr=False)
    _sides: tuple[SideProfiles, SideProfiles] | None = field(default=None, repr=False)  # where they are known

    def following(self, earlier: "TemporalPrivacyProfile") -> "TemporalPrivacyProfile":
        """The same, with what a shorter series that this one begins with has worked out.

        Past profiles stay, and future ones are computed from the end back to where they hardly change, if all
        time points have a release and both series the same grid.
        """
        same = self._grid == earlier._grid and (self.releases >= 0).all()
        if not (same and isinstance(self._past, Side) and isinstance(self._future, Side)):
            return self
        past, future = earlier._before.each, earlier._after.each[::-1]
        before = self._past.profiles(self.kinds, self._grid, first=past)
        after = self._future.profiles(self.kinds, self._grid, last=future).reversed()
        return replace(self, _earlier=earlier._composed, _sides=(before, after))

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
        if not self._determined:
            return self._series(self._before, self._after)
        everything, horizon = self.user_level, self.releases.size
        return ProfileSeries((everything,), np.zeros(horizon, int), np.full(horizon, everything.largest))

    def epsilon(self, delta: float) -> np.ndarray:
        """The smallest proven epsilon of (epsilon, delta)-DP_T at each time, (T,), nats; inf if none."""
        return self.both.epsilon(delta)

    def delta(self, epsilon: float) -> np.ndarray:
        """The smallest proven delta of (epsilon, delta)-DP_T at each time, (T,); epsilon >= 0, nats."""
        return self.both.delta(epsilon)

    def profile_at(self, t: int) -> PrivacyProfile:
        """The profile of all releases about the value at time t; negative t counts from the end."""
        return self.both.profile_at(t)

    def composed(self, first: int, last: int) -> PrivacyProfile:
        """The profile about all the data from time `first` to `last`, both included (Theorem 3 of [1])."""
        check_span(first, last, self.releases.size)
        return self.user_level if self._determined else self._windows(np.array([first]), last - first + 1)

    def w_event(self, w: int) -> PrivacyProfile:
        """The profile of w-event privacy: the largest of any w consecutive time points (Table 2 of [1])."""
        w, windows = check_window(w, self.releases.size)
        return self.user_level if self._determined else self._windows(np.arange(windows), w)

    @property
    def user_level(self) -> PrivacyProfile:
        """The profile of all releases, for any correlation (Corollary 1 of [1])."""
        powers, numbers = Powers(self.kinds), np.bincount(self.releases[self.releases >= 0]).tolist()
        profile = self._composition([powers.of(kind, number) for kind, number in enumerate(numbers) if number])
        return replace(profile, largest=fsum(self._bounds) * (1.0 + EPS))

    @cached_property
    def _before(self) -> Any:
        return self._sides[0] if self._sides else self._past.profiles(self.kinds, self._grid)

    @cached_property
    def _after(self) -> Any:
        if self._sides:
            return self._sides[1]
        side = self._before if self._past == self._future else self._future.profiles(self.kinds, self._grid)
        return side.reversed()

    @property
    def _determined(self) -> bool:
        """Whether each value determines all others, so that all times leak what all releases do."""
        return self._past.is_identity and self._future.is_identity

    def _series(self, *sides: SideProfiles) -> ProfileSeries:
        distinct, position = distinct_rows(self.releases, *(side.run for side in sides))
        releases, profiles = [*self.kinds, PrivacyProfile.nothing(self._grid)], []  # a release of -1 is none
        for kind, *runs in distinct.tolist():
            bases = [side.bases[run] for side, run in zip(sides, runs, strict=True)]
            profiles.append(self._composition([releases[kind], *bases]))
        largest = self._bounds
        for side in sides:
            largest = (largest + side.largest) * (1.0 + EPS)
        return ProfileSeries(tuple(profiles), position, largest)

    def _windows(self, first: np.ndarray, length: int) -> PrivacyProfile:
        """The largest profile of `length` consecutive time points from each of `first` on."""
        last, before, after = first + length - 1, self._before, self._after
        sums = np.zeros((self.releases.size + 1, len(self.kinds)), dtype=int)
        np.cumsum(self.releases[:, None] == np.arange(len(self.kinds)), axis=0, out=sums[1:])
        numbers = sums[last + 1] - sums[first]
        distinct, _ = distinct_rows(before.run[first], after.run[last], numbers)
        bounds = np.concatenate(([0.0], np.cumsum(np.where(self._bounds < inf, self._bounds, 0.0))))
        unbounded = np.concatenate(([0], np.cumsum(self._bounds == inf)))
        largest = (bounds[last + 1] - bounds[first]) + before.largest[first] + after.largest[last]
        largest = np.where(unbounded[last + 1] > unbounded[first], inf, largest)
        # The sums bound the rounding of their differences.
        bound = float(largest.max()) + 4.0 * EPS * bounds.size * float(bounds[-1] + largest.max())
        powers, profiles = Powers(self.kinds), []
        for run_b, run_f, *numbers in distinct.tolist():
            between = [powers.of(kind, number) for kind, number in enumerate(numbers) if number]
            profiles.append(self._composition([*between, before.bases[run_b], after.bases[run_f]]))
        return replace(highest(profiles), largest=bound)

    @cached_property
    def _bounds(self) -> np.ndarray:
        """The bound on the loss of each time's release, 0 without a release."""
        return np.append([kind.largest for kind in self.kinds], 0.0)[self.releases]

    def _composition(self, parts: list[PrivacyProfile]) -> PrivacyProfile:
        """The profile of independent releases; series have many parts in common."""
        key = tuple(sorted(parts, key=id))
        profile = self._composed.get(key) or self._earlier.get(key)
        if profile is None:
            *others, last = parts
            profile = self._composition(others).compose(last) if others else last
        self._composed[key] = profile
        return profile


class PairwisePrivacyProfile(TemporalPrivacyProfile):
    """As `TemporalPrivacyProfile`, by the recursion of pairs, which are dropped about several times together."""

    def _series(self, *sides: Any) -> ProfileSeries:
        distinct, position = distinct_rows(self.releases, *(side.run for side in sides))
        profiles = []
        for kind, *runs in distinct.tolist():
            pairs = sides[0].pairs[runs[0]]
            for side, run in zip(sides[1:], runs[1:], strict=True):
                pairs = composed_pairs(pairs, side.pairs[run])
            profiles.append(largest_pair(pairs if kind < 0 else with_release(pairs, self.kinds[kind])))
        largest = np.array([profile.largest for profile in profiles])
        return ProfileSeries(tuple(profiles), position, largest[position])


def temporal_privacy_profile(
    events: Any,
    backward: Correlation = None,
    forward: Correlation = None,
    *,
    horizon: int | None = None,
    grid: float | None = None,
    pairs: bool = False,
) -> TemporalPrivacyProfile:
    """The privacy profiles of releases by any mechanisms: BPL, FPL and TPL at every (epsilon, delta).

    Parameters
    ----------
    events : list of T releases, or a single release together with `horizon`
        A release is a DpEvent of `dp_accounting` (by the conventions of `tplfrontier.events`), an
        epsilon (nats) if only pure DP is known, a PrivacyProfile, or None for a time point without a release;
        (event, count) stands for `count` time points.
    backward, forward : as in `temporal_privacy_leakage`
    horizon : int >= 1, optional; the number of releases T
    grid : float, the distance in nats between the losses at which profiles are stored
        Epsilon is too large by a share of up to about (grid / s)^2 / 4, where s is the standard deviation of
        the loss of a release. None: a 16th of the smallest total variation distance of a release, from 1e-5
        to 1e-3. A grid of more than 16,384 points is made twice as coarse.
    pairs : whether to keep a profile for each ordered pair of states, which needs matrices
        Smaller bounds, at a cost per step that grows with n^4 (docs/theory/profiles.md).

    ValueError for events that are unsupported or out of range, and as in `temporal_privacy_leakage`.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> P = [[0.8, 0.2], [0.1, 0.9]]
    >>> r = temporal_privacy_profile(GaussianDpEvent(2.0), P, P, horizon=6)
    >>> r.backward.epsilon(1e-5).round(3).tolist()
    [1.993, 2.485, 2.669, 2.743, 2.774, 2.788]
    >>> r.epsilon(1e-5).round(3).tolist()
    [2.788, 3.194, 3.332, 3.332, 3.194, 2.788]
    >>> round(r.w_event(2).epsilon(1e-5), 3), round(r.user_level.epsilon(1e-5), 3)
    (3.998, 5.545)
    >>> P = [[0.2, 0.8], [1, 0]]
    >>> several = [temporal_privacy_profile(GaussianDpEvent(2.0), P, horizon=6, pairs=pairs) for pairs in (False, True)]
    >>> [round(float(r.epsilon(1e-5)[-1]), 3) for r in several]
    [4.381, 3.417]
    """
    kinds, releases, grid = _read(events, horizon, grid)
    if pairs:
        before, after, states = steps_of_both_sides(transition_matrix, backward, forward, releases.size)
        n = len(states or range(2))
        pair_past = PairSide(before, releases.tolist(), n)
        pair_future = PairSide(after[::-1], releases[::-1].tolist(), n)
        return PairwisePrivacyProfile(kinds, releases, pair_past, pair_future, grid)
    timeline = Timeline.of(backward, forward, releases.size, np.flatnonzero(releases >= 0))
    times, horizon = timeline.times, releases.size
    released = releases[times].tolist()
    past = Side(horizon, timeline.backward, released, times.tolist(), [pause[:3] for pause in timeline.pauses])
    pauses = [(horizon - 1 - time, times.size - 1 - index, loss) for time, _, _, index, loss in timeline.pauses[::-1]]
    future = Side(horizon, timeline.forward[::-1], released[::-1], (horizon - 1 - times[::-1]).tolist(), pauses)
    return TemporalPrivacyProfile(kinds, releases, past, future, grid)


def _read(events: Any, horizon: int | None, grid: float | None) -> tuple[tuple[PrivacyProfile, ...], np.ndarray, float]:
    """The different releases, the number of each time's release among them (-1: none), and the grid."""
    several = isinstance(events, Iterable) and not isinstance(events, (str, bytes, Set, Mapping))
    if horizon is not None and not several:
        events = [(events, check_horizon(horizon))]
    elif not several:
        raise ValueError(
            f"events must be a list with one event a time point, found {events!r}; give [event] * T or a horizon"
        )
    different: dict[Release, int] = {}
    numbers, counts = [], []
    for entry in events:
        event, count = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, 1)
        counts.append(check_horizon(count, "the count of an event"))
        numbers.append(
            -1
            if event is None
            else different.setdefault(event if isinstance(event, Release) else Release(event), len(different))
        )
    if not different:
        raise ValueError("events must hold at least one release, found none; give [event] * T")
    grid = automatic_grid(different) if grid is None else check_grid(grid)
    releases = np.repeat(numbers, counts)
    if horizon not in (None, releases.size):
        raise ValueError(
            f"events must be one release or one for each of {horizon} time points, found {releases.size}; "
            "give one event for each, or one event and its horizon"
        )
    return tuple(release.profile(grid) for release in different), releases, grid
