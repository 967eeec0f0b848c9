"""Temporal privacy profiles: the leakage of releases by any mechanisms, at every (epsilon, delta).

BPL is the profile of the releases until t - 1, taken through one step of the backward correlation,
composed with that of release t (Eq. (13) of [1] with profiles instead of numbers); FPL likewise
from the end. At time t the releases before, at and after t are independent given the value, so
their profiles compose (Eq. (11)).
"""

from __future__ import annotations
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import fsum, inf
from typing import Any

import numpy as np

from tplfrontier.pairs.leakage import transition_matrix
from tplfrontier.profiles.pair_profiles import (
    PairProfiles,
    Profile,
    highest_profile,
    overall_profile,
)
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
        grid = overall_profile(self._nothing).grid
        if grid != overall_profile(earlier._nothing).grid:
            return self
        if not (self.releases >= 0).all():
            return self
        times = np.arange(earlier.releases.size)
        known_past = earlier._before.profiles_at(times)
        known_future = earlier._after.profiles_at(times[::-1])
        before = self._past.profiles(self.kinds, self._nothing, first=known_past)
        after = self._future.profiles(self.kinds, self._nothing, last=known_future)
        return replace(self, _earlier=earlier._composed, _sides=(before, after.reversed()))

    @cached_property
    def backward(self) -> ProfileSeries:
        """The profiles of BPL: about the value at t, of the releases up to t."""
        return self._compose_sides(self._before)

    @cached_property
    def forward(self) -> ProfileSeries:
        """The profiles of FPL: about the value at t, of the releases from t on."""
        return self._compose_sides(self._after)

    @cached_property
    def both(self) -> ProfileSeries:
        """The profiles of TPL: about the value at t, of all releases."""
        if not self._is_determined:
            return self._compose_sides(self._before, self._after)
        everything = self.user_level
        horizon = self.releases.size
        return ProfileSeries(
            profiles=(everything,),
            position=np.zeros(horizon, int),
            largest=np.full(horizon, everything.largest),
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
        """The profile about all the data of several time points (Theorem 3 of [1]).

        Parameters
        ----------
        first, last : int
            The first and the last time point, both included, from 0 on.

        Returns
        -------
        PrivacyProfile
            That of all releases.

        Raises
        ------
        ValueError
            If a time point is out of range, or the last before the first.
        """
        check_span(first, last, self.releases.size)
        if self._is_determined:
            return self.user_level
        length = last - first + 1
        return self._largest_of_windows(np.array([first]), length)

    def w_event(self, w: int) -> PrivacyProfile:
        """The profile of w-event privacy: the largest of any w consecutive time points (Table 2 of
        [1])."""
        w, windows = check_window(w, self.releases.size)
        if self._is_determined:
            return self.user_level
        return self._largest_of_windows(np.arange(windows), w)

    @property
    def user_level(self) -> PrivacyProfile:
        """The profile of all releases, for any correlation (Corollary 1 of [1])."""
        released = self.releases[self.releases >= 0]
        numbers = np.bincount(released).tolist()
        powers = Powers(self.kinds)
        profile = self._compose(powers.profiles(numbers))
        largest = fsum(self._bounds) * (1.0 + EPS)
        return replace(overall_profile(profile), largest=largest)

    @cached_property
    def _before(self) -> ProfileSeries:
        if self._sides:
            return self._sides[0]
        return self._past.profiles(self.kinds, self._nothing)

    @cached_property
    def _after(self) -> ProfileSeries:
        if self._sides:
            return self._sides[1]
        if self._past == self._future:
            return self._before.reversed()
        return self._future.profiles(self.kinds, self._nothing).reversed()

    @property
    def _is_determined(self) -> bool:
        """Whether all steps pass profiles unchanged, so that each time leaks what all releases leak
        together."""
        if not isinstance(self._nothing, PrivacyProfile):
            return False
        return self._past.is_identity and self._future.is_identity

    def _compose_sides(self, *sides: ProfileSeries) -> ProfileSeries:
        """The profiles of each time's release and of what the sides tell about its value."""
        columns = [side.position for side in sides]
        distinct, position = _distinct_rows(self.releases, *columns)
        releases = [*self.kinds, self._nothing]  # a release of -1 is none
        rows = []
        for kind, *bases in distinct.tolist():
            row = [releases[kind]]
            for side, base in zip(sides, bases, strict=True):
                row.append(side.profiles[base])
            rows.append(row)
        # those of most rows come first, so that their composition is shared
        usual = Counter(chain.from_iterable(rows))
        profiles = []
        for parts in with_progress(rows, "profiles together", "time"):
            parts = sorted(parts, key=usual.__getitem__, reverse=True)
            profiles.append(overall_profile(self._compose(parts)))
        largest = self._bounds
        for side in sides:
            largest = (largest + side.largest) * (1.0 + EPS)
        largest_of_profiles = np.array([profile.largest for profile in profiles])
        largest = np.minimum(largest, largest_of_profiles[position])
        return ProfileSeries(tuple(profiles), position, largest)

    def _largest_of_windows(self, first: np.ndarray, length: int) -> PrivacyProfile:
        """The largest profile of `length` consecutive time points from each of `first` on."""
        last = first + length - 1
        before = self._before
        after = self._after
        numbers = self._count_kinds(first, last)
        past = before.position[first]
        future = after.position[last]
        distinct, _ = _distinct_rows(past, future, numbers)
        powers = Powers(tuple(map(overall_profile, self.kinds)))
        profiles = []
        for past, future, *numbers in distinct.tolist():
            parts = powers.profiles(numbers)
            parts.append(overall_profile(before.profiles[past]))
            parts.append(overall_profile(after.profiles[future]))
            profiles.append(self._compose(parts))
        highest = highest_profile(profiles)
        return replace(highest, largest=self._bound_windows(first, last))

    def _count_kinds(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """How many releases of each kind (K,) each window (W,) has, (W, K)."""
        kinds = np.arange(len(self.kinds))
        is_of_kind = self.releases[:, None] == kinds
        return _sum_windows(is_of_kind.astype(int), first, last)

    def _bound_windows(self, first: np.ndarray, last: np.ndarray) -> float:
        """A bound on the loss of all releases about the data of any window."""
        bounds = self._bounds
        is_finite = bounds < inf
        finite = np.where(is_finite, bounds, 0.0)
        within = _sum_windows(finite, first, last)
        unbounded = _sum_windows((~is_finite).astype(int), first, last)
        of_past = self._before.largest[first]
        of_future = self._after.largest[last]
        largest = within + of_past + of_future
        largest = np.where(unbounded > 0, inf, largest)
        highest = float(largest.max())
        # The sums bound the rounding of their differences.
        total = float(np.cumsum(finite)[-1])
        points = bounds.size + 1
        rounding = 4.0 * EPS * points * (total + highest)
        return highest + rounding

    @cached_property
    def _bounds(self) -> np.ndarray:
        """The bound on the loss of each time's release, 0 without a release."""
        bounds = np.append([kind.largest for kind in self.kinds], 0.0)
        return bounds[self.releases]

    def _compose(self, parts: list) -> Any:
        """The profile of independent releases; series have many parts in common."""
        key = tuple(sorted(parts, key=id))
        profile = self._composed.get(key) or self._earlier.get(key)
        if profile is None:
            *others, profile = parts
            if others:
                profile = self._compose(others).compose(profile)
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

    Eqs. (11) and (13) of [1] with profiles instead of numbers; docs/theory/profiles.md proves that
    they are upper bounds.

    Parameters
    ----------
    events : list of T releases, or a single release together with `horizon`
        A release is a DpEvent of `dp_accounting` (by the conventions of
        `tplfrontier.profiles.events`), an epsilon (nats) if only pure DP is known, a
        PrivacyProfile, or None for a time point without a release; (event, count) stands for
        `count` time points.
    backward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, list, Cycle, or None
        Pr(l^{t-1} | l^t): row by row the probabilities of the value before. A list of T - 1
        holds the matrix of each step between two time points. None: the adversary does not know it.
    forward : as `backward`
        Pr(l^t | l^{t-1}): row by row the probabilities of the value after.
    horizon : int >= 1, optional
        The number of time points T.
    grid : float, optional
        The distance in nats between the losses at which profiles are stored. Epsilon is too large
        by a share of up to about (grid / s)^2 / 4, where s is the standard deviation of the loss of
        a release. None: a 16th of the smallest total variation distance of a release, from 1e-5 to
        1e-3. A grid of more than 16,384 points is made twice as coarse.
    pairs : bool, optional
        Whether to keep a profile for each ordered pair of states, which needs matrices: smaller
        bounds, at a cost per step that grows with n^4.

    Returns
    -------
    TemporalPrivacyProfile
        `backward`, `forward` and `both` hold the profiles of BPL, FPL and TPL at each time;
        `epsilon(delta)` and `delta(epsilon)` are those of TPL.

    Raises
    ------
    ValueError
        For events that are unsupported or out of range or not one for each time point; matrices
        that are not row-stochastic, whose states disagree or that are not T - 1; loss functions
        where `pairs` needs matrices.
    TypeError
        If one of the sides is not given.

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
    schedule = _read_schedule(events, horizon)
    if grid is None:
        grid = automatic_grid(schedule.kinds)
    else:
        grid = check_grid(grid)
    releases = schedule.releases
    _check_number_of_releases(releases.size, horizon)
    kinds: tuple[Profile, ...] = tuple(kind.profile(grid) for kind in schedule.kinds)
    nothing: Profile = PrivacyProfile.nothing(grid)
    if pairs:
        # Loss functions are refused, as they may belong to more than one matrix.
        _, _, states = steps_of_both_sides(transition_matrix, backward, forward, releases.size)
        n = len(states or range(2))
        if n > 1:
            kinds = tuple(PairProfiles.alike(kind, n) for kind in kinds)
            nothing = PairProfiles.alike(nothing, n)
    times = np.flatnonzero(releases >= 0)
    timeline = Timeline.of(backward, forward, releases.size, times)
    released = releases[timeline.times].tolist()
    past, future = Side.both(timeline, released)
    return TemporalPrivacyProfile(kinds, releases, past, future, nothing)


def _sum_windows(values: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The sums (W, ...) of values (T, ...) over windows of times, from `first` (W,) to `last` (W,),
    both included."""
    horizon, *rest = values.shape
    sums = np.zeros((horizon + 1, *rest), values.dtype)
    np.cumsum(values, axis=0, out=sums[1:])
    return sums[last + 1] - sums[first]


def _distinct_rows(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different rows of columns (T,), and the position of each row among them."""
    table = np.column_stack(columns)
    differs = table[1:] != table[:-1]
    begins_run = np.append(True, differs.any(axis=1))
    distinct, positions_of_runs = np.unique(table[begins_run], axis=0, return_inverse=True)
    runs = np.cumsum(begins_run) - 1
    return distinct, positions_of_runs.ravel()[runs]


@dataclass(frozen=True)
class _Schedule:
    """The different releases, and the number of each time's release among them, -1 for none,
    (T,)."""

    kinds: tuple[Release, ...]
    releases: np.ndarray


def _as_release(event: Any) -> Release:
    if isinstance(event, Release):
        return event
    return Release(event)


def _read_schedule(events: Any, horizon: int | None) -> _Schedule:
    is_list = isinstance(events, Iterable) and not isinstance(events, (str, bytes, Set, Mapping))
    if not is_list:
        if horizon is None:
            raise ValueError(
                f"events must be a list with one event a time point, found {events!r}; "
                "give [event] * T or a horizon"
            )
        events = [(events, check_horizon(horizon))]
    different: dict[Release, int] = {}
    numbers = []
    counts = []
    for entry in events:
        event = entry
        count = 1
        if isinstance(entry, tuple) and len(entry) == 2:
            event, count = entry
        counts.append(check_horizon(count, "the count of an event"))
        number = -1
        if event is not None:
            release = _as_release(event)
            number = different.setdefault(release, len(different))
        numbers.append(number)
    if not different:
        raise ValueError("events must hold at least one release, found none; give [event] * T")
    return _Schedule(tuple(different), np.repeat(numbers, counts))


def _check_number_of_releases(releases: int, horizon: int | None) -> None:
    if horizon not in (None, releases):
        raise ValueError(
            f"events must be one release or one for each of {horizon} time points, "
            f"found {releases}; give one event for each, or one event and its horizon"
        )
