"""The nonlinear programme behind optimal budgets: least weighted error subject to TPL <= alpha, with exact derivatives.

The unknowns are x_t = log(epsilon_t / alpha), or their values at a few knots between which x is linear in t. In them
the error is convex and the problem scale-free. The leakages are the recursions of [1]; their derivatives run along
with them, d BPL_t = L'(BPL_{t-1}) d BPL_{t-1} + d epsilon_t. The constraints are not convex (L is convex for small
leakages and concave for large ones), so the result depends on the start.

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tplrepro.leakage.gaps import Timeline

__all__ = ["Programme", "ascend", "interpolation", "minimise"]

#: SLSQP stops when the error changes by less than this share of the start's; a few dozen iterations in practice.
CHANGE = 1e-12
MAX_ITERATIONS = 300


class Programme:
    """Minimise sum_t w_t / epsilon_t^power over budgets that keep the TPL of every time point within alpha.

    Parameters
    ----------
    alpha : float, nats
    timeline : Timeline, the releases and the loss functions between them
    weights : ndarray (R,), positive
    power : 1 for absolute, 2 for squared error
    knots : ndarray of int (N,), optional
        Releases whose budgets are unknowns; log epsilon is linear between them. Default all R.
    """

    def __init__(self, alpha: float, timeline: Timeline, weights: np.ndarray, power: int, knots=None):
        self.alpha, self.timeline, self.power = alpha, timeline, power
        self.size = timeline.released.size
        self.knots = np.arange(self.size) if knots is None else knots
        self.weights = weights / weights.sum()
        self._spread = interpolation(self.knots, self.size)

    def cost(self, budgets: np.ndarray) -> float:
        """The error in units of that of budgets alpha, so at least 1."""
        return float(self.weights @ (self.alpha / budgets) ** self.power)

    def budgets(self, x: np.ndarray) -> np.ndarray:
        return self.alpha * np.exp(self._each(x))

    def _each(self, x: np.ndarray) -> np.ndarray:
        return x if x.size == self.size else self._spread @ x

    def solve(self, start: np.ndarray) -> np.ndarray:
        """Budgets (R,) to which SLSQP comes from the budgets `start`; they may exceed alpha by a rounding error."""
        x = np.log(start[self.knots] / self.alpha)
        # No term of the error may exceed the error of the start (which is feasible), and no budget exceeds alpha.
        lower = np.log(self.weights[self.knots] / self.cost(start)) / self.power - 0.1
        return self.budgets(minimise(self._cost, self.slack, x, np.minimum(lower, -0.1)))

    def _cost(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        terms = self.weights * np.exp(-self.power * self._each(x))
        return float(terms.sum()), -self.power * (terms if x.size == self.size else terms @ self._spread)

    def slack(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """1 - TPL / alpha at the releases and then the pauses (C,), and its derivative (C, N) in x."""
        budgets = self.budgets(x)
        change = budgets[:, None] * self._spread
        line = self.timeline
        bpl, dbpl = ascend(line.backward, budgets, change)
        fpl, dfpl = (a[::-1] for a in ascend(line.forward[::-1], budgets[::-1], change[::-1]))
        tpl, dtpl = [bpl + fpl - budgets], [dbpl + dfpl - change]
        # Before the first release and after the last one, there is less leakage than at that release.
        for _time, before, loss_b, after, loss_f in line.pauses:
            if before < 0 or after == self.size:
                continue
            value, slope = 0.0, np.zeros(self.knots.size)
            for loss, leakage, derivative in ((loss_b, bpl[before], dbpl[before]), (loss_f, fpl[after], dfpl[after])):
                if loss is not None:
                    value += loss.at(float(leakage))
                    slope += loss.slope_at(float(leakage)) * derivative
            tpl.append([value])
            dtpl.append(slope[None])
        return 1.0 - np.concatenate(tpl) / self.alpha, -np.concatenate(dtpl) / self.alpha


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


def minimise(cost: Callable, slack: Callable, start: np.ndarray, lower: np.ndarray, upper=0.0) -> np.ndarray:
    """SLSQP from `start` with slack >= 0 and lower <= x <= upper; both functions return value and derivative."""
    from scipy.optimize import minimize

    slack = _remember(slack)  # SLSQP asks for the value and for the derivative one after the other
    upper = np.broadcast_to(upper, lower.shape)
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


def interpolation(knots: np.ndarray, size: int) -> np.ndarray:
    """The matrix (R, N) that interpolates values at knots linearly."""
    if knots.size == size:
        return np.eye(size)
    times = np.arange(size)
    right = np.clip(np.searchsorted(knots, times), 1, knots.size - 1)
    share = (times - knots[right - 1]) / (knots[right] - knots[right - 1])
    spread = np.zeros((size, knots.size))
    spread[times, right - 1] = 1.0 - share
    spread[times, right] += share
    return spread
