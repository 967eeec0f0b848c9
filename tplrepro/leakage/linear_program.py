"""The linear-fractional programme (19)-(21) of [1], solved by linear programming solvers.

It is the baseline with which the paper compares its algorithms.

For two rows q, d: maximise q.x / d.x subject to e^-alpha <= x_j / x_k <= e^alpha. The
Charnes-Cooper substitution y = x / d.x makes it linear: maximise q.y subject to d.y = 1 and the
same bounds on ratios, in one of two formulations:

- "scaled", n + 1 variables and 2n constraints: m <= y_j <= e^alpha m with a free scale m;
- "pairwise", the paper's own n(n-1) constraints y_j <= e^alpha y_k.

The solver maximises (q - d).y / max|q - d|. As d.y = 1, the maximum is at the same y, and the
difference of two rows that nearly agree stays above the solver's tolerance.

PuLP runs the solvers "CBC" and "HiGHS"; it builds each programme again, and starts a process for
each run of CBC. "highspy" is HiGHS without PuLP: it keeps one programme in memory for each row d,
in which the next row q changes only the objective, and starts from the last optimum.

The absolute error is below 1e-7 for alpha up to `LARGEST_ALPHA`, measured on 2,250 random pairs of
rows. Larger alpha are refused: the coefficients 1 and e^alpha of one constraint then differ by more
than the tolerances allow, and solvers return wrong answers as optimal.
"""

import warnings
from collections.abc import Iterator
from itertools import permutations

import highspy
import numpy as np
import pulp
from numpy.typing import ArrayLike

from tplrepro.markov.transition import as_transition_matrix
from tplrepro.validation import as_scalar, check_alpha, check_choice

__all__ = ["LARGEST_ALPHA", "loss", "pair_losses"]

#: Largest alpha for each formulation, in nats.
LARGEST_ALPHA = {"scaled": 20.0, "pairwise": 10.0}

_TOLERANCE = {"scaled": 1e-7, "pairwise": 1e-9}
_REMEDY = {"CBC": "pulp", "HiGHS": "highspy", "highspy": "highspy"}  # PuLP's wheels bundle CBC


def loss(P: ArrayLike, alpha: float, solver: str = "HiGHS", formulation: str = "scaled") -> float:
    """L(alpha), Eq. (18) of [1], in nats: one linear programme for each of the n(n-1) ordered pairs
    of rows.

    For alpha from 0 to `LARGEST_ALPHA[formulation]`, by the solvers "CBC", "HiGHS" and "highspy"
    and the formulations "scaled" and "pairwise". ValueError if `P` (n, n) is not a transition
    matrix; `alpha` is out of range; `solver` or `formulation` is unknown; the solver is not
    installed or finds no optimum.

    >>> round(loss([[0.8, 0.2], [0.0, 1.0]], 0.1), 6)  # log(0.8 (e^0.1 - 1) + 1)
    0.080784
    """
    return max(pair_losses(P, alpha, solver, formulation), default=0.0)


def pair_losses(
    P: ArrayLike, alpha: float, solver: str = "HiGHS", formulation: str = "scaled"
) -> Iterator[float]:
    """The loss of each ordered pair of rows: for every row d all other rows q, n(n-1) in all.

    Arguments and errors are as for `loss`, which is the largest. Each is solved when the iterator
    reaches it.

    >>> [round(value, 6) for value in pair_losses([[0.8, 0.2], [0.0, 1.0]], 0.1)]
    [0.079184, 0.080784]
    """
    rows = as_transition_matrix(P).toarray()
    check_choice(formulation, "formulation", LARGEST_ALPHA)
    check_choice(solver, "solver", _REMEDY)
    alpha = as_scalar(check_alpha(alpha), "alpha")
    if alpha > LARGEST_ALPHA[formulation]:
        raise ValueError(
            f"alpha must be at most {LARGEST_ALPHA[formulation]:g} for the {formulation} formulation, found {alpha:g}: "
            "beyond, e^alpha exceeds the solvers' tolerances; use tplrepro.privacy_loss"
        )
    programme, chosen = _Kept if solver == "highspy" else _Programme, _solver(solver, formulation)

    def solved() -> Iterator[float]:
        for i, d in enumerate(rows):
            yield from map(
                programme(d, alpha, chosen, formulation).solve, np.delete(rows, i, axis=0)
            )

    return solved()


class _Programme:
    """The model for one row d; rows q differ only in the objective."""

    def __init__(self, d: np.ndarray, alpha: float, solver, formulation: str):
        self.d, self.alpha, self.solver = d, alpha, solver
        self.model = pulp.LpProblem("temporal_privacy_loss", pulp.LpMaximize)
        # the names of PuLP 4
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            self.y = [pulp.LpVariable(f"y{j}", lowBound=0) for j in range(len(d))]
            scale = pulp.LpVariable("m", lowBound=0)
        ratio = float(np.exp(alpha))
        self.model += pulp.lpDot(d.tolist(), self.y) == 1
        if formulation == "scaled":
            for y_j in self.y:
                self.model += y_j >= scale
                self.model += y_j <= ratio * scale
        else:
            for y_j, y_k in permutations(self.y, 2):
                self.model += y_j <= ratio * y_k

    def solve(self, q: np.ndarray) -> float:
        gap = q - self.d
        if not gap.any():
            return 0.0
        y = self.optimum(gap / np.abs(gap).max())
        return max(0.0, float(np.log1p(gap @ y / (self.d @ y))))

    def optimum(self, objective: np.ndarray) -> np.ndarray:
        self.model.setObjective(pulp.lpDot(objective.tolist(), self.y))
        status = self.model.solve(self.solver)
        if status != pulp.LpStatusOptimal:
            raise self.error(self.solver.name, pulp.LpStatus[status])
        return np.array([y_j.value() for y_j in self.y], dtype=float)

    def error(self, solver: str, status: str) -> ValueError:
        return ValueError(
            f"{solver} found no optimum at alpha={self.alpha:g} (status {status!r}); lower alpha, or take another "
            "solver or formulation"
        )


class _Kept(_Programme):
    """The same without PuLP; HiGHS starts from the optimum for the previous row q."""

    def __init__(self, d: np.ndarray, alpha: float, solver, formulation: str):
        self.d, self.alpha, self.solver = d, alpha, solver
        n, ratio = len(d), float(np.exp(alpha))
        j, scale = np.arange(n), np.full(n, n)
        if formulation == "scaled":
            above, below, factor = np.r_[j, scale], np.r_[scale, j], np.repeat([1.0, ratio], n)
        else:
            above, below = np.nonzero(~np.eye(n, dtype=bool))
            factor = np.full(above.size, ratio)
        count = factor.size  # of constraints factor * y[above] - y[below] >= 0
        solver.clearModel()
        solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        variables = int(above.max()) + 1
        solver.addVars(variables, np.zeros(variables), np.full(variables, np.inf))
        solver.addRow(1.0, 1.0, n, j.astype(np.int32), d)
        columns, values = (
            np.stack([above, below], axis=1),
            np.stack([factor, -np.ones(count)], axis=1),
        )
        starts = np.arange(0, 2 * count, 2, dtype=np.int32)
        limits = np.zeros(count), np.full(count, np.inf)
        solver.addRows(
            count, *limits, 2 * count, starts, columns.astype(np.int32).ravel(), values.ravel()
        )

    def optimum(self, objective: np.ndarray) -> np.ndarray:
        n = objective.size
        self.solver.changeColsCost(n, np.arange(n, dtype=np.int32), objective)
        self.solver.run()
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            self.solver.clearSolver()  # for one pair in 20,000 it fails from the previous optimum
            self.solver.run()
        status = self.solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise self.error("highspy", self.solver.modelStatusToString(status))
        return np.array(self.solver.getSolution().col_value)[:n]


def _solver(name: str, formulation: str):
    tolerance = _TOLERANCE[formulation]
    if name == "highspy":
        found = highspy.Highs()
        found.silent()
        for side in ("primal", "dual"):
            found.setOptionValue(f"{side}_feasibility_tolerance", tolerance)
        return found
    # CBC goes from PuLP 4's wheels
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        if name == "CBC":
            found = pulp.PULP_CBC_CMD(
                msg=False, options=[f"primalT {tolerance}", f"dualT {tolerance}"]
            )
        else:
            found = pulp.HiGHS(
                msg=False,
                primal_feasibility_tolerance=tolerance,
                dual_feasibility_tolerance=tolerance,
            )
    if not found.available():
        raise ValueError(
            f"the solver {name} is not available; install it with 'pip install {_REMEDY[name]}' or choose the other "
            "of 'CBC' and 'HiGHS'"
        )
    return found
