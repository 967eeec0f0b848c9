"""The recursion of privacy profiles along one side: what earlier releases tell about the value at
each time.

    base_1 = nothing,    base_{t+1} = step_t(base_t (+) release_t)

with the composition (+) and the step of correlation from time t to t + 1: Eq. (13) of [1] with
profiles instead of numbers. A base is a `PrivacyProfile`, or `PairProfiles`, which keep one for
each pair of states. Long runs of equal releases, and schedules that repeat, take fewer steps
(`repeated_releases`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

import numpy as np

from tplfrontier.profiles.pair_profiles import Profile, is_within, overall_profile
from tplfrontier.profiles.privacy_profile import EPS, PrivacyProfile, bound_after
from tplfrontier.profiles.repeated_releases import (
    Step,
    Stretch,
    profile_after,
    profiles_after_steps,
)
from tplrepro.leakage.accumulation import accumulate_leakages
from tplrepro.leakage.timeline import Timeline
from tplrepro.progress import with_progress
from tplrepro.validation import FrozenArrays, as_scalar, check_alpha, check_delta, check_time


@dataclass(frozen=True, eq=False)
class ProfileSeries(FrozenArrays):
    """The privacy profiles of T time points: at time t `profiles[position[t]]`, bounded by
    `largest[t]`."""

    profiles: tuple[Profile, ...]
    position: np.ndarray
    largest: np.ndarray

    def __len__(self) -> int:
        return self.position.size

    def epsilon(self, delta: float) -> np.ndarray:
        """The smallest proven epsilon of (epsilon, delta)-DP at each time, (T,), nats; inf if
        none."""
        delta = as_scalar(check_delta(delta), "delta")
        epsilons = [overall_profile(profile).epsilon(delta) for profile in self.profiles]
        at_each_time = np.array(epsilons)[self.position]
        return np.minimum(at_each_time, self.largest)

    def delta(self, epsilon: float) -> np.ndarray:
        """The smallest proven delta of (epsilon, delta)-DP at each time, (T,); epsilon >= 0,
        nats."""
        epsilon = as_scalar(check_alpha(epsilon, "epsilon"), "epsilon")
        deltas = [overall_profile(profile).delta(epsilon) for profile in self.profiles]
        at_each_time = np.array(deltas)[self.position]
        return np.where(epsilon >= self.largest, 0.0, at_each_time)

    def profile_at(self, t: int) -> PrivacyProfile:
        """The profile of one time point, 0 <= t < T; negative t counts from the end."""
        t = check_time(t, len(self), "t")
        profile = overall_profile(self.profiles[self.position[t]])
        return replace(profile, largest=float(self.largest[t]))

    def profiles_at(self, times: np.ndarray) -> list[Profile]:
        """The profile at each of some times."""
        return [self.profiles[k] for k in self.position[times].tolist()]

    def reversed(self) -> Self:
        """The profiles of the T time points from the last to the first."""
        position = self.position[::-1]
        largest = self.largest[::-1]
        return replace(self, position=position, largest=largest)


@dataclass(frozen=True)
class SidePause:
    """A time point without a release: the number of the release before it on this side, -1 for
    none, and the step of correlation from there."""

    time: int
    release: int
    step: Step


@dataclass(frozen=True)
class Side:
    """One side in the order in which its knowledge grows: R releases and the R - 1 `steps` between
    them.

    Release k is of the kind `released[k]`, at `times[k]`.
    """

    horizon: int
    times: list[int]
    released: list[int]
    steps: list[Step]
    pauses: list[SidePause]

    @classmethod
    def both(cls, timeline: Timeline, released: list[int]) -> tuple[Self, Self]:
        """The past side, and the future side, whose times count from the last one."""
        horizon = timeline.horizon
        times = timeline.times.tolist()
        lengths = np.diff(timeline.times).tolist()
        make_step = cache(Step)
        backward = [*map(make_step, timeline.backward, lengths)]
        forward = [*map(make_step, timeline.forward, lengths)]
        past_pauses = []
        future_pauses = []
        for pause in timeline.pauses:
            length_before = 0
            if pause.release_before >= 0:
                length_before = pause.time - times[pause.release_before]
            step_before = make_step(pause.loss_before, length_before)
            past_pauses.append(SidePause(pause.time, pause.release_before, step_before))
            length_after = 0
            if pause.release_after < len(times):
                length_after = times[pause.release_after] - pause.time
            step_after = make_step(pause.loss_after, length_after)
            from_last = len(times) - 1 - pause.release_after
            future_pauses.append(SidePause(horizon - 1 - pause.time, from_last, step_after))
        past = cls(horizon, times, released, backward, past_pauses)
        future = cls(
            horizon,
            times=[horizon - 1 - time for time in reversed(times)],
            released=released[::-1],
            steps=forward[::-1],
            pauses=future_pauses[::-1],
        )
        return past, future

    @property
    def is_identity(self) -> bool:
        """Whether each step passes profiles unchanged."""
        between_releases = all(step.is_identity for step in self.steps)
        return between_releases and all(pause.step.is_identity for pause in self.pauses)

    def profiles(
        self,
        kinds: tuple[Profile, ...],
        nothing: Profile,
        first: Sequence[Profile] = (),
        last: Sequence[Profile] = (),
    ) -> ProfileSeries:
        """The profiles about the value at each time, of all releases before.

        Parameters
        ----------
        kinds : tuple
            The profiles of the different releases.
        nothing : PrivacyProfile or PairProfiles
            That of no release.
        first : sequence, optional
            The profiles before the first releases, where they are known.
        last : sequence, optional
            Those of a shorter series that ends alike, taken as soon as they bound the new ones.

        Returns
        -------
        ProfileSeries
            Of T time points in the order of this side.
        """
        stretches = [*self._stretches(kinds, nothing, first, last)]
        numbers: dict[Profile, int] = {}
        for stretch in stretches:
            numbers.setdefault(stretch.profile, len(numbers))
        before_each_release = np.repeat(
            [numbers[stretch.profile] for stretch in stretches],
            [stretch.length for stretch in stretches],
        )
        # The bounds on the loss of all releases before each by the recursion of [1], rounded up.
        bounds = np.array([kind.largest for kind in kinds])[self.released]
        bounds_before = np.append(0.0, bounds[:-1])
        largest = np.zeros(self.horizon)
        largest[self.times] = accumulate_leakages(self.steps, bounds_before, _bound_after_step)
        position = np.zeros(self.horizon, int)
        position[self.times] = before_each_release
        profiles = [*numbers]
        after_release: dict[tuple[int, int, Step], int] = {}
        pauses = [pause for pause in self.pauses if pause.step.loss is not None]
        for pause in pauses:
            base = before_each_release[pause.release]
            kind = self.released[pause.release]
            key = (base, kind, pause.step)
            if key not in after_release:
                after_release[key] = len(profiles)
                profiles.append(profile_after(profiles[base], kinds[kind], pause.step))
            position[pause.time] = after_release[key]
            largest[pause.time] = _bound_after_step(
                pause.step, largest[self.times[pause.release]], bounds[pause.release]
            )
        largest_of_profiles = np.array([profile.largest for profile in profiles])
        largest = np.minimum(largest, largest_of_profiles[position])
        return ProfileSeries(tuple(profiles), position, largest)

    def _stretches(
        self,
        kinds: tuple[Profile, ...],
        nothing: Profile,
        first: Sequence[Profile],
        last: Sequence[Profile],
    ) -> Iterator[Stretch]:
        """The profiles before each release: those in `first`, known ones of the earliest releases,
        then new ones, until one is within that of `last` at its place from the end, and the rest of
        `last`, known for a shorter series.

        `kinds` are the profiles of the different releases, `nothing` that of none.
        """
        profile = nothing
        known = [*first] or [nothing]
        for profile in known:
            yield Stretch(profile, 1)
        time = len(known)
        added = len(self.released) - len(last)  # the releases that the shorter series lacks
        new_stretches = profiles_after_steps(
            profile, self.steps[time - 1 :], self.released[time - 1 :], kinds, nothing
        )
        for stretch in with_progress(
            new_stretches,
            "profiles",
            "time",
            total=len(self.released),
            size=lambda stretch: stretch.length,
        ):
            is_new = stretch.profile is not profile
            if last and time >= added and is_new and is_within(stretch.profile, last[time - added]):
                for profile in last[time - added :]:
                    yield Stretch(profile, 1)
                return
            yield stretch
            profile = stretch.profile
            time += stretch.length


def _bound_after_step(step: Step | None, bound: float | None, largest: float) -> float:
    """L(bound + largest), rounded up, nats: the bound on the loss after a release with a loss of at
    most `largest` and a step; 0 if the step is not known or there is no release before (None)."""
    if step is None or step.loss is None or bound is None:
        return 0.0
    composed = (bound + largest) * (1.0 + EPS)
    return bound_after(step.loss, step.length, composed)
