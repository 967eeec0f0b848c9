"""Transition matrices: the adversary's knowledge of temporal correlation (Definition 3 of [1]).

A forward matrix holds Pr(l^t | l^{t-1}) (row: where the user was; column: where she is now), a
backward matrix Pr(l^{t-1} | l^t). With many states a matrix is sparse: row i is a few stored
probabilities, and `background[i]` in all other columns.
"""

from __future__ import annotations
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.lazy import optional_import
from tplrepro.validation import (
    ROW_SUM_TOLERANCE,
    FrozenArrays,
    RngLike,
    as_generator,
    as_numbers,
    by_state,
    check_distribution,
    check_entries,
    check_horizon,
    check_probability,
    check_smoothing,
    check_square,
    checked_states,
    common_states,
    frozen,
    rows_as_frame,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

#: Rows whose sums differ from 1 by more are divided by them, lest budgets trust probabilities that do not sum to 1.
ROUNDED_SUM = 16 * 2.0**-52
#: From this many states on, estimates are kept sparse unless asked otherwise (a dense matrix would take 128 MB).
SPARSE_FROM = 4096
#: Less likely steps join no classes of states: power iteration ends before they change anything.
LEAST_STEP = 1e-10
ROWS = ("must be a rectangular array of numbers", "give n rows of n of them")


class TransitionMatrix(FrozenArrays):
    """A validated row-stochastic matrix (Definition 3 of [1]) with names for its states.

    Parameters
    ----------
    probabilities : array-like, DataFrame or scipy.sparse matrix (n, n)
        Rows sum to 1 within 1e-9; no negative, missing or infinite entries.
    states : sequence of n distinct hashable labels, default those of a DataFrame's rows, else 0..n-1
    normalize : divide each row by its sum first; without it, rows that do not sum to 1 are an error
    background : float or array-like (n,), for sparse matrices: the probability of the columns not stored in row i

    >>> P = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["home", "office"])
    >>> P
    TransitionMatrix(2 states 'home', 'office'; dense)
    >>> P.stationary().round(6).tolist()
    [0.333333, 0.666667]
    >>> P.reverse([0.5, 0.5]).probabilities.round(6).tolist()
    [[0.888889, 0.111111], [0.181818, 0.818182]]
    """

    probabilities: Any  # ndarray (n, n), or csr_array
    background: Any = None  # ndarray (n,) of a sparse matrix

    def __init__(
        self,
        probabilities: Any,
        states: Iterable | None = None,
        normalize: bool = False,
        background: ArrayLike | None = None,
    ):
        if isinstance(probabilities, TransitionMatrix):
            named = (
                [probabilities.states]
                if states is None
                else [checked_states(states), probabilities.states]
            )
            states = common_states(named, "states and the matrix")
            probabilities, background = probabilities.probabilities, probabilities.background
        probabilities, states = _without_labels(probabilities, states)
        if hasattr(probabilities, "tocsr"):
            self.probabilities, self.background = _checked_sparse(
                probabilities, background, normalize
            )
        elif background is not None:
            raise ValueError(
                "background needs a scipy.sparse matrix, found a dense one; add it to the rows"
            )
        else:
            rows = np.ascontiguousarray(
                as_numbers(probabilities, f"a transition matrix {ROWS[0]}", ROWS[1])
            )
            check_square(rows)
            check_entries(rows)
            self.probabilities = (
                rows / _divisors(rows.sum(axis=1), normalize, rows.sum(axis=0))[:, None]
            )
            self.probabilities.setflags(write=False)
        self._states = checked_states(states, self.probabilities.shape[0])
        super().__post_init__()

    @classmethod
    def from_sequences(
        cls,
        sequences: Any,
        n_states: int | None = None,
        smoothing: float = 0.0,
        states: Iterable | None = None,
        direction: str = "forward",
        sparse: bool | None = None,
        *,
        user: Any = None,
        time: Any = None,
        state: Any = None,
    ) -> Self:
        """The maximum-likelihood estimate (count + s) / (row total + n s), with Laplacian smoothing
        s >= 0.

        `sequences`, `n_states` and `states` as in `as_sequences`; `user`, `time` and `state` name the columns
        of a DataFrame, if they have other names. "forward" estimates Pr(l^t | l^{t-1}), "backward" Pr(l^{t-1}
        | l^t); `sparse` defaults to 4,096 states or more.

        >>> P = TransitionMatrix.from_sequences([[7, 30, 30, 7], [30, 7]])
        >>> P.states, P.probabilities.round(6).tolist()
        ([7, 30], [[0.0, 1.0], [0.666667, 0.333333]])
        """
        from tplrepro.markov.sequences import count_transitions, with_columns

        sequences = with_columns(sequences, {"user": user, "time": time, "state": state})
        counts, labels = count_transitions(sequences, n_states, states, direction)
        positions = n_states is not None or isinstance(states, range)
        numbered = positions and labels == list(range(len(labels)))
        return cls.from_counts(counts, smoothing, None if numbered else labels, sparse)

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        smoothing: float = 0.0,
        states: Iterable | None = None,
        sparse: bool | None = None,
    ) -> Self:
        """The same estimate from counts of steps (n, n); if a state is never left, smoothing must
        be positive.

        >>> TransitionMatrix.from_counts([[0, 1], [0, 1]], smoothing=1.0).probabilities.round(6).tolist()
        [[0.333333, 0.666667], [0.333333, 0.666667]]
        """
        smoothing = check_smoothing(smoothing)
        matrix, labels = checked_counts(counts, states)
        n = len(labels)
        totals = matrix.sum(axis=1) + n * smoothing
        if (totals == 0).any():
            raise ValueError(
                f"every state must be left at least once, but no step starts at state "
                f"{labels[np.argmin(totals)]!r} ({int((totals == 0).sum())} such states); "
                "give smoothing > 0, or drop those states"
            )
        if n < SPARSE_FROM if sparse is None else not sparse:
            return cls((matrix.toarray() + smoothing) / totals[:, None], states=labels)
        matrix.data = (matrix.data + smoothing) / np.repeat(totals, np.diff(matrix.indptr))
        return cls(matrix, states=labels, background=smoothing / totals)

    @classmethod
    def random(cls, n: int, *, rng: RngLike, zeros: float = 0.0) -> Self:
        """Rows of uniform numbers, a share `zeros` < 1 of them set to 0, divided by their sums
        ([2], section VI.A).

        >>> TransitionMatrix.random(2, rng=1).probabilities.round(4).tolist()
        [[0.35, 0.65], [0.1319, 0.8681]]
        """
        n, zeros = check_horizon(n, "n"), check_probability(zeros, "zeros", one=False)
        rng = as_generator(rng)
        rows = rng.random((n, n))
        keep = rng.random((n, n)) >= zeros
        keep[np.arange(n), rng.integers(0, n, n)] = True
        return cls(rows * keep, normalize=True)

    @property
    def n_states(self) -> int:
        return len(self._states)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_states, self.n_states

    @property
    def states(self) -> Sequence:
        return self._states if isinstance(self._states, range) else list(self._states)

    @property
    def is_sparse(self) -> bool:
        return self.background is not None

    def __repr__(self) -> str:
        kind = f"sparse, {self.probabilities.nnz} stored" if self.is_sparse else "dense"
        labels = [*map(repr, self._states)]
        if len(labels) > 4:
            labels[2:-1] = ["..."]
        return f"TransitionMatrix({self.n_states} states {', '.join(labels)}; {kind})"

    def _repr_html_(self) -> str:
        import pandas as pd

        from tplrepro.display import frame_as_html

        shown = range(min(self.n_states, 10))
        rows, labels = [self.row(k)[: len(shown)] for k in shown], [self._states[k] for k in shown]
        return frame_as_html(repr(self), pd.DataFrame(rows, labels, labels))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the probabilities with Matplotlib, a row for each given state, on `ax` or new axes;
        returns the axes."""
        with optional_import():
            from matplotlib import pyplot as plt
        axes = plt.subplots()[1] if ax is None else ax
        shown = axes.imshow(self.toarray(), vmin=0.0, vmax=1.0, cmap="Blues")
        axes.figure.colorbar(shown, ax=axes, label="probability")
        if self.n_states <= 30:
            axes.set_xticks(range(self.n_states), labels=self._states, rotation=45)
            axes.set_yticks(range(self.n_states), labels=self._states)
        axes.set(xlabel="state", ylabel="given state")
        return axes

    def __array__(self, dtype=None, copy=None):
        return np.array(self.toarray(), dtype=dtype, copy=copy)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same states and probabilities."""
        if not isinstance(other, TransitionMatrix):
            return NotImplemented
        if self._states != other._states:
            return False
        if self.is_sparse and other.is_sparse:
            return (
                np.array_equal(self.background, other.background)
                and not (self._excess != other._excess).nnz
            )
        return np.array_equal(self.toarray(), other.toarray())

    def __hash__(self) -> int:
        return hash(self._states)

    def to_numpy(self) -> np.ndarray:
        """All probabilities as a dense array (n, n)."""
        return (
            _filled(self.probabilities, self.background) if self.is_sparse else self.probabilities
        )

    toarray = to_numpy  # as SciPy calls it

    def to_frame(self) -> DataFrame:
        """All probabilities, with the states as the labels of rows and columns."""
        from pandas import DataFrame

        return DataFrame(self.toarray(), self._states, self._states)

    def __len__(self) -> int:
        return self.n_states

    def __iter__(self) -> Iterator[np.ndarray]:
        return map(self.row, range(self.n_states))

    def __getitem__(self, place: Any) -> Any:
        """The probability P[i, j] in row i and column j, or the row P[i]; whole numbers are numbers
        of states.

        >>> P = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["home", "office"])
        >>> P["home", "office"], P[0, 1], P["office"].tolist()
        (0.2, 0.2, [0.1, 0.9])
        """
        if not isinstance(place, tuple):
            return self.row(place)
        if len(place) != 2:
            raise IndexError(
                f"an entry has a row and a column, found {place}; give P[i, j], or P[i] for a row"
            )
        i, j = map(self._number, place)
        return float(self.row(i)[j])

    def __matmul__(self, other: MatrixLike) -> Any:
        """P @ Q is the matrix of a step by P and then one by Q; P @ v is an array."""
        if isinstance(other, TransitionMatrix):
            states = common_states([self.states, other.states])
            return TransitionMatrix(self.to_numpy() @ other.to_numpy(), states)
        return self.to_numpy() @ np.asarray(by_state(other, self.states, "the right side"))

    def __pow__(self, k: int) -> TransitionMatrix:
        """P ** k is the matrix of k steps; `tplfrontier.every_kth` leaves a sparse one sparse."""
        k, rows = check_horizon(k, "k"), self.to_numpy()
        return (
            self
            if k == 1
            else TransitionMatrix(np.linalg.matrix_power(rows, k), self.states, normalize=True)
        )

    def __rmatmul__(self, other: ArrayLike) -> np.ndarray:
        rows = np.asarray(by_state(other, self.states, "the left side", (np.ndim(other) - 1,)))
        if not self.is_sparse:
            return rows @ self.probabilities
        return rows @ self._excess + np.expand_dims(rows @ self.background, -1)

    def sample(self, length: int, *, rng: RngLike, initial: ArrayLike | None = None) -> list:
        """A path of `length` states, by their labels; the first one's distribution is by default
        the stationary one.

        >>> P = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["home", "office"])
        >>> P.sample(4, rng=3)
        ['home', 'home', 'office', 'office']
        """
        following, rng = self._prior(initial), as_generator(rng)
        path = []
        for _ in range(check_horizon(length, "length")):
            state = rng.choice(self.n_states, p=following)
            path.append(self._states[state])
            following = self.row(state)
        return path

    def row(self, index: Any) -> np.ndarray:
        """Transition probabilities from the state with this number or label, (n,)."""
        index = self._number(index)
        row = self.probabilities[[index]]
        return (_filled(row, self.background[[index]]) if self.is_sparse else row)[0]

    def column(self, index: Any) -> np.ndarray:
        """Transition probabilities to the state with this number or label, (n,)."""
        index = self._number(index)
        column = self.probabilities[:, [index]]
        return (_filled(column, self.background) if self.is_sparse else column)[:, 0]

    def _number(self, state: Any) -> int:
        number = state if isinstance(state, int | np.integer) else self.index(state)
        if not 0 <= number < self.n_states:
            raise IndexError(
                f"a state's number must be in [0, {self.n_states}), found {number}; see `states`"
            )
        return int(number)

    @cached_property
    def _excess(self) -> Any:
        result = self.probabilities
        result.data = frozen(result.data - np.repeat(self.background, np.diff(result.indptr)))
        return result

    @property
    def excess(self) -> Any:
        """The stored entries of a sparse matrix minus the background of their rows: csr_array (n,
        n)."""
        return copy(self._excess)

    def index(self, state: Any) -> int:
        """The number of the state with this label."""
        if state not in self._states:
            found = f"has {self.n_states} states, such as {self._states[0]!r}"
            raise ValueError(f"unknown state {state!r}; the matrix {found}")
        return self._states.index(state)

    @property
    def is_irreducible(self) -> bool:
        """Whether every state can be reached from every other."""
        return len(self._periods) == 1

    @property
    def is_aperiodic(self) -> bool:
        """Whether no state comes back at multiples of some number of steps > 1 only.

        >>> swap = TransitionMatrix([[0, 1], [1, 0]])
        >>> swap.is_irreducible, swap.is_aperiodic
        (True, False)
        """
        return max(self._periods) <= 1

    @property
    def _periods(self) -> list[int]:
        """For each class of states that lead to each other, the divisor of all its cycles, 0 if it
        has none."""
        from scipy.sparse import csgraph, csr_array

        steps, periods = csr_array(self.toarray() > 0), []
        classes, label = csgraph.connected_components(steps, connection="strong")
        for inside in (np.flatnonzero(label == each) for each in range(classes)):
            part = steps[inside][:, inside]
            distance = csgraph.dijkstra(part, indices=0, unweighted=True).astype(int)
            before, after = part.nonzero()
            periods.append(int(np.gcd.reduce(distance[before] + 1 - distance[after])))
        return periods

    def stationary(self) -> np.ndarray:
        """The distribution p (n,) with p P = p; ValueError if several closed classes of states make
        it not unique.

        In a sparse matrix, steps less likely than 1e-10 count as impossible for these classes.
        """
        return _power_iteration(self) if self.is_sparse else _state_reduction(self)

    def _prior(self, initial: ArrayLike | None) -> np.ndarray:
        return (
            self.stationary()
            if initial is None
            else check_distribution(initial, self.states, "initial")
        )

    def reverse(self, initial: ArrayLike | None = None) -> TransitionMatrix:
        """Bayes' rule: from Pr(l^t | l^{t-1}) to Pr(l^{t-1} | l^t), or back; dense if there is a
        background.

        Entry (j, i) is initial_i P_ij / sum_k initial_k P_kj, `initial` (n,) being the distribution
        of l^{t-1}, by default the stationary one. Every state must be reached.
        """
        prior = self._prior(initial)
        sparse = self.is_sparse and not self.background.any()
        joint = (self.probabilities if sparse else self.toarray()) * prior[:, None]
        reached = joint.sum(axis=0)
        if (reached <= 0).any():
            raise ValueError(
                f"reversal needs every state to be reached, but state {self._states[np.argmin(reached)]!r} has "
                "probability 0 after one step; give an initial distribution that reaches it, or smooth"
            )
        return TransitionMatrix(joint.T, states=self._states, normalize=True)


#: A matrix, or what makes one.
MatrixLike = TransitionMatrix | ArrayLike


def as_transition_matrix(matrix: Any) -> TransitionMatrix:
    """`matrix` itself if it is a TransitionMatrix, else a new one made from it, and so checked."""
    return matrix if isinstance(matrix, TransitionMatrix) else TransitionMatrix(matrix)


def drop_dead_ends(counts: Any, states: Iterable | None = None) -> tuple[Any, list]:
    """The largest part of counts (n, n) in which every state is reached and left, csr_array (m, m),
    and its labels.

    >>> counts, states = drop_dead_ends([[1, 1, 0], [2, 0, 1], [0, 0, 0]], states=["a", "b", "c"])
    >>> states, counts.toarray().tolist()
    (['a', 'b'], [[1.0, 1.0], [2.0, 0.0]])
    """
    matrix, labels = checked_counts(counts, states)
    matrix.eliminate_zeros()
    kept = np.arange(len(labels))
    while True:
        alive = (np.diff(matrix.indptr) > 0) & (
            np.bincount(matrix.indices, minlength=kept.size) > 0
        )
        if alive.all():
            return matrix, [labels[k] for k in kept.tolist()]
        kept = kept[alive]
        if kept.size == 0:
            raise ValueError(
                f"at least one state must be reached and left, found none of {len(labels)}; "
                "give longer sequences or smooth"
            )
        matrix = matrix[alive][:, alive]


def _filled(stored: Any, background: np.ndarray) -> np.ndarray:
    """Sparse rows as a dense array, with each row's background where nothing is stored."""
    dense = np.repeat(background[:, None], stored.shape[1], axis=1)
    entries = stored.tocoo()
    dense[entries.coords] = entries.data
    return dense


def checked_counts(counts: Any, states: Iterable | None = None) -> tuple[Any, Any]:
    """Counts of steps as a new csr_array (n, n), and the states' labels; also of what
    `count_transitions` returns."""
    if isinstance(counts, tuple) and len(counts) == 2 and hasattr(counts[0], "tocsr"):
        counts, found = counts
        states = common_states(
            [found] if states is None else [checked_states(states), found], "states and the counts"
        )
    counts, states = _without_labels(counts, states)
    matrix = _sparse(counts, "counts")
    return matrix, checked_states(states, matrix.shape[0])


def _without_labels(matrix: Any, states: Iterable | None) -> tuple[Any, Iterable | None]:
    """A matrix and its states; a DataFrame as an array in the order of the states, by default that
    of its rows."""
    matrix = rows_as_frame(matrix)
    if not hasattr(matrix, "columns"):
        return matrix, states
    labels = matrix.index.tolist()
    named = checked_states(labels if states is None else states, len(labels))
    numbered = states is None and hasattr(matrix.index, "start") and labels == [*range(len(labels))]
    return by_state(
        matrix, named, "rows and columns", (0, 1)
    ).to_numpy(), None if numbered else named


def _sparse(matrix: Any, name: str):
    """Finite numbers >= 0 as a new csr_array (n, n)."""
    import scipy.sparse

    must, remedy = f"{name} {ROWS[0]}", ROWS[1]
    stored = matrix.tocsr() if hasattr(matrix, "tocsr") else as_numbers(matrix, must, remedy)
    check_square(stored, name)
    result = scipy.sparse.csr_array(stored, copy=True)
    result.data = as_numbers(result.data, must, remedy)
    result.sum_duplicates()
    check_entries(result.data, name)
    return result


def _checked_sparse(probabilities, background, normalize: bool) -> tuple[Any, np.ndarray]:
    matrix = _sparse(probabilities, "probabilities")
    stored = np.diff(matrix.indptr)
    rest = as_numbers(
        0.0 if background is None else background,
        "background must be numbers",
        "give one for each row",
    )
    rest = np.broadcast_to(rest, stored.shape)
    check_entries(rest, "background probabilities")
    divisors = _divisors(
        matrix.sum(axis=1) + rest * (stored.size - stored), normalize, matrix.sum(axis=0)
    )
    matrix.data /= np.repeat(divisors, stored)
    return matrix, rest / divisors


def _divisors(sums: np.ndarray, normalize: bool, columns: np.ndarray) -> np.ndarray:
    """Divisors of rows: their sums to normalize, else 1 where the sums, which must be 1, differ by
    rounding.

    The sums of the `columns` tell a transposed matrix.
    """
    if not normalize:
        gaps = np.abs(sums - 1.0)
        worst = int(np.argmax(gaps))
        if gaps[worst] > ROW_SUM_TOLERANCE:
            is_transposed = np.abs(columns - 1.0).max() <= ROW_SUM_TOLERANCE
            remedy = "pass normalize=True to TransitionMatrix to divide each row by its sum"
            if is_transposed:
                remedy = "columns do: pass the transposed matrix, whose row i holds the probabilities from state i"
            raise ValueError(
                f"rows must sum to 1 within {ROW_SUM_TOLERANCE:g}, found {sums[worst]:.12g} in row {worst}; {remedy}"
            )
        return np.where(gaps > ROUNDED_SUM, sums, 1.0)
    bad = ~((sums > 0) & np.isfinite(sums))
    if bad.any():
        raise ValueError(
            f"a row must have a positive, finite sum to be normalized, found {sums[bad][0]:g} in row "
            f"{np.argmax(bad)}; give that state at least one transition, or smooth the counts"
        )
    return sums


def _closed_class(adjacency, states: Sequence) -> np.ndarray:
    """The numbers of the states in the only class of connected states that is never left."""
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(adjacency, connection="strong")
    rows, columns = adjacency.nonzero()
    closed = np.setdiff1d(label, label[rows[label[rows] != label[columns]]])
    if closed.size > 1:
        first, second = (states[int(np.argmax(label == c))] for c in closed[:2])
        raise ValueError(
            f"the stationary distribution must be unique, found {closed.size} closed classes of states (one "
            f"holds {first!r}, another {second!r}); give an initial distribution, or smooth the matrix"
        )
    return np.flatnonzero(label == closed[0])


def _state_reduction(matrix: TransitionMatrix) -> np.ndarray:
    """The stationary distribution by the algorithm of Grassmann, Taksar and Heyman: nothing is
    subtracted."""
    import scipy.sparse

    inside = _closed_class(scipy.sparse.csr_array(matrix.probabilities), matrix.states)
    a = matrix.probabilities[np.ix_(inside, inside)].copy()
    for k in range(inside.size - 1, 0, -1):
        a[:k, k] /= a[k, :k].sum()
        a[:k, :k] += np.outer(a[:k, k], a[k, :k])
    p = np.append(1.0, np.zeros(inside.size - 1))
    for k in range(1, inside.size):
        p[k] = p[:k] @ a[:k, k]
    return np.bincount(inside, weights=p / p.sum(), minlength=matrix.n_states)


def _power_iteration(matrix: TransitionMatrix) -> np.ndarray:
    """The stationary distribution by power iteration on the lazy chain (P + I)/2, O(stored entries)
    a step."""
    import scipy.sparse

    # A state with a background leads to one more node, which leads everywhere.
    anywhere = scipy.sparse.csr_array(matrix.background[:, None] * matrix.n_states >= LEAST_STEP)
    steps = [[matrix.probabilities >= LEAST_STEP, anywhere], [np.ones((1, matrix.n_states)), None]]
    _closed_class(scipy.sparse.block_array(steps, format="csr"), matrix.states)
    p = np.full(matrix.n_states, 1.0 / matrix.n_states)
    for _ in range(100_000):
        following = 0.5 * (p + matrix.__rmatmul__(p / p.sum()))
        following /= following.sum()
        change = np.abs(following - p).sum()
        if change <= 1e-14:
            return following
        p = following
    raise ValueError(
        f"power iteration must settle within 1e-14 in 100,000 steps, found {change:g}; give `initial`"
    )
