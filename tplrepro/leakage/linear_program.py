"""The linear-fractional programme (19)-(21) of [1], solved by linear programming solvers.

It is the baseline with which the paper compares its algorithms.

For two rows q, d: maximise q.x / d.x subject to e^-alpha <= x_j / x_k <= e^alpha. The
Charnes-Cooper substitution y = x / d.x makes it linear: maximise q.y subject to d.y = 1 and the
same bounds on ratios, in one of two formulations:

- "scaled", n + 1 variables and 2n constraints: m <= y_j <= e^alpha m with a free scale m;
- "pairwise", the paper's own n(n-1) constraints y_j <= e^alpha y_k.

The solver maximises (q - d).y / max|q - d|. As d.y = 1, the maximum is at the same y, and the
difference of two rows that nearly agree stays above the solver's tolerance.

PuLP (2.9 to 4) runs the solvers "CBC" and "HiGHS"; it builds each programme again, and starts a
process for each run of CBC. PuLP up to 3 brings CBC; for PuLP 4 the machine must have the command
cbc, such as Debian's coinor-cbc, since the development version of CBC that pulp[cbc] installs keeps
no tolerance: its error reaches 7e-5.
"highspy" is HiGHS without PuLP: it keeps one programme in memory for each row d,
in which the next row q changes only the objective, and starts from the last optimum.

The absolute error is below 1e-7 for alpha up to `LARGEST_ALPHA`, measured on 2,250 random pairs of
rows. Larger alpha are refused: the coefficients 1 and e^alpha of one constraint then differ by more
than the tolerances allow, and solvers return wrong answers as optimal.
"""

from abc import ABC, abstractmethod
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
#: What pip installs for each solver.
_REMEDY = {"CBC": "pulp<4", "HiGHS": "highspy", "highspy": "highspy"}


def loss(P: ArrayLike, alpha: float, solver: str = "HiGHS", formulation: str = "scaled") -> float:
    """L(alpha), Eq. (18) of [1]: one linear programme for each of the n(n-1) ordered pairs of rows.

    Parameters
    ----------
    P : array-like (n, n)
        A transition matrix.
    alpha : float
        In nats, from 0 to `LARGEST_ALPHA[formulation]`.
    solver : "HiGHS", "CBC" or "highspy"
    formulation : "scaled" or "pairwise"

    Returns
    -------
    float
        In nats.

    Raises
    ------
    ValueError
        `P` is not a transition matrix; `alpha` is out of range; `solver` or `formulation` is
        unknown; the solver is not installed or finds no optimum.

    Examples
    --------
    >>> round(loss([[0.8, 0.2], [0.0, 1.0]], 0.1), 6)  # log(0.8 (e^0.1 - 1) + 1)
    0.080784
    """
    return max(pair_losses(P, alpha, solver, formulation), default=0.0)


def pair_losses(
    P: ArrayLike, alpha: float, solver: str = "HiGHS", formulation: str = "scaled"
) -> Iterator[float]:
    """The loss of each ordered pair of rows, whose largest is `loss`.

    Parameters
    ----------
    P, alpha, solver, formulation
        As for `loss`.

    Returns
    -------
    iterator of float
        In nats, n(n-1) in all: for every row d all other rows q. Each is solved when the iterator
        reaches it.

    Raises
    ------
    ValueError
        As for `loss`.

    Examples
    --------
    >>> [round(value, 6) for value in pair_losses([[0.8, 0.2], [0.0, 1.0]], 0.1)]
    [0.079184, 0.080784]
    """
    rows = as_transition_matrix(P).toarray()
    check_choice(formulation, "formulation", LARGEST_ALPHA)
    check_choice(solver, "solver", _REMEDY)
    alpha = as_scalar(check_alpha(alpha), "alpha")
    largest = LARGEST_ALPHA[formulation]
    if alpha > largest:
        raise ValueError(
            f"alpha must be at most {largest:g} for the {formulation} formulation, found {alpha:g}:"
            " beyond, e^alpha exceeds the solvers' tolerances; use tplrepro.privacy_loss"
        )
    if solver == "highspy":
        return _losses_of_all_pairs(rows, _HighsProgramme(alpha, formulation))
    return _losses_of_all_pairs(rows, _PulpProgramme(alpha, formulation, solver))


def _losses_of_all_pairs(rows: np.ndarray, programme: "_Programme") -> Iterator[float]:
    for i, d in enumerate(rows):
        programme.constrain(d)
        for q in np.delete(rows, i, axis=0):
            yield _pair_loss(programme, q, d)


def _pair_loss(programme: "_Programme", q: np.ndarray, d: np.ndarray) -> float:
    """The largest log (q y)/(d y), nats, under the constraints of row d, which the programme
    has."""
    gap = q - d
    if not gap.any():
        return 0.0
    y = programme.optimum(gap / np.abs(gap).max())
    return max(0.0, float(np.log1p(gap @ y / (d @ y))))


class _Programme(ABC):
    """Constraints of one row d, under which one objective after the other is maximised."""

    solver: str

    def __init__(self, alpha: float, formulation: str):
        self.alpha = alpha
        self.formulation = formulation
        self.ratio = float(np.exp(alpha))

    @abstractmethod
    def constrain(self, d: np.ndarray) -> None:
        """Begin anew, with d.y = 1 and the bounds on ratios."""

    @abstractmethod
    def optimum(self, objective: np.ndarray) -> np.ndarray:
        """The y of the largest objective.y, (n,)."""

    def no_optimum(self, status: str) -> ValueError:
        return ValueError(
            f"{self.solver} found no optimum at alpha={self.alpha:g} (status {status!r}); lower "
            "alpha, or take another solver or formulation"
        )


class _PulpProgramme(_Programme):
    """By PuLP with its `solver`, which builds the programme again for each objective."""

    def __init__(self, alpha: float, formulation: str, solver: str):
        super().__init__(alpha, formulation)
        self.solver = solver
        self.runner = _pulp_solver(solver, _TOLERANCE[formulation])
        if not self.runner.available():
            raise ValueError(
                f"the solver {solver} must be installed, found none; install it with: "
                f'pip install "{_REMEDY[solver]}", or choose the other of CBC and HiGHS'
            )

    def constrain(self, d: np.ndarray) -> None:
        self.model = pulp.LpProblem("temporal_privacy_loss", pulp.LpMaximize)
        self.y = [_positive_variable(self.model, f"y{j}") for j in range(len(d))]
        self.model += pulp.lpDot(d.tolist(), self.y) == 1
        if self.formulation == "scaled":
            scale = _positive_variable(self.model, "m")
            for y_j in self.y:
                self.model += y_j >= scale
                self.model += y_j <= self.ratio * scale
        else:
            for y_j, y_k in permutations(self.y, 2):
                self.model += y_j <= self.ratio * y_k

    def optimum(self, objective: np.ndarray) -> np.ndarray:
        self.model.setObjective(pulp.lpDot(objective.tolist(), self.y))
        status = _status_of(self.model.solve(self.runner))
        if status != "Optimal":
            raise self.no_optimum(status)
        return np.array([y_j.value() for y_j in self.y], dtype=float)


def _positive_variable(model, name):
    if hasattr(model, "add_variable"):  # from PuLP 3.3 on
        return model.add_variable(name, lowBound=0)
    return pulp.LpVariable(name, lowBound=0)


def _status_of(result):
    """PuLP's word for how a run ended; PuLP 4 returns statistics of the run, earlier ones a
    number."""
    if hasattr(result, "status"):
        return result.status.name
    return pulp.LpStatus[result]


def _pulp_solver(name, tolerance):
    if name == "HiGHS":
        return pulp.HiGHS(
            msg=False, primal_feasibility_tolerance=tolerance, dual_feasibility_tolerance=tolerance
        )
    options = [f"primalT {tolerance}", f"dualT {tolerance}"]
    path = "cbc"
    if hasattr(pulp, "PULP_CBC_CMD"):  # PuLP up to 3, with a CBC of its own
        path = pulp.PULP_CBC_CMD.pulp_cbc_path
    return pulp.COIN_CMD(path=path, msg=False, options=options)


class _HighsProgramme(_Programme):
    """By HiGHS alone, which starts from the optimum of the objective before."""

    solver = "highspy"

    def __init__(self, alpha: float, formulation: str):
        super().__init__(alpha, formulation)
        self.model = highspy.Highs()
        self.model.silent()
        for side in ("primal", "dual"):
            option = f"{side}_feasibility_tolerance"
            self.model.setOptionValue(option, _TOLERANCE[formulation])

    def constrain(self, d: np.ndarray) -> None:
        n = len(d)
        columns = np.arange(n, dtype=np.int32)
        variables = n
        if self.formulation == "scaled":
            variables = n + 1  # the last is the scale m
        self.model.clearModel()
        self.model.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self.model.addVars(variables, np.zeros(variables), np.full(variables, np.inf))
        self.model.addRow(1.0, 1.0, n, columns, d)
        if self.formulation == "scaled":
            scale = np.full(n, n)
            self._add_bounds(columns, scale, 1.0)
            self._add_bounds(scale, columns, self.ratio)
        else:
            above, below = np.nonzero(~np.eye(n, dtype=bool))
            self._add_bounds(above, below, self.ratio)

    def _add_bounds(self, above: np.ndarray, below: np.ndarray, factor: float) -> None:
        """Add factor * y[above[k]] - y[below[k]] >= 0 for each k; `above` and `below` (k,) number
        columns."""
        count = len(above)
        starts = np.arange(0, 2 * count, 2, dtype=np.int32)
        columns = np.stack([above, below], axis=1).astype(np.int32)
        values = np.tile([factor, -1.0], count)
        self.model.addRows(
            count,
            np.zeros(count),
            np.full(count, np.inf),
            2 * count,
            starts,
            columns.ravel(),
            values,
        )

    def optimum(self, objective: np.ndarray) -> np.ndarray:
        n = objective.size
        self.model.changeColsCost(n, np.arange(n, dtype=np.int32), objective)
        self.model.run()
        if self.model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            self.model.clearSolver()  # for one pair in 20,000 it fails from the previous optimum
            self.model.run()
        status = self.model.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise self.no_optimum(self.model.modelStatusToString(status))
        return np.array(self.model.getSolution().col_value)[:n]
