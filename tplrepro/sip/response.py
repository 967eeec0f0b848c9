"""Responses: the distribution of the output at one time step, given the true symbol and the
adversary's belief ([3]).

A response a(y|x) over tens of thousands of symbols is never written out as a matrix, but kept as a
few rows over the symbols that are ever output.
"""

from __future__ import annotations
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.filtering import log_probabilities
from tplrepro.validation import (
    RngLike,
    as_generator,
    as_numbers,
    by_state,
    check_choice,
    check_codes,
    check_entries,
    check_level,
    frozen,
)

#: "hamming", an array (n, n), or a function of two arrays of symbols that broadcast against each
#: other.
Distance: TypeAlias = str | ArrayLike | Callable[..., np.ndarray]
#: Responses over more symbols than this are not written out as a matrix (it would take 800 MB).
LARGEST_MATRIX = 10_000


@dataclass(frozen=True, eq=False)
class Response:
    """A response under a belief: a(y|x) = share base(y) + (1 - share) w(y|x); symbols of a class
    share w(.|x)."""

    belief: np.ndarray  # (n,)
    labels: np.ndarray  # (m,), the symbols that are ever output
    share: float
    base: np.ndarray  # (m,)
    table: np.ndarray  # (c, m), c >= 1, the row w(.|x) of each class
    # (n,), the class of each symbol; -1: w outputs the symbol itself, which must be a label
    row_class: np.ndarray
    bound: float = -np.inf  # a proven lower bound of the cost of every response within the budget

    def __post_init__(self) -> None:
        for value in (self.belief, self.labels, self.base, self.table, self.row_class):
            value.setflags(write=False)  # a mechanism may give it again

    @cached_property
    def class_mass(self) -> np.ndarray:
        """Belief in each class, (c,)."""
        has_class = self.row_class >= 0
        classes = self.row_class[has_class]
        beliefs = self.belief[has_class]
        return np.bincount(classes, beliefs, minlength=len(self.table))

    @cached_property
    def own_mass(self) -> np.ndarray:
        """Belief in each label if w outputs that symbol unchanged, else 0, (m,)."""
        is_unchanged = self.row_class[self.labels] < 0
        return np.where(is_unchanged, self.belief[self.labels], 0.0)

    @cached_property
    def w_marginal(self) -> np.ndarray:
        """q(y) = sum_x belief(x) w(y|x) over the labels, (m,)."""
        return self.class_mass @ self.table + self.own_mass

    @cached_property
    def output(self) -> np.ndarray:
        """Distribution of the output over the labels, (m,)."""
        return self._mix_with_base(self.base, self.w_marginal)

    def _mix_with_base(self, base: np.ndarray, w: np.ndarray) -> np.ndarray:
        """share base + (1 - share) w."""
        return self.share * base + (1 - self.share) * w

    @cached_property
    def marginal(self) -> np.ndarray:
        """Distribution of the output over all symbols, (n,)."""
        return self._over_symbols(self.output)

    @cached_property
    def w_range(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest w(y|x) over possible x, for each label y, (m,) each."""
        is_possible = self.class_mass > 0
        rows = self.table[is_possible]
        lowest_in_rows = rows.min(axis=0, initial=1.0)
        highest_in_rows = rows.max(axis=0, initial=0.0)
        is_own = self.own_mass > 0
        # A symbol that is output unchanged never gives another label.
        another_is_own = is_own.sum() > is_own
        lowest = np.where(another_is_own, 0.0, lowest_in_rows)
        highest = np.maximum(highest_in_rows, is_own)
        return lowest, highest

    @cached_property
    def leakage(self) -> float:
        """The true instantaneous information leakage (Eq. (12) of [3]), nats."""
        lowest_w, highest_w = self.w_range
        lowest_ratio = self._ratios_to_output(lowest_w).min()
        highest_ratio = self._ratios_to_output(highest_w).max()
        raised = np.log(highest_ratio)
        lowered = -log_probabilities(lowest_ratio)
        return float(max(raised, lowered))

    def _ratios_to_output(self, w: np.ndarray) -> np.ndarray:
        """a(y|x) / p(y) of each output y that can occur, from a w(y|x) of each label y, (m,)."""
        is_seen = self.output > 0
        output = self.output[is_seen]
        base_ratios = self.base[is_seen] / output
        w_ratios = w[is_seen] / output
        return self._mix_with_base(base_ratios, w_ratios)

    def row(self, x: int) -> np.ndarray:
        """Distribution of the output given symbol x, (n,)."""
        shared = self.row_class[self.checked_symbol(x)]
        if shared >= 0:
            w = self.table[shared]
        else:
            w = self.labels == x
        return self._over_symbols(self._mix_with_base(self.base, w))

    def column(self, y: int) -> np.ndarray:
        """Likelihood of output y given each symbol, (n,)."""
        is_label = self.labels == self.checked_symbol(y)
        if not is_label.any():
            return np.zeros(self.belief.size)
        label = np.argmax(is_label)
        base = self.base[label]
        w_of_class = np.append(self.table[:, label], 0.0)  # the last is class -1
        likelihood_of_class = self._mix_with_base(base, w_of_class)
        likelihood = likelihood_of_class[self.row_class]
        if self.row_class[y] < 0:
            likelihood[y] = self.share * base + (1 - self.share)
        return likelihood

    def changed(self) -> np.ndarray:
        """Pr(output != x | x) for each symbol x, (n,), accurate where it is small."""
        classes = self.row_class[self.labels]
        columns = np.arange(self.labels.size)
        kept_by_w = self.table[classes, columns]
        changed_by_w = np.where(classes < 0, 0.0, 1.0 - kept_by_w)
        changed_by_base = 1.0 - self.base
        result = np.ones(self.belief.size)
        result[self.labels] = self._mix_with_base(changed_by_base, changed_by_w)
        return result

    def _over_symbols(self, values: np.ndarray) -> np.ndarray:
        """Values of the labels, (m,), and 0 for all other symbols, (n,)."""
        result = np.zeros(self.belief.size)
        result[self.labels] = values
        return result

    def extended(self, belief: np.ndarray, symbols: np.ndarray) -> Response:
        """This response over some symbols as one over all; others get the marginal, which leaks
        nothing.

        Parameters
        ----------
        belief : array (n,)
            The belief in all symbols.
        symbols : array (k,) of int
            What the symbols of this response are among all.

        Returns
        -------
        Response
        """
        row_class = np.full(belief.size, len(self.table))
        row_class[symbols] = self.row_class
        others = self.w_marginal / self.w_marginal.sum()
        return replace(
            self,
            belief=belief,
            labels=symbols[self.labels],
            table=np.vstack([self.table, others]),
            row_class=row_class,
        )

    def matrix(self) -> np.ndarray:
        """All rows, (n, n); ValueError above 10,000 symbols."""
        n = self.belief.size
        if n > LARGEST_MATRIX:
            gigabytes = 8 * n * n / 1e9
            raise ValueError(
                f"a matrix is limited to {LARGEST_MATRIX} symbols, found {n} symbols "
                f"({gigabytes:.1f} GB); use row(x) or column(y)"
            )
        rows = [self.row(x) for x in range(n)]
        return np.array(rows)

    def sample(self, x: int, *, rng: RngLike) -> int:
        """Draw the output for a true symbol.

        Parameters
        ----------
        x : int
            The symbol, possible under the belief.
        rng : int, numpy.random.Generator or None
            A seed, a generator, or None for draws that nobody can repeat.

        Returns
        -------
        int
            The symbol that is output.

        Raises
        ------
        ValueError
            If x is no symbol, or is impossible under the belief.
        """
        truth = self.checked_symbol(x, true=True)
        return draw_symbol(self.row(truth), as_generator(rng))

    def cost(self, distance: Distance = "hamming") -> float:
        """Expected distance between input and output (Eq. (14) of [3])."""
        if isinstance(distance, str) and distance == "hamming":
            changed = self.belief * self.changed()
            return float(changed.sum())
        between = distance_function(distance, self.belief.size)
        possible = np.flatnonzero(self.belief)
        b = self.belief[possible]
        cost = 0.0
        is_seen = self.output > 0
        for y in self.labels[is_seen]:
            likelihood = self.column(y)[possible]
            distances = distances_by(between, possible, y)
            cost += b @ (distances * likelihood)
        return float(cost)

    def checked_symbol(self, x: int, true: bool = False) -> int:
        """A symbol 0..n-1; a `true` one must be possible under the belief."""
        n = self.belief.size
        is_integer = isinstance(x, (int, np.integer))
        if not (is_integer and 0 <= x < n):
            raise ValueError(f"a symbol must be one of 0..{n - 1}, found {x!r}; check the input")
        if true and self.belief[x] <= 0:
            found = f"found probability 0 of symbol {x}"
            raise ValueError(
                f"a true symbol must be possible under the belief, {found}; "
                "smooth the chain behind it"
            )
        return int(x)


def draw_symbol(distribution: np.ndarray, rng: np.random.Generator) -> int:
    """A symbol by inversion of one uniform number."""
    cumulative = np.cumsum(distribution)
    level = rng.random() * cumulative[-1]
    symbol = np.searchsorted(cumulative, level, side="right")
    return int(min(symbol, cumulative.size - 1))


class BeliefMechanism(ABC):
    """A mechanism that responds to a belief within a budget of `epsilon` nats; a subclass defines
    `response`.

    If it `uses_previous`, its response also takes the true previous symbol, `response(belief,
    previous=x)`.
    """

    uses_previous = False

    def __init__(self, epsilon: float):
        self.epsilon = check_level(epsilon, "epsilon")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={self.epsilon:g})"

    @abstractmethod
    def response(self, belief: ArrayLike) -> Response:
        """The response under a belief (n,); ValueError if that is no distribution."""

    def matrix(self, belief: ArrayLike) -> np.ndarray:
        """Rows a(.|x) under a belief, (n, n)."""
        return self.response(belief).matrix()

    def sample(self, x: int, belief: ArrayLike, *, rng: RngLike) -> int:
        """Draw the output for a true symbol.

        Parameters
        ----------
        x : int
            The symbol, possible under the belief.
        belief : array-like (n,)
            The distribution of the symbol given the outputs so far.
        rng : int, numpy.random.Generator or None
            A seed, a generator, or None for draws that nobody can repeat.

        Returns
        -------
        int
            The symbol that is output.

        Raises
        ------
        ValueError
            If the belief is no distribution, or x is impossible under it.
        """
        return self.response(belief).sample(x, rng=rng)

    def leakage(self, belief: ArrayLike) -> float:
        """True instantaneous information leakage under a belief, nats."""
        return self.response(belief).leakage


def check_symbols(sequence: ArrayLike, n_symbols: int) -> np.ndarray:
    """A sequence of symbols 0..n-1 as an int array (T,), T >= 1."""
    symbols = check_codes(sequence, n_symbols, "symbols")
    if symbols.ndim != 1 or symbols.size == 0:
        raise ValueError(
            f"a sequence must be one symbol or more, found shape {symbols.shape}; give one sequence"
        )
    return symbols


def check_distance(distance: Any, states: int | Sequence | None) -> np.ndarray:
    """A distance matrix between states (n, n), finite and not negative; "hamming" is 1 off the
    diagonal.

    `states` are their number or their labels; None takes n from the array, and then "hamming" is a
    placeholder (1, 1).
    """
    if isinstance(states, Sequence):
        n: int | None = len(states)
    else:
        n = states
    if isinstance(distance, str):
        check_choice(distance, "distance, if it is not an array (n, n),", ["hamming"])
        return 1.0 - np.eye(n or 1)
    distance = by_state(distance, states, "distances", (0, 1))
    values = as_numbers(distance, "distances must be numbers", "give an array (n, n)")
    if n is None:
        n_rows = len(np.atleast_1d(values))
        n = max(n_rows, 1)
    if values.shape != (n, n):
        raise ValueError(
            f"distances between {n} symbols must have shape ({n}, {n}), found {values.shape}; "
            "resize them"
        )
    check_entries(values, "distances")
    return values


def distance_function(distance: Distance, states: int | Sequence) -> Callable[..., np.ndarray]:
    """A distance as a function of two arrays of symbols that broadcast against each other."""
    if callable(distance):
        return distance
    if isinstance(distance, str) and distance == "hamming":
        return np.not_equal
    table = frozen(check_distance(distance, states))
    return partial(_look_up, table)


def distances_by(distance: Callable[..., np.ndarray], x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """Distances, checked, perhaps infinite, by a function of two arrays of symbols x and y that
    broadcast against each other, as does the result."""
    values = as_numbers(distance(x, y), "distances must be numbers", "mend the function")
    shape = np.broadcast_shapes(np.shape(x), np.shape(y))
    is_distance = values >= 0.0
    if values.shape != shape or not is_distance.all():
        least = values.min(initial=np.inf)
        found = f"shape {values.shape} and minimum {least:g}"
        raise ValueError(
            f"distances must have shape {shape} and be at least 0, found {found}; mend the function"
        )
    return values


def _look_up(values: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The distances between symbols x and y, which broadcast against each other, in a matrix (n, n)
    of distances."""
    return values[x, y]
