"""The recursion of leakage over time, BPL_t = L(BPL_{t-1}) + epsilon_t (Eqs. (13) and (15) of [1]).

FPL is the same recursion run from the last time point to the first.

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

import numpy as np

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import as_transition_array

__all__ = [
    "accumulate",
    "accumulate_steps",
    "as_loss_function",
    "as_loss_functions",
    "for_each_step",
    "steps_of_both_sides",
]

#: Larger matrices, perhaps sparse, are not made dense: exact leakages would take too long for them anyway.
MAX_DENSE = 1000


def accumulate(step: Callable[[float], float] | None, runs: Iterable[tuple[float, int]], last: float | None = None):
    """Leakages of releases given as runs (epsilon, count), after a leakage `last` (None before the first release).

    `step` is L for single floats; None stands for an adversary who does not know the correlation. Within a run of equal
    budgets the recursion is monotone and reaches its fixed point in floating point; the rest of the run then costs
    nothing.

    Examples
    --------
    >>> accumulate(lambda alpha: 0.5 * alpha, [(1.0, 3)])
    [1.0, 1.5, 1.75]
    """
    leakages: list[float] = []
    for epsilon, count in runs:
        if step is None:
            leakages.extend([epsilon] * count)
            continue
        for done in range(count):
            following = epsilon if last is None else step(last) + epsilon
            leakages.append(following)
            if following == last:
                leakages.extend([following] * (count - done - 1))
                break
            last = following
    return leakages


def accumulate_steps(functions: Sequence, budgets: np.ndarray) -> np.ndarray:
    """Leakages along `budgets`, where functions[t - 1], with a method `at` or None, leads from time t - 1 to t."""
    leakages = [float(budgets[0])]
    rest = budgets[1:].tolist()
    start = 0
    for _, run in groupby(zip(map(id, functions), rest, strict=True)):
        (_, epsilon), *same = run
        function = functions[start]
        start += 1 + len(same)
        leakages += accumulate(function and function.at, [(epsilon, 1 + len(same))], leakages[-1])
    return np.array(leakages)


def as_loss_function(matrix) -> PrivacyLossFunction | None:
    """A loss function from a matrix, from one made before, or None."""
    if matrix is None or isinstance(matrix, PrivacyLossFunction):
        return matrix
    return PrivacyLossFunction(matrix)


def as_loss_functions(matrices, steps: int, name: str) -> list[PrivacyLossFunction | None]:
    """One loss function a step: from one matrix for all steps, or from a list of `steps` of them (None: unknown)."""
    return for_each_step(matrices, steps, name, as_loss_function)


def for_each_step(matrices, steps: int, name: str, make: Callable) -> list:
    """`make(matrix)` for each step, made once a matrix, from one matrix for all steps or a list of `steps` of them."""
    if not _is_one_for_each_step(matrices):
        return [make(matrices)] * steps
    matrices = list(matrices)
    if len(matrices) != steps:
        raise ValueError(
            f"{name} must be one matrix, or one for each step between two time points; found {len(matrices)} "
            f"matrices for {steps} steps; give T - 1 of them"
        )
    made: dict = {}
    for matrix in matrices:
        if id(matrix) not in made:
            made[id(matrix)] = make(matrix)
    return [made[id(matrix)] for matrix in matrices]


def steps_of_both_sides(backward, forward, horizon: int, default: int = 2) -> tuple[list, list, int]:
    """The matrices of each step on both sides (None: not known) as arrays, and the number of states."""
    before = for_each_step(backward, horizon - 1, "backward", _as_array)
    after = for_each_step(forward, horizon - 1, "forward", _as_array)
    # with one release there is no step, but a matrix for all steps still tells the states
    single = [_as_array(P) for P in (backward, forward) if horizon == 1 and not _is_one_for_each_step(P)]
    sizes = {P.shape[0] for P in before + after + single if P is not None} or {default}
    if len(sizes) > 1:
        raise ValueError(
            f"all matrices must have the same states, found {sorted(sizes)} of them; estimate them over one set"
        )
    n = sizes.pop()
    if n == 1:  # nothing to learn from one state; as if the adversary did not know
        return [None] * (horizon - 1), [None] * (horizon - 1), 2
    return before, after, n


def _as_array(matrix) -> np.ndarray | None:
    matrix = getattr(matrix, "matrix", matrix)
    if getattr(matrix, "n_states", 0) > MAX_DENSE:
        raise ValueError(
            f"exact leakages need dense matrices of at most {MAX_DENSE} states, found {matrix.n_states}; take fewer "
            "states, or temporal_privacy_leakage, the upper bound"
        )
    return None if matrix is None else as_transition_array(matrix)


def _is_one_for_each_step(matrices) -> bool:
    """Whether the argument is a list of matrices; a nested list of numbers is one matrix."""
    if isinstance(matrices, np.ndarray):
        return matrices.ndim == 3
    if not isinstance(matrices, (list, tuple)):
        return False
    return not matrices or any(item is None or _is_matrix(item) for item in matrices)


def _is_matrix(item) -> bool:
    if isinstance(item, (PrivacyLossFunction, TransitionMatrix)) or hasattr(item, "tocsr"):
        return True
    return isinstance(item, (list, tuple, np.ndarray)) and any(
        isinstance(row, (list, tuple, np.ndarray)) for row in item
    )
