"""Least weighted error subject to TPL <= alpha, by SLSQP with exact derivatives.

The unknowns are x_t = log(epsilon_t / alpha), or their values at a few knots between which x is
linear in t: the error is convex in them, and the problem scale-free. The recursions of [1] also
give the derivatives, d BPL_t = L'(BPL_{t-1}) d BPL_{t-1} + d epsilon_t. The constraints are not
convex (L is convex for small leakages and concave for large ones), so the result depends on the
start.
"""

from __future__ import annotations
from dataclasses import dataclass

import numpy as np

from tplrepro.blas import one_blas_thread
from tplrepro.leakage.accumulation import has_table, leakages_in_turn
from tplrepro.leakage.temporal import safely_below
from tplrepro.progress import Bar
from tplrepro.search import fit_to_level
from tplrepro.validation import check_choice

#: SLSQP stops when the error changes by less than this share of the start's; a few dozen
#: iterations in practice.
CHANGE = 1e-12
MAX_ITERATIONS = 300
#: Smaller weights would have no logarithm.
LEAST_WEIGHT = 1e-300
#: The unknowns may fall this much below what the error of the start allows.
ROOM_BELOW = 0.1
#: The power of 1 / epsilon that each error is proportional to.
POWERS = {"absolute": 1, "squared": 2}


def check_power(error: str) -> int:
    """The power of 1 / epsilon that an error is proportional to."""
    check_choice(error, "error", POWERS)
    return POWERS[error]


class LeastError:
    """Minimise sum_t w_t / epsilon_t^power over R budgets whose TPL is within alpha.

    A subclass computes the leakages, `tpl`. No budget exceeds exp(upper) alpha, by default alpha.

    Parameters
    ----------
    alpha : float
        The level in nats.
    weights : array (R,)
        Positive, with sum 1.
    power : int
        1 for absolute errors, 2 for squared ones.
    """

    def __init__(self, alpha: float, weights: np.ndarray, power: int):
        self.alpha = alpha
        self.weights = weights
        self.power = power
        self.upper = np.zeros(weights.size)

    def tpl(self, budgets: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The constrained leakages and their derivatives.

        Parameters
        ----------
        budgets : array (R,)
            Nats.
        change : array (R, N)
            The derivatives of the budgets by N unknowns.

        Returns
        -------
        leakages : array (C,)
            Nats.
        derivative : array (C, N)
        """
        raise NotImplementedError

    def largest_tpl(self, budgets: np.ndarray) -> float:
        no_unknowns = np.empty((budgets.size, 0))
        leakages, _ = self.tpl(budgets, no_unknowns)
        return leakages.max()

    def fit(self, budgets: np.ndarray, **options) -> np.ndarray:
        """The largest multiple of the budgets that is within alpha."""
        target = safely_below(self.alpha, budgets.size)
        return fit_to_level(self.largest_tpl, budgets, self.alpha, target, **options)

    def cost(self, budgets: np.ndarray) -> float:
        """The error in units of the error of budgets alpha, so at least 1."""
        errors = (self.alpha / budgets) ** self.power
        total = self.weights @ errors
        return float(total)

    def solve(self, start: np.ndarray, knots: np.ndarray | None = None) -> np.ndarray:
        """Budgets that SLSQP reaches from a start.

        Parameters
        ----------
        start : array (R,)
            Budgets in nats, within alpha.
        knots : array (N,) of int, optional
            The releases whose budgets are the unknowns, by default all.

        Returns
        -------
        array (R,)
            Budgets in nats, which may exceed alpha by a rounding error.
        """
        from scipy.optimize import minimize

        if knots is None:
            knots = np.arange(self.weights.size)
        programme = _ProgrammeOnKnots(self, start, knots)
        bounds = np.column_stack([programme.lower, programme.upper])
        constraint = {
            "type": "ineq",
            "fun": lambda x: programme.constraint(x).slack,
            "jac": lambda x: programme.constraint(x).derivative,
        }
        with one_blas_thread(), Bar(None, "least error", "iteration") as bar:
            result = minimize(
                programme.scaled_cost,
                programme.start,
                jac=True,
                method="SLSQP",
                bounds=bounds,
                constraints=constraint,
                options={"maxiter": MAX_ITERATIONS, "ftol": CHANGE},
                callback=lambda x: bar.update(),
            )
        solution = result.x
        if not np.isfinite(solution).all():
            solution = programme.start
        return programme.budgets(solution)


@dataclass(frozen=True)
class _Constraint:
    """How far leakages are below alpha, as shares of it, and the derivative by the unknowns."""

    slack: np.ndarray  # (C,)
    derivative: np.ndarray  # (C, N)


class _ProgrammeOnKnots:
    """The problem in the unknowns x = log(epsilon / alpha) at N knots, as SLSQP takes it."""

    def __init__(self, problem: LeastError, start: np.ndarray, knots: np.ndarray):
        self.problem = problem
        releases = np.arange(problem.weights.size)
        # x of all releases from those at the knots, (R, N).
        effects = []
        for unit in np.eye(knots.size):
            effect = np.interp(releases, knots, unit)
            effects.append(effect)
        self.spread = np.column_stack(effects)
        start_shares = start[knots] / problem.alpha
        x = np.log(start_shares)
        cost, _ = self._cost(x)
        # No term of the error may exceed the error of the start, which is feasible.
        weights = np.maximum(problem.weights[knots], LEAST_WEIGHT)
        shares = weights / cost
        least = np.log(shares) / problem.power
        self.upper = problem.upper[knots]
        self.lower = np.minimum(least, self.upper) - ROOM_BELOW
        self.start = np.clip(x, self.lower, self.upper)
        cost, _ = self._cost(self.start)
        self._scale = 1.0 / cost
        self._last: tuple[bytes, _Constraint] | None = None

    def budgets(self, x: np.ndarray) -> np.ndarray:
        log_shares = self.spread @ x
        return self.problem.alpha * np.exp(log_shares)

    def _cost(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        power = self.problem.power
        log_shares = self.spread @ x
        errors = np.exp(-power * log_shares)
        terms = self.problem.weights * errors
        weighted = terms @ self.spread
        gradient = -power * weighted
        total = terms.sum()
        return float(total), gradient

    def scaled_cost(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The error as a share of that of the start, and its gradient (N,)."""
        cost, gradient = self._cost(x)
        scaled_cost = self._scale * cost
        scaled_gradient = self._scale * gradient
        return scaled_cost, scaled_gradient

    def constraint(self, x: np.ndarray) -> _Constraint:
        """SLSQP asks for the slack and then, at the same x, for its derivative."""
        key = x.tobytes()
        if self._last is not None:
            last_key, constraint = self._last
            if last_key == key:
                return constraint
        constraint = self._constraint(x)
        self._last = (key, constraint)
        return constraint

    def _constraint(self, x: np.ndarray) -> _Constraint:
        alpha = self.problem.alpha
        budgets = self.budgets(x)
        change = budgets[:, None] * self.spread
        tpl, derivative = self.problem.tpl(budgets, change)
        shares = tpl / alpha
        return _Constraint(slack=1.0 - shares, derivative=-derivative / alpha)


class Recursion:
    """The recursion of BPL or FPL through the loss functions of R - 1 steps, for a compiled loop
    where all of them are made of vertices.

    `functions` are those of the steps in the order of the recursion, None where not known.
    """

    def __init__(self, functions: list):
        self.functions = functions
        known = [function for function in dict.fromkeys(functions) if function is not None]
        self.has_tables = all(map(has_table, known))
        if not self.has_tables:
            return
        number = {None: -1}
        tables = [np.empty((0, 5))]
        for function in known:
            number[function] = len(tables) - 1
            tables.append(function.table)
        sizes = [len(table) for table in tables]
        steps = [number[function] for function in functions]
        self.vertices = np.concatenate(tables)
        self.first = np.cumsum(sizes)
        self.steps = np.array(steps, dtype=int)

    def ascend(self, budgets: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The leakages along some budgets and their derivatives.

        Parameters
        ----------
        budgets : array (R,)
            Nats.
        change : array (R, N)
            The derivatives of the budgets by N unknowns.

        Returns
        -------
        leakages : array (R,)
            Nats.
        derivative : array (R, N)
        """
        if not self.has_tables:
            return self._ascend_in_turn(budgets, change)
        from tplrepro.leakage.envelope import compiled, recursion  # Numba loads on first use

        compiled.announce_steps(change.size)
        return recursion.accumulate_with_derivative(
            self.vertices,
            self.first,
            self.steps,
            np.ascontiguousarray(budgets),
            np.ascontiguousarray(change),
        )

    def _ascend_in_turn(
        self, budgets: np.ndarray, change: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        leakages = np.array([*leakages_in_turn([None, *self.functions], budgets.tolist())])
        derivatives = [change[0]]
        steps = zip(self.functions, leakages.tolist(), change[1:], strict=False)
        for function, leakage, change_of_budget in steps:
            slope = 0.0 if function is None else function.slope_at(leakage)
            derivatives.append(slope * derivatives[-1] + change_of_budget)
        return leakages, np.array(derivatives)
