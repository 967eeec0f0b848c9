"""Privacy profiles of each ordered pair of states: the recursion without the largest over pairs at
each step.

For two rows q, d of the transition matrix let a = q - g d, with positive and negative parts a+ and
a-, and A, M their sums. If delta_jk bounds the hockey-stick divergences of the laws given the
states j and k, that of the mixtures of these laws by q and d is at most

    sum_jk a+_j a-_k / M  delta_jk(M / A)

(the proof of docs/theory/profiles.md before its last maximum), and so is the largest convex
function below that. Losses below 0 of a pair follow from the reverse order. Work grows with n^4
points of the grid.

`PairProfiles` composes and steps as a `PrivacyProfile` does: one recursion, `profiles.recursion`,
serves both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any, Self

import numpy as np

from tplfrontier.pairs.leakage import UP, log_ratios
from tplfrontier.profiles.privacy_profile import (
    EPS,
    MOST_LOSS,
    ROOM,
    PrivacyProfile,
    composed,
    interpolated,
    product_rounding,
)
from tplrepro.leakage.loss_function import PrivacyLossFunction

SETTLED = 1.0 + 1e-9  # the bound on the loss of a long run may be too large by this factor


@dataclass(frozen=True, eq=False)
class PairProfiles:
    """The profiles of all ordered pairs (i, j), i != j, of n states."""

    by_pair: dict[tuple[int, int], PrivacyProfile]

    @classmethod
    def alike(cls, profile: PrivacyProfile, n: int) -> Self:
        """The same profile for all pairs of n states."""
        return cls(dict.fromkeys(permutations(range(n), 2), profile))

    @cached_property
    def overall(self) -> PrivacyProfile:
        """The largest profile of all pairs."""
        return highest([*self.by_pair.values()])

    @property
    def largest(self) -> float:
        """A bound on the loss of all pairs, nats."""
        return max(profile.largest for profile in self.by_pair.values())

    def compose(self, other: "PairProfiles") -> "PairProfiles":
        """The profiles of two releases that are independent given the state."""
        done: dict[tuple, PrivacyProfile] = {}
        result = {}
        for i, j in self.by_pair:
            parts = tuple((each.by_pair[i, j], each.by_pair[j, i]) for each in (self, other))
            if parts not in done:
                done[parts] = composed(*parts)
            result[i, j] = done[parts]
        return PairProfiles(result)

    def correlated(self, loss: PrivacyLossFunction, length: int = 1) -> "PairProfiles":
        """The profiles about the neighbouring state, through the product of `length` matrices of a
        loss function."""
        if self.largest == 0.0:
            return self
        rows = loss.matrix.toarray()
        n = len(rows)
        grid = max(profile.grid for profile in self.by_pair.values())
        pairs = {pair: profile.on(grid) for pair, profile in self.by_pair.items()}
        deltas = np.zeros((n, n, max(profile.deltas.size for profile in pairs.values())))
        bounds = np.zeros((n, n))
        for pair, deltas_of_pair in zip(pairs, together([*pairs.values()]), strict=True):
            deltas[pair], bounds[pair] = deltas_of_pair, pairs[pair].largest
        bounds = log_ratios(rows, bounds) * UP + product_rounding(n, length)
        slack = (4 + n * length) * EPS
        mixed = {(i, j): _mixture(rows[i], rows[j], slack, deltas, grid) for i, j in pairs}
        lowered = {(i, j): _convex(mixed[i, j], mixed[j, i], grid) for i, j in pairs}
        return PairProfiles(
            {
                pair: PrivacyProfile(bound, grid, float(bounds[pair]))
                if bound.any()
                else PrivacyProfile.nothing(grid)
                for pair, bound in lowered.items()
            }
        )


Profile = Any  # a PrivacyProfile or PairProfiles: both have `compose`, `correlated` and `largest`


def _mixture(
    q: np.ndarray, d: np.ndarray, slack: float, deltas: np.ndarray, grid: float
) -> np.ndarray:
    """Bounds at losses 0, grid, ... between the mixtures by q and d, rows with a relative error of
    `slack`.

    Because likelihoods are not negative, the bound holds for all a >= q - g d, so that a is rounded
    up.
    """
    if (q == d).all():
        return np.zeros(1)
    losses = grid * np.arange(deltas.shape[2])
    # rounded down
    g = np.maximum(np.exp(np.minimum(losses, MOST_LOSS)) * (1.0 - (4.0 + losses) * EPS), 1.0)
    a = q[:, None] - g * d[:, None]
    a += slack * (q[:, None] + g * d[:, None])
    gains, costs = np.maximum(a, 0.0), np.maximum(-a, 0.0)
    gained, paid = gains.sum(axis=0), costs.sum(axis=0)
    rounding = (4 + 2 * len(q)) * EPS
    # nothing gained, nothing paid
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        before = np.maximum(np.log(paid / gained) * (1.0 - 8.0 * EPS) - 2.0 * rounding, 0.0)
        shares = np.nan_to_num(costs / paid)
    known = interpolated(deltas, grid, np.where(gained > 0.0, before, np.inf))
    # Rounding may leave less to pay than to gain.
    excess = np.maximum(gained * (1.0 + rounding) - paid * (1.0 - rounding), 0.0)
    bound = np.einsum("jx,kx,jkx->x", gains, shares, known) * (1.0 + 2.0 * rounding) + excess + ROOM
    beyond = np.flatnonzero(before * (1.0 - 16.0 * EPS) >= losses[-1])
    kept = bound[: beyond[0] + 1] if beyond.size else bound
    return np.minimum.accumulate(np.minimum(kept, 1.0))


def _convex(bound: np.ndarray, reverse: np.ndarray, grid: float) -> np.ndarray:
    """The largest convex function of e^x below a bound at losses 0, grid, ..., and the reverse
    order's below 0.

    The divergences are convex in e^x, the bound of one step need not be: chords between any points
    are bounds.
    """
    reverse = reverse[: max(int(MOST_LOSS / grid) - bound.size, 0) + 1]  # or e^x overflows
    losses = grid * np.arange(1 - reverse.size, bound.size)
    if bound.size == 1 or losses[-1] > MOST_LOSS:
        return bound
    from scipy.optimize import isotonic_regression

    g = np.exp(losses)
    values = np.concatenate(
        ((1.0 - g[: reverse.size - 1]) + g[: reverse.size - 1] * reverse[:0:-1], bound)
    )
    slopes, widths = np.diff(values) / np.diff(g), np.diff(g)
    corners = isotonic_regression(slopes, weights=widths).blocks
    points = np.arange(reverse.size - 1, values.size - 1)  # the last one is a corner
    left = np.searchsorted(corners, points, side="right") - 1
    a, b = corners[left], corners[left + 1]
    share = np.expm1(losses[points] - losses[a]) / np.expm1(losses[b] - losses[a])
    rest = np.expm1(losses[points] - losses[b]) / np.expm1(losses[a] - losses[b])
    chords = np.append((rest * values[a] + share * values[b]) * (1.0 + 64.0 * EPS), bound[-1])
    return np.minimum.accumulate(np.minimum(bound, chords))


def overall(profile: Profile) -> PrivacyProfile:
    """The largest profile of all pairs of states."""
    return profile.overall if isinstance(profile, PairProfiles) else profile


def highest(profiles: Sequence[PrivacyProfile]) -> PrivacyProfile:
    """The largest of several profiles at each loss."""
    grid = max(profile.grid for profile in profiles)
    deltas = np.max(together([profile.on(grid) for profile in profiles]), axis=0)
    return PrivacyProfile(deltas, grid, max(profile.largest for profile in profiles))


def higher(one: Profile, other: Profile) -> Profile:
    """The larger of two profiles at each loss, pair by pair."""
    if isinstance(one, PairProfiles):
        return PairProfiles(
            {pair: highest([profile, other.by_pair[pair]]) for pair, profile in one.by_pair.items()}
        )
    return highest([one, other])


def raised(profile: PairProfiles) -> PairProfiles:
    """The same with bounds on the loss that are larger by a share of 1e-9."""
    return PairProfiles(
        {
            pair: replace(each, largest=each.largest * SETTLED)
            for pair, each in profile.by_pair.items()
        }
    )


def is_within(new: Profile, old: Profile) -> bool:
    """Whether a profile after a step, without its ROOM, is bounded by another, including rounding
    errors."""
    parts = (
        [*each.by_pair.values()] if isinstance(each, PairProfiles) else [each]
        for each in (new, old)
    )
    for profile, bound in zip(*parts, strict=True):
        if profile.grid != bound.grid or profile.largest > bound.largest:
            return False
        above, below = together([profile, bound])
        if (above - below).max() > ROOM / 2.0:
            return False
    return True


def together(profiles: Sequence[PrivacyProfile]) -> np.ndarray:
    """The deltas of profiles on one grid as rows, padded with the last of each."""
    size = max(profile.deltas.size for profile in profiles)
    return np.array(
        [np.pad(profile.deltas, (0, size - profile.deltas.size), "edge") for profile in profiles]
    )
