"""Least weighted error subject to TPL <= alpha, by SLSQP with exact derivatives.

The unknowns are x_t = log(epsilon_t / alpha), or their values at a few knots between which x is linear in t. In them
the error is convex and the problem scale-free. The leakages are the recursions of [1]; their derivatives run along
with them, d BPL_t = L'(BPL_{t-1}) d BPL_{t-1} + d epsilon_t. The constraints are not convex (L is convex for small
leakages and concave for large ones), so the result depends on the start.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tplrepro.allocation.calibration import fit_to_level

__all__ = ["LeastError", "ascend", "check_power", "interpolation"]

#: SLSQP stops when the error changes by less than this share of the start's; a few dozen iterations in practice.
CHANGE = 1e-12
MAX_ITERATIONS = 300


def check_power(error: str) -> int:
    """The power of 1 / epsilon that an error is proportional to."""
    powers = {"absolute": 1, "squared": 2}
    if error not in powers:
        raise ValueError(f"error must be 'absolute' or 'squared', found {error!r}; choose one of them")
    return powers[error]


class LeastError:
    """Minimise sum_t w_t / epsilon_t^power over budgets whose TPL, which a subclass tells, is within alpha.

    Parameters
    ----------
    alpha : float, nats
    weights : ndarray (R,), positive, sum 1
    power : 1 for absolute, 2 for squared error
    knots : int ndarray (N,), the releases whose budgets are unknowns
    spread : ndarray (R, N), log(epsilon / alpha) of all releases from that of the knots
    """

    def __init__(self, alpha: float, weights: np.ndarray, power: int, knots: np.ndarray, spread: np.ndarray):
        self.alpha, self.weights, self.power = alpha, weights, power
        self.knots, self.spread = knots, spread
        self.upper = np.zeros(knots.size)  # no budget exceeds alpha

    def tpl(self, budgets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The constrained leakages (C,) of budgets (R,), and their derivative (C, N) in x."""
        raise NotImplementedError

    def largest_tpl(self, budgets: np.ndarray) -> float:
        return self.tpl(budgets)[0].max()

    def cost(self, budgets: np.ndarray) -> float:
        """The error in units of that of budgets alpha, so at least 1."""
        return float(self.weights @ (self.alpha / budgets) ** self.power)

    def fit(self, budgets: np.ndarray, **options) -> np.ndarray:
        """The largest multiple of the budgets that is within alpha."""
        return fit_to_level(self.largest_tpl, budgets, self.alpha, **options)

    def solve(self, start: np.ndarray) -> np.ndarray:
        """Budgets (R,) to which SLSQP comes from the budgets `start`; they may exceed alpha by a rounding error."""
        x = np.log(start[self.knots] / self.alpha)
        # No term of the error may exceed the error of the start, which is feasible.
        lower = np.log(np.maximum(self.weights[self.knots], 1e-300) / self.cost_of(x)[0]) / self.power - 0.1
        lower = np.minimum(lower, self.upper - 0.1)
        return self.budgets(_minimise(self.cost_of, self.slack, x, lower, self.upper))

    def budgets(self, x: np.ndarray) -> np.ndarray:
        return self.alpha * np.exp(self.spread @ x)

    def cost_of(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The cost and its derivative (N,) in x."""
        terms = self.weights * np.exp(-self.power * (self.spread @ x))
        return float(terms.sum()), -self.power * (terms @ self.spread)

    def slack(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """1 - TPL / alpha, (C,), and its derivative (C, N) in x."""
        tpl, derivative = self.tpl(self.budgets(x))
        return 1.0 - tpl / self.alpha, -derivative / self.alpha


def ascend(functions: list, budgets: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leakages (R,) of the recursion along `budgets`, and their derivative (R, N); `change` is that of the budgets."""
    leakages = np.empty(budgets.size)
    derivative = change.copy()
    last = 0.0
    for t, epsilon in enumerate(budgets.tolist()):
        if t > 0 and functions[t - 1] is not None:
            step = functions[t - 1]
            derivative[t] += step.slope_at(last) * derivative[t - 1]
            last = step.at(last) + epsilon
        else:
            last = epsilon
        leakages[t] = last
    return leakages, derivative


def interpolation(knots: np.ndarray, size: int) -> np.ndarray:
    """The matrix (R, N) that interpolates values at knots linearly."""
    times = np.arange(size)
    right = np.clip(np.searchsorted(knots, times), 1, knots.size - 1)
    share = (times - knots[right - 1]) / (knots[right] - knots[right - 1])
    spread = np.zeros((size, knots.size))
    spread[times, right - 1] = 1.0 - share
    spread[times, right] += share
    return spread


def _minimise(cost: Callable, slack: Callable, start: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """SLSQP from `start` with slack >= 0 and lower <= x <= upper; both functions return value and derivative."""
    from scipy.optimize import minimize

    slack = _remember(slack)  # SLSQP asks for the value and for the derivative one after the other
    start = np.clip(start, lower, upper)
    scale = 1.0 / cost(start)[0]
    with _blas_threads().limit(limits=1, user_api="blas"):
        solution = minimize(
            lambda x: tuple(scale * part for part in cost(x)),
            start,
            jac=True,
            method="SLSQP",
            bounds=np.column_stack([lower, upper]),
            constraints={"type": "ineq", "fun": lambda x: slack(x)[0], "jac": lambda x: slack(x)[1]},
            options={"maxiter": MAX_ITERATIONS, "ftol": CHANGE},
        )
    return solution.x if np.isfinite(solution.x).all() else start


def _remember(function: Callable) -> Callable:
    last: dict[bytes, tuple] = {}

    def remembered(x: np.ndarray) -> tuple:
        key = x.tobytes()
        if key not in last:
            last.clear()
            last[key] = function(x)
        return last[key]

    return remembered


@cache
def _blas_threads():
    """One thread is fastest for matrices this small; more of them wait for each other, up to 40 times as long."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
