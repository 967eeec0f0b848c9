"""What an adversary knows of each step between two releases: one matrix for all of them, or a list, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import as_transition_array

__all__ = ["Correlation", "Matrix", "as_loss_function", "as_loss_functions", "steps_of_both_sides"]

#: One correlation, for all steps.
Matrix = TransitionMatrix | PrivacyLossFunction | ArrayLike
#: The same, or one for each step; None is not known.
Correlation = Matrix | Sequence[Matrix | None] | None

#: Larger matrices, perhaps sparse, are not made dense: exact leakages would take too long for them anyway.
MAX_DENSE = 1000


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
    return None if matrix is None else as_transition_array(matrix)


def _is_one_for_each_step(matrices: Any) -> bool:
    """Whether the argument is a list of matrices; a nested list of numbers is one matrix."""
    if isinstance(matrices, np.ndarray):
        return matrices.ndim == 3
    nested = (list, tuple, np.ndarray)

    def is_matrix(item: Any) -> bool:
        named = item is None or isinstance(item, (PrivacyLossFunction, TransitionMatrix)) or hasattr(item, "tocsr")
        return named or (isinstance(item, nested) and any(isinstance(row, nested) for row in item))

    return isinstance(matrices, (list, tuple)) and (not matrices or any(map(is_matrix, matrices)))
