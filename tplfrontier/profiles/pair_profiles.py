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
from itertools import permutations, starmap
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
    falling_probabilities,
    interpolate_deltas,
    losses_of_grid,
    product_rounding,
    round_down,
    round_up,
)
from tplrepro.leakage.loss_function import PrivacyLossFunction

SETTLED = 1.0 + 1e-9  # the bound on the loss of a long run may be too large by this factor


@dataclass(frozen=True, eq=False)
class PairProfiles:
    """The profiles of all ordered pairs (i, j), i != j, of n states."""

    by_pair: dict[tuple[int, int], PrivacyProfile]

    @classmethod
    def alike(cls, profile: PrivacyProfile, n: int) -> Self:
        """One profile for all ordered pairs of n states."""
        pairs = permutations(range(n), 2)
        return cls(dict.fromkeys(pairs, profile))

    @cached_property
    def overall(self) -> PrivacyProfile:
        """The largest profile of all pairs."""
        return highest_profile([*self.by_pair.values()])

    @property
    def largest(self) -> float:
        """A bound on the loss of all pairs, nats."""
        profiles = self.by_pair.values()
        return max(profile.largest for profile in profiles)

    def both_orders(self, i: int, j: int) -> Orders:
        """The profiles of the pairs (i, j) and (j, i)."""
        return self.by_pair[i, j], self.by_pair[j, i]

    def compose(self, other: "PairProfiles") -> "PairProfiles":
        """The profiles of two releases that are independent given the state."""
        composed: dict[tuple[Orders, Orders], PrivacyProfile] = {}
        by_pair = {}
        for i, j in self.by_pair:
            orders = self.both_orders(i, j)
            other_orders = other.both_orders(i, j)
            parts = (orders, other_orders)
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
        table = self._tabulate(n)
        exact_bounds = log_ratios(rows, table.largest)
        bounds = exact_bounds * UP + product_rounding(n, length)
        roundings = 4 + n * length  # of an entry of the product
        mixed = {}
        for i, j in self.by_pair:
            q = rows[i]
            d = rows[j]
            mixed[i, j] = _bound_mixtures(q, d, roundings, table)
        by_pair = {}
        for i, j in self.by_pair:
            bound = mixed[i, j]
            reverse = mixed[j, i]
            deltas = _convex_envelope(bound, reverse, table.grid)
            largest = float(bounds[i, j])
            if not deltas.any():
                largest = 0.0
                deltas = np.zeros(1)
            by_pair[i, j] = PrivacyProfile(deltas, table.grid, largest)
        return PairProfiles(by_pair)

    def _tabulate(self, n: int) -> "_PairTable":
        stored = self.by_pair.values()
        grid = max(profile.grid for profile in stored)
        profiles = [profile.on(grid) for profile in stored]
        deltas_of_pairs = stack_deltas(profiles)
        points = deltas_of_pairs.shape[1]
        deltas = np.zeros((n, n, points))
        largest = np.zeros((n, n))
        table = _PairTable(grid, deltas, largest)
        for k, pair in enumerate(self.by_pair):
            table.deltas[pair] = deltas_of_pairs[k]
            table.largest[pair] = profiles[k].largest
        return table


@dataclass(frozen=True)
class _PairTable:
    """The deltas (n, n, J + 1) on one grid and the largest losses (n, n) of all ordered pairs; 0
    for a state and itself."""

    grid: float
    deltas: np.ndarray
    largest: np.ndarray


Profile = Any  # a PrivacyProfile or PairProfiles: both have `compose`, `correlated` and `largest`


def _bound_mixtures(
    q: np.ndarray, d: np.ndarray, row_roundings: int, table: _PairTable
) -> np.ndarray:
    """Bounds (J' + 1,), J' <= J, at losses 0, grid, ... on the divergence between the mixtures by
    two rows q and d (n,), of laws whose divergences `table` holds. Each entry of a row has had
    `row_roundings` rounding errors."""
    if (q == d).all():
        return np.zeros(1)
    points = table.deltas.shape[2]
    losses = losses_of_grid(table.grid, points)
    a = _difference_rounded_up(q, d, losses, row_roundings)
    gains = np.maximum(a, 0.0)
    costs = np.maximum(-a, 0.0)
    gained = gains.sum(axis=0)  # A
    paid = costs.sum(axis=0)  # M
    roundings = 4 + 2 * len(q)
    # nothing gained, nothing paid
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_odds = np.log(paid / gained)
        shares_of_cost = np.nan_to_num(costs / paid)
    rounded_down = round_down(log_odds, 8)
    rounded_down -= 2.0 * roundings * EPS
    losses_before = np.maximum(rounded_down, 0.0)  # log(M / A)
    has_gain = gained > 0.0
    where_gained = np.where(has_gain, losses_before, np.inf)
    deltas_before = interpolate_deltas(table.deltas, table.grid, where_gained)
    mean = np.einsum("jx,kx,jkx->x", gains, shares_of_cost, deltas_before)
    # Rounding may leave less to pay than to gain.
    most_gained = round_up(gained, roundings)
    least_paid = round_down(paid, roundings)
    unpaid = np.maximum(most_gained - least_paid, 0.0)
    most_mean = round_up(mean, 2 * roundings)
    bound = most_mean + unpaid + ROOM
    kept = cut_beyond(bound, losses_before, losses[-1])
    return falling_probabilities(kept)


def _difference_rounded_up(
    q: np.ndarray, d: np.ndarray, losses: np.ndarray, row_roundings: int
) -> np.ndarray:
    """a = q - g d for each column and each g = e^loss, (n, J + 1), rounded up; q and d (n,) have
    had `row_roundings` rounding errors in each entry.

    Because likelihoods are not negative, the bound on mixtures holds for all larger a, too.
    """
    finite = np.minimum(losses, MOST_LOSS)
    powers = np.exp(finite)
    rounded_down = round_down(powers, 4.0 + losses)
    g = np.maximum(rounded_down, 1.0)
    from_q = q[:, None]
    from_d = g * d[:, None]
    difference = from_q - from_d
    sizes = from_q + from_d
    difference += row_roundings * EPS * sizes
    return difference


def _convex_envelope(bound: np.ndarray, reverse: np.ndarray, grid: float) -> np.ndarray:
    """The largest convex function of e^x below `bound` (J + 1,) at losses 0, grid, ..., and at
    losses below 0 below what follows from `reverse`, the bound of the reverse order; (J + 1,).

    The divergences are convex in e^x, the bound of one step need not be: chords between any points
    are bounds.
    """
    most_points = int(MOST_LOSS / grid)
    points_to_overflow = most_points - bound.size
    kept = max(points_to_overflow, 0) + 1
    reverse = reverse[:kept]
    points = np.arange(1 - reverse.size, bound.size)
    losses = grid * points
    if bound.size == 1 or losses[-1] > MOST_LOSS:
        return bound
    zero = reverse.size - 1  # the place of the loss 0
    g = np.exp(losses)
    g_below_one = g[:zero]
    reverse_from_last = reverse[:0:-1]
    below_zero = (1.0 - g_below_one) + g_below_one * reverse_from_last  # Eq. (1) of profiles.md
    values = np.concatenate((below_zero, bound))
    corners = _corners_of_envelope(g, values)
    before_last = np.arange(zero, values.size - 1)  # the last one is a corner
    on_chords = _values_on_chords(losses, values, corners, before_last)
    chords = round_up(on_chords, 64)
    envelope = np.append(chords, bound[-1])
    lowest = np.minimum(bound, envelope)
    return np.minimum.accumulate(lowest)


def _corners_of_envelope(g: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The numbers of the points where the largest convex function below values at g has corners."""
    from scipy.optimize import isotonic_regression

    widths = np.diff(g)
    slopes = np.diff(values) / widths
    return isotonic_regression(slopes, weights=widths).blocks


def _values_on_chords(
    losses: np.ndarray, values: np.ndarray, corners: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """At each of `points` (K,), places in `losses` and `values`, the chord between the corners on
    both sides of it, linear in e^loss; `corners` are places, too."""
    right = np.searchsorted(corners, points, side="right")
    left = right - 1
    a = corners[left]
    b = corners[right]
    loss = losses[points]
    loss_a = losses[a]
    loss_b = losses[b]
    share_of_b = _share_of_chord(loss - loss_a, loss_b - loss_a)
    share_of_a = _share_of_chord(loss - loss_b, loss_a - loss_b)
    part_of_a = share_of_a * values[a]
    part_of_b = share_of_b * values[b]
    return part_of_a + part_of_b


def _share_of_chord(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """The share in e^loss of a part of a distance between losses, from one end."""
    return np.expm1(part) / np.expm1(whole)


def overall_profile(profile: Profile) -> PrivacyProfile:
    """The largest profile of all pairs of states."""
    if isinstance(profile, PairProfiles):
        return profile.overall
    return profile


def highest_profile(profiles: Sequence[PrivacyProfile]) -> PrivacyProfile:
    """The largest of several profiles at each loss."""
    grid = max(profile.grid for profile in profiles)
    on_grid = [profile.on(grid) for profile in profiles]
    rows = stack_deltas(on_grid)
    highest = np.max(rows, axis=0)
    largest = max(profile.largest for profile in profiles)
    return PrivacyProfile(highest, grid, largest)


def higher_profile(one: Profile, other: Profile) -> Profile:
    """The larger of two profiles at each loss, pair by pair."""
    if not isinstance(one, PairProfiles):
        return highest_profile([one, other])
    by_pair = {}
    for pair, profile in one.by_pair.items():
        of_other = other.by_pair[pair]
        by_pair[pair] = highest_profile([profile, of_other])
    return PairProfiles(by_pair)


def raise_bounds(profile: PairProfiles) -> PairProfiles:
    """The profiles of all pairs, with each bound on the loss larger by a share of 1e-9."""
    by_pair = {}
    for pair, of_pair in profile.by_pair.items():
        raised = of_pair.largest * SETTLED
        by_pair[pair] = replace(of_pair, largest=raised)
    return PairProfiles(by_pair)


def is_within(new: Profile, old: Profile) -> bool:
    """Whether a profile after a step, without its ROOM, is bounded by another, including rounding
    errors."""
    profiles = _single_profiles(new)
    bounds = _single_profiles(old)
    return all(starmap(_is_bounded_by, zip(profiles, bounds, strict=True)))


def _single_profiles(profile: Profile) -> list[PrivacyProfile]:
    if isinstance(profile, PairProfiles):
        return [*profile.by_pair.values()]
    return [profile]


def _is_bounded_by(profile: PrivacyProfile, bound: PrivacyProfile) -> bool:
    """Whether no delta of a profile exceeds that of `bound` by more than half of ROOM, and its
    bound on the loss is no larger; False for another grid."""
    has_other_grid = profile.grid != bound.grid
    if has_other_grid or profile.largest > bound.largest:
        return False
    deltas, bounds = stack_deltas([profile, bound])
    most_above = (deltas - bounds).max()
    return bool(most_above <= ROOM / 2.0)


def stack_deltas(profiles: Sequence[PrivacyProfile]) -> np.ndarray:
    """The deltas of profiles on one grid as rows, padded with the last of each."""
    size = max(profile.deltas.size for profile in profiles)
    rows = []
    for profile in profiles:
        missing = size - profile.deltas.size
        padded = np.pad(profile.deltas, (0, missing), "edge")
        rows.append(padded)
    return np.array(rows)
