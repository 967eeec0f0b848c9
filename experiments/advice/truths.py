"""What is true of simulated users: their paths, and the exact TPL of budgets about any of them.

The adversary knows the law of the user. Where that is a chain, TPL is by the recursions of Eqs.
(13) and (15) of [1]. Where the next place depends on more than the last one, it is by the joint law
of all places at the releases: given the others, the ratio of two likelihoods is largest where each
release's likelihood is the least or the most that its budget allows, for each place.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np

import tplrepro as tpl
from experiments.advice.walking import walk


class Truth(Protocol):
    """Users whose law is known."""

    @property
    def n_users(self) -> int:
        """How many there are."""

    def walks(self, length: int, *, rng: np.random.Generator) -> np.ndarray:
        """Successive places of all users, (users, length)."""

    def tpl(self, budgets: Any, every: int = 1) -> float:
        """The largest TPL about any user, nats; of budgets (T,) that are spent every so many
        steps."""


@dataclass(frozen=True)
class Chains:
    """Users who each move by one of several matrices, and start in their habit."""

    matrices: np.ndarray  # (k, n, n)
    of_user: np.ndarray  # (users,), by which of them each user moves

    @property
    def n_users(self) -> int:
        return self.of_user.size

    def walks(self, length: int, *, rng: np.random.Generator) -> np.ndarray:
        laws = np.array([habit_of(matrix) for matrix in self.matrices])
        return walk(self.matrices[:, None], laws, self.of_user, length, rng=rng)

    def tpl(self, budgets: Any, every: int = 1) -> float:
        used = np.unique(self.of_user)
        return max(tpl_of_chain(self.matrices[number], budgets, every) for number in used)


@dataclass(frozen=True)
class ChainsInTurn:
    """Two independent walks of each user by one matrix, which show in turn: a place depends on the
    last but one alone."""

    matrix: np.ndarray  # (n, n)
    n_users: int

    def walks(self, length: int, *, rng: np.random.Generator) -> np.ndarray:
        one_walk_each = Chains(self.matrix[None], np.zeros(2 * self.n_users, dtype=np.int64))
        halves = one_walk_each.walks((length + 1) // 2, rng=rng).reshape(self.n_users, 2, -1)
        return halves.transpose(0, 2, 1).reshape(self.n_users, -1)[:, :length]

    def tpl(self, budgets: Any, every: int = 1) -> float:
        """The largest TPL; `every` is odd, so that releases are about the two walks in turn."""
        spent = np.asarray(budgets, dtype=float)
        parts = [part for part in (spent[0::2], spent[1::2]) if part.size]
        return max(tpl_of_chain(self.matrix, part, every) for part in parts)


@dataclass(frozen=True)
class Drift:
    """Users whose matrix goes evenly from one to another over their data, and again over the
    releases; they start anywhere alike."""

    first: np.ndarray  # (n, n)
    last: np.ndarray
    n_users: int

    def walks(self, length: int, *, rng: np.random.Generator) -> np.ndarray:
        everyone = np.zeros(self.n_users, dtype=np.int64)
        habits = self._steps(length - 1)[None]
        return walk(habits, self._first_law[None], everyone, length, rng=rng)

    def tpl(self, budgets: Any, every: int = 1) -> float:
        spent = np.asarray(budgets, dtype=float)
        law = self._first_law
        steps = self._steps(every * (spent.size - 1))
        backward = []
        forward = []
        for begin in range(0, len(steps), every):
            step = reduce(np.matmul, steps[begin : begin + every])
            forward.append(step)
            backward.append(tpl.TransitionMatrix(step).reverse(law))
            law = law @ step
        return float(tpl.temporal_privacy_leakage(spent, backward, forward).tpl.max())

    @property
    def _first_law(self) -> np.ndarray:
        n = len(self.first)
        return np.full(n, 1.0 / n)

    def _steps(self, count: int) -> np.ndarray:
        """The matrix of each of so many steps, (count, n, n)."""
        share = np.linspace(0.0, 1.0, count)[:, None, None]
        return (1.0 - share) * self.first + share * self.last


@dataclass(frozen=True)
class ShownChain:
    """Users who move by one hidden chain, of which only the places show; they start in their
    habit."""

    matrix: np.ndarray  # (m, m), of the hidden chain
    places: np.ndarray  # (m,), which place each hidden state shows
    n_users: int

    def walks(self, length: int, *, rng: np.random.Generator) -> np.ndarray:
        everyone = np.zeros(self.n_users, dtype=np.int64)
        hidden = Chains(self.matrix[None], everyone)
        return self.places[hidden.walks(length, rng=rng)]

    def tpl(self, budgets: Any, every: int = 1) -> float:
        spent = np.asarray(budgets, dtype=float)
        return tpl_of_joint_law(self.law_of_places(spent.size, every), spent)

    def law_of_places(self, count: int, every: int = 1) -> np.ndarray:
        """The probability of all `count` places, every so many steps, (n,) * count."""
        n = self.places.max() + 1
        shows = self.places == np.arange(n)[:, None]
        step = np.linalg.matrix_power(self.matrix, every)
        law = habit_of(self.matrix) * shows
        for _ in range(count - 1):
            moved = law.reshape(-1, len(step)) @ step
            law = moved[:, None, :] * shows
        return law.sum(axis=-1).reshape((n,) * count)


def habit_of(matrix: np.ndarray) -> np.ndarray:
    """The stationary law (n,) of a matrix."""
    return tpl.TransitionMatrix(matrix).stationary()


def tpl_of_chain(matrix: np.ndarray, budgets: Any, every: int = 1) -> float:
    """The largest TPL of `budgets` (T,) that are spent every so many steps of one `matrix`."""
    forward = tpl.TransitionMatrix(np.linalg.matrix_power(matrix, every))
    return float(tpl.temporal_privacy_leakage(budgets, forward.reverse(), forward).tpl.max())


def tpl_of_joint_law(law: np.ndarray, budgets: np.ndarray) -> float:
    """The largest TPL of budgets (T,) against whoever knows the joint law of the places at all T
    releases.

    Parameters
    ----------
    law : array (n,) * T
        The probability of all places.
    budgets : array (T,)
        In nats.

    Returns
    -------
    float, in nats

    Examples
    --------
    Two places that are always the same leak both budgets:

    >>> round(tpl_of_joint_law(np.eye(2) / 2, np.array([0.5, 0.25])), 12)
    0.75
    """
    n = law.shape[0]
    likelihoods = [_extreme_likelihoods(n, budget) for budget in budgets]
    largest = []
    for time, budget in enumerate(budgets):
        others = likelihoods[:time] + likelihoods[time + 1 :]
        of_place = np.moveaxis(law, time, 0)
        given = of_place / of_place.sum(axis=tuple(range(1, law.ndim)), keepdims=True)
        evidence = np.log(_likelihoods_of_places(given, others))
        largest.append(budget + np.ptp(evidence, axis=0).max())
    # no composition leaks more than all budgets together, but for rounding errors
    return min(float(max(largest)), float(np.sum(budgets)))


def _extreme_likelihoods(n: int, budget: float) -> np.ndarray:
    """The likelihoods (2**n - 2, n) of one release that are the least or the most possible for each
    place, but not the same for all."""
    choices = [choice for choice in itertools.product((0.0, 1.0), repeat=n) if len(set(choice)) > 1]
    return np.exp(budget * np.array(choices))


def _likelihoods_of_places(given: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    """The likelihood (n, combinations) of each place for each combination of likelihoods of the
    other releases, whose places have the law `given` (n, ...)."""
    for likelihood in others:
        given = np.tensordot(given, likelihood, axes=(1, 1))  # the first of the others goes last
    return given.reshape(len(given), -1)
