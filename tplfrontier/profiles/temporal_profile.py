"""Temporal privacy profiles: the leakage of releases by any mechanisms, at every (epsilon, delta).

BPL is the profile of the releases until t - 1, taken through one step of the backward correlation,
composed with that of release t (Eq. (13) of [1] with profiles instead of numbers); FPL likewise
from the end. At time t the releases before, at and after t are independent given the value, so
their profiles compose (Eq. (11)).
"""

from __future__ import annotations
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import fsum, inf
from typing import Any

import numpy as np

from tplfrontier.pairs.leakage import transition_matrix
from tplfrontier.profiles.pair_profiles import PairProfiles, Profile, highest, overall
from tplfrontier.profiles.privacy_profile import (
    EPS,
    Powers,
    PrivacyProfile,
    Release,
    automatic_grid,
    check_grid,
)
from tplfrontier.profiles.recursion import ProfileSeries, Side
from tplrepro.leakage.temporal import (
    REQUIRED,
    Correlation,
    check_span,
    check_window,
    steps_of_both_sides,
)
from tplrepro.leakage.timeline import Timeline
from tplrepro.progress import with_progress
from tplrepro.validation import FrozenArrays, check_horizon


@dataclass(frozen=True, eq=False)
class TemporalPrivacyProfile(FrozenArrays):
    """The privacy profiles of T time points against one adversary, and of several time points
    together.

    `releases` (T,) is the number of each time's release among the different `kinds`, -1 for no
    release. In a run of more than 1,000 equal releases without a fixed point (the identity matrix
    has none) numbers of releases are rounded up to 8 bits, which adds up to 1.2 % to an epsilon.
    """

    kinds: tuple[Profile, ...]
    releases: np.ndarray
    _past: Side
    _future: Side  # from the last time to the first
    _nothing: Profile
    #: Compositions by their parts, and those of a shorter series that may be used again.
    _composed: dict = field(default_factory=dict, repr=False)
    _earlier: dict = field(default_factory=dict, repr=False)
    # where known
    _sides: tuple[ProfileSeries, ProfileSeries] | None = field(default=None, repr=False)

    def following(self, earlier: TemporalPrivacyProfile) -> TemporalPrivacyProfile:
        """This series, with the profiles that were already computed for a shorter one with which it
        begins.

        Past profiles stay, and future ones are computed from the end back to where they hardly
        change, if all time points have a release and both series the same grid.
        """
        if (
            overall(self._nothing).grid != overall(earlier._nothing).grid
            or not (self.releases >= 0).all()
        ):
            return self
        times = np.arange(earlier.releases.size)
        past, future = earlier._before.each(times), earlier._after.each(times[::-1])
        before = self._past.profiles(self.kinds, self._nothing, first=past)
        after = self._future.profiles(self.kinds, self._nothing, last=future).reversed()
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
        return ProfileSeries(
            (everything,), np.zeros(horizon, int), np.full(horizon, everything.largest)
        )

    def epsilon(self, delta: float) -> np.ndarray:
        """The smallest proven epsilon of (epsilon, delta)-DP_T at each time, (T,), nats; inf if
        none."""
        return self.both.epsilon(delta)

    def delta(self, epsilon: float) -> np.ndarray:
        """The smallest proven delta of (epsilon, delta)-DP_T at each time, (T,); epsilon >= 0,
        nats."""
        return self.both.delta(epsilon)

    def profile_at(self, t: int) -> PrivacyProfile:
        """The profile of all releases about the value at time t; negative t counts from the end."""
        return self.both.profile_at(t)

    def composed(self, first: int, last: int) -> PrivacyProfile:
        """The profile about all the data from time `first` to `last`, both included (Theorem 3 of
        [1])."""
        check_span(first, last, self.releases.size)
        return (
            self.user_level
            if self._determined
            else self._windows(np.array([first]), last - first + 1)
        )

    def w_event(self, w: int) -> PrivacyProfile:
        """The profile of w-event privacy: the largest of any w consecutive time points (Table 2 of
        [1])."""
        w, windows = check_window(w, self.releases.size)
        return self.user_level if self._determined else self._windows(np.arange(windows), w)

    @property
    def user_level(self) -> PrivacyProfile:
        """The profile of all releases, for any correlation (Corollary 1 of [1])."""
        powers, numbers = (
            Powers(self.kinds),
            np.bincount(self.releases[self.releases >= 0]).tolist(),
        )
        profile = self._composition(
            [powers.of(kind, number) for kind, number in enumerate(numbers) if number]
        )
        return replace(overall(profile), largest=fsum(self._bounds) * (1.0 + EPS))

    @cached_property
    def _before(self) -> ProfileSeries:
        return self._sides[0] if self._sides else self._past.profiles(self.kinds, self._nothing)

    @cached_property
    def _after(self) -> ProfileSeries:
        if self._sides:
            return self._sides[1]
        side = (
            self._before
            if self._past == self._future
            else self._future.profiles(self.kinds, self._nothing)
        )
        return side.reversed()

    @property
    def _determined(self) -> bool:
        """Whether all steps pass profiles unchanged, so that each time leaks what all releases leak
        together."""
        single = isinstance(self._nothing, PrivacyProfile)
        return single and self._past.is_identity and self._future.is_identity

    def _series(self, *sides: ProfileSeries) -> ProfileSeries:
        distinct, position = _distinct_rows(self.releases, *(side.position for side in sides))
        releases, profiles = [*self.kinds, self._nothing], []  # a release of -1 is none
        rows = [
            [
                releases[kind],
                *(side.profiles[base] for side, base in zip(sides, bases, strict=True)),
            ]
            for kind, *bases in distinct.tolist()
        ]
        # those of most rows come first, so that their composition is shared
        usual = Counter(chain.from_iterable(rows))
        for parts in with_progress(rows, "profiles together", "time"):
            profiles.append(
                overall(self._composition(sorted(parts, key=usual.__getitem__, reverse=True)))
            )
        largest = self._bounds
        for side in sides:
            largest = (largest + side.largest) * (1.0 + EPS)
        largest = np.minimum(largest, np.array([profile.largest for profile in profiles])[position])
        return ProfileSeries(tuple(profiles), position, largest)

    def _windows(self, first: np.ndarray, length: int) -> PrivacyProfile:
        """The largest profile of `length` consecutive time points from each of `first` on."""
        last, before, after = first + length - 1, self._before, self._after
        sums = np.zeros((self.releases.size + 1, len(self.kinds)), dtype=int)
        np.cumsum(self.releases[:, None] == np.arange(len(self.kinds)), axis=0, out=sums[1:])
        numbers = sums[last + 1] - sums[first]
        distinct, _ = _distinct_rows(before.position[first], after.position[last], numbers)
        bounds = np.concatenate(([0.0], np.cumsum(np.where(self._bounds < inf, self._bounds, 0.0))))
        unbounded = np.concatenate(([0], np.cumsum(self._bounds == inf)))
        largest = (bounds[last + 1] - bounds[first]) + before.largest[first] + after.largest[last]
        largest = np.where(unbounded[last + 1] > unbounded[first], inf, largest)
        # The sums bound the rounding of their differences.
        bound = float(largest.max()) + 4.0 * EPS * bounds.size * float(bounds[-1] + largest.max())
        powers, profiles = Powers(tuple(map(overall, self.kinds))), []
        for base_b, base_f, *numbers in distinct.tolist():
            between = [powers.of(kind, number) for kind, number in enumerate(numbers) if number]
            sides = overall(before.profiles[base_b]), overall(after.profiles[base_f])
            profiles.append(self._composition([*between, *sides]))
        return replace(highest(profiles), largest=bound)

    @cached_property
    def _bounds(self) -> np.ndarray:
        """The bound on the loss of each time's release, 0 without a release."""
        return np.append([kind.largest for kind in self.kinds], 0.0)[self.releases]

    def _composition(self, parts: list) -> Any:
        """The profile of independent releases; series have many parts in common."""
        key = tuple(sorted(parts, key=id))
        profile = self._composed.get(key) or self._earlier.get(key)
        if profile is None:
            *others, last = parts
            profile = self._composition(others).compose(last) if others else last
        self._composed[key] = profile
        return profile


def temporal_privacy_profile(
    events: Any,
    backward: Correlation = REQUIRED,
    forward: Correlation = REQUIRED,
    *,
    horizon: int | None = None,
    grid: float | None = None,
    pairs: bool = False,
) -> TemporalPrivacyProfile:
    """The privacy profiles of releases by any mechanisms: BPL, FPL and TPL at every (epsilon,
    delta).

    Parameters
    ----------
    events : list of T releases, or a single release together with `horizon`
        A release is a DpEvent of `dp_accounting` (by the conventions of `tplfrontier.profiles.events`), an
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

    ValueError for events that are unsupported or out of range, and as in
    `temporal_privacy_leakage`.

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
    >>> for pairs in (False, True):
    ...     r = temporal_privacy_profile(GaussianDpEvent(2.0), P, None, horizon=6, pairs=pairs)
    ...     print(round(float(r.epsilon(1e-5)[-1]), 3))
    4.381
    3.417
    """
    kinds: Sequence[Profile]
    kinds, releases, grid = _read(events, horizon, grid)
    nothing: Profile = PrivacyProfile.nothing(grid)
    if pairs:
        # Loss functions are refused, as they may belong to more than one matrix.
        _, _, states = steps_of_both_sides(transition_matrix, backward, forward, releases.size)
        n = len(states or range(2))
        if n > 1:
            nothing, *kinds = (PairProfiles.alike(profile, n) for profile in (nothing, *kinds))
    timeline = Timeline.of(backward, forward, releases.size, np.flatnonzero(releases >= 0))
    past, future = Side.both(timeline, releases[timeline.times].tolist())
    return TemporalPrivacyProfile(tuple(kinds), releases, past, future, nothing)


def _distinct_rows(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different rows of columns (T,), and the position of each row among them."""
    table = np.column_stack(columns)
    changes = np.append(True, (table[1:] != table[:-1]).any(axis=1))
    distinct, position = np.unique(table[changes], axis=0, return_inverse=True)
    return distinct, position.ravel()[np.cumsum(changes) - 1]


def _read(
    events: Any, horizon: int | None, grid: float | None
) -> tuple[tuple[PrivacyProfile, ...], np.ndarray, float]:
    """The different releases, the number of each time's release among them (-1: none), and the
    grid."""
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
        release = event if event is None or isinstance(event, Release) else Release(event)
        numbers.append(-1 if release is None else different.setdefault(release, len(different)))
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
