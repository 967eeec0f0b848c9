"""Privacy profiles of each ordered pair of states: the recursion without the largest over pairs at each step.

For two rows q, d of the transition matrix let a = q - g d, with positive and negative parts a+ and a-, and
A, M their sums. If delta_jk bounds the hockey-stick divergences of the laws given the states j and k, that of
the mixtures by q and d is at most

    sum_jk a+_j a-_k / M  delta_jk(M / A)

(the proof of docs/theory/profiles.md before its last maximum), and so is the largest convex function below
that. Losses below 0 of a pair follow from the reverse order. Work grows with n^4 points of the grid.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import permutations

import numpy as np

from tplfrontier.pairwise import log_ratios
from tplfrontier.profile import EPS, PrivacyProfile, composed, interpolated
from tplfrontier.profile_recursion import ROOM, SideProfiles, highest, is_within
from tplrepro.markov.transition import TransitionMatrix

#: Profiles of ordered pairs (i, j), i != j, of states, by pair.
Pairs = dict[tuple[int, int], PrivacyProfile]


@dataclass(frozen=True, eq=False)
class PairSideProfiles(SideProfiles):
    """One side, with the profiles of all pairs for each of the `bases`, which are the largest of them."""

    pairs: tuple[Pairs, ...]


@dataclass(frozen=True)
class PairSide:
    """As `profile_recursion.Side`, with the matrix (n, n) of each step, and a kind of -1 for no release."""

    matrices: list[TransitionMatrix | None]
    released: list[int]
    n: int
    is_identity = False  # which needs no pairs

    def profiles(self, kinds: Sequence[PrivacyProfile], grid: float) -> PairSideProfiles:
        """The profiles about the state at each time, of all releases before."""
        bases: list[Pairs] = [dict.fromkeys(permutations(range(self.n), 2), PrivacyProfile.nothing(grid))]
        run, following = [0], {}
        known, rows = bases[0], [np.eye(self.n)]  # the profiles after the last release, the matrices since then
        for P, kind in zip(self.matrices, self.released, strict=False):
            key = run[-1], kind, id(P)
            rows = [np.eye(self.n) if P is None else P.toarray(), *rows]
            if kind >= 0:
                known, rows = with_release(bases[run[-1]], kinds[kind]), rows[:1]
            if P is None:
                known = bases[0]
            if kind < 0 or key not in following:
                pairs = _correlated(known, rows)
                following[key] = run[-1] if _settled(pairs, bases[run[-1]]) else len(bases)
                bases += [pairs] if following[key] == len(bases) else []
            run.append(following[key])
        profiles = tuple(largest_pair(pairs) for pairs in bases)
        bounds = np.array([profile.largest for profile in profiles])[run]
        return PairSideProfiles(profiles, np.array(run), bounds, tuple(bases))


def _correlated(pairs: Pairs, matrices: list[np.ndarray]) -> Pairs:
    """The profiles about the value some steps away, through the product of the steps' matrices (n, n)."""
    if all(profile.largest == 0.0 for profile in pairs.values()):
        return pairs
    rows = reduce(np.matmul, matrices)
    n = len(rows)
    grid = max(profile.grid for profile in pairs.values())
    pairs = {pair: profile.on(grid) for pair, profile in pairs.items()}
    deltas = np.zeros((n, n, max(profile.deltas.size for profile in pairs.values())))
    bounds = np.zeros((n, n))
    for pair, profile in pairs.items():
        deltas[pair], bounds[pair] = profile.deltas[-1], profile.largest
        deltas[pair][: profile.deltas.size] = profile.deltas
    bounds = log_ratios(rows, bounds)
    slack = (4 + n * len(matrices)) * EPS
    mixed = {(i, j): _mixture(rows[i], rows[j], slack, deltas, grid) for i, j in pairs}
    lowered = {(i, j): _convex(mixed[i, j], mixed[j, i], grid) for i, j in pairs}
    return {
        pair: PrivacyProfile(bound, grid, float(bounds[pair])) if bound.any() else PrivacyProfile.nothing(grid)
        for pair, bound in lowered.items()
    }


def _mixture(q: np.ndarray, d: np.ndarray, slack: float, deltas: np.ndarray, grid: float) -> np.ndarray:
    """Bounds at losses 0, grid, ... between the mixtures by q and d, rows with a relative error of `slack`.

    Because likelihoods are not negative, the bound holds for all a >= q - g d, so that a is rounded up.
    """
    if (q == d).all():
        return np.zeros(1)
    losses = grid * np.arange(deltas.shape[2])
    g = np.maximum(np.exp(np.minimum(losses, 700.0)) * (1.0 - (4.0 + losses) * EPS), 1.0)  # rounded down
    a = q[:, None] - g * d[:, None]
    a += slack * (q[:, None] + g * d[:, None])
    gains, costs = np.maximum(a, 0.0), np.maximum(-a, 0.0)
    gained, paid = gains.sum(axis=0), costs.sum(axis=0)
    rounding = (4 + 2 * len(q)) * EPS
    with np.errstate(divide="ignore", invalid="ignore"):  # nothing gained, nothing paid
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
    """The largest convex function of e^x below a bound at losses 0, grid, ..., and that of the reverse order below 0.

    The divergences are convex in e^x, the bound of one step need not be: chords between any points are bounds.
    """
    losses = grid * np.arange(1 - reverse.size, bound.size)
    if bound.size == 1 or losses[-1] > 700.0:
        return bound
    from scipy.optimize import isotonic_regression

    g = np.exp(losses)
    values = np.concatenate(((1.0 - g[: reverse.size - 1]) + g[: reverse.size - 1] * reverse[:0:-1], bound))
    slopes, widths = np.diff(values) / np.diff(g), np.diff(g)
    corners = isotonic_regression(slopes, weights=widths).blocks
    points = np.arange(reverse.size - 1, values.size - 1)  # the last one is a corner
    left = np.searchsorted(corners, points, side="right") - 1
    a, b = corners[left], corners[left + 1]
    share = np.expm1(losses[points] - losses[a]) / np.expm1(losses[b] - losses[a])
    rest = np.expm1(losses[points] - losses[b]) / np.expm1(losses[a] - losses[b])
    chords = np.append((rest * values[a] + share * values[b]) * (1.0 + 64.0 * EPS), bound[-1])
    return np.minimum.accumulate(np.minimum(bound, chords))


def composed_pairs(one: Pairs, other: Pairs) -> Pairs:
    """The profiles of two releases that are independent given the state."""
    return {(i, j): composed((one[i, j], one[j, i]), (other[i, j], other[j, i])) for i, j in one}


def with_release(pairs: Pairs, release: PrivacyProfile) -> Pairs:
    """The profiles after a release, which separates no pair more than `release`."""
    return composed_pairs(pairs, dict.fromkeys(pairs, release))


def largest_pair(pairs: Pairs) -> PrivacyProfile:
    """The largest profile of all pairs."""
    profiles = [*pairs.values()]
    return replace(highest(profiles), largest=max(profile.largest for profile in profiles))


def _settled(new: Pairs, old: Pairs) -> bool:
    """Whether profiles after one more step, without their ROOM, are bounded by others and differ by rounding."""
    return all(is_within(new[pair], old[pair]) and is_within(old[pair], new[pair]) for pair in new)
