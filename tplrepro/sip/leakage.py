"""Leakage of one release, of a sequence of releases by enumeration, and the bounds that composition
gives ([3]).

A release is a matrix a(y|x), row x, under a belief beta(x). Output y multiplies the belief by
a(y|x) / p(y), p = sum_x beta(x) a(.|x); the instantaneous information leakage (IIL, Definition 2
and Eq. (12)) is the largest |log| of that factor, over the x and y that can occur. Of batches or
whole sequences in place of symbols it is the batched (BIL, Definition 3) or the sequence
information leakage (SIL).

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

#: Pairs of sequences that enumeration may visit, or sequences of a joint distribution, of 8 bytes.
LARGEST_ENUMERATION = 50_000_000
#: The axes that an array may have.
MOST_AXES = 64


def _rows_and_belief(matrix: Any, belief: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The checked rows (n, m) of a response, and the belief (n,) aligned with their labels, if they
    have any."""
    labels = None
    if hasattr(matrix, "iloc"):
        labels = matrix.index.tolist()
    rows = as_numbers(matrix, "a response must be a table of numbers", "give its rows a(.|x)")
    beta = np.ones(rows.shape[:1])
    if belief is not None:
        beta = check_distribution(belief, labels, "a belief")
    is_table = rows.ndim == 2 and rows.size > 0
    if not is_table or len(rows) != beta.size:
        raise ValueError(
            f"a response over {beta.size} symbols must have a row a(.|x) for each, "
            f"found shape {rows.shape}; give rows"
        )
    deviation = np.abs(rows.sum(axis=1) - 1)
    sums_to_one = deviation <= ROW_SUM_TOLERANCE
    is_negative = (rows < 0).any(axis=1)
    is_wrong = ~sums_to_one | is_negative
    for x in np.flatnonzero(is_wrong):
        check_distribution(rows[x], name=f"row a(.|{x})")  # says what is wrong with it
    return rows, beta


def instantaneous_leakage(matrix: ArrayLike, belief: ArrayLike) -> float:
    """Instantaneous information leakage of a response under a belief (Definition 2, Eq. (12) of
    [3]).

    Parameters
    ----------
    matrix : array-like (n, m)
        Rows a(.|x).
    belief : array-like (n,)
        Pr(X_k = x | earlier outputs).

    Returns
    -------
    float
        Nats; infinite if a possible output rules out a possible symbol.

    Raises
    ------
    ValueError
        If a row or the belief is no distribution.

    Examples
    --------
    >>> round(instantaneous_leakage([[0.65, 0.35], [0.02, 0.98]], [0.05, 0.95]), 4)
    2.5354
    >>> instantaneous_leakage([[1, 0], [1, 0]], [0.5, 0.5])  # the output says nothing
    0.0
    """
    rows, beta = _rows_and_belief(matrix, belief)
    marginal = beta @ rows
    is_input = beta > 0
    is_output = marginal > 0
    likelihood = rows[np.ix_(is_input, is_output)]
    log_marginal = np.log(marginal[is_output])
    log_ratios = log_probabilities(likelihood) - log_marginal
    return float(np.abs(log_ratios).max())


def local_differential_privacy(matrix: ArrayLike) -> float:
    """Level of local differential privacy: the largest log-ratio of two rows (Definition 4 of [3]);
    nats.

    >>> round(local_differential_privacy([[0.75, 0.25], [0.25, 0.75]]), 4)
    1.0986
    """
    rows, _ = _rows_and_belief(matrix)
    is_output = rows.max(axis=0) > 0
    logs = log_probabilities(rows[:, is_output])
    return float(np.ptp(logs, axis=0).max())


def mutual_information(matrix: ArrayLike, belief: ArrayLike) -> float:
    """I(X; Y) of a response under a belief; never more than the IIL (Definition 6 of [3] and
    below).

    Parameters
    ----------
    matrix : array-like (n, m)
        Rows a(.|x).
    belief : array-like (n,)
        Pr(X_k = x | earlier outputs).

    Returns
    -------
    float
        Nats.

    Raises
    ------
    ValueError
        If a row or the belief is no distribution.

    Examples
    --------
    >>> round(mutual_information([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 4)
    0.1308
    """
    rows, beta = _rows_and_belief(matrix, belief)
    return joint_information(beta[:, None] * rows)


def joint_information(joint: np.ndarray) -> float:
    """I(X; Y), nats, from the joint distribution (n, m)."""
    of_input = joint.sum(axis=1, keepdims=True)
    of_output = joint.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratios = np.log(joint) - np.log(of_input) - np.log(of_output)
        terms = joint * log_ratios
    information = np.sum(terms, where=joint > 0)
    return float(max(information, 0.0))


def compose(leakages: ArrayLike, delta: float = 0.0) -> float:
    """Sequence information leakage: the sum of leakages (Theorem 1 of [3]), or with delta > 0 the
    smaller of Theorems 1 and 2.

    Parameters
    ----------
    leakages : array-like (T,)
        Bounds of the IIL (or BIL) of each release, nats.
    delta : float
        In [0, 1). The outputs raise a belief by more than the result with probability at most
        delta, and lower one by more with probability at most delta.

    Returns
    -------
    float
        Nats.

    Raises
    ------
    ValueError
        If a leakage is negative or not finite, or delta out of range.

    Examples
    --------
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
    mean = values @ np.expm1(values)
    return float(min(values.sum(), mean + deviation))


def markov_sequences(initial: ArrayLike, transition: ArrayLike, horizon: int) -> np.ndarray:
    """Joint distribution of the first symbols of a chain.

    Parameters
    ----------
    initial : array-like (n,)
        The distribution of the first symbol.
    transition : TransitionMatrix or array-like (n, n)
        Pr(X_k | X_{k-1}).
    horizon : int
        The number of symbols T.

    Returns
    -------
    array (n,) * T

    Raises
    ------
    ValueError
        If something is no distribution, or there are more than 50 million sequences.

    Examples
    --------
    >>> markov_sequences([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 2).tolist()
    [[0.45, 0.05], [0.05, 0.45]]
    """
    matrix = as_transition_matrix(transition)
    joint = check_distribution(initial, matrix.states, "a belief")
    rows = matrix.toarray()
    n = matrix.n_states
    length = check_horizon(horizon)
    if length > MOST_AXES or n**length > LARGEST_ENUMERATION:
        raise ValueError(
            f"a joint distribution must be of at most {LARGEST_ENUMERATION:,} sequences and 64 "
            f"symbols each, found {n}^{length} sequences; shorten them"
        )
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
        joint = self.prior[:, None] * self.likelihoods
        outputs = self.prior @ self.likelihoods
        log_ratios = log_probabilities(self.likelihoods) - np.log(outputs)
        is_above = np.abs(log_ratios) > level
        return float(joint[is_above].sum())


def sequence_leakage(mechanism: BeliefMechanism, prior: ArrayLike) -> SequenceLeakage:
    """Exact leakages of a mechanism that is used at every time.

    It visits all input and output sequences and takes beliefs from the joint distribution, not from
    the recursion of Eq. (13) of [3], so it checks everything else independently.

    Parameters
    ----------
    mechanism : BeliefMechanism
    prior : array-like (n,) * T
        The joint distribution of the inputs.

    Returns
    -------
    SequenceLeakage

    Raises
    ------
    ValueError
        If the prior is no joint distribution over one alphabet, or too large to enumerate.

    Examples
    --------
    >>> from tplrepro.sip import RandomizedResponse
    >>> copies = markov_sequences([0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]], 3)
    >>> round(sequence_leakage(RandomizedResponse(1.0), copies).sequence, 4)
    2.3554
    """
    joint = _checked_prior(prior)
    flat = check_distribution(joint.ravel(), name="the prior")
    n = joint.shape[0]
    horizon = joint.ndim
    instantaneous = np.zeros(horizon)
    costs = np.zeros(horizon)
    likelihood = np.ones((1, 1))  # of each history of outputs, given all inputs so far
    for k in range(horizon):
        likelihood = np.repeat(likelihood, n, axis=0)
        inputs = np.arange(n ** (k + 1))  # all sequences so far; the last symbol varies fastest
        last_inputs = inputs % n
        later_inputs = flat.reshape(inputs.size, -1)
        weights = later_inputs.sum(axis=1)
        longer = []
        for likelihood_of_history in likelihood.T:
            weight = weights * likelihood_of_history
            belief = weight / weight.sum()
            current = belief.reshape(-1, n).sum(axis=0)
            rows = _rows_for_inputs(mechanism, current, k)
            kept = rows[inputs, last_inputs]
            costs[k] += weight.sum() - weight @ kept
            leakage = instantaneous_leakage(rows, belief)
            instantaneous[k] = max(instantaneous[k], leakage)
            is_output = belief @ rows > 0
            likelihood_of_longer = likelihood_of_history[:, None] * rows[:, is_output]
            longer.append(likelihood_of_longer)
        likelihood = np.hstack(longer)
    is_possible = flat > 0
    table = likelihood[is_possible]
    beliefs = flat[is_possible]
    symbols_by_time = np.unravel_index(np.flatnonzero(flat), joint.shape)
    pufferfish = [_secret_leakage(table, beliefs, symbols) for symbols in symbols_by_time]
    return SequenceLeakage(
        sequence=instantaneous_leakage(table, beliefs),
        instantaneous=instantaneous,
        mutual_information=mutual_information(table, beliefs),
        local_differential_privacy=local_differential_privacy(table),
        pufferfish=np.array(pufferfish),
        costs=costs,
        prior=beliefs,
        likelihoods=table,
    )


def _checked_prior(prior: ArrayLike) -> np.ndarray:
    """An array (n,) * T that is small enough to enumerate."""
    joint = as_numbers(
        prior, "the prior must be an array of numbers", "give the joint distribution"
    )
    if len(set(joint.shape)) != 1:
        raise ValueError(
            f"the prior must have shape (n,) * T with n, T >= 1, found {joint.shape}; "
            "use one alphabet"
        )
    if joint.size**2 > LARGEST_ENUMERATION:
        gigabytes = 8 * joint.size**2 / 1e9
        found = f"found {joint.size:,}^2 pairs of sequences ({gigabytes:.1f} GB)"
        raise ValueError(
            f"enumeration is limited to {LARGEST_ENUMERATION:,} pairs, {found}; "
            "shorten the sequence"
        )
    return joint


def _rows_for_inputs(mechanism: BeliefMechanism, current: np.ndarray, k: int) -> np.ndarray:
    """The rows a(.|x) of the mechanism's response at time k for all inputs so far, (n^(k+1), n),
    the last input varying fastest."""
    n = current.size
    if mechanism.uses_previous and k:
        responses = [mechanism.response(current, previous=x) for x in range(n)]  # type: ignore
    else:
        responses = [mechanism.response(current)]
    matrices = [response.matrix() for response in responses]
    rows = np.vstack(matrices)
    n_inputs = n ** (k + 1)
    return np.tile(rows, (n_inputs // len(rows), 1))


def _secret_leakage(table: np.ndarray, beliefs: np.ndarray, secrets: np.ndarray) -> float:
    """The largest log-ratio of Pr(y | secret) between two secrets, nats. `table` (N, outputs) is
    Pr(y | input), `beliefs` (N,) are those in the input sequences, `secrets` (N,) names the secret
    of each."""
    values = np.unique(secrets)
    has_value = values[:, None] == secrets
    joint = (has_value * beliefs) @ table
    rows = joint / joint.sum(axis=1, keepdims=True)
    return local_differential_privacy(rows)
