"""Least weighted error subject to TPL <= alpha, by SLSQP with exact derivatives.

The unknowns are x_t = log(epsilon_t / alpha), or their values at a few knots between which x is
linear in t: the error is convex in them, and the problem scale-free. The recursions of [1] also
give the derivatives, d BPL_t = L'(BPL_{t-1}) d BPL_{t-1} + d epsilon_t. The constraints are not
convex (L is convex for small leakages and concave for large ones), so the result depends on the
start.
"""

from functools import lru_cache

import numpy as np

from tplrepro.blas import one_blas_thread
from tplrepro.leakage.temporal import safely_below
from tplrepro.progress import Bar
from tplrepro.search import fit_to_level
from tplrepro.validation import check_choice

#: SLSQP stops when the error changes by less than this share of the start's; a few dozen iterations in practice.
CHANGE = 1e-12
MAX_ITERATIONS = 300


def check_power(error: str) -> int:
    """The power of 1 / epsilon that an error is proportional to."""
    powers = {"absolute": 1, "squared": 2}
    check_choice(error, "error", powers)
    return powers[error]


class LeastError:
    """Minimise sum_t w_t / epsilon_t^power over budgets (R,) whose TPL, by a subclass, is within
    alpha.

    `weights` (R,) are positive with sum 1. No budget exceeds exp(upper) alpha, by default alpha.
    """

    def __init__(self, alpha: float, weights: np.ndarray, power: int):
        self.alpha, self.weights, self.power = alpha, weights, power
        self.upper = np.zeros(weights.size)

    def tpl(self, budgets: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The constrained leakages (C,) of budgets (R,), and their derivative (C, N) from that of
        these."""
        raise NotImplementedError

    def largest_tpl(self, budgets: np.ndarray) -> float:
        return self.tpl(budgets, np.empty((budgets.size, 0)))[0].max()

    def fit(self, budgets: np.ndarray, **options) -> np.ndarray:
        """The largest multiple of the budgets that is within alpha."""
        target = safely_below(self.alpha, budgets.size)
        return fit_to_level(self.largest_tpl, budgets, self.alpha, target, **options)

    def cost(self, budgets: np.ndarray) -> float:
        """The error in units of the error of budgets alpha, so at least 1."""
        return float(self.weights @ (self.alpha / budgets) ** self.power)

    def solve(self, start: np.ndarray, knots: np.ndarray | None = None) -> np.ndarray:
        """Budgets that SLSQP reaches from the budgets `start`; they may exceed alpha by a rounding
        error.

        The unknowns are x = log(epsilon / alpha) of the releases at the `knots` (N,), by default
        all.
        """
        from scipy.optimize import minimize

        releases = np.arange(self.weights.size)
        knots = releases if knots is None else knots
        spread = np.column_stack([np.interp(releases, knots, unit) for unit in np.eye(knots.size)])

        def budgets(x: np.ndarray) -> np.ndarray:
            return self.alpha * np.exp(spread @ x)

        def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
            terms = self.weights * np.exp(-self.power * (spread @ x))
            return float(terms.sum()), -self.power * (terms @ spread)

        @lru_cache(maxsize=1)  # SLSQP asks for the value and then for the derivative
        def slack(x: bytes) -> tuple[np.ndarray, np.ndarray]:
            spent = budgets(np.frombuffer(x))
            tpl, derivative = self.tpl(spent, spent[:, None] * spread)
            return 1.0 - tpl / self.alpha, -derivative / self.alpha

        x, upper = np.log(start[knots] / self.alpha), self.upper[knots]
        # No term of the error may exceed the error of the start, which is feasible.
        shares = np.maximum(self.weights[knots], 1e-300) / cost(x)[0]
        lower = np.minimum(np.log(shares) / self.power, upper) - 0.1
        x = np.clip(x, lower, upper)
        scale = 1.0 / cost(x)[0]
        with one_blas_thread(), Bar(None, "least error", "iteration") as bar:
            solution = minimize(
                lambda x: tuple(scale * part for part in cost(x)),
                x,
                jac=True,
                method="SLSQP",
                bounds=np.column_stack([lower, upper]),
                constraints={
                    "type": "ineq",
                    "fun": lambda x: slack(x.tobytes())[0],
                    "jac": lambda x: slack(x.tobytes())[1],
                },
                options={"maxiter": MAX_ITERATIONS, "ftol": CHANGE},
                callback=lambda x: bar.update(),
            ).x
        return budgets(solution if np.isfinite(solution).all() else x)


class Recursion:
    """The recursion through the loss functions (None: not known) of R - 1 steps, for a compiled
    loop."""

    def __init__(self, functions: list):
        number = {function: k for k, function in enumerate(dict.fromkeys(filter(None, functions)))}
        tables = [np.empty((0, 5)), *(function.table for function in number)]
        self.vertices = np.concatenate(tables)
        self.first = np.cumsum([len(table) for table in tables])
        self.steps = np.array([number.get(function, -1) for function in functions], dtype=int)

    def ascend(self, budgets: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Leakages (R,) along `budgets`, and their derivative (R, N) from that of these,
        `change`."""
        from tplrepro.leakage.envelope import compiled, recursion  # Numba loads on first use

        compiled.expect(change.size)
        arguments = self.vertices, self.first, self.steps, budgets, change
        return recursion.accumulate_with_derivative(*map(np.ascontiguousarray, arguments))
