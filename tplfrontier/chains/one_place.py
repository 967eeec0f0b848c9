"""What releases tell about one place of a chain of order k: theorem K of docs/theory/one_place.md.

A chain of order k is one of order 1 over k-tuples (`higher_order`), but there the secret is the
tuple, and nothing is forgotten. Less is told about a single place. Let s_u bound by how much the
output changes with place u alone, at first by its budget. Places are summed out one after the
other, from the first to t - 1 and then from the last to t + 1. Summing out place u, given the
places around it, raises

    s_{u+m} by L_m(s_u), m = 1..k,

where L_m is the largest loss of two rows of Pr(place u | the k places after it) that differ in the
m-th of these only; likewise from the other end, with the places before it and not before t. What
s_t is in the end bounds the leakage about place t. No s exceeds the sum of its own budget and of
those summed out so far.
"""

from __future__ import annotations
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.loss_function import UP, PrivacyLossFunction
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import check_budgets

#: Rows of a table of k places given k others.
MOST_ROWS = 100_000


def one_place_leakage(
    epsilons: ArrayLike, chain: TransitionMatrix, *, horizon: int | None = None
) -> np.ndarray:
    """The leakage about the single place of each time, where places form a chain of order k.

    It is never more than the sum of all budgets, and mostly much less than what the chain over
    k-tuples gives. Places are summed out from either end first, whichever gives less. The time
    grows with T^2: 200 places of an order of 2 take a second.

    Parameters
    ----------
    epsilons : array-like (T,), or one number with a `horizon`
        The event-level budget of each place in nats, finite and > 0.
    chain : TransitionMatrix
        The forward chain over k-tuples of places, as `estimate_higher_order` gives it; all of its
        states are tuples of one length. The user starts in its stationary law. Tuples that are not
        among its states never occur.
    horizon : int >= 1, optional
        The number of places T.

    Returns
    -------
    ndarray (T,)
        In nats, rounded up.

    Raises
    ------
    ValueError
        For budgets that are not positive and finite, a chain that is not one of tuples or has
        several stationary laws, or too many tuples.

    Examples
    --------
    >>> pairs = [(0, 0), (0, 1), (1, 0), (1, 1)]
    >>> rows = [[0.8, 0.2, 0, 0], [0, 0, 0.4, 0.6], [0.6, 0.4, 0, 0], [0, 0, 0.2, 0.8]]
    >>> chain = TransitionMatrix(rows, pairs)
    >>> one_place_leakage(0.1, chain, horizon=6).round(3).tolist()
    [0.251, 0.287, 0.309, 0.309, 0.287, 0.251]
    """
    budgets = check_budgets(epsilons, horizon=horizon)
    windows = _Windows.of_chain(chain)
    given_later = _Losses(windows, "after")
    given_earlier = _Losses(windows, "before")
    past_first = _Elimination(budgets, given_later, given_earlier)
    future_first = _Elimination(budgets[::-1], given_earlier, given_later)
    return np.minimum(past_first.leakages(), future_first.leakages()[::-1])


@dataclass(frozen=True, eq=False)
class _Windows:
    """The law of k + 1 successive places, an array of k + 1 dimensions of n each."""

    law: np.ndarray

    @property
    def order(self) -> int:
        return self.law.ndim - 1

    @classmethod
    def of_chain(cls, chain: TransitionMatrix) -> _Windows:
        states = list(chain.states)
        order = _order_of(states)
        number: dict = {}
        for state in states:
            for place in state:
                number.setdefault(place, len(number))
        n = len(number)
        if n**order > MOST_ROWS:
            raise ValueError(
                f"all {order}-tuples of {n} places must be at most {MOST_ROWS}, found {n**order}; "
                "take fewer places"
            )
        law = np.zeros((n,) * (order + 1))
        stationary = chain.stationary()
        rows = chain.toarray()
        for i, state in enumerate(states):
            context = tuple(number[place] for place in state)
            for j in np.flatnonzero(rows[i]).tolist():
                _check_continues(state, states[j])
                law[(*context, number[states[j][-1]])] += stationary[i] * rows[i, j]
        return cls(law)

    def of_length(self, length: int) -> np.ndarray:
        """The law of so many successive places."""
        rest = tuple(range(length, self.law.ndim))
        return self.law.sum(axis=rest)


def _order_of(states: list) -> int:
    lengths = {len(state) if isinstance(state, tuple) else 0 for state in states}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            "chain must be one over tuples of one length, found other states; take that of "
            "estimate_higher_order, for order 1 temporal_privacy_leakage"
        )
    return lengths.pop()


def _check_continues(state: tuple, following: tuple) -> None:
    if state[1:] != following[:-1]:
        raise ValueError(
            f"each tuple must continue the one before it, found a step from {state} to "
            f"{following}; take the chain of estimate_higher_order"
        )


class _Losses:
    """L_m of one place given the j places on one side of it, "before" or "after" it in time: the
    largest over all contexts that agree but for the m-th place next to it."""

    def __init__(self, windows: _Windows, side: str):
        self.windows = windows
        self.side = side
        self.loss = cache(self._make_losses)

    @property
    def order(self) -> int:
        return self.windows.order

    def _make_losses(self, places: int, distance: int) -> list[PrivacyLossFunction]:
        """The loss functions of the groups of rows for a context of so many places, which differ
        in the one at a distance."""
        law = self.windows.of_length(places + 1)
        if self.side == "after":
            law = law.transpose(*reversed(range(law.ndim)))
        # now the last axis is the place, and those before it its context, the nearest one last
        rows = self._conditional(law)
        n = law.shape[0]
        others = [axis for axis in range(places) if axis != places - distance]
        groups = rows.transpose(*others, places - distance, places).reshape(-1, n, n)
        distinct = np.unique(groups, axis=0)
        losses = [PrivacyLossFunction(group) for group in distinct]
        return [loss for loss in losses if not loss.is_zero]

    @staticmethod
    def _conditional(law: np.ndarray) -> np.ndarray:
        """The rows of a law given all places but the last; contexts that cannot occur get the law
        of a place, since any row may stand there, but none may be left out."""
        totals = law.sum(axis=-1, keepdims=True)
        of_place = law.sum(axis=tuple(range(law.ndim - 1)))
        with np.errstate(invalid="ignore", divide="ignore"):
            rows = law / totals
        rows = np.where(totals > 0.0, rows, of_place / of_place.sum())
        return rows / rows.sum(axis=-1, keepdims=True)

    def at_most(self, places: int, distance: int, change: float) -> float:
        """L_m of a change, nats, rounded up."""
        return max((loss.at_most(change) for loss in self.loss(places, distance)), default=0.0)


class _Elimination:
    """Sums out all places before a time, by the places after each, and then all after it."""

    def __init__(self, budgets: np.ndarray, past: _Losses, future: _Losses):
        self.budgets = budgets.tolist()
        # Before a time, a place is summed out given those that come after it.
        self.past = past
        self.future = future

    def leakages(self) -> np.ndarray:
        """The bound about each time, (T,), nats."""
        horizon = len(self.budgets)
        changes = list(self.budgets)
        found = []
        summed_out = 0.0
        for time in range(horizon):
            found.append(self._without_later(time, list(changes), summed_out))
            # then sum out `time` itself
            places = min(self.past.order, horizon - 1 - time)
            summed_out = (summed_out + self.budgets[time]) * UP
            for distance in range(1, places + 1):
                added = self.past.at_most(places, distance, changes[time])
                self._raise(changes, time + distance, added, summed_out)
        return np.array(found)

    def _without_later(self, time: int, changes: list[float], summed_out: float) -> float:
        """What is left for a time once all later ones are summed out."""
        for later in range(len(changes) - 1, time, -1):
            places = min(self.future.order, later - time)
            summed_out = (summed_out + self.budgets[later]) * UP
            for distance in range(1, places + 1):
                added = self.future.at_most(places, distance, changes[later])
                self._raise(changes, later - distance, added, summed_out)
        return changes[time]

    def _raise(self, changes: list[float], time: int, added: float, summed_out: float) -> None:
        most = (summed_out + self.budgets[time]) * UP
        changes[time] = min((changes[time] + added) * UP, most)
