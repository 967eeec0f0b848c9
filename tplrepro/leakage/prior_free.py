"""Leakage against any prior and any evidence about other times, from the cross ratio of a matrix.

An adversary who knows more than the matrix (where a user was last night, whether a shop was open)
still faces a Markov chain: evidence about other times, independent given the states there,
multiplies each column k of the matrix by a weight h_k >= 0, after which rows are divided by their
sums. With the largest cross ratio

    C = max P_ik P_jl / (P_il P_jk)    over rows i, j and columns k, l,    kappa = sqrt(C),

the largest loss over all weights is (Theorem 2 of docs/theory/promises.md)

    L(alpha) = 2 log((kappa e^(alpha/2) + 1) / (kappa + e^(alpha/2))),

which is twice the loss of the vertex d = 1 / (kappa + 1), q = kappa / (kappa + 1) at alpha / 2. C
is the same for a matrix and for its reversal under any prior: both sides have one loss function.
log C is the Hilbert diameter of the rows, and the gap q - d is tanh(log(C) / 4).
"""

from __future__ import annotations
from copy import copy
from dataclasses import dataclass
from math import exp, inf, tanh

import numpy as np

from tplrepro.leakage.loss_function import ROUNDING, PrivacyLossFunction, Witness
from tplrepro.leakage.vertex import LARGE, Vertex
from tplrepro.markov.transition import MatrixLike, TransitionMatrix, as_transition_matrix
from tplrepro.validation import as_scalar, check_alpha

#: Rows that are compared at once.
BLOCK = 64
#: Bound on the rounding error of a logarithm of a cross ratio, as a share of the largest logarithm
#: in it.
ERROR = 8 * 2.0**-52


class PriorFreeLoss(PrivacyLossFunction):
    """The loss function that holds for any prior and any evidence about other times.

    It takes the place of a matrix wherever one is taken. Its leakages bound those of
    `PrivacyLossFunction` for the same matrix, for its reversal, and for every matrix that evidence
    about other times makes of them (`condition_on`). Where columns are possible from one state but
    not from another, C is infinite and L(alpha) = alpha.

    Parameters
    ----------
    matrix : TransitionMatrix or array-like (n, n)
        Pr(l^t | l^{t-1}) or Pr(l^{t-1} | l^t); rows sum to 1. Memory is O(n^2), also if it is
        sparse.

    Raises
    ------
    ValueError
        For a matrix that is not square or not row-stochastic.

    Examples
    --------
    >>> L = PriorFreeLoss([[0.8, 0.2], [0.1, 0.9]])
    >>> round(L.cross_ratio, 6), round(L(1.0), 6)
    (36.0, 0.70704)
    >>> round(L.supremum(0.1), 6), round(L.budget_for(1.0), 6)
    (0.348917, 0.29296)
    >>> print(L.witness(1.0))
    the adversary gains most by telling 0 from 1: {0} where other evidence leaves only it and 1 has
    probability 0.7844 from the first and 0.09181 from the second, so a leakage of 1 nat there adds
    0.707 nats here
    """

    scale = 2.0

    def __init__(self, matrix: MatrixLike):
        self.matrix = as_transition_matrix(matrix)
        self._attained = _hilbert_diameter(self.matrix)
        diameter = self._attained.diameter
        log_kappa = diameter / 2.0
        if diameter < LARGE:
            kappa = exp(log_kappa)
            rest = 1.0 / (kappa + 1.0)
        else:
            rest = exp(-log_kappa)
        gap = tanh(diameter / 4.0)
        vertex = Vertex(d=rest, gap=gap, rest=rest)  # d = 1 - q = 1 / (kappa + 1)
        self._vertices = [vertex]
        self._breakpoints = []

    def __repr__(self) -> str:
        return f"PriorFreeLoss({self.matrix!r}, cross ratio {self.cross_ratio:.6g})"

    @property
    def cross_ratio(self) -> float:
        """C, at least 1, rounded up; inf also where it exceeds all doubles."""
        vertex = self._vertices[0]
        if vertex.rest == 0.0:
            return inf
        kappa_less_one = vertex.gap / vertex.rest
        less_one = kappa_less_one * (2.0 + kappa_less_one)
        return 1.0 + less_one

    def support(self, slopes: np.ndarray) -> np.ndarray:
        """`hockey_stick` at 1 + slopes: (kappa - sqrt(gamma))^2 / (kappa^2 - 1), 0 where gamma
        exceeds C."""
        d, gap, _ = self._vertices[0]
        if gap == 0.0:
            return np.zeros_like(slopes)
        root = np.sqrt(1.0 + slopes)
        rounded_up = gap * (1.0 + ROUNDING)
        excess = rounded_up - d * slopes / (1.0 + root)
        excess = np.maximum(excess, 0.0)
        support = excess**2 / gap
        return np.minimum(support, 1.0)

    def unbounded_because(self) -> str:
        state_q, state_d, column, _ = self._attained_states()
        return (
            f"state {column!r} is possible next to {state_q!r} but not next to {state_d!r}, "
            "which evidence may bring out"
        )

    def _attained_states(self) -> list:
        """The labels of the two rows and of the two columns that attain the cross ratio."""
        states = self.matrix.states
        at = self._attained
        return [states[at.row_q], states[at.row_d], states[at.column], states[at.other_column]]

    def witness(self, alpha: float) -> Witness:
        """The two states, and the two columns to which the worst evidence restricts the
        neighbouring time point."""
        alpha = as_scalar(check_alpha(alpha), "alpha")
        if self.is_zero:
            state = self.matrix.states[0]
            return Witness(state, state, (), 0.0, 0.0, alpha, 0.0)
        state_q, state_d, column, other_column = self._attained_states()
        _, gap, rest = self._vertices[0]
        half = min(alpha / 2.0, LARGE)
        growth = exp(half)
        # the rows of the worst evidence, kappa : e^(alpha/2) and 1 : kappa e^(alpha/2), of which
        # each is multiplied by 1 / (kappa + 1)
        kappa = rest + gap
        other_q = rest * growth
        other_d = kappa * growth
        return Witness(
            state_q,
            state_d,
            columns=(column,),
            q=kappa / (kappa + other_q),
            d=rest / (rest + other_d),
            alpha=alpha,
            loss=self.at(alpha),
            where=f"where other evidence leaves only it and {other_column!r}",
        )

    def after(self, steps: list[PriorFreeLoss]) -> PriorFreeLoss:
        """The loss function of this step and further ones together, with any evidence about the
        times between them.

        Contraction coefficients multiply; 1 less one of them is twice `rest`.
        """
        combined = copy(self)
        for step in steps:
            _, gap, rest = combined._vertices[0]
            _, step_gap, step_rest = step._vertices[0]
            coefficient = 1.0 - 2.0 * rest
            rest = rest + step_rest * coefficient
            rest = rest * (1.0 - ERROR)
            gap = gap * step_gap
            gap = gap * (1.0 + ERROR)
            gap = min(gap, 1.0)
            vertex = Vertex(d=rest, gap=gap, rest=rest)
            combined._vertices = [vertex]
        return combined


@dataclass(frozen=True)
class _HilbertDiameter:
    """log C, rounded up, and the rows q, d and the two columns that attain it: C is P[q, column]
    P[d, other_column] / (P[q, other_column] P[d, column])."""

    diameter: float
    row_q: int
    row_d: int
    column: int
    other_column: int


def _hilbert_diameter(matrix: TransitionMatrix) -> _HilbertDiameter:
    """The Hilbert diameter of the rows, with two rows and two columns that attain it; inf if two
    rows differ in their support."""
    rows = matrix.toarray()
    is_possible = rows > 0.0
    different = np.argwhere(is_possible != is_possible[0])
    if different.size:
        other, column = different[0].tolist()
        if is_possible[0, column]:
            row_q = 0
            row_d = other
        else:
            row_q = other
            row_d = 0
        likely = np.argmax(rows[row_d])
        return _HilbertDiameter(inf, row_q, row_d, column, int(likely))
    columns = np.flatnonzero(rows[0])
    logs = np.log(rows[:, columns])
    size = -logs.min()
    width, i, j = _farthest_rows(logs)
    if width == 0.0:
        return _HilbertDiameter(0.0, 0, 0, 0, 0)
    logs_i = np.log(rows[i, columns])
    logs_j = np.log(rows[j, columns])
    difference = logs_i - logs_j
    column = columns[np.argmax(difference)]
    other_column = columns[np.argmin(difference)]
    diameter = width + ERROR * size
    return _HilbertDiameter(diameter, i, j, int(column), int(other_column))


def _farthest_rows(logs: np.ndarray) -> tuple[float, int, int]:
    """The largest range of the difference of two rows of logarithms (n, k), which are changed, and
    the numbers of these rows."""
    from tplrepro.leakage.envelope import compiled, recursion  # loads SciPy

    n = len(logs)
    logs -= logs.mean(axis=0)  # a change of all rows alike, after which most are close to 0
    radius = np.ptp(logs, axis=1)
    # The diameter of two rows is at most the sum of their distances from 0, so that few pairs need
    # comparing.
    order = np.argsort(-radius, kind="stable")
    widest = 0.0
    best_i = best_j = 0
    compiled.announce_steps(n * logs.size // 2)
    for a in range(0, n, BLOCK):
        rows_a = order[a : a + BLOCK]
        first = logs[rows_a]
        for b in range(a, n, BLOCK):
            rows_b = order[b : b + BLOCK]
            farthest = radius[rows_a[0]] + radius[rows_b[0]]
            if farthest <= widest:
                break
            second = logs[rows_b]
            width, i, j = recursion.farthest_rows(first, second, widest)
            if width > widest:
                widest = width
                best_i = int(rows_a[i])
                best_j = int(rows_b[j])
    return widest, best_i, best_j
