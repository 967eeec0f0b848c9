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
from math import expm1, inf, isnan, log, nextafter
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
#: A larger margin of `budget_for`, so that `supremum` with the one above undoes it.
MORE_ROUNDING = 1.5 * ROUNDING
#: Where L is steeper, levels are bisected: a step of Newton's method may miss them by far.
STEEP = 0.75
#: Beyond this a supremum is no more than twice the budget above the largest L of any `scale`.
MOST_ADDED = 4000.0
#: Factors that exceed the rounding of the few operations between two bounds.
UP = 1.0 + 2.0**-50
DOWN = 1.0 - 2.0**-50


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

        shown = (self.state_q, self.state_d, *self.columns[:5])
        labels = [repr(label) for label in shown]
        different = [*dict.fromkeys(labels)]
        short = shorten_labels(different, most=40)
        names = dict(zip(different, short, strict=True))
        state_q, state_d, *columns = (names[label] for label in labels)
        if len(self.columns) > 5:
            columns.append("...")
        evidence = f"{{{', '.join(columns)}}}"
        if self.where:
            evidence = f"{evidence} {self.where}"
        leakage_there = count_noun(self.alpha, "nat", ".4g")
        leakage_here = count_noun(self.loss, "nat", ".4g")
        return (
            f"the adversary gains most by telling {state_q} from {state_d}: {evidence} "
            f"has probability {self.q:.4g} from the first and {self.d:.4g} from the second, "
            f"so a leakage of {leakage_there} there adds {leakage_here} here"
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
        hull = joint_hull(self.matrix, progress)
        self._set_hull(hull)

    def _set_hull(self, hull: np.ndarray) -> None:
        points = hull.tolist()
        if not points:
            # all rows are equal: one vertex without gap, L = 0
            points = [(0.0, 0.0, 1.0, 0, 0)]
        self._vertices: list[Vertex] = []
        #: The numbers of the two rows of each vertex.
        self._pairs: list[tuple[int, int]] = []
        for d, gap, rest, i, j in points:
            vertex = Vertex(d, gap, rest)
            self._vertices.append(vertex)
            self._pairs.append((int(i), int(j)))
        self._breakpoints = [
            _crossing(vertex, following) for vertex, following in pairwise(self._vertices)
        ]

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
        columns: list[Any] = [self._vertices, self._pairs]
        return frozen(np.column_stack(columns))

    @property
    def vertices(self) -> np.ndarray:
        """The pairs (d, q) of Theorem 9 of [1], (K, 2), in the order in which they apply as alpha
        grows."""
        pairs = [(vertex.d, _sum_of_q(vertex)) for vertex in self._vertices]
        return frozen(pairs)

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
        check_alpha(most)
        axes = ax
        if axes is None:
            _, axes = plt.subplots()
        is_shown = self.breakpoints < most
        places = self.breakpoints[is_shown]
        grid = np.linspace(0.0, most, 200)
        alphas = np.union1d(grid, places)
        axes.plot(alphas, self(alphas), label="L")
        axes.plot(places, self(places), "x", label="breakpoints")
        axes.set(xlabel="leakage at the neighbouring time (nats)", ylabel="L (nats)")
        return axes

    def __repr__(self) -> str:
        kind = type(self).__name__
        count = len(self._vertices)
        return f"{kind}({self.matrix!r}, {count} vertices)"

    def __call__(self, alpha: ArrayLike) -> float | np.ndarray:
        """L(alpha) in nats, elementwise, 0 <= L(alpha) <= alpha; for alpha in nats, finite and >=
        0."""
        values = check_alpha(alpha)
        if values.ndim == 0:
            return self.at(float(values))
        vertices = np.array(self._vertices)
        numbers = np.searchsorted(self._breakpoints, values, side="right")
        d, gap, rest = vertices.T[:, numbers]
        scaled = values / self.scale
        losses = self.scale * vertex_losses(d, gap, rest, scaled)
        is_large = values > LARGE
        losses[is_large] = _elementwise(self.at, values[is_large])
        return losses

    def vertex_for(self, alpha: float) -> Vertex:
        """The vertex that gives L(alpha)."""
        number = bisect_right(self._breakpoints, alpha)
        return self._vertices[number]

    def raised_vertex(self, alpha: float) -> tuple[float, float]:
        """d and gap of the vertex that gives L(alpha), the gap as large as rounding may have
        hidden."""
        d, gap, _ = self._vertices[bisect_right(self._breakpoints, alpha)]
        most = gap * (1.0 + ROUNDING) + self.ties
        return d, min(most, 1.0 - d)

    def at(self, alpha: float) -> float:
        """L(alpha) for one valid float, without checks: the step of the recursions over time."""
        vertex = self._vertices[bisect_right(self._breakpoints, alpha)]  # a call would cost a tenth
        return self.scale * vertex_loss(*vertex, alpha / self.scale)

    def slope_at(self, alpha: float) -> float:
        """L'(alpha) for one valid float, without checks; at a breakpoint the larger of the two
        derivatives."""
        vertex = self.vertex_for(alpha)
        return vertex_slope(*vertex, alpha / self.scale)

    @property
    def table(self) -> np.ndarray:
        """The vertices (K, 5) for `envelope.recursion`: d, gap, 1 - q, the alpha up to which each
        applies, the scale."""
        until = [*self._breakpoints, inf]
        scales = [self.scale] * len(until)
        columns: list[Any] = [self._vertices, until, scales]
        return frozen(np.column_stack(columns))

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
        ratios = as_numbers(gamma, must, "give ratios of probabilities")
        slopes = ratios - 1.0
        is_valid = slopes >= 0.0
        if not is_valid.all():
            smallest = slopes.min() + 1.0
            raise ValueError(
                f"gamma must be at least 1, found {smallest:g}; swap the rows and take 1 / gamma"
            )
        values = self.support(slopes)
        if slopes.ndim == 0:
            return float(values)
        return values

    def support(self, slopes: np.ndarray) -> np.ndarray:
        """`hockey_stick` at 1 + slopes, which may be tiny, without checks.

        Subclasses with another `scale` override it.
        """
        highest = np.zeros_like(slopes)
        for vertex in self._vertices:
            rounded_up = vertex.gap * (1.0 + ROUNDING)
            line = rounded_up - slopes * vertex.d
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

        Elementwise, in nats, rounded up; inf where the leakage grows without bound, or may do so
        within the rounding of the matrix. Of a backward matrix it is that of users whose first
        state has the law that the matrix assumes (`Cycle.reverse`).
        """
        budgets = check_epsilon(epsilon)
        return _elementwise(self._supremum, budgets)

    def nearly_supremum(self, epsilon: float) -> float:
        """`supremum` of one budget >= 0, nats, without checks and without what covers rounding: a
        start for a search."""
        if self.is_identity:
            return inf
        number = bisect_right(self._budgets, epsilon)
        vertex = self._vertices[number]
        supremum = self.scale * vertex_supremum(*vertex, epsilon / self.scale)
        return max(supremum, epsilon)

    def _supremum(self, epsilon: float) -> float:
        if self.is_zero and self.ties == 0.0:
            return epsilon
        supremum = self.nearly_supremum(epsilon)
        if supremum == inf:
            return inf
        return self._least_level(epsilon, supremum)

    def _least_level(self, epsilon: float, level: float) -> float:
        """The least level, from this one on, that certainly leaves a budget; inf if none does.

        No leakage up to such a level rises above it, by Eq. (13) of [1].
        """
        missing = epsilon - self._certain_budget(level)
        if missing <= 0.0:
            return level
        slope = self.slope_at(level)
        if slope <= STEEP:
            step = missing / (1.0 - slope)
            higher = level + 1.01 * step
            if self._certain_budget(higher) >= epsilon:
                return higher
        return self._bisected_level(epsilon, level, 2.0 * missing)

    def _bisected_level(self, epsilon: float, low: float, step: float) -> float:
        """As `_least_level`, above `low`, nats; by steps that double from the first one on, and
        then by bisection, to the last digit."""
        most = MOST_ADDED + 2.0 * epsilon
        high = max(low + step, nextafter(low, inf))
        while self._certain_budget(high) < epsilon:
            low = high
            step *= 2.0
            high = max(low + step, nextafter(low, inf))
            if high > most:
                return inf
        while True:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                return high
            if self._certain_budget(middle) >= epsilon:
                high = middle
            else:
                low = middle

    def budget_for(self, alpha: ArrayLike) -> float | np.ndarray:
        """The largest budget per time point whose supremum stays within `alpha`: alpha - L(alpha),
        elementwise, nats.

        It is rounded down, so that neither the exact supremum nor `supremum(budget_for(alpha))`
        exceeds alpha; 0 where no positive budget has such a supremum, as for L(alpha) = alpha.
        """
        suprema = check_alpha(alpha)
        return _elementwise(self._budget_for, suprema)

    def _budget_for(self, alpha: float) -> float:
        if self.is_identity or alpha == 0.0:
            return 0.0
        certain = self._certain_budget(alpha, MORE_ROUNDING)
        certain = max(certain, 0.0)
        return min(certain, alpha)

    def _certain_budget(self, alpha: float, rounding: float = ROUNDING) -> float:
        """A lower bound of alpha - L(alpha), which may be below 0, for alpha > 0; `rounding` is the
        share that it takes for rounding, beside what L is understated by."""
        vertex = self.vertex_for(alpha)
        budget = self.scale * vertex_budget(*vertex, alpha / self.scale)
        return budget * (1.0 - rounding) + TIES * expm1(-alpha)

    def inverse(self, level: ArrayLike) -> float | np.ndarray:
        """The largest alpha with L(alpha) <= level, elementwise, nats; inf where L never exceeds
        the level.

        It is rounded down, so that `L(L.inverse(level))` does not exceed a finite level >= 0.

        >>> L = PrivacyLossFunction([[0.8, 0.2], [0.1, 0.9]])
        >>> round(L.inverse(L(1.0)), 9), L.inverse(3.0)
        (1.0, inf)
        """
        levels = check_alpha(level, "level")
        return _elementwise(self.inverse_at, levels)

    def inverse_at(self, level: float) -> float:
        """`inverse` of one valid float or inf, without checks."""
        if level == inf:
            return inf
        number = bisect_right(self._losses, level)
        vertex = self._vertices[number]
        certain = level * (1.0 - ROUNDING - TIES)
        inverse = self.scale * vertex_inverse(*vertex, certain / self.scale)
        # a small gap multiplies the rounding of a large alpha
        return max(inverse * DOWN, level)

    def at_most(self, alpha: float) -> float:
        """L(alpha) for one valid float or inf, without checks, rounded up: the step of the
        filter."""
        missing = -self.ties * expm1(-alpha)
        rounded_up = self.at(alpha) * (1.0 + ROUNDING)
        return min(rounded_up + missing, alpha)

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
        inverse = min(self.inverse_at(half), half / self.ties)
        return max(inverse, level)

    @cached_property
    def ties(self) -> float:
        """L(alpha) may be understated by this share of 1 - e^-alpha: 0 if all rows are the same."""
        if not (self.is_zero and self.of_matrix):
            return TIES
        rows = self.matrix.toarray()
        if np.ptp(rows, axis=0).any():
            return TIES
        return 0.0

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
        number = bisect_right(self._breakpoints, alpha)
        vertex = self._vertices[number]
        i, j = self._pairs[number]
        row_q = self.matrix.row(i)
        row_d = self.matrix.row(j)
        columns = _columns_with_sums(vertex, row_q, row_d)
        states = self.matrix.states
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
    from tplrepro.leakage.envelope import best_vertex  # loads SciPy

    # Below 1e-100 the vertex with the largest gap is best, and 1 / alpha may be out of range.
    in_range = max(alpha, 1e-100)
    vertex = best_vertex(matrix, in_range)
    return vertex_loss(*vertex, alpha)


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
    inverse = (next_gap * d - gap * next_d) / (gap - next_gap)  # 1 / u
    return log(inverse.denominator) - log(inverse.numerator)


def _columns_with_sums(vertex: Vertex, row_q: np.ndarray, row_d: np.ndarray) -> np.ndarray:
    """The columns S, ascending, of rows q and d (n,) whose sums are those of a vertex: a prefix in
    order of falling q_j/d_j."""
    difference = row_q - row_d
    chosen = np.flatnonzero(difference > 0.0)
    if chosen.size == 0:
        return chosen
    ratios = row_d[chosen] / difference[chosen]
    order = np.argsort(ratios, kind="stable")
    columns = chosen[order]
    d_sums = np.cumsum(row_d[columns])
    gap_sums = np.cumsum(difference[columns])
    distance_of_d = np.abs(d_sums - vertex.d)
    distance_of_gap = np.abs(gap_sums - vertex.gap)
    closest = np.argmin(distance_of_d + distance_of_gap)
    return np.sort(columns[: closest + 1])


def _elementwise(function: Callable[[float], float], values: np.ndarray) -> float | np.ndarray:
    if values.ndim == 0:
        return function(float(values))
    in_order = values.ravel().tolist()
    results = [function(value) for value in in_order]
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
