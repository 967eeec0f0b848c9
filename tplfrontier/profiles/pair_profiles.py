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
    Orders,
    PrivacyProfile,
    compose_orders,
    cut_beyond,
    interpolate,
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
        return highest_profile([*self.by_pair.values()])

    @property
    def largest(self) -> float:
        """A bound on the loss of all pairs, nats."""
        return max(profile.largest for profile in self.by_pair.values())

    def both_orders(self, i: int, j: int) -> Orders:
        """The profiles of the pairs (i, j) and (j, i)."""
        return self.by_pair[i, j], self.by_pair[j, i]

    def compose(self, other: "PairProfiles") -> "PairProfiles":
        """The profiles of two releases that are independent given the state."""
        composed: dict[tuple[Orders, Orders], PrivacyProfile] = {}
        by_pair = {}
        for i, j in self.by_pair:
            parts = (self.both_orders(i, j), other.both_orders(i, j))
            if parts not in composed:
                composed[parts] = compose_orders(*parts)
            by_pair[i, j] = composed[parts]
        return PairProfiles(by_pair)

    def correlated(self, loss: PrivacyLossFunction, length: int = 1) -> "PairProfiles":
        """The profiles about the neighbouring state, through the product of `length` matrices of a
        loss function."""
        if self.largest == 0.0:
            return self
        rows = loss.matrix.toarray()
        n = len(rows)
        grid = max(profile.grid for profile in self.by_pair.values())
        deltas, bounds = self._tabulate(n, grid)
        bounds = log_ratios(rows, bounds) * UP + product_rounding(n, length)
        slack = (4 + n * length) * EPS
        mixed = {}
        for i, j in self.by_pair:
            mixed[i, j] = _bound_mixtures(rows[i], rows[j], slack, deltas, grid)
        by_pair = {}
        for i, j in self.by_pair:
            bound = _convex_envelope(mixed[i, j], mixed[j, i], grid)
            if bound.any():
                by_pair[i, j] = PrivacyProfile(bound, grid, float(bounds[i, j]))
            else:
                by_pair[i, j] = PrivacyProfile.nothing(grid)
        return PairProfiles(by_pair)

    def _tabulate(self, n: int, grid: float) -> tuple[np.ndarray, np.ndarray]:
        """The deltas (n, n, J + 1) and the largest losses (n, n) of all pairs; 0 for equal ones."""
        profiles = [profile.on(grid) for profile in self.by_pair.values()]
        rows = stack_deltas(profiles)
        deltas = np.zeros((n, n, rows.shape[1]))
        bounds = np.zeros((n, n))
        for pair, row, profile in zip(self.by_pair, rows, profiles, strict=True):
            deltas[pair] = row
            bounds[pair] = profile.largest
        return deltas, bounds


Profile = Any  # a PrivacyProfile or PairProfiles: both have `compose`, `correlated` and `largest`


def _bound_mixtures(
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
    rounded_down = 1.0 - (4.0 + losses) * EPS
    g = np.maximum(np.exp(np.minimum(losses, MOST_LOSS)) * rounded_down, 1.0)
    from_q = q[:, None]
    from_d = g * d[:, None]
    a = from_q - from_d
    a += slack * (from_q + from_d)
    gains = np.maximum(a, 0.0)
    costs = np.maximum(-a, 0.0)
    gained = gains.sum(axis=0)
    paid = costs.sum(axis=0)
    rounding = (4 + 2 * len(q)) * EPS
    # nothing gained, nothing paid
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_odds = np.log(paid / gained) * (1.0 - 8.0 * EPS)
        before = np.maximum(log_odds - 2.0 * rounding, 0.0)
        shares = np.nan_to_num(costs / paid)
    before_gain = np.where(gained > 0.0, before, np.inf)
    known = interpolate(deltas, grid, before_gain)
    # Rounding may leave less to pay than to gain.
    most_gained = gained * (1.0 + rounding)
    least_paid = paid * (1.0 - rounding)
    excess = np.maximum(most_gained - least_paid, 0.0)
    weighted = np.einsum("jx,kx,jkx->x", gains, shares, known)
    bound = weighted * (1.0 + 2.0 * rounding) + excess + ROOM
    kept = cut_beyond(bound, before, losses[-1])
    return np.minimum.accumulate(np.minimum(kept, 1.0))


def _convex_envelope(bound: np.ndarray, reverse: np.ndarray, grid: float) -> np.ndarray:
    """The largest convex function of e^x below a bound at losses 0, grid, ..., and the reverse
    order's below 0.

    The divergences are convex in e^x, the bound of one step need not be: chords between any points
    are bounds.
    """
    most_points = max(int(MOST_LOSS / grid) - bound.size, 0) + 1  # or e^x overflows
    reverse = reverse[:most_points]
    losses = grid * np.arange(1 - reverse.size, bound.size)
    if bound.size == 1 or losses[-1] > MOST_LOSS:
        return bound
    from scipy.optimize import isotonic_regression

    zero = reverse.size - 1  # the place of the loss 0
    g = np.exp(losses)
    below_zero = (1.0 - g[:zero]) + g[:zero] * reverse[:0:-1]
    values = np.concatenate((below_zero, bound))
    widths = np.diff(g)
    slopes = np.diff(values) / widths
    corners = isotonic_regression(slopes, weights=widths).blocks
    points = np.arange(zero, values.size - 1)  # the last one is a corner
    left = np.searchsorted(corners, points, side="right") - 1
    a = corners[left]
    b = corners[left + 1]
    share_of_b = np.expm1(losses[points] - losses[a]) / np.expm1(losses[b] - losses[a])
    share_of_a = np.expm1(losses[points] - losses[b]) / np.expm1(losses[a] - losses[b])
    on_chords = share_of_a * values[a] + share_of_b * values[b]
    chords = np.append(on_chords * (1.0 + 64.0 * EPS), bound[-1])
    return np.minimum.accumulate(np.minimum(bound, chords))


def overall_profile(profile: Profile) -> PrivacyProfile:
    """The largest profile of all pairs of states."""
    if isinstance(profile, PairProfiles):
        return profile.overall
    return profile


def highest_profile(profiles: Sequence[PrivacyProfile]) -> PrivacyProfile:
    """The largest of several profiles at each loss."""
    grid = max(profile.grid for profile in profiles)
    rows = stack_deltas([profile.on(grid) for profile in profiles])
    largest = max(profile.largest for profile in profiles)
    return PrivacyProfile(np.max(rows, axis=0), grid, largest)


def higher_profile(one: Profile, other: Profile) -> Profile:
    """The larger of two profiles at each loss, pair by pair."""
    if not isinstance(one, PairProfiles):
        return highest_profile([one, other])
    by_pair = {}
    for pair, profile in one.by_pair.items():
        by_pair[pair] = highest_profile([profile, other.by_pair[pair]])
    return PairProfiles(by_pair)


def raise_bounds(profile: PairProfiles) -> PairProfiles:
    """The same with bounds on the loss that are larger by a share of 1e-9."""
    by_pair = {}
    for pair, each in profile.by_pair.items():
        by_pair[pair] = replace(each, largest=each.largest * SETTLED)
    return PairProfiles(by_pair)


def is_within(new: Profile, old: Profile) -> bool:
    """Whether a profile after a step, without its ROOM, is bounded by another, including rounding
    errors."""
    pairs = zip(_single_profiles(new), _single_profiles(old), strict=True)
    return all(_is_bounded_by(profile, bound) for profile, bound in pairs)


def _single_profiles(profile: Profile) -> list[PrivacyProfile]:
    if isinstance(profile, PairProfiles):
        return [*profile.by_pair.values()]
    return [profile]


def _is_bounded_by(profile: PrivacyProfile, bound: PrivacyProfile) -> bool:
    if profile.grid != bound.grid or profile.largest > bound.largest:
        return False
    above, below = stack_deltas([profile, bound])
    return bool((above - below).max() <= ROOM / 2.0)


def stack_deltas(profiles: Sequence[PrivacyProfile]) -> np.ndarray:
    """The deltas of profiles on one grid as rows, padded with the last of each."""
    size = max(profile.deltas.size for profile in profiles)
    rows = []
    for profile in profiles:
        missing = size - profile.deltas.size
        rows.append(np.pad(profile.deltas, (0, missing), "edge"))
    return np.array(rows)
