"""Leakage of whole sequences by enumeration (Definitions 1 to 3 of [3]): exact, and exponential in their length.

Every sequence x and every output sequence y is visited: SIL = max |log Pr(y|x) / Pr(y)|. Beliefs are taken from the
joint distribution, not from the recursion of Eq. (13), so that this is an independent check of everything else. A
mechanism over batches of symbols is the same with batches for symbols.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.sip.leakage import instantaneous_leakage, local_differential_privacy, mutual_information
from tplrepro.sip.response import BeliefMechanism
from tplrepro.validation import check_distribution, check_horizon

__all__ = ["SequenceLeakage", "markov_sequences", "sequence_leakage"]

#: Pairs of sequences that enumeration may visit; 8 bytes each.
LARGEST_ENUMERATION = 50_000_000


@dataclass(frozen=True)
class SequenceLeakage:
    """Leakages of T releases, exact, in nats."""

    sequence: float  # the sequence information leakage (Eq. (5))
    instantaneous: np.ndarray  # (T,), the largest IIL at each time over all output histories (Eq. (7))
    mutual_information: float  # I(X_1..T; Y_1..T)
    local_differential_privacy: float  # the LDP level over sequences that can occur (Eq. (9))
    costs: np.ndarray  # (T,), probability that output and input differ at each time


def markov_sequences(initial: ArrayLike, transition: ArrayLike, horizon: int) -> np.ndarray:
    """Joint distribution of the first T symbols of a chain, an array (n,) * T.

    >>> markov_sequences([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 2).tolist()
    [[0.45, 0.05], [0.05, 0.45]]
    """
    joint = check_distribution(initial, name="a belief")
    for _ in range(1, check_horizon(horizon)):
        joint = joint[..., None] * np.asarray(transition, dtype=float)
    return joint


def sequence_leakage(mechanism: BeliefMechanism, prior: ArrayLike) -> SequenceLeakage:
    """Exact leakages of a mechanism used at every time under a prior over sequences.

    `prior` (n,) * T is the joint distribution of the sequence; ValueError for one that is empty, no distribution or too
    large to enumerate.

    >>> from tplrepro.sip import RandomizedResponse
    >>> independent = markov_sequences([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], 3)
    >>> copies = markov_sequences([0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]], 3)
    >>> [round(sequence_leakage(RandomizedResponse(1.0), p).sequence, 4) for p in (independent, copies)]
    [1.8603, 2.3554]
    """
    joint = np.asarray(prior, dtype=float)
    if joint.ndim == 0 or joint.size == 0:
        raise ValueError("a sequence must have at least one symbol, found an empty one; give a prior (n,) * T, T >= 1")
    n, horizon = joint.shape[0], joint.ndim
    if joint.shape != (n,) * horizon:
        raise ValueError(f"the prior must have shape (n,) * T, found {joint.shape}; use one alphabet at all times")
    if joint.size**2 > LARGEST_ENUMERATION:
        raise ValueError(
            f"enumeration would visit {joint.size:,}^2 pairs of sequences ({8 * joint.size**2 / 1e9:.1f} GB), "
            f"the limit is {LARGEST_ENUMERATION:,}; shorten the sequence, or add up single leakages with compose"
        )
    flat = check_distribution(joint.ravel(), name="the prior")
    instantaneous, costs = np.zeros(horizon), np.zeros(horizon)
    likelihood = np.ones((1, 1))  # of each history of outputs, given all inputs so far
    for k in range(horizon):
        weights = flat.reshape(n ** (k + 1), -1).sum(axis=1)[:, None] * np.repeat(likelihood, n, axis=0)
        same = np.arange(n ** (k + 1)), np.arange(n ** (k + 1)) % n
        longer = []
        for told, weight in zip(np.repeat(likelihood, n, axis=0).T, weights.T, strict=True):
            belief = weight / weight.sum()
            rows = _rows(mechanism, belief, n, k)
            costs[k] += weight.sum() - weight @ rows[same]
            instantaneous[k] = max(instantaneous[k], instantaneous_leakage(rows, belief))
            longer.append(told[:, None] * rows[:, belief @ rows > 0])
        likelihood = np.hstack(longer)
    possible = flat > 0
    table, beliefs = likelihood[possible], flat[possible]
    return SequenceLeakage(
        instantaneous_leakage(table, beliefs),
        instantaneous,
        mutual_information(table, beliefs),
        local_differential_privacy(table),
        costs,
    )


def _rows(mechanism, belief, n, k):
    """a(.|x_1..k+1) for all inputs so far, (n^(k+1), n)."""
    current = belief.reshape(-1, n).sum(axis=0)
    if not mechanism.uses_previous or k == 0:
        return np.tile(mechanism.response(current).matrix(), (n**k, 1))
    each = np.vstack([mechanism.response(current, previous=x).matrix() for x in range(n)])
    return np.tile(each, (n ** (k - 1), 1))
