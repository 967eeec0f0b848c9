"""Laplace and Gaussian noise side by side: what the same series of budgets leaks at a delta.

Gaussian noise gets the variance of each budget's Laplace noise, 2 (sensitivity / epsilon_t)^2. If a user's
change moves `cells` cells of the answer by equal parts of the sensitivity, the L2 sensitivity is
sensitivity / sqrt(cells) and the multiplier sqrt(2 cells) / epsilon_t.
"""

from dataclasses import dataclass

import numpy as np

from tplfrontier.temporal_profile import temporal_privacy_profile
from tplrepro.validation import FrozenArrays, check_delta, check_horizon

LAPLACE, GAUSSIAN = NOISES = ("Laplace noise", "Gaussian noise")
#: Grid points in the smallest budget, and the coarsest grid in nats, while a slider moves and when it rests.
MOVING, RESTING = (10, 0.05), (200, 0.005)
#: Longer series are quantified only when the sliders rest; on the finest grid that would take seconds.
LIVE = 50
#: Larger budgets give no privacy, and their grid would be too long.
MAX_EPSILON = 50.0


@dataclass(frozen=True, eq=False)
class Noise(FrozenArrays):
    """What a series of releases with one kind of noise leaks at a delta: upper bounds of epsilon, nats."""

    name: str  # one of NOISES
    grid: float  # of the profile, nats; inf while nothing is computed
    tpl: np.ndarray | None = None  # (T,)
    user_level: float = np.nan


def gaussian_multipliers(epsilons: np.ndarray, cells: int) -> np.ndarray:
    """Noise multipliers (T,) of Gaussian noise with the variance of Laplace noise, rounded down."""
    return np.sqrt(2.0 * check_horizon(cells, "the number of cells")) / epsilons * (1.0 - 2.0**-50)


def grid_of(epsilons: np.ndarray, resting: bool = True) -> float:
    """The grid in nats on which the page keeps profiles of these budgets."""
    points, coarsest = RESTING if resting else MOVING
    if resting:
        points = min(max(points * LIVE // epsilons.size, 2 * MOVING[0]), points)
    # About 2^16 points at most: a Gaussian shifted by epsilon / sqrt(2) reaches this far.
    reach = epsilons.max() * (epsilons.max() / 4.0 + 7.0)
    return float(max(min(epsilons.min() / points, coarsest), 1e-5, reach / 2**16))


def quantify(name: str, epsilons: np.ndarray, functions: tuple, delta: float, cells: int, grid: float) -> Noise:
    """The leakage at a delta of releases with one kind of noise; nothing is computed on a grid of inf."""
    from dp_accounting import GaussianDpEvent, LaplaceDpEvent

    if epsilons.max() > MAX_EPSILON:
        raise ValueError(
            f"budgets with a δ must be at most {MAX_EPSILON:g} nats here, found {epsilons.max():g}; choose pure ε, or "
            "call tplfrontier.temporal_privacy_profile directly"
        )
    check_delta(delta)
    if grid == np.inf:
        return Noise(name, grid)
    if name == LAPLACE:
        events = [LaplaceDpEvent(scale) for scale in (1.0 / epsilons).tolist()]
    else:
        events = [GaussianDpEvent(multiplier) for multiplier in gaussian_multipliers(epsilons, cells).tolist()]
    profile = temporal_privacy_profile(events, *functions, grid=grid)
    return Noise(name, grid, profile.epsilon(delta), float(profile.user_level.epsilon(delta)))
