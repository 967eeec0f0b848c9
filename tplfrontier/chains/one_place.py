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

Of one budget for ever the sum of the L_m is a monotone map, and its least fixed point bounds what
any number of places that were summed out has added.
"""

from __future__ import annotations
from dataclasses import dataclass
from functools import cache
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.loss_function import UP, PrivacyLossFunction
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.search import largest_within
from tplrepro.validation import as_scalar, check_budgets, check_epsilon, check_level

#: Rows of a table of k places given k others.
MOST_ROWS = 100_000
#: Steps towards a fixed point, after which it counts as infinite, and how close the step must be.
MOST_STEPS = 2000
CLOSE = 1e-9
#: More nats about one place than any use of them.
MOST_NATS = 700.0
#: By which share a budget for ever may be too small, and of the level the least one that is tried.
TOLERANCE = 1e-6
LEAST_SHARE = 1e-6


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


def one_place_supremum(epsilon: float, chain: TransitionMatrix) -> float:
    """A bound on the leakage about any single place where every place has the budget `epsilon`, for
    ever: `one_place_leakage` without an end, and without a first place.

    Parameters
    ----------
    epsilon : float > 0
        The event-level budget of each place in nats.
    chain : TransitionMatrix
        The forward chain over k-tuples of places, as in `one_place_leakage`.

    Returns
    -------
    float
        In nats, rounded up; inf if what is told may grow without bound, or beyond 700 nats.

    Raises
    ------
    ValueError
        For a budget that is not positive and finite, and chains that `one_place_leakage` refuses.

    Examples
    --------
    >>> pairs = [(0, 0), (0, 1), (1, 0), (1, 1)]
    >>> rows = [[0.8, 0.2, 0, 0], [0, 0, 0.4, 0.6], [0.6, 0.4, 0, 0], [0, 0, 0.2, 0.8]]
    >>> chain = TransitionMatrix(rows, pairs)
    >>> round(one_place_supremum(0.1, chain), 3)
    0.475
    """
    budget = as_scalar(check_epsilon(epsilon), "epsilon")
    return _Endless.of_chain(chain).supremum(budget)


def allocate_for_one_place(alpha: float, chain: TransitionMatrix) -> float:
    """The largest budget that every place may have for ever, such that at most `alpha` is told
    about any single one.

    Parameters
    ----------
    alpha : float > 0
        In nats.
    chain : TransitionMatrix
        The forward chain over k-tuples of places, as in `one_place_leakage`.

    Returns
    -------
    float
        In nats, too small by a millionth at most; 0 if no budget of a millionth of alpha or more
        keeps alpha for ever.

    Raises
    ------
    ValueError
        For a level that is not positive and finite, and chains that `one_place_leakage` refuses.

    Examples
    --------
    >>> pairs = [(0, 0), (0, 1), (1, 0), (1, 1)]
    >>> rows = [[0.8, 0.2, 0, 0], [0, 0, 0.4, 0.6], [0.6, 0.4, 0, 0], [0, 0, 0.2, 0.8]]
    >>> round(allocate_for_one_place(1.0, TransitionMatrix(rows, pairs)), 3)
    0.203
    """
    alpha = check_level(alpha, "alpha")
    endless = _Endless.of_chain(chain)

    def keeps(budget: float) -> bool:
        return endless.supremum(budget, alpha) <= alpha

    least = LEAST_SHARE * alpha
    if not keeps(least):
        return 0.0
    return largest_within(keeps, least, alpha, tolerance=TOLERANCE, logarithmic=True)


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


class _Endless:
    """Places that have been released for ever, and will be, with one budget."""

    def __init__(self, given_later: _Losses, given_earlier: _Losses):
        self.given_later = given_later
        self.given_earlier = given_earlier

    @classmethod
    def of_chain(cls, chain: TransitionMatrix) -> _Endless:
        windows = _Windows.of_chain(chain)
        return cls(_Losses(windows, "after"), _Losses(windows, "before"))

    def supremum(self, budget: float, most: float = MOST_NATS) -> float:
        """The smaller bound of the two orders; inf may stand for any above `most`."""
        past_first = self._about_place(budget, most, self.given_later, self.given_earlier)
        future_first = self._about_place(budget, most, self.given_earlier, self.given_later)
        return min(past_first, future_first)

    def _about_place(self, budget: float, most: float, first: _Losses, second: _Losses) -> float:
        """What is told about a place, if one side of it is summed out first, given places nearer to
        it and beyond, and then the other, given those down to this place."""
        order = first.order
        of_first = _fixed_point(budget, most, first)
        if of_first == inf:
            return inf
        # it bounds places farther away, about which more may be told than about this one
        of_second = _fixed_point(budget, MOST_NATS, second)
        if of_second == inf:
            return inf
        # what the first side has added to the place itself and to those on the other side
        changes = [budget] * order
        for away in range(order):
            for distance in range(away + 1, order + 1):
                added = first.at_most(order, distance, of_first)
                changes[away] = (changes[away] + added) * UP
        changes += [of_second] * order
        for away in range(2 * order - 1, 0, -1):
            if away >= order:
                change = of_second
            else:
                change = changes[away]
            places = min(order, away)
            for distance in range(1, places + 1):
                if away - distance < order:
                    added = second.at_most(places, distance, change)
                    changes[away - distance] = (changes[away - distance] + added) * UP
        return changes[0]


def _fixed_point(budget: float, most: float, losses: _Losses) -> float:
    """No less than the least x = budget + L_1(x) + ... + L_k(x), nats; inf above `most`.

    All steps from the budget on stay below any x that the map does not raise.
    """
    order = losses.order

    def step(change: float) -> float:
        total = budget
        for distance in range(1, order + 1):
            total = (total + losses.at_most(order, distance, change)) * UP
        return total

    change = budget
    rise = inf
    for _ in range(MOST_STEPS):
        next_change = step(change)
        next_rise = next_change - change
        ratio = min(next_rise / rise, 1.0 - CLOSE)
        beyond = next_change + (1.0 + CLOSE) * next_rise * ratio / (1.0 - ratio)
        beyond *= 1.0 + CLOSE
        if beyond - next_change <= 1e-6 * next_change and step(beyond) <= beyond:
            return beyond
        if next_change > most:
            return inf
        change = next_change
        rise = max(next_rise, np.finfo(float).tiny)
    return inf


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
