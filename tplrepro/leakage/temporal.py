"""Backward, forward and temporal privacy leakage of a series of releases (sections 3.2 to 3.5 of [1]).

BPL_t = L(BPL_{t-1}) + epsilon_t with L of the backward matrix (Eq. (13)); FPL is the same recursion run from the last
time point to the first (Eq. (15)).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.markov.transition import TransitionMatrix, as_transition_matrix
from tplrepro.validation import FrozenArrays, check_budgets, check_horizon

__all__ = ["Correlation", "Matrix", "TemporalLeakage", "accumulate", "accumulate_steps", "as_loss_function"]
__all__ += ["as_loss_functions", "steps_of_both_sides", "temporal_privacy_leakage"]

#: One correlation, for all steps.
Matrix = TransitionMatrix | PrivacyLossFunction | ArrayLike
#: The same, or one for each step; None is not known.
Correlation = Matrix | Sequence[Matrix | None] | None
#: Larger matrices, perhaps sparse, are not made dense: exact leakages would take too long for them anyway.
MAX_DENSE = 1000


@dataclass(frozen=True)
class TemporalLeakage(FrozenArrays):
    """The leakages of T releases against one adversary, (T,) each, in nats.

    `epsilons` are the budgets, PL_0(M^t); `bpl` is the backward privacy leakage, from the releases up to each time, and
    `fpl` the forward one, from each time on (Eqs. (13), (15) of [1]).
    """

    epsilons: np.ndarray
    bpl: np.ndarray
    fpl: np.ndarray

    @property
    def tpl(self) -> np.ndarray:
        """Temporal privacy leakage, (T,): BPL + FPL - epsilon (Eq. (11) of [1])."""
        return self.bpl + self.fpl - self.epsilons

    def composed(self, first: int, last: int) -> float:
        """Leakage about all the data from time `first` to `last`, both included (Theorem 3 of [1]); nats."""
        horizon = self.epsilons.size
        if not 0 <= first <= last < horizon:
            found = f"found first = {first}, last = {last}; times count from 0, both ends included"
            raise ValueError(f"a composition needs 0 <= first <= last < {horizon}, {found}")
        if first == last:
            return float(self.tpl[first])
        return float(self.bpl[first] + self.fpl[last] + self.epsilons[first + 1 : last].sum())

    def w_event(self, w: int) -> float:
        """w-event privacy: the largest leakage about any w consecutive time points (Table 2 of [1]); nats."""
        w = check_horizon(w, "w")
        horizon = self.epsilons.size
        if w > horizon:
            raise ValueError(f"w must be at most the number of time points {horizon}, found {w}; give a shorter window")
        if w == 1:
            return float(self.tpl.max())
        spent = np.concatenate(([0.0], np.cumsum(self.epsilons)))
        first = np.arange(horizon - w + 1)
        last = first + w - 1
        return float((self.bpl[first] + self.fpl[last] + spent[last] - spent[first + 1]).max())

    @property
    def user_level(self) -> float:
        """Leakage about all of a user's data: the sum of the budgets, whatever the correlation (Corollary 1 of [1])."""
        return float(self.epsilons.sum())


def temporal_privacy_leakage(
    epsilons: ArrayLike, backward: Correlation = None, forward: Correlation = None
) -> TemporalLeakage:
    """BPL, FPL and TPL of a series of releases (Eqs. (11), (13), (15) of [1]).

    Parameters
    ----------
    epsilons : array-like (T,), the budget of each release in nats, finite and > 0
    backward, forward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, or a list of T - 1 of these; optional
        Pr(l^{t-1} | l^t) and Pr(l^t | l^{t-1}). None: the adversary does not know that side. A list holds the matrix of
        each step between two time points, for correlations that change over time.

    ValueError for budgets that are not positive and finite, matrices that are not row-stochastic, or a list of another
    length.

    Examples
    --------
    >>> r = temporal_privacy_leakage([0.1] * 10, backward=[[0.8, 0.2], [0, 1]], forward=[[0.8, 0.2], [0, 1]])
    >>> r.bpl.round(4).tolist()  # Fig. 3 (a) of [1]
    [0.1, 0.1808, 0.2471, 0.3024, 0.3488, 0.3881, 0.4216, 0.4503, 0.475, 0.4964]
    >>> r.tpl.round(4).tolist()[:5], round(r.w_event(2), 4), round(r.user_level, 4)
    ([0.4964, 0.5558, 0.5975, 0.6239, 0.6368], 0.6975, 1.0)
    """
    budgets = check_budgets(epsilons)
    steps = budgets.size - 1
    bpl = accumulate_steps(as_loss_functions(backward, steps, "backward"), budgets)
    fpl = accumulate_steps(as_loss_functions(forward, steps, "forward")[::-1], budgets[::-1])[::-1]
    return TemporalLeakage(budgets, bpl, fpl)


def accumulate(runs: Iterable[tuple[PrivacyLossFunction | None, float, int]], last: float | None = None) -> list[float]:
    """Leakages of releases given as runs (L, epsilon, count), after a leakage `last` (None before the first release).

    L is None where the adversary does not know the correlation. Within a run the recursion is monotone and reaches its
    fixed point in floating point; the rest of the run then costs nothing.
    """
    leakages: list[float] = []
    for loss, epsilon, count in runs:
        for done in range(count):
            following = epsilon if loss is None or last is None else loss.at(last) + epsilon
            leakages.append(following)
            if following == last:
                leakages.extend([following] * (count - done - 1))
                break
            last = following
    return leakages


def accumulate_steps(losses: Sequence, budgets: np.ndarray) -> np.ndarray:
    """Leakages along `budgets`, where losses[t - 1], with a method `at` or None, leads from time t - 1 to t."""
    steps = zip([None, *losses], budgets.tolist(), strict=True)
    return np.array(accumulate((*step, sum(1 for _ in run)) for step, run in groupby(steps)))


def as_loss_function(matrix: Matrix | None) -> PrivacyLossFunction | None:
    """A loss function from a matrix, from one made before, or None."""
    if matrix is None or isinstance(matrix, PrivacyLossFunction):
        return matrix
    return PrivacyLossFunction(matrix)


def as_loss_functions(matrices: Correlation, steps: int, name: str) -> list[PrivacyLossFunction | None]:
    """One loss function a step: from one matrix for all steps, or from a list of `steps` of them (None: unknown)."""
    return _for_each_step(matrices, steps, name, as_loss_function)


def steps_of_both_sides(
    backward: Correlation, forward: Correlation, horizon: int, default: int = 2
) -> tuple[list, list, int]:
    """The matrices of each step on both sides (None: not known) as arrays, and the number of states or `default`."""
    before = _for_each_step(backward, horizon - 1, "backward", _as_array)
    after = _for_each_step(forward, horizon - 1, "forward", _as_array)
    # with one release there is no step, but a matrix for all steps still tells the states
    single = [_as_array(P) for P in (backward, forward) if horizon == 1 and not _is_one_for_each_step(P)]
    sizes = {P.shape[0] for P in before + after + single if P is not None} or {default}
    if len(sizes) > 1:
        raise ValueError(f"all matrices must have the same states, found {sorted(sizes)}; estimate them over one set")
    n = sizes.pop()
    if n == 1:  # nothing to learn from one state; as if the adversary did not know
        return [None] * (horizon - 1), [None] * (horizon - 1), 2
    return before, after, n


def _for_each_step(matrices: Any, steps: int, name: str, make: Callable) -> list:
    """`make(matrix)` for each step, made once a matrix."""
    if not _is_one_for_each_step(matrices):
        return [make(matrices)] * steps
    matrices = list(matrices)
    if len(matrices) != steps:
        found = f"found {len(matrices)} matrices for {steps} steps; give T - 1 of them"
        raise ValueError(f"{name} must be one matrix, or one for each step between two time points; {found}")
    made = {id(matrix): make(matrix) for matrix in {id(matrix): matrix for matrix in matrices}.values()}
    return [made[id(matrix)] for matrix in matrices]


def _as_array(matrix: Any) -> np.ndarray | None:
    matrix = getattr(matrix, "matrix", matrix)
    if getattr(matrix, "n_states", 0) > MAX_DENSE:
        remedy = "take fewer states, or temporal_privacy_leakage, the upper bound"
        raise ValueError(f"exact leakages need at most {MAX_DENSE} states, found {matrix.n_states}; {remedy}")
    return None if matrix is None else as_transition_matrix(matrix).toarray()


def _is_one_for_each_step(matrices: Any) -> bool:
    """Whether the argument is a list of matrices; a nested list of numbers is one matrix."""
    if isinstance(matrices, np.ndarray):
        return matrices.ndim == 3
    nested = (list, tuple, np.ndarray)

    def is_matrix(item: Any) -> bool:
        named = item is None or isinstance(item, (PrivacyLossFunction, TransitionMatrix)) or hasattr(item, "tocsr")
        return named or (isinstance(item, nested) and any(isinstance(row, nested) for row in item))

    return isinstance(matrices, (list, tuple)) and (not matrices or any(map(is_matrix, matrices)))
