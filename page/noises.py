"""Kinds of noise side by side: what the same series of budgets leaks at a delta.

Gaussian noise gets the variance of each budget's Laplace noise, 2 (sensitivity / epsilon_t)^2. Where a user's change
moves so many `cells` of the answer by equal parts of the sensitivity, the L2 sensitivity is sensitivity / sqrt(cells)
and the multiplier sqrt(2 cells) / epsilon_t.
"""

from dataclasses import dataclass, replace

import numpy as np

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.profile import PrivacyProfile
from tplrepro.leakage.temporal_profile import TemporalPrivacyProfile, temporal_privacy_profile
from tplrepro.validation import FrozenArrays, check_delta, check_horizon

__all__ = ["GAUSSIAN", "LAPLACE", "PURE", "Noise", "gaussian_multipliers", "grid_of", "quantify"]

LAPLACE, PURE, GAUSSIAN = "Laplace noise", "any ε-DP mechanism", "Gaussian noise"
#: Points of the grid in the smallest budget while a slider moves, and when it rests; and the coarsest grids, nats.
MOVING, RESTING = (10, 0.05), (200, 0.005)
#: A longer series is quantified when the sliders rest only; on the finest grid it would take seconds.
LIVE = 50
#: Beyond that the grid would be too long; so much is no privacy either.
MAX_EPSILON = 50.0


@dataclass(frozen=True, eq=False)
class Noise(FrozenArrays):
    """What a series of releases with one kind of noise leaks at a delta: upper bounds of epsilon, nats."""

    name: str  # LAPLACE, PURE or GAUSSIAN
    grid: float  # of the profile, nats; inf while nothing is computed
    profile: TemporalPrivacyProfile | None = None
    together: PrivacyProfile | None = None  # of all releases
    bpl: np.ndarray | None = None  # (T,)
    fpl: np.ndarray | None = None
    tpl: np.ndarray | None = None
    user_level: float = np.nan

    def at(self, delta: float) -> "Noise":
        """The same at another delta; a ValueError for one that is not between 0 and 1."""
        if self.profile is None or self.together is None:
            return self
        profile, together = self.profile, float(self.together.epsilon(delta))
        bpl, fpl = profile.backward.epsilon(delta), profile.forward.epsilon(delta)
        return replace(self, bpl=bpl, fpl=fpl, tpl=profile.epsilon(delta), user_level=together)


def gaussian_multipliers(epsilons: np.ndarray, cells: int) -> np.ndarray:
    """Scale over L2 sensitivity of Gaussian noise with the variance of Laplace noise, (T,), rounded down."""
    return np.sqrt(2.0 * check_horizon(cells, "the number of cells")) / epsilons * (1.0 - 2.0**-50)


def grid_of(epsilons: np.ndarray, resting: bool) -> float:
    """The grid in nats on which the page keeps profiles of these budgets."""
    points, coarsest = RESTING if resting else MOVING
    if resting:
        points = min(max(points * LIVE // epsilons.size, 2 * MOVING[0]), points)
    # At most some 2^16 points: a Gaussian with epsilon / sqrt(2) for its shift reaches so far.
    reach = epsilons.max() * (epsilons.max() / 4.0 + 7.0)
    return float(max(min(epsilons.min() / points, coarsest), 1e-5, reach / 2**16))


def quantify(
    name: str,
    epsilons: np.ndarray,
    backward: PrivacyLossFunction | None,
    forward: PrivacyLossFunction | None,
    *,
    delta: float,
    cells: int = 2,
    grid: float | None = None,
) -> Noise:
    """The leakage at a delta of releases with one kind of noise; nothing is computed on a grid of inf.

    ValueError where dp_accounting is not installed, for a budget above 50 nats, and for a delta out of range.

    >>> P = PrivacyLossFunction([[0.8, 0.2], [0.1, 0.9]])
    >>> quantify("Gaussian noise", np.full(5, 0.1), P, P, delta=1e-6).tpl.round(3).tolist()
    [0.268, 0.299, 0.307, 0.299, 0.268]
    """
    try:
        from dp_accounting import GaussianDpEvent, LaplaceDpEvent
    except ImportError:
        raise ValueError(
            "(ε, δ) leakage needs dp_accounting, which is not installed; install it with 'pip install dp-accounting', "
            "or choose pure ε"
        ) from None
    if epsilons.max() > MAX_EPSILON:
        raise ValueError(
            f"budgets with a δ must be at most {MAX_EPSILON:g} nats here, found {epsilons.max():g}; choose pure ε, or "
            "use tplrepro.temporal_privacy_profile directly"
        )
    check_delta(delta)
    multipliers, grid = gaussian_multipliers(epsilons, cells), grid_of(epsilons, True) if grid is None else grid
    if grid == np.inf:
        return Noise(name, grid)
    events = {
        LAPLACE: lambda: [LaplaceDpEvent(1.0 / epsilon) for epsilon in epsilons.tolist()],
        PURE: lambda: epsilons.tolist(),
        GAUSSIAN: lambda: [GaussianDpEvent(m) for m in multipliers.tolist()],
    }
    profile = temporal_privacy_profile(events[name](), backward, forward, grid=grid)
    return Noise(name, grid, profile, profile.user_level).at(delta)
