"""Leakage of whole sequences by enumeration (Definitions 1 to 3 of [3]): exact, and exponential in their length.

Every sequence x and every output sequence y is visited: SIL = max |log Pr(y|x) / Pr(y)|. Beliefs are taken
from the joint distribution, not from the recursion of Eq. (13), so that this is an independent check of
everything else. A mechanism over batches of symbols is the same with batches for symbols.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tplrepro.sip.leakage import check_belief
from tplrepro.validation import check_horizon

__all__ = ["SequenceLeakage", "markov_sequences", "sequence_leakage"]

#: Pairs of sequences that enumeration may visit; 8 bytes each.
LARGEST_ENUMERATION = 50_000_000


@dataclass(frozen=True)
class SequenceLeakage:
    """Leakages of T releases, exact, in nats.

    Attributes
    ----------
    sequence : float, the sequence information leakage (Eq. (5))
    instantaneous : ndarray (T,), the largest IIL at each time over all output histories (Eq. (7))
    mutual_information : float, I(X_1..T; Y_1..T)
    local_differential_privacy : float, the LDP level over sequences that can occur (Eq. (9))
    costs : ndarray (T,), probability that output and input differ at each time
    """

    sequence: float
    instantaneous: np.ndarray
    mutual_information: float
    local_differential_privacy: float
    costs: np.ndarray


def markov_sequences(initial, transition, horizon: int) -> np.ndarray:
    """Joint distribution of the first T symbols of a chain of order 1 or 2, an array (n,) * T.

    Parameters
    ----------
    initial : array-like (n,)
    transition : array-like (n, n), or a pair of arrays (n, n) and (n, n, n) for order 2
    horizon : int, T

    Examples
    --------
    >>> markov_sequences([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 2).tolist()
    [[0.45, 0.05], [0.05, 0.45]]
    """
    joint = check_belief(initial)
    n = joint.size
    first, second = (transition, None) if not isinstance(transition, tuple) else transition
    first = np.asarray(first, dtype=float)
    for k in range(1, check_horizon(horizon)):
        step = first if k == 1 or second is None else np.asarray(second, dtype=float)
        joint = joint[..., None] * step
    return joint.reshape((n,) * horizon)


def sequence_leakage(mechanism, prior) -> SequenceLeakage:
    """Exact leakages of a mechanism used at every time under a prior over sequences.

    Parameters
    ----------
    mechanism : Mechanism, or a list of T of them
        `mechanism.response(belief)`; a mechanism with `uses_previous` true is given `previous=` the last true
        symbol.
    prior : array-like (n,) * T, the joint distribution of the sequence

    Returns
    -------
    SequenceLeakage

    Raises
    ------
    ValueError
        For an empty sequence, a prior that is no distribution, or one too large to enumerate.

    Examples
    --------
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
    flat = check_belief(joint.ravel())
    mechanisms = list(mechanism) if isinstance(mechanism, (list, tuple)) else [mechanism] * horizon
    if len(mechanisms) != horizon:
        raise ValueError(
            f"a list must hold one mechanism a time, {horizon}, found {len(mechanisms)}; repeat the last one"
        )
    walk = _Enumeration(flat, n, horizon, mechanisms)
    likelihood = np.concatenate(list(walk.visit(np.ones(1), 1.0)), axis=1)
    possible = flat > 0
    marginal = flat @ likelihood
    table = likelihood[possible][:, marginal > 0]
    marginal = marginal[marginal > 0]
    weights = flat[possible][:, None] * table
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(table)
        ratio = logs - np.log(marginal)
        information = np.where(weights > 0, weights * ratio, 0.0).sum()
        spread = logs.max(axis=0) - logs.min(axis=0)
    return SequenceLeakage(
        float(np.abs(ratio).max()),
        walk.instantaneous,
        float(max(information, 0.0)),
        float(spread.max()),
        walk.costs,
    )


class _Enumeration:
    """Depth-first over output histories, with the likelihood of each for all inputs so far."""

    def __init__(self, flat, n, horizon, mechanisms):
        self.n, self.horizon, self.mechanisms = n, horizon, mechanisms
        self.joints = [flat.reshape(n ** (k + 1), -1).sum(axis=1) for k in range(horizon)]
        self.instantaneous = np.zeros(horizon)
        self.costs = np.zeros(horizon)

    def visit(self, likelihood, probability, k=0):
        """Likelihoods (n^T, outputs) below a history; `likelihood` (n^k,) is that of the history itself."""
        n = self.n
        if k == self.horizon:
            yield likelihood[:, None]
            return
        weights = self.joints[k] * np.repeat(likelihood, n)  # Pr(x_1..k, y_1..k-1)
        total = weights.sum()
        belief = weights / total
        rows = self._rows(k, belief)
        self.costs[k] += total - (weights * rows[np.arange(n ** (k + 1)), np.arange(n ** (k + 1)) % n]).sum()
        for y in range(n):
            marginal = belief @ rows[:, y]
            if marginal <= 0:
                continue
            with np.errstate(divide="ignore"):
                ratio = np.abs(np.log(rows[belief > 0, y] / marginal)).max()
            self.instantaneous[k] = max(self.instantaneous[k], ratio)
            yield from self.visit(np.repeat(likelihood, n) * rows[:, y], probability * marginal, k + 1)

    def _rows(self, k, belief):
        """a(.|x_1..k) for all inputs so far, (n^(k+1), n)."""
        n, mechanism = self.n, self.mechanisms[k]
        current = belief.reshape(-1, n).sum(axis=0)
        if not getattr(mechanism, "uses_previous", False) or k == 0:
            return np.tile(mechanism.response(current).matrix(), (n**k, 1))
        each = np.vstack([mechanism.response(current, previous=x).matrix() for x in range(n)])
        return np.tile(each, (n ** (k - 1), 1))
