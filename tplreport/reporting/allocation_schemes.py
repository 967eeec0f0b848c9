"""The allocation schemes side by side: budgets for alpha-DP_T, and the error that they cause.

Budgets are rounded down to `DIGITS` digits, so that the promise holds for budgets copied from
print.
"""

import warnings
from collections.abc import Callable
from decimal import ROUND_FLOOR, Context
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.allocation.optimal import allocate_optimally
from tplrepro.allocation.published import (
    NoFiniteSupremumError,
    allocate_by_quantification,
    allocate_by_upper_bound,
)
from tplrepro.leakage.temporal import LossCycles, is_cycle, loss_cycles, safely_below

COMPOSED = "α/T at each release"
OPTIMAL = "smallest error (T known)"
#: Up to this many phases: budgets of least error for any number of releases.
MOST_FOR_LEAST_ERROR = 48
#: Shapes of the budgets of more phases.
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)
#: Of the largest budget, which no phase has less of in a shape.
LEAST_SHARE = 0.01
#: Significant digits of budgets.
DIGITS = 6
#: Numbers that are this share below one of so few digits differ from it by rounding errors and
#: margins for these.
ROUNDING = 1e-9


def equal_shares(alpha: float, horizon: int) -> np.ndarray:
    """alpha / T for each of T releases (T,), lower by what rounding adds to their sum, so that a
    filter accepts all.

    >>> 0.1 + 0.1 + 0.1 > 0.3, float(equal_shares(0.3, 3).sum()) <= 0.3
    (True, True)
    """
    return np.full(horizon, safely_below(alpha, 4 * horizon) / horizon)


def _allocate_equal_shares(alpha: float, backward: Any, forward: Any, horizon: int) -> np.ndarray:
    """What keeps alpha whatever the correlation is: the loss functions are not used."""
    return equal_shares(alpha, horizon)


def _allocate_by_upper_bound(alpha: float, backward: Any, forward: Any, horizon: int) -> np.ndarray:
    """The budget that keeps alpha for any number of releases, `horizon` times; for a cycle that of
    each phase, in turn."""
    if not is_cycle(backward) and not is_cycle(forward):
        return np.full(horizon, allocate_by_upper_bound(alpha, backward, forward))
    losses = loss_cycles(backward, forward)
    if len(losses) <= MOST_FOR_LEAST_ERROR:
        of_phases = allocate_by_upper_bound(alpha, backward, forward, shape="least error")
    else:
        of_phases = _budgets_of_long_cycle(alpha, losses)
    return np.resize(of_phases, horizon)


def _budgets_of_long_cycle(alpha: float, losses: LossCycles) -> np.ndarray:
    """Budgets (p,) of a cycle of many phases, nats.

    Each phase's share is a power from `POWERS` of the budget that its step alone would allow for
    ever; the power with the least sum of 1 / budget wins.
    """
    backward = losses.cycle_of(losses.backward)
    forward = losses.cycle_of(losses.forward)
    steps = list(zip(losses.backward.steps, losses.forward.steps, strict=True))
    alone = {step: _budget_of_one_step(alpha, *step) for step in dict.fromkeys(steps)}
    of_phases = np.array([alone[step] for step in steps])
    most = of_phases.max()
    if most > 0.0:
        of_phases /= most
    found = []
    for power in POWERS:
        shape = np.maximum(of_phases, LEAST_SHARE) ** power
        found.append(allocate_by_upper_bound(alpha, backward, forward, shape=shape))
    return min(found, key=lambda budgets: float(np.sum(1.0 / budgets)))


def _budget_of_one_step(alpha: float, backward: Any, forward: Any) -> float:
    """Algorithm 7 for one step; 0 if it keeps no level for ever."""
    try:
        return allocate_by_upper_bound(alpha, backward, forward)
    except NoFiniteSupremumError:
        return 0.0


def _allocate_by_quantification(
    alpha: float, backward: Any, forward: Any, horizon: int
) -> np.ndarray:
    """Algorithm 8; where a TPL of alpha is impossible at some hour, the best plan there is."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no budgets have a TPL of alpha at every time")
        return allocate_by_quantification(alpha, backward, forward, horizon)


#: Name -> function of (alpha, backward, forward, horizon).
SCHEMES: dict[str, Callable[..., np.ndarray]] = {
    COMPOSED: _allocate_equal_shares,
    "Algorithm 7 (any T)": _allocate_by_upper_bound,
    "Algorithm 8 (T known)": _allocate_by_quantification,
    OPTIMAL: allocate_optimally,
}


def rounded_down(numbers: ArrayLike, digits: int = DIGITS) -> np.ndarray:
    """Each number with `digits` significant digits, never larger; one that has them but for
    rounding errors stays.

    >>> rounded_down([2 / 3, 0.25, 0.3, 0.1 - 1e-15]).tolist()
    [0.666666, 0.25, 0.3, 0.099999999999999]
    """
    context = Context(prec=digits, rounding=ROUND_FLOOR)
    values = np.ravel(np.asarray(numbers, dtype=float))
    floors = np.array([float(context.create_decimal_from_float(float(one))) for one in values])
    nearest = np.array([float(f"{one:.{digits}g}") for one in values])
    is_rounding_error = (nearest >= values) & (nearest * (1.0 - ROUNDING) < values)
    return np.where(is_rounding_error, values, floors)


def allocate(name: str, alpha: float, functions: tuple, horizon: int) -> np.ndarray | str:
    """The budgets (T,) of the scheme of this name in `SCHEMES`, rounded down, or in words why there
    are none; `functions` are the backward and the forward loss function, or cycles of them."""
    try:
        return rounded_down(SCHEMES[name](alpha, *functions, horizon=horizon))
    except ValueError as error:
        return str(error)


def mean_error(budgets: ArrayLike, sensitivity: float) -> float:
    """Mean of the expected absolute Laplace noise of releases, sensitivity / epsilon_t (Theorem 1
    of [1])."""
    return float(np.mean(sensitivity / np.asarray(budgets, dtype=float)))


def gaussian_error(
    alpha: float, delta: float, functions: tuple[Any, Any], horizon: int, sensitivity: float
) -> float:
    """Mean absolute error of a count under equal noise that keeps (alpha, delta) at each of T =
    `horizon` times.

    `functions` are the backward and the forward loss function. One user changes two counts, by
    `sensitivity` in sum.
    """
    from tplfrontier.budgets.gaussian_noise import allocate_noise

    multiplier = float(allocate_noise(alpha, delta, *functions, horizon).max())
    return multiplier * sensitivity / np.sqrt(np.pi)
