"""The recursion of privacy profiles along one side: what earlier releases tell about the value at
each time.

    base_1 = nothing,    base_{t+1} = step_t(base_t (+) release_t)

with the composition (+) and the step of correlation from time t to t + 1: Eq. (13) of [1] with
profiles instead of numbers. A base is a `PrivacyProfile`, or `PairProfiles`, which keep one for
each pair of states. Long runs of equal releases, and schedules that repeat, take fewer steps
(`repeated_releases`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

import numpy as np

from tplfrontier.profiles.pair_profiles import Profile, is_within, overall
from tplfrontier.profiles.privacy_profile import EPS, PrivacyProfile, bound_after
from tplfrontier.profiles.repeated_releases import Step, after_release, along
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
        epsilons = np.array([overall(profile).epsilon(delta) for profile in self.profiles])
        return np.minimum(epsilons[self.position], self.largest)

    def delta(self, epsilon: float) -> np.ndarray:
        """The smallest proven delta of (epsilon, delta)-DP at each time, (T,); epsilon >= 0,
        nats."""
        epsilon = as_scalar(check_alpha(epsilon, "epsilon"), "epsilon")
        deltas = np.array([overall(profile).delta(epsilon) for profile in self.profiles])[
            self.position
        ]
        return np.where(epsilon >= self.largest, 0.0, deltas)

    def profile_at(self, t: int) -> PrivacyProfile:
        """The profile of one time point, 0 <= t < T; negative t counts from the end."""
        t = check_time(t, len(self), "t")
        return replace(overall(self.profiles[self.position[t]]), largest=float(self.largest[t]))

    def each(self, times: np.ndarray) -> list[Profile]:
        """The profile at each of some times."""
        return [self.profiles[k] for k in self.position[times].tolist()]

    def reversed(self) -> Self:
        """The same from the last time to the first."""
        return replace(self, position=self.position[::-1], largest=self.largest[::-1])


@dataclass(frozen=True)
class Side:
    """One side in the order in which its knowledge grows: R releases and the R - 1 `steps` between
    them.

    Release k is of the kind `released[k]`, at `times[k]`. `pauses` are the other time points:
    (time, number of the release before, step from there).
    """

    horizon: int
    times: list[int]
    released: list[int]
    steps: list[Step]
    pauses: list[tuple[int, int, Step]]

    @classmethod
    def both(cls, timeline: Timeline, released: list[int]) -> tuple[Self, Self]:
        """The past side, and the future side, whose times count from the last one."""
        horizon, times, last = timeline.horizon, timeline.times, timeline.times.size - 1
        step, lengths = cache(Step), np.diff(times).tolist()
        steps_b = [*map(step, timeline.backward, lengths)]
        steps_f = (
            steps_b
            if timeline.forward == timeline.backward
            else [*map(step, timeline.forward, lengths)]
        )
        past, future = [], []
        for time, before, loss_b, after, loss_f in timeline.pauses:
            past.append(
                (time, before, step(loss_b, time - int(times[before]) if before >= 0 else 0))
            )
            length = int(times[after]) - time if after < times.size else 0
            future.append((horizon - 1 - time, last - after, step(loss_f, length)))
        return (
            cls(horizon, times.tolist(), released, steps_b, past),
            cls(
                horizon,
                (horizon - 1 - times[::-1]).tolist(),
                released[::-1],
                steps_f[::-1],
                future[::-1],
            ),
        )

    @property
    def is_identity(self) -> bool:
        """Whether each step passes profiles unchanged."""
        return all(step.is_identity for step in (*self.steps, *(step for *_, step in self.pauses)))

    def profiles(
        self,
        kinds: tuple[Profile, ...],
        nothing: Profile,
        first: Sequence = (),
        last: Sequence = (),
    ) -> ProfileSeries:
        """The profiles about the value at each time, of all releases before.

        `first` are known. `last` are those of a shorter series, taken as soon as they bound the new
        ones.
        """
        runs = [(base, 1) for base in first or [nothing]]
        time, more = len(runs), len(self.released) - len(last)
        steps = along(
            runs[-1][0], self.steps[time - 1 :], self.released[time - 1 :], kinds, nothing
        )
        for base, times in with_progress(
            steps, "profiles", "time", total=len(self.released), size=lambda step: step[1]
        ):
            if (
                last
                and time >= more
                and base is not runs[-1][0]
                and is_within(base, last[time - more])
            ):
                runs += [(base, 1) for base in last[time - more :]]
                break
            runs.append((base, times))
            time += times
        numbers: dict[Profile, int] = {}
        before = np.repeat(
            [numbers.setdefault(base, len(numbers)) for base, _ in runs],
            [times for _, times in runs],
        )
        bases = [*numbers]
        position, largest = np.zeros(self.horizon, int), np.zeros(self.horizon)
        bounds = np.array([kind.largest for kind in kinds])[self.released]
        # The bounds on the loss of all releases before each by the recursion of [1], rounded up.
        largest[self.times] = accumulate_leakages(
            self.steps, np.append(0.0, bounds[:-1]), _bound_after
        )
        position[self.times] = before
        made: dict[tuple, int] = {}
        for time, index, step in self.pauses:
            if step.loss is None:
                continue
            key = before[index], self.released[index], step
            if key not in made:
                made[key] = len(bases)
                bases.append(after_release(bases[key[0]], kinds[key[1]], step))
            position[time] = made[key]
            largest[time] = _bound_after(step, largest[self.times[index]], bounds[index])
        largest = np.minimum(largest, np.array([base.largest for base in bases])[position])
        return ProfileSeries(tuple(bases), position, largest)


def _bound_after(step: Step | None, bound: float | None, largest: float) -> float:
    if step is None or step.loss is None or bound is None:
        return 0.0
    return bound_after(step.loss, step.length, (bound + largest) * (1.0 + EPS))
