"""Transition matrices: the adversary's knowledge of temporal correlation (Definition 3 of [1]).

A forward matrix holds Pr(l^t | l^{t-1}) (row: where the user was; column: where she is now), a
backward matrix Pr(l^{t-1} | l^t). With many states a matrix is sparse: row i is a few stored
probabilities, and `background[i]` in all other columns.
"""

from __future__ import annotations
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from datetime import timedelta
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

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
#: Rows whose sums differ from 1 by more are divided by them, lest budgets trust probabilities
#: that do not sum to 1.
ROUNDED_SUM = 16 * 2.0**-52
#: From this many states on, estimates are kept sparse unless asked otherwise (a dense matrix would
#: take 128 MB).
SPARSE_FROM = 4096
#: Rows and columns that a notebook shows, and states whose labels fit on the axes of a figure.
MOST_SHOWN = 10
MOST_TICKS = 30
#: What an error says of numbers that do not form a matrix, and how to mend them.
NO_TABLE = "must be a rectangular array of numbers"
GIVE_ROWS = "give n rows of n of them"


class TransitionMatrix(FrozenArrays):
    """A validated row-stochastic matrix (Definition 3 of [1]) with names for its states.

    Parameters
    ----------
    probabilities : array-like, DataFrame, TransitionMatrix or scipy.sparse matrix (n, n)
        Rows sum to 1 within 1e-9; no negative, missing or infinite entries.
    states : sequence of n distinct hashable labels, optional
        By default those of a DataFrame's rows, else 0..n-1.
    normalize : bool
        Divide each row by its sum first; without it, rows that do not sum to 1 are an error.
    background : float or array-like (n,), optional
        For sparse matrices: the probability of the columns that are not stored in row i.
    step : str, datetime.timedelta or None
        How long a step takes, such as "1h", if that is known; a publisher of another step then
        refuses the matrix.

    Raises
    ------
    ValueError
        If the rows are no distributions over the states, or a step is no positive duration.

    Examples
    --------
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
    step: timedelta | None = None  # how long a step takes

    def __init__(
        self,
        probabilities: Any,
        states: Iterable | None = None,
        normalize: bool = False,
        background: ArrayLike | None = None,
        *,
        step: str | timedelta | None = None,
    ):
        if isinstance(probabilities, TransitionMatrix):
            if step is None:
                step = probabilities.step
            states = _agreed_states(states, probabilities.states, "states and the matrix")
            background = probabilities.background
            probabilities = probabilities.probabilities
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
            self.probabilities = _checked_dense(probabilities, normalize)
        self._states = checked_states(states, self.probabilities.shape[0])
        self.step = as_step(step)
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
        """The maximum-likelihood estimate (count + s) / (row total + n s), with Laplacian
        smoothing s >= 0.

        Parameters
        ----------
        sequences : Sequences, DataFrame, mapping, or iterable of sequences
            A DataFrame has the columns user, time and state; a mapping leads from each user to
            her sequence or sequences; a sequence holds whole numbers or labels.
        n_states : int, optional
            The states are 0..n_states-1, instead of the values seen.
        smoothing : float
            s, which is added to each count.
        states : sequence of labels, optional
            All states in their order, instead of the values seen, sorted.
        direction : str
            "forward" estimates Pr(l^t | l^{t-1}), "backward" Pr(l^{t-1} | l^t).
        sparse : bool, optional
            Whether the matrix is sparse; by default from 4,096 states on.
        user, time, state : optional
            The columns of a DataFrame, where they have other names.

        Returns
        -------
        TransitionMatrix

        Raises
        ------
        ValueError
            If the sequences are malformed or hold an unknown state, or if a state is never left
            and s is 0.

        Examples
        --------
        >>> P = TransitionMatrix.from_sequences([[7, 30, 30, 7], [30, 7]])
        >>> P.states, P.probabilities.round(6).tolist()
        ([7, 30], [[0.0, 1.0], [0.666667, 0.333333]])
        """
        from tplrepro.markov.sequences import as_sequences, count_transitions, rename_columns

        renamed = rename_columns(sequences, {"user": user, "time": time, "state": state})
        data = as_sequences(renamed, n_states, states)
        counts, labels = count_transitions(data, direction=direction)
        names: list | None = labels
        are_positions = n_states is not None or isinstance(states, range)
        if are_positions and labels == list(range(len(labels))):
            names = None
        return cls.from_counts(counts, smoothing, names, sparse, step=data.step)

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        smoothing: float = 0.0,
        states: Iterable | None = None,
        sparse: bool | None = None,
        *,
        step: str | timedelta | None = None,
    ) -> Self:
        """The maximum-likelihood estimate (count + s) / (row total + n s) from counts of steps.

        Parameters
        ----------
        counts : array-like, DataFrame or scipy.sparse matrix (n, n)
            Steps from each state (row) to each state (column); or what `count_transitions`
            returns.
        smoothing : float
            s >= 0, which is added to each count; positive if a state is never left.
        states : sequence of n labels, optional
            By default those of the counts, else 0..n-1.
        sparse : bool, optional
            Whether the matrix is sparse; by default from 4,096 states on.
        step : str, datetime.timedelta or None
            How long a step takes, if that is known.

        Returns
        -------
        TransitionMatrix

        Raises
        ------
        ValueError
            If counts are negative or not square, or if a state is never left and s is 0.

        Examples
        --------
        >>> P = TransitionMatrix.from_counts([[0, 1], [0, 1]], smoothing=1.0)
        >>> P.probabilities.round(6).tolist()
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
        if sparse is None:
            sparse = n >= SPARSE_FROM
        if not sparse:
            return cls((matrix.toarray() + smoothing) / totals[:, None], states=labels, step=step)
        matrix.data = (matrix.data + smoothing) / np.repeat(totals, np.diff(matrix.indptr))
        return cls(matrix, states=labels, background=smoothing / totals, step=step)

    @classmethod
    def random(cls, n: int, *, rng: RngLike, zeros: float = 0.0) -> Self:
        """Rows of uniform numbers, divided by their sums ([2], section VI.A).

        Parameters
        ----------
        n : int
            The number of states.
        rng : int, numpy.random.Generator or None
            A seed, a generator, or None for a matrix that nobody can repeat.
        zeros : float
            The probability, in [0, 1), with which an entry is set to 0; one in each row is kept.

        Returns
        -------
        TransitionMatrix

        Raises
        ------
        ValueError
            If `n` is no positive whole number, or `zeros` no such probability.

        Examples
        --------
        >>> TransitionMatrix.random(2, rng=1).probabilities.round(4).tolist()
        [[0.35, 0.65], [0.1319, 0.8681]]
        """
        n = check_horizon(n, "n")
        zeros = check_probability(zeros, "zeros", one=False)
        rng = as_generator(rng)
        rows = rng.random((n, n))
        is_kept = rng.random((n, n)) >= zeros
        is_kept[np.arange(n), rng.integers(0, n, n)] = True
        return cls(rows * is_kept, normalize=True)

    @property
    def n_states(self) -> int:
        return len(self._states)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_states, self.n_states

    @property
    def states(self) -> Sequence:
        """The labels of the states, in the order of rows and columns."""
        if isinstance(self._states, range):
            return self._states
        return list(self._states)

    @property
    def is_sparse(self) -> bool:
        return self.background is not None

    def __repr__(self) -> str:
        kind = "dense"
        if self.is_sparse:
            kind = f"sparse, {self.probabilities.nnz} stored"
        labels = [repr(label) for label in self._states]
        if len(labels) > 4:
            labels[2:-1] = ["..."]
        return f"TransitionMatrix({self.n_states} states {', '.join(labels)}; {kind})"

    def _repr_html_(self) -> str:
        import pandas as pd

        from tplrepro.display import frame_as_html

        size = min(self.n_states, MOST_SHOWN)
        rows = [self.row(k)[:size] for k in range(size)]
        labels = [self._states[k] for k in range(size)]
        return frame_as_html(repr(self), pd.DataFrame(rows, labels, labels))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the probabilities with Matplotlib, a row for each given state, on `ax` or new axes;
        returns the axes."""
        with optional_import():
            from matplotlib import pyplot as plt
        axes = ax
        if axes is None:
            _, axes = plt.subplots()
        image = axes.imshow(self.toarray(), vmin=0.0, vmax=1.0, cmap="Blues")
        axes.figure.colorbar(image, ax=axes, label="probability")
        if self.n_states <= MOST_TICKS:
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
            same_background = np.array_equal(self.background, other.background)
            return same_background and not (self._excess != other._excess).nnz
        return np.array_equal(self.toarray(), other.toarray())

    def __hash__(self) -> int:
        return hash(self._states)

    def to_numpy(self) -> np.ndarray:
        """All probabilities as a dense array (n, n)."""
        if self.is_sparse:
            return _fill_background(self.probabilities, self.background)
        return self.probabilities

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
        i, j = map(self._number_of_state, place)
        return float(self.row(i)[j])

    def __matmul__(self, other: MatrixLike) -> Any:
        """P @ Q is the matrix of a step by P and then one by Q; P @ v is an array."""
        if isinstance(other, TransitionMatrix):
            states = common_states([self.states, other.states])
            return TransitionMatrix(self.to_numpy() @ other.to_numpy(), states)
        return self.to_numpy() @ np.asarray(by_state(other, self.states, "the right side"))

    def __pow__(self, k: int) -> TransitionMatrix:
        """P ** k is the matrix of k steps; `tplfrontier.every_kth` leaves a sparse one sparse."""
        k = check_horizon(k, "k")
        rows = self.to_numpy()
        if k == 1:
            return self
        power = np.linalg.matrix_power(rows, k)
        step = None if self.step is None else k * self.step
        return TransitionMatrix(power, self.states, normalize=True, step=step)

    def __rmatmul__(self, other: ArrayLike) -> np.ndarray:
        rows = np.asarray(by_state(other, self.states, "the left side", (np.ndim(other) - 1,)))
        if not self.is_sparse:
            return rows @ self.probabilities
        return rows @ self._excess + np.expand_dims(rows @ self.background, -1)

    def sample(self, length: int, *, rng: RngLike, initial: ArrayLike | None = None) -> list:
        """A path of states, by their labels.

        Parameters
        ----------
        length : int
            The number of states.
        rng : int, numpy.random.Generator or None
            A seed, a generator, or None for a path that nobody can repeat.
        initial : array-like (n,), optional
            The distribution of the first state, by default the stationary one.

        Returns
        -------
        list

        Raises
        ------
        ValueError
            If `initial` is no distribution, or is left out and no stationary one is unique.

        Examples
        --------
        >>> P = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["home", "office"])
        >>> P.sample(4, rng=3)
        ['home', 'home', 'office', 'office']
        """
        probabilities = self._initial_or_stationary(initial)
        rng = as_generator(rng)
        path = []
        for _ in range(check_horizon(length, "length")):
            state = rng.choice(self.n_states, p=probabilities)
            path.append(self._states[state])
            probabilities = self.row(state)
        return path

    def row(self, index: Any) -> np.ndarray:
        """Transition probabilities from the state with this number or label, (n,)."""
        index = self._number_of_state(index)
        row = self.probabilities[[index]]
        if self.is_sparse:
            row = _fill_background(row, self.background[[index]])
        return row[0]

    def column(self, index: Any) -> np.ndarray:
        """Transition probabilities to the state with this number or label, (n,)."""
        index = self._number_of_state(index)
        column = self.probabilities[:, [index]]
        if self.is_sparse:
            column = _fill_background(column, self.background)
        return column[:, 0]

    def _number_of_state(self, state: Any) -> int:
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
        """The stored entries of a sparse matrix minus the background of their rows: csr_array
        (n, n)."""
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
        from scipy.sparse import csr_array

        from tplrepro.markov.stationary import class_periods

        return class_periods(csr_array(self.toarray() > 0))

    def stationary(self) -> np.ndarray:
        """The distribution p (n,) with p P = p; ValueError if several closed classes of states make
        it not unique.

        All digits of each probability are right, but not in a sparse matrix of more than 1,000
        states: there p is found to about 1e-14 over the share of a difference that a step forgets,
        and steps less likely than 1e-10 count as impossible for these classes.
        """
        from tplrepro.markov.stationary import MOST_REDUCED, iterate_powers, reduce_states

        if self.is_sparse and self.n_states > MOST_REDUCED:
            return iterate_powers(self)
        return reduce_states(self)

    def _initial_or_stationary(self, initial: ArrayLike | None) -> np.ndarray:
        if initial is None:
            return self.stationary()
        return check_distribution(initial, self.states, "initial")

    def reverse(self, initial: ArrayLike | None = None) -> TransitionMatrix:
        """Bayes' rule: from Pr(l^t | l^{t-1}) to Pr(l^{t-1} | l^t), or back; dense if there is a
        background.

        Entry (j, i) is initial_i P_ij / sum_k initial_k P_kj, `initial` (n,) being the distribution
        of l^{t-1}, by default the stationary one. Every state must be reached.

        By default it is the backward matrix of users who start in the habit: whose first state has
        the stationary distribution, whatever their data are. For those who start elsewhere, leakage
        may be several times as large: see `Cycle(P).reverse(start=...)`.
        """
        prior = self._initial_or_stationary(initial)
        is_stored = self.is_sparse and not self.background.any()
        rows = self.probabilities
        if not is_stored:
            rows = self.toarray()
        joint = rows * prior[:, None]
        reached = joint.sum(axis=0)
        if (reached <= 0).any():
            state = self._states[np.argmin(reached)]
            raise ValueError(
                f"reversal needs every state to be reached, but state {state!r} has probability 0 "
                "after one step; give an initial distribution that reaches it, or smooth"
            )
        return TransitionMatrix(joint.T, states=self._states, normalize=True, step=self.step)


def as_step(step: str | timedelta | None) -> timedelta | None:
    """The length of a step, from text such as "1h" or a duration; None if it is not known.

    >>> as_step("90min")
    datetime.timedelta(seconds=5400)
    """
    if step is None:
        return None
    length: Any = step
    if isinstance(step, str):
        from pandas import Timedelta

        with suppress(ValueError):
            length = Timedelta(step)
    if not isinstance(length, timedelta) or length <= timedelta(0):
        raise ValueError(
            f"step must be a positive duration with its unit, found {step!r}; give such as '1h'"
        )
    return timedelta(microseconds=length // timedelta(microseconds=1))


#: A matrix, or what makes one.
MatrixLike = TransitionMatrix | ArrayLike


def as_transition_matrix(matrix: Any) -> TransitionMatrix:
    """`matrix` itself if it is a TransitionMatrix, else a new one made from it, and so checked."""
    return matrix if isinstance(matrix, TransitionMatrix) else TransitionMatrix(matrix)


def drop_dead_ends(counts: Any, states: Iterable | None = None) -> tuple[Any, list]:
    """The largest part of the counts in which every state is reached and left.

    Parameters
    ----------
    counts : array-like, DataFrame or scipy.sparse matrix (n, n)
        Steps from each state (row) to each state (column); or what `count_transitions` returns.
    states : sequence of n labels, optional
        By default those of the counts, else 0..n-1.

    Returns
    -------
    counts : csr_array (m, m)
    states : list of m labels

    Raises
    ------
    ValueError
        If no state is left, or the counts are negative or not square.

    Examples
    --------
    >>> counts, states = drop_dead_ends([[1, 1, 0], [2, 0, 1], [0, 0, 0]], states=["a", "b", "c"])
    >>> states, counts.toarray().tolist()
    (['a', 'b'], [[1.0, 1.0], [2.0, 0.0]])
    """
    matrix, labels = checked_counts(counts, states)
    matrix.eliminate_zeros()
    kept = np.arange(len(labels))
    while True:
        is_left = np.diff(matrix.indptr) > 0
        is_reached = np.bincount(matrix.indices, minlength=kept.size) > 0
        is_alive = is_left & is_reached
        if is_alive.all():
            return matrix, [labels[k] for k in kept.tolist()]
        kept = kept[is_alive]
        if kept.size == 0:
            raise ValueError(
                f"at least one state must be reached and left, found none of {len(labels)}; "
                "give longer sequences or smooth"
            )
        matrix = matrix[is_alive][:, is_alive]


def _fill_background(stored: Any, background: np.ndarray) -> np.ndarray:
    """Sparse rows as a dense array, with each row's background where nothing is stored."""
    dense = np.repeat(background[:, None], stored.shape[1], axis=1)
    entries = stored.tocoo()
    dense[entries.coords] = entries.data
    return dense


def checked_counts(counts: Any, states: Iterable | None = None) -> tuple[Any, Any]:
    """Counts of steps as a new matrix, and the labels of the states.

    Parameters
    ----------
    counts : array-like, DataFrame or scipy.sparse matrix (n, n)
        Finite and not negative; or what `count_transitions` returns.
    states : sequence of n labels, optional
        By default those of the counts, else 0..n-1.

    Returns
    -------
    counts : csr_array (n, n)
    states : range or tuple of n labels

    Raises
    ------
    ValueError
        If the counts are negative or not square, or have other states.
    """
    if isinstance(counts, tuple) and len(counts) == 2 and hasattr(counts[0], "tocsr"):
        counts, counted_states = counts
        states = _agreed_states(states, counted_states, "states and the counts")
    counts, states = _without_labels(counts, states)
    matrix = _as_sparse(counts, "counts")
    return matrix, checked_states(states, matrix.shape[0])


def _agreed_states(states: Iterable | None, own: Sequence, name: str) -> Sequence | None:
    """The states of something that has labels of its `own`: those; `states` that are given and
    differ are an error, which calls both `name`."""
    if states is None:
        return common_states([own], name)
    return common_states([checked_states(states), own], name)


def _without_labels(matrix: Any, states: Iterable | None) -> tuple[Any, Iterable | None]:
    """A matrix and its states; a DataFrame as an array in the order of the states, by default that
    of its rows."""
    matrix = rows_as_frame(matrix)
    if not hasattr(matrix, "columns"):
        return matrix, states
    labels = matrix.index.tolist()
    names = checked_states(labels if states is None else states, len(labels))
    rows = by_state(matrix, names, "rows and columns", (0, 1)).to_numpy()
    has_default_index = hasattr(matrix.index, "start") and labels == [*range(len(labels))]
    if states is None and has_default_index:
        return rows, None
    return rows, names


def _checked_dense(probabilities: Any, normalize: bool) -> np.ndarray:
    """Probabilities (n, n) whose rows sum to 1, read-only."""
    numbers = as_numbers(probabilities, f"a transition matrix {NO_TABLE}", GIVE_ROWS)
    rows = np.ascontiguousarray(numbers)
    check_square(rows)
    check_entries(rows)
    divisors = _row_divisors(rows.sum(axis=1), normalize, rows.sum(axis=0))
    rows = rows / divisors[:, None]
    rows.setflags(write=False)
    return rows


def _as_sparse(matrix: Any, name: str) -> Any:
    """Finite numbers >= 0 as a new csr_array (n, n)."""
    import scipy.sparse

    constraint = f"{name} {NO_TABLE}"
    if hasattr(matrix, "tocsr"):
        stored = matrix.tocsr()
    else:
        stored = as_numbers(matrix, constraint, GIVE_ROWS)
    check_square(stored, name)
    result = scipy.sparse.csr_array(stored, copy=True)
    result.data = as_numbers(result.data, constraint, GIVE_ROWS)
    result.sum_duplicates()
    check_entries(result.data, name)
    return result


def _checked_sparse(
    probabilities: Any, background: ArrayLike | None, normalize: bool
) -> tuple[Any, np.ndarray]:
    """The stored probabilities, csr_array (n, n), and the background (n,) of the entries that are
    not stored; the sums of rows are 1, or become so if `normalize`."""
    matrix = _as_sparse(probabilities, "probabilities")
    n_stored = np.diff(matrix.indptr)
    if background is None:
        background = 0.0
    numbers = as_numbers(background, "background must be numbers", "give one for each row")
    rest = np.broadcast_to(numbers, n_stored.shape)
    check_entries(rest, "background probabilities")
    sums = matrix.sum(axis=1) + rest * (n_stored.size - n_stored)
    divisors = _row_divisors(sums, normalize, matrix.sum(axis=0))
    matrix.data /= np.repeat(divisors, n_stored)
    return matrix, rest / divisors


def _row_divisors(sums: np.ndarray, normalize: bool, column_sums: np.ndarray) -> np.ndarray:
    """What each row is divided by, (n,): its sum to normalize, else 1 unless the sum is rounded.

    Without `normalize` the `sums` (n,) of rows must be 1; `column_sums` (n,) tell a transposed
    matrix.
    """
    if normalize:
        _check_positive_sums(sums)
        return sums
    gaps = np.abs(sums - 1.0)
    worst = int(np.argmax(gaps))
    if gaps[worst] > ROW_SUM_TOLERANCE:
        remedy = "pass normalize=True to TransitionMatrix to divide each row by its sum"
        if np.abs(column_sums - 1.0).max() <= ROW_SUM_TOLERANCE:
            remedy = (
                "columns do: pass the transposed matrix, whose row i holds the probabilities "
                "from state i"
            )
        raise ValueError(
            f"rows must sum to 1 within {ROW_SUM_TOLERANCE:g}, "
            f"found {sums[worst]:.12g} in row {worst}; {remedy}"
        )
    return np.where(gaps > ROUNDED_SUM, sums, 1.0)


def _check_positive_sums(sums: np.ndarray) -> None:
    is_bad = ~((sums > 0) & np.isfinite(sums))
    if is_bad.any():
        raise ValueError(
            f"a row must have a positive, finite sum to be normalized, found {sums[is_bad][0]:g} "
            f"in row {np.argmax(is_bad)}; "
            "give that state at least one transition, or smooth the counts"
        )
