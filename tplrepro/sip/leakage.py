"""Leakage of one release, of a sequence of releases by enumeration, and the bounds that composition
gives ([3]).

A release is a matrix a(y|x), row x, under a belief beta(x). Output y multiplies the belief by a(y|x) / p(y),
p = sum_x beta(x) a(.|x); the instantaneous information leakage (IIL, Definition 2 and Eq. (12)) is the largest
|log| of that factor, over the x and y that can occur. Of batches or whole sequences in place of symbols it is
the batched (BIL, Definition 3) or the sequence information leakage (SIL).

Theorem 1: IILs add up to a bound of the SIL. Theorem 3: IIL <= LDP level <= 2 IIL if every x can
occur.
"""

from __future__ import annotations
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.filtering import log_probabilities
from tplrepro.markov.transition import as_transition_matrix
from tplrepro.sip.response import BeliefMechanism
from tplrepro.validation import (
    ROW_SUM_TOLERANCE,
    FrozenArrays,
    as_numbers,
    check_alpha,
    check_distribution,
    check_horizon,
    check_level,
    check_probability,
    check_series,
)

#: Pairs of sequences that enumeration may visit, or sequences of a joint distribution; 8 bytes each.
LARGEST_ENUMERATION = 50_000_000


def _rows_and_belief(matrix: Any, belief: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The checked rows (n, m) of a response, and the belief (n,) aligned with their labels, if they
    have any."""
    labels = matrix.index.tolist() if hasattr(matrix, "iloc") else None
    rows = as_numbers(matrix, "a response must be a table of numbers", "give its rows a(.|x)")
    beta = (
        np.ones(rows.shape[:1])
        if belief is None
        else check_distribution(belief, labels, "a belief")
    )
    if rows.ndim != 2 or 0 in rows.shape or len(rows) != beta.size:
        raise ValueError(
            f"a response over {beta.size} symbols must have a row a(.|x) for each, found shape {rows.shape}; give rows"
        )
    for x in np.flatnonzero(
        ~(np.abs(rows.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE) | (rows < 0).any(axis=1)
    ):
        check_distribution(rows[x], name=f"row a(.|{x})")  # says what is wrong with it
    return rows, beta


def instantaneous_leakage(matrix: ArrayLike, belief: ArrayLike) -> float:
    """Instantaneous information leakage of a response under a belief, in nats (Definition 2, Eq.
    (12) of [3]).

    `matrix` (n, m) has rows a(.|x), `belief` (n,) is Pr(X_k = x | earlier outputs). Infinite if a
    possible output rules out a possible symbol.

    >>> round(instantaneous_leakage([[0.65, 0.35], [0.02, 0.98]], [0.05, 0.95]), 4)
    2.5354
    >>> instantaneous_leakage([[1, 0], [1, 0]], [0.5, 0.5])  # the output says nothing
    0.0
    """
    rows, beta = _rows_and_belief(matrix, belief)
    marginal = beta @ rows
    likelihood = rows[np.ix_(beta > 0, marginal > 0)]
    return float(np.abs(log_probabilities(likelihood) - np.log(marginal[marginal > 0])).max())


def local_differential_privacy(matrix: ArrayLike) -> float:
    """Level of local differential privacy: the largest log-ratio of two rows (Definition 4 of [3]);
    nats.

    >>> round(local_differential_privacy([[0.75, 0.25], [0.25, 0.75]]), 4)
    1.0986
    """
    rows, _ = _rows_and_belief(matrix)
    logs = log_probabilities(rows[:, rows.max(axis=0) > 0])
    return float(np.ptp(logs, axis=0).max())


def mutual_information(matrix: ArrayLike, belief: ArrayLike) -> float:
    """I(X; Y) of a response under a belief, in nats; never more than the IIL (Definition 6 of [3]
    and below).

    >>> round(mutual_information([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 4)
    0.1308
    """
    rows, beta = _rows_and_belief(matrix, belief)
    return joint_information(beta[:, None] * rows)


def joint_information(joint: np.ndarray) -> float:
    """I(X; Y), nats, from the joint distribution (n, m)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(joint) - np.log(joint.sum(axis=1, keepdims=True)) - np.log(joint.sum(axis=0))
        return float(max(np.sum(joint * logs, where=joint > 0), 0.0))


def compose(leakages: ArrayLike, delta: float = 0.0) -> float:
    """Sequence information leakage, nats: the sum, or with delta > 0 the smaller of Theorems 1 and
    2 of [3].

    `leakages` (T,) bound the IIL (or BIL) of each release. With delta > 0, the outputs raise a
    belief by more than the result with probability at most delta, and lower one by more with
    probability at most delta.

    >>> round(compose([0.1] * 100), 4), round(compose([0.1] * 100, delta=1e-5), 4)
    (10.0, 5.8502)
    """
    values = check_series(
        check_alpha(leakages, "leakages"), "leakages", "leakage", has_horizon=False
    )
    delta = check_probability(delta, "delta", one=False)
    if delta == 0:
        return float(values.sum())
    # The Azuma-Hoeffding argument, for unequal leakages.
    deviation = np.sqrt(-2 * np.log(delta) * (values @ values))
    return float(min(values.sum(), values @ np.expm1(values) + deviation))


def markov_sequences(initial: ArrayLike, transition: ArrayLike, horizon: int) -> np.ndarray:
    """Joint distribution of the first T = `horizon` symbols of a chain, (n,) * T; ValueError if it
    is too large.

    >>> markov_sequences([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 2).tolist()
    [[0.45, 0.05], [0.05, 0.45]]
    """
    matrix = as_transition_matrix(transition)
    joint, rows = check_distribution(initial, matrix.states, "a belief"), matrix.toarray()
    n, length = matrix.n_states, check_horizon(horizon)
    if length > 64 or n**length > LARGEST_ENUMERATION:  # an array has at most 64 axes
        must = f"a joint distribution must be of at most {LARGEST_ENUMERATION:,} sequences and 64 symbols each"
        raise ValueError(f"{must}, found {n}^{length} sequences; shorten them")
    for _ in range(1, length):
        joint = joint[..., None] * rows
    return joint


@dataclass(frozen=True, eq=False)
class SequenceLeakage(FrozenArrays):
    """Leakages of T releases, exact, in nats: Definitions 1, 2, 4, 5, 6, Eqs. (5), (7), (9) of
    [3]."""

    sequence: float  # the sequence information leakage (Eq. (5))
    # (T,), the largest IIL at each time over all output histories (Eq. (7))
    instantaneous: np.ndarray
    mutual_information: float  # I(X_1..T; Y_1..T)
    local_differential_privacy: float  # the LDP level over sequences that can occur (Eq. (9))
    # (T,), Pufferfish level (Definition 5) of the pairs of secrets X_t = x, under this prior
    pufferfish: np.ndarray
    costs: np.ndarray  # (T,), probability that output and input differ at each time
    prior: np.ndarray = field(repr=False)  # (N,), probability of each input sequence that can occur
    # (N, M), probability of each output sequence given each of them
    likelihoods: np.ndarray = field(repr=False)

    def delta(self, epsilon: float) -> float:
        """The least delta of (epsilon, delta)-SIP (Eq. (6)), epsilon in nats: the probability that
        the absolute value of log Pr(X | Y) / Pr(X) is above epsilon.

        >>> from tplrepro.sip import RandomizedResponse
        >>> prior = markov_sequences([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 3)
        >>> leakage = sequence_leakage(RandomizedResponse(1.0), prior)
        >>> [round(leakage.delta(epsilon), 4) for epsilon in (0.5, 1.0, leakage.sequence)]
        [0.5688, 0.1037, 0.0]
        """
        level = check_level(epsilon, "epsilon")
        if level >= self.sequence:  # rounding must not put a pair above the largest leakage
            return 0.0
        joint, outputs = self.prior[:, None] * self.likelihoods, self.prior @ self.likelihoods
        leakages = np.abs(log_probabilities(self.likelihoods) - np.log(outputs))
        return float(joint[leakages > level].sum())


def sequence_leakage(mechanism: BeliefMechanism, prior: ArrayLike) -> SequenceLeakage:
    """Exact leakages of a mechanism used at every time, for the joint distribution `prior` (n,) * T
    of the inputs.

    It visits all input and output sequences and takes beliefs from the joint distribution, not from
    the recursion of Eq. (13) of [3], so it checks everything else independently.

    >>> from tplrepro.sip import RandomizedResponse
    >>> copies = markov_sequences([0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]], 3)
    >>> round(sequence_leakage(RandomizedResponse(1.0), copies).sequence, 4)
    2.3554
    """
    joint = as_numbers(
        prior, "the prior must be an array of numbers", "give the joint distribution"
    )
    if len(set(joint.shape)) != 1:
        raise ValueError(
            f"the prior must have shape (n,) * T with n, T >= 1, found {joint.shape}; use one alphabet"
        )
    if joint.size**2 > LARGEST_ENUMERATION:
        size = f"{joint.size:,}^2 pairs of sequences ({8 * joint.size**2 / 1e9:.1f} GB)"
        raise ValueError(
            f"enumeration is limited to {LARGEST_ENUMERATION:,} pairs, found {size}; shorten the sequence"
        )
    flat, n, horizon = (
        check_distribution(joint.ravel(), name="the prior"),
        joint.shape[0],
        joint.ndim,
    )
    instantaneous, costs = np.zeros(horizon), np.zeros(horizon)
    likelihood = np.ones((1, 1))  # of each history of outputs, given all inputs so far
    for k in range(horizon):
        likelihood = np.repeat(likelihood, n, axis=0)
        inputs = np.arange(n ** (k + 1))
        weights = flat.reshape(inputs.size, -1).sum(axis=1)
        longer = []
        for given_inputs in likelihood.T:
            weight = weights * given_inputs
            belief = weight / weight.sum()
            current = belief.reshape(-1, n).sum(axis=0)
            previous = (
                [{"previous": x} for x in range(n)] if mechanism.uses_previous and k else [{}]
            )
            each = np.vstack(
                [mechanism.response(current, **symbol).matrix() for symbol in previous]
            )
            rows = np.tile(each, (inputs.size // len(each), 1))
            costs[k] += weight.sum() - weight @ rows[inputs, inputs % n]
            instantaneous[k] = max(instantaneous[k], instantaneous_leakage(rows, belief))
            longer.append(given_inputs[:, None] * rows[:, belief @ rows > 0])
        likelihood = np.hstack(longer)
    table, beliefs = likelihood[flat > 0], flat[flat > 0]
    symbols = np.array(np.unravel_index(np.flatnonzero(flat), joint.shape))
    pufferfish = [_secret_leakage(table, beliefs, symbols_at_time) for symbols_at_time in symbols]
    return SequenceLeakage(
        instantaneous_leakage(table, beliefs),
        instantaneous,
        mutual_information(table, beliefs),
        local_differential_privacy(table),
        np.array(pufferfish),
        costs,
        beliefs,
        table,
    )


def _secret_leakage(table: np.ndarray, beliefs: np.ndarray, secrets: np.ndarray) -> float:
    """The largest log-ratio of Pr(y | secret) between two secrets; `secrets` (N,) names that of
    each input sequence."""
    members = np.unique(secrets)[:, None] == secrets
    rows = (members * beliefs) @ table
    return local_differential_privacy(rows / rows.sum(axis=1, keepdims=True))
