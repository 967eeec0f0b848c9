"""The temporal privacy loss function L(alpha), exact on all of [0, inf) (Eqs. (13), (15), (24) of
[1]).

L(alpha) is the leakage that an adversary who knows the transition matrix derives from a leakage
alpha at the neighbouring time point. It is stored as the vertices of the joint hull (`envelope`),
one for each interval of alpha; evaluation is a binary search.
"""

from __future__ import annotations
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import expm1, inf, isnan, log
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.lazy import optional_import
from tplrepro.leakage.vertex import (
    LARGE,
    Vertex,
    vertex_budget,
    vertex_crossing,
    vertex_inverse,
    vertex_loss,
    vertex_losses,
    vertex_slope,
    vertex_supremum,
)
from tplrepro.markov.transition import MatrixLike, TransitionMatrix, as_transition_matrix
from tplrepro.validation import as_numbers, as_scalar, check_alpha, check_epsilon, frozen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Bound on the relative rounding error of one evaluation at a vertex (measured: under 2e-15).
ROUNDING = 4e-15
#: Where pairs of rows nearly tie, the hull understates L(alpha) by at most this share of
#: 1 - e^-alpha (`envelope`).
TIES = 2e-15


class Witness(NamedTuple):
    """The two states that an adversary distinguishes best, and the evidence (Theorem 5, Corollary 2
    of [1]); `str` gives it in words.

    `columns` are the labels of the states that, at the neighbouring time point (named in `where`),
    indicate `state_q` rather than `state_d`; `q` and `d` are their probabilities from these two.
    `alpha` is the leakage there, `loss` = L(alpha), in nats. A plain tuple, so that tables with
    witnesses in their ``attrs`` can be written to JSON and Parquet.
    """

    state_q: object
    state_d: object
    columns: tuple
    q: float
    d: float
    alpha: float
    loss: float
    where: str = ""

    def __str__(self) -> str:
        if not self.columns:
            return (
                "all states are followed alike, so the adversary gains nothing from the correlation"
            )
        from tplrepro.display import count_noun, shorten_labels

        labels = [repr(label) for label in (self.state_q, self.state_d, *self.columns[:5])]
        different = [*dict.fromkeys(labels)]
        names = dict(zip(different, shorten_labels(different, most=40), strict=True))
        state_q, state_d, *columns = (names[label] for label in labels)
        if len(self.columns) > 5:
            columns.append("...")
        evidence = f"{{{', '.join(columns)}}}"
        if self.where:
            evidence = f"{evidence} {self.where}"
        return (
            f"the adversary gains most by telling {state_q} from {state_d}: {evidence} "
            f"has probability {self.q:.4g} from the first and {self.d:.4g} from the second, "
            f"so a leakage of {count_noun(self.alpha, 'nat', '.4g')} there adds "
            f"{count_noun(self.loss, 'nat', '.4g')} here"
        )


class PrivacyLossFunction:
    """The exact privacy loss function of a transition matrix (Eq. (24), Corollary 3 of [1]; Eq. (1)
    of [4]).

    Parameters
    ----------
    matrix : TransitionMatrix or array-like (n, n)
        Pr(l^{t-1} | l^t) for backward, Pr(l^t | l^{t-1}) for forward leakage; rows sum to 1.
    progress : bool
        Show a progress bar if it takes more than two seconds, about from n = 2,000 on.

    Raises
    ------
    ValueError
        For a matrix that is not square or not row-stochastic.

    Examples
    --------
    >>> P = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]  # Example 4 of [1]
    >>> L = PrivacyLossFunction(P)
    >>> L.vertices.round(6).tolist()
    [[0.2, 0.7], [0.1, 0.5]]
    >>> L.breakpoints.round(6).tolist()
    [1.466337]
    >>> round(L(1.0), 6), round(L(40.0), 6)
    (0.494334, 1.609438)
    >>> round(L.supremum(0.1), 6), round(L.budget_for(1.0), 6)
    (0.201532, 0.505666)
    """

    #: The vertices are those of L(scale alpha) / scale.
    scale = 1.0
    #: Whether `matrix` determines L; otherwise (`of_hull`) nothing may be computed from the matrix.
    of_matrix = True

    def __init__(self, matrix: MatrixLike, progress: bool = True):
        from tplrepro.leakage.envelope import joint_hull  # loads SciPy

        self.matrix: TransitionMatrix = as_transition_matrix(matrix)
        self._set_hull(joint_hull(self.matrix, progress))

    def _set_hull(self, hull: np.ndarray) -> None:
        # Where all rows are equal: one vertex without gap, L = 0.
        points = hull.tolist() or [(0.0, 0.0, 1.0, 0, 0)]
        self._vertices = [Vertex(d, gap, rest) for d, gap, rest, _, _ in points]
        #: The numbers of the two rows of each vertex.
        self._pairs = [(int(i), int(j)) for *_, i, j in points]
        self._breakpoints = [_crossing(*vertices) for vertices in pairwise(self._vertices)]

    @classmethod
    def of_hull(cls, matrix: TransitionMatrix, hull: np.ndarray) -> Self:
        """The loss function of a hull that belongs to more than the matrix.

        Parameters
        ----------
        matrix : TransitionMatrix, which names the states
        hull : array (K, 5)
            The vertices in order of growing alpha: d, gap, 1 - q, and the numbers of the two rows.

        Returns
        -------
        PrivacyLossFunction, whose `of_matrix` is False

        Raises
        ------
        ValueError
            If a vertex has not five numbers.
        """
        function = object.__new__(cls)
        function.matrix = matrix
        function._set_hull(hull)
        function.of_matrix = False
        return function

    @property
    def hull(self) -> np.ndarray:
        """The vertices (K, 5) as `of_hull` takes them: d, gap, 1 - q, and the numbers of the two
        rows."""
        return frozen(np.column_stack([self._vertices, self._pairs]))

    @property
    def vertices(self) -> np.ndarray:
        """The pairs (d, q) of Theorem 9 of [1], (K, 2), in the order in which they apply as alpha
        grows."""
        return frozen([(vertex.d, _sum_of_q(vertex)) for vertex in self._vertices])

    @property
    def breakpoints(self) -> np.ndarray:
        """The alphas (K - 1,) at which the next vertex takes over; nats."""
        return frozen(self._breakpoints)

    def plot(self, ax: Axes | None = None, most: float = 2.0) -> Axes:
        """Draw L and its breakpoints with Matplotlib.

        Parameters
        ----------
        ax : Axes to draw on, by default new ones
        most : float >= 0, the largest alpha drawn, nats

        Returns
        -------
        The axes

        Raises
        ------
        ValueError
            For a largest alpha that is not a finite number of at least 0.
        """
        with optional_import():
            from matplotlib import pyplot as plt
        axes = plt.subplots()[1] if ax is None else ax
        places = self.breakpoints[self.breakpoints < check_alpha(most)]
        alphas = np.union1d(np.linspace(0.0, most, 200), places)
        axes.plot(alphas, self(alphas), label="L")
        axes.plot(places, self(places), "x", label="breakpoints")
        axes.set(xlabel="leakage at the neighbouring time (nats)", ylabel="L (nats)")
        return axes

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.matrix!r}, {len(self._vertices)} vertices)"

    def __call__(self, alpha: ArrayLike) -> float | np.ndarray:
        """L(alpha) in nats, elementwise, 0 <= L(alpha) <= alpha; for alpha in nats, finite and >=
        0."""
        values = check_alpha(alpha)
        if values.ndim == 0:
            return self.at(float(values))
        at = np.searchsorted(self._breakpoints, values, side="right")
        d, gap, rest = np.array(self._vertices).T[:, at]
        losses = self.scale * vertex_losses(d, gap, rest, values / self.scale)
        is_large = values > LARGE
        losses[is_large] = _elementwise(self.at, values[is_large])
        return losses

    def _vertex_for(self, alpha: float) -> Vertex:
        """The vertex that gives L(alpha)."""
        return self._vertices[bisect_right(self._breakpoints, alpha)]

    def at(self, alpha: float) -> float:
        """L(alpha) for one valid float, without checks: the step of the recursions over time."""
        vertex = self._vertices[bisect_right(self._breakpoints, alpha)]  # a call would cost a tenth
        return self.scale * vertex_loss(*vertex, alpha / self.scale)

    def slope_at(self, alpha: float) -> float:
        """L'(alpha) for one valid float, without checks; at a breakpoint the larger of the two
        derivatives."""
        return vertex_slope(*self._vertex_for(alpha), alpha / self.scale)

    @property
    def table(self) -> np.ndarray:
        """The vertices (K, 5) for `envelope.recursion`: d, gap, 1 - q, the alpha up to which each
        applies, the scale."""
        until = [*self._breakpoints, inf]
        scales = np.full(len(until), self.scale)
        return frozen(np.column_stack([self._vertices, until, scales]))

    @cached_property
    def _budgets(self) -> list[float]:
        """The budget whose supremum is each breakpoint; budgets between two of them belong to one
        vertex."""
        vertices = self._vertices[:-1]
        return [
            vertex_budget(*vertex, alpha)
            for vertex, alpha in zip(vertices, self._breakpoints, strict=True)
        ]

    def hockey_stick(self, gamma: ArrayLike) -> float | np.ndarray:
        """The largest hockey-stick divergence sum_k max(q_k - gamma d_k, 0) of two rows,
        elementwise, gamma >= 1.

        It is the support function of the joint hull at the slope gamma - 1, rounded up.

        >>> L = PrivacyLossFunction([[0.8, 0.2], [0.1, 0.9]])
        >>> L.hockey_stick([1.0, 2.0]).round(6).tolist(), round(L.hockey_stick(9.0), 6)
        ([0.7, 0.6], 0.0)
        """
        must = "gamma must be numbers, at least 1"
        slopes = as_numbers(gamma, must, "give ratios of probabilities") - 1.0
        if not (slopes >= 0.0).all():
            raise ValueError(
                f"gamma must be at least 1, found {slopes.min() + 1.0:g}; "
                "swap the rows and take 1 / gamma"
            )
        values = self.support(slopes)
        return values if slopes.ndim else float(values)

    def support(self, slopes: np.ndarray) -> np.ndarray:
        """`hockey_stick` at 1 + slopes, which may be tiny, without checks."""
        highest = np.zeros_like(slopes)
        for vertex in self._vertices:
            line = vertex.gap * (1.0 + ROUNDING) - slopes * vertex.d
            np.maximum(highest, line, out=highest)
        return np.minimum(highest, 1.0)

    @property
    def is_identity(self) -> bool:
        """Whether L(alpha) = alpha: two rows have disjoint supports, and leakage grows without
        bound."""
        last = self._vertices[-1]
        return last.d == last.rest == 0.0

    @property
    def is_zero(self) -> bool:
        """Whether L = 0: all rows are equal, and correlation adds nothing."""
        return self._vertices[0].gap == 0.0

    def supremum(self, epsilon: ArrayLike) -> float | np.ndarray:
        """The supremum over time of BPL or FPL, each budget `epsilon` > 0 (Theorem 11 of [1],
        Theorem 5 of [2]).

        Elementwise, in nats; inf where the leakage grows without bound.
        """
        return _elementwise(self._supremum, check_epsilon(epsilon))

    def _supremum(self, epsilon: float) -> float:
        if self.is_identity:
            return inf
        vertex = self._vertices[bisect_right(self._budgets, epsilon)]
        return max(self.scale * vertex_supremum(*vertex, epsilon / self.scale), epsilon)

    def budget_for(self, alpha: ArrayLike) -> float | np.ndarray:
        """The largest budget per time point whose supremum stays within `alpha`: alpha - L(alpha),
        elementwise, nats.

        It is rounded down, so that neither the exact supremum nor `supremum(budget_for(alpha))`
        exceeds alpha; 0 where no positive budget has such a supremum, as for L(alpha) = alpha.
        """
        return _elementwise(self._budget_for, check_alpha(alpha))

    def _budget_for(self, alpha: float) -> float:
        if self.is_identity or alpha == 0.0:
            return 0.0
        vertex = self._vertex_for(alpha)
        budget = self.scale * vertex_budget(*vertex, alpha / self.scale)
        # The margins exceed the rounding of the line above, and the understatement of L.
        certain = budget * (1.0 - ROUNDING) + TIES * expm1(-alpha)
        return min(max(certain, 0.0), alpha)

    def inverse(self, level: ArrayLike) -> float | np.ndarray:
        """The largest alpha with L(alpha) <= level, elementwise, nats; inf where L never exceeds
        the level.

        It is rounded down, so that `L(L.inverse(level))` does not exceed a finite level >= 0.

        >>> L = PrivacyLossFunction([[0.8, 0.2], [0.1, 0.9]])
        >>> round(L.inverse(L(1.0)), 9), L.inverse(3.0)
        (1.0, inf)
        """
        return _elementwise(self.inverse_at, check_alpha(level, "level"))

    def inverse_at(self, level: float) -> float:
        """`inverse` of one valid float or inf, without checks."""
        if level == inf:
            return inf
        vertex = self._vertices[bisect_right(self._losses, level)]
        certain = level * (1.0 - ROUNDING - TIES)
        return max(self.scale * vertex_inverse(*vertex, certain / self.scale), level)

    def at_most(self, alpha: float) -> float:
        """L(alpha) for one valid float or inf, without checks, rounded up: the step of the
        filter."""
        rounded_up = self.at(alpha) * (1.0 + ROUNDING)
        return min(rounded_up - self.ties * expm1(-alpha), alpha)

    def inverse_within(self, level: float, alpha: float) -> float:
        """An alpha' such that a leakage up to alpha' and up to `alpha` adds at most `level`.

        Unlike in `inverse`, the understatement of L counts, which matters where rows nearly agree.

        Parameters
        ----------
        level : float or inf, the most that L may add, nats
        alpha : float or inf, a bound on the leakage, nats

        Returns
        -------
        float, nats, rounded down

        Raises
        ------
        TypeError
            For what is no number; whether it is finite and at least 0 is not checked.
        """
        missing = -self.ties * expm1(-alpha)  # of any leakage up to alpha
        if level >= 2.0 * missing:
            return self.inverse_at(level - missing)
        half = 0.5 * level
        return max(min(self.inverse_at(half), half / self.ties), level)

    @cached_property
    def ties(self) -> float:
        """L(alpha) may be understated by this share of 1 - e^-alpha: 0 if all rows are the same."""
        if not (self.is_zero and self.of_matrix):
            return TIES
        differ = np.ptp(self.matrix.toarray(), axis=0).any()
        return TIES if differ else 0.0

    @cached_property
    def _losses(self) -> list[float]:
        """L at each breakpoint; levels between two of them belong to one vertex."""
        return [self.at(alpha) for alpha in self._breakpoints]

    def unbounded_because(self) -> str:
        """Which rows make L(alpha) = alpha, if it is."""
        witness = self.witness(1.0)
        return f"states {witness.state_q!r} and {witness.state_d!r} have no common neighbour"

    def witness(self, alpha: float) -> Witness:
        """The pair of states and the set of columns that attain L(alpha), for one alpha.

        >>> P = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["home", "office"])
        >>> print(PrivacyLossFunction(P).witness(1.0))
        the adversary gains most by telling 'home' from 'office': {'home'} has probability 0.8 from
        the first and 0.1 from the second, so a leakage of 1 nat there adds 0.7063 nats here
        """
        alpha = as_scalar(check_alpha(alpha), "alpha")
        at = bisect_right(self._breakpoints, alpha)
        i, j = self._pairs[at]
        vertex = self._vertices[at]
        states = self.matrix.states
        columns = _columns_with_sums(vertex, self.matrix.row(i), self.matrix.row(j))
        return Witness(
            state_q=states[i],
            state_d=states[j],
            columns=tuple(states[k] for k in columns),
            q=_sum_of_q(vertex),
            d=vertex.d,
            alpha=alpha,
            loss=self.at(alpha),
        )


def privacy_loss(matrix: MatrixLike, alpha: float) -> float:
    """L(alpha) for one alpha, by one O(n^3) pass over the pairs of rows (Eq. (24) of [1]).

    Parameters
    ----------
    matrix : TransitionMatrix or array-like (n, n)
        Pr(l^{t-1} | l^t) for backward, Pr(l^t | l^{t-1}) for forward leakage; rows sum to 1.
    alpha : float >= 0, the leakage at the neighbouring time point, nats

    Returns
    -------
    float, nats, at most alpha

    Raises
    ------
    ValueError
        For a matrix that is not row-stochastic, or an alpha that is not one finite number >= 0.

    Examples
    --------
    >>> round(privacy_loss([[0.8, 0.2], [0.0, 1.0]], 0.1), 6)  # log(0.8 (e^0.1 - 1) + 1)
    0.080784
    """
    matrix = as_transition_matrix(matrix)
    remedy = "build PrivacyLossFunction(matrix) once and call it with the array"
    alpha = as_scalar(check_alpha(alpha), "alpha", remedy)
    if alpha > LARGE:  # the pass works with e^alpha
        return PrivacyLossFunction(matrix).at(alpha)
    from tplrepro.leakage.envelope import best_pair  # loads SciPy

    # Below 1e-100 the pair with the largest gap is best, and 1 / alpha may be out of range.
    return vertex_loss(*best_pair(matrix, max(alpha, 1e-100)), alpha)


def _sum_of_q(vertex: Vertex) -> float:
    """q(S), from the two of the sums that do not cancel."""
    if vertex.rest < 0.5:
        return 1.0 - vertex.rest
    return vertex.d + vertex.gap


def _crossing(vertex: Vertex, following: Vertex) -> float:
    """The alpha at which two neighbouring vertices give the same slope."""
    crossing = vertex_crossing(vertex.d, vertex.gap, following.d, following.gap)
    if not isnan(crossing):
        return crossing
    # the products are out of range
    d = Fraction(vertex.d)
    gap = Fraction(vertex.gap)
    next_d = Fraction(following.d)
    next_gap = Fraction(following.gap)
    exact = (next_gap * d - gap * next_d) / (gap - next_gap)
    return log(exact.denominator) - log(exact.numerator)


def _columns_with_sums(vertex: Vertex, row_q: np.ndarray, row_d: np.ndarray) -> np.ndarray:
    """The columns S of two rows whose sums are those of a vertex: a prefix in order of falling
    q_j/d_j."""
    difference = row_q - row_d
    chosen = np.flatnonzero(difference > 0.0)
    if chosen.size == 0:
        return chosen
    order = chosen[np.argsort(row_d[chosen] / difference[chosen], kind="stable")]
    d_sums = np.cumsum(row_d[order])
    gap_sums = np.cumsum(difference[order])
    distance = np.abs(d_sums - vertex.d) + np.abs(gap_sums - vertex.gap)
    size = int(np.argmin(distance)) + 1
    return np.sort(order[:size])


def _elementwise(function: Callable[[float], float], values: np.ndarray) -> float | np.ndarray:
    if values.ndim == 0:
        return function(float(values))
    results = [function(value) for value in values.ravel().tolist()]
    return np.array(results, dtype=float).reshape(values.shape)


def leakage_after(loss: Any, leakage: float | None, epsilon: float) -> float:
    """L(leakage) + epsilon, one step of Eq. (13) of [1].

    Parameters
    ----------
    loss : object with a method `at`, such as PrivacyLossFunction, or None
        L of the step to this release. None: the adversary does not know that correlation.
    leakage : float or None
        The BPL of the release before (for FPL: of the one after), nats. None: there is none.
    epsilon : float, the budget of this release, nats

    Returns
    -------
    float, nats; epsilon alone if the adversary knows nothing about the release before

    >>> round(leakage_after(PrivacyLossFunction([[0.8, 0.2], [0, 1]]), 0.1, 0.1), 6)
    0.180784
    """
    if loss is None or leakage is None:
        return epsilon
    return loss.at(leakage) + epsilon
