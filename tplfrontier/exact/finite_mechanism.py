"""The exact leakage of one given mechanism with finitely many outputs, such as randomised response.

A mechanism with few outputs has few likelihood vectors, the columns of its response matrix Pr(o |
l), and can leak less than the worst mechanism (`tplrepro.leakage.exact`). The messages m_t =
Pr(o_1..o_t | l_t) of all sequences of outputs are listed time by time: x_t * (B m_{t-1}) for each
column x_t. An extreme ray of a cone attains the largest ratio of two linear functionals, and each
step is linear for given outputs, so a message inside the cone of the others, by a margin far above
rounding, is left out. With three or more states the number of messages grows with T.
"""

from __future__ import annotations
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tplrepro.leakage.exact import (
    ExactLeakage,
    LogRatios,
    arrays_of_both_sides,
    possible_steps,
    with_joint,
)
from tplrepro.leakage.temporal import REQUIRED, Correlation
from tplrepro.markov.filtering import LOWEST
from tplrepro.validation import as_numbers, by_state, check_horizon

# of one time before inner ones are left out; a release then takes some seconds
MAX_MESSAGES = 200_000
DIGITS = 13  # messages that agree in these count as one
# a message, whose entries sum to 1, is left out if it is this far inside the hull of all
MARGIN = 1e-11


def mechanism_leakage(
    likelihoods: Any,
    backward: Correlation = REQUIRED,
    forward: Correlation = REQUIRED,
    *,
    horizon: int | None = None,
) -> ExactLeakage:
    """The exact BPL, FPL and TPL of a mechanism with finitely many outputs.

    BPL and FPL are the largest log-likelihood ratios of two states, over all sequences of outputs;
    TPL joins them as Eq. (11) of [1] does.

    Parameters
    ----------
    likelihoods : array-like (n, K) of numbers > 0, or a list of T of these
        Pr(o | l), a row for each state, a column for each output; a list, without `horizon`, has
        one for each release. To scale a column changes nothing.
    backward : TransitionMatrix, array-like (n, n), a list of T - 1 of these, Cycle, or None
        Pr(l^{t-1} | l^t). None: the adversary does not know that side.
    forward : as `backward`
        Pr(l^t | l^{t-1}).
    horizon : int >= 1, optional
        The number of releases T, if the mechanism is the same at all times.

    Returns
    -------
    ExactLeakage
        `bpl`, `fpl` and `tpl` (T,) in nats; its `epsilons` are the leakages of single releases.

    Raises
    ------
    ValueError
        For likelihoods that are not positive or have another number of states than the matrices,
        or if more than 200,000 messages must be listed.
    TypeError
        If one of the sides is not given.

    Examples
    --------
    >>> from math import e
    >>> P = [[0.1, 0.1, 0.8], [0.2, 0.7, 0.1], [0.7, 0.2, 0.1]]
    >>> in_state_0_or_not = [[e, 1], [1, e], [1, e]]
    >>> mechanism_leakage(in_state_0_or_not, P, P, horizon=4).tpl.round(3).tolist()
    [2.141, 2.569, 2.569, 2.141]
    >>> from tplrepro import exact_leakage
    >>> exact_leakage([1.0] * 4, P, P).tpl.round(3).tolist()  # the worst 1-DP mechanism
    [2.311, 2.801, 2.801, 2.311]
    """
    if horizon is None:
        tables = [*likelihoods]
        repeated = 1
    else:
        tables = [likelihoods]
        repeated = check_horizon(horizon)
    releases = len(tables) * repeated
    before, after, states = arrays_of_both_sides(backward, forward, releases)
    columns = _likelihood_vectors(tables, states) * repeated
    _check_number_of_states(columns, states)
    past_messages = _list_messages(columns, before)
    future_messages = _list_messages(columns[::-1], after[::-1])
    single = np.stack([_largest_log_ratios(vectors) for vectors in columns])
    past = np.stack([_largest_log_ratios(messages) for messages in past_messages])
    future = np.stack([_largest_log_ratios(messages) for messages in future_messages])
    budgets = single.max(axis=(1, 2))
    steps = possible_steps(before, after, single.shape[1])
    return with_joint(budgets, LogRatios.of(past, single, future[::-1], steps))


def _check_number_of_states(columns: list, states: Sequence | None) -> None:
    n = columns[0].shape[1]
    if states is not None:
        n = len(states)
    rows = [vectors.shape[1] for vectors in columns]
    if any(number != n for number in rows):
        raise ValueError(
            f"likelihoods need a row for each state, found {rows} rows and {n} states; "
            "give Pr(o | l)"
        )


def _list_messages(columns: list, steps: list) -> Iterator[np.ndarray]:
    """The messages of the outputs before each time about the state at that time, (messages, n)."""
    n = columns[0].shape[1]
    messages = np.ones((1, n))
    yield messages
    for vectors, matrix in zip(columns, steps, strict=False):
        if messages.shape[0] * vectors.shape[0] > MAX_MESSAGES:
            raise ValueError(
                f"a mechanism may have at most {MAX_MESSAGES:,} messages at a time, "
                f"found {messages.shape[0]} times {vectors.shape[0]} outputs; "
                "take fewer releases, states or outputs, or exact_leakage, the worst mechanism"
            )
        if matrix is None:
            messages = np.ones((1, n))
        else:
            products = messages[:, None, :] * vectors[None, :, :]
            mixtures = products.reshape(-1, n) @ matrix.T
            sums = mixtures.sum(axis=1, keepdims=True)
            messages = mixtures / sums
            if not messages.min() >= LOWEST:
                raise ValueError(
                    "likelihood ratios of a mechanism must stay below e^667 (doubles), found a "
                    f"message of {messages.min():g}; take fewer releases, or "
                    "temporal_privacy_leakage, the upper bound"
                )
            messages = _leave_out_inner(messages)
        yield messages


def _leave_out_inner(messages: np.ndarray) -> np.ndarray:
    """The messages (K, n) without duplicates, and without most of those inside the cone that the
    others span."""
    n = messages.shape[1]
    if n == 2:
        ratios = messages[:, 0] / messages[:, 1]
        extremes = [ratios.argmin(), ratios.argmax()]
        return messages[extremes]
    rounded = np.log(messages).round(DIGITS)
    _, first = np.unique(rounded, axis=0, return_index=True)
    messages = messages[first]
    if len(messages) <= 2 * n:
        return messages
    from scipy.spatial import ConvexHull, QhullError

    try:
        points = messages[:, :-1]
        facets = ConvexHull(points).equations
    except QhullError:  # all messages in one plane, up to Qhull's precision
        return messages
    is_near_facet = []
    for facet in facets:
        normal = facet[:-1]
        heights = points @ normal + facet[-1]
        is_near_facet.append(heights > -MARGIN)
    is_outer = np.any(is_near_facet, axis=0)
    return messages[is_outer]


def _largest_log_ratios(vectors: np.ndarray) -> np.ndarray:
    """The largest log x_i/x_j over vectors (K, n), for all pairs, (n, n)."""
    logs = np.log(vectors).T
    ratios = []
    for row in logs:
        log_ratios = row - logs
        ratios.append(log_ratios.max(axis=1))
    return np.array(ratios)


def _likelihood_vectors(tables: list, states: Sequence | None) -> list[np.ndarray]:
    """The likelihood vectors of each table as rows, (K, n) each."""
    if not tables:
        raise ValueError(
            "likelihoods must hold at least one table, found none; give Pr(o | l) of each time"
        )
    columns = []
    for table in tables:
        likelihoods = as_numbers(
            by_state(table, states, "likelihoods"),
            "likelihoods must be tables of numbers",
            "give Pr(o | l) of each time",
        )
        is_table = likelihoods.ndim == 2 and likelihoods.size > 0
        if not is_table or not np.isfinite(likelihoods).all() or (likelihoods <= 0).any():
            raise ValueError(
                "likelihoods must be a table of finite numbers greater than 0, "
                f"found shape {likelihoods.shape} with smallest {likelihoods.min(initial=np.inf)}; "
                "give Pr(o | l), and horizon = T if all releases have the same"
            )
        columns.append(np.ascontiguousarray(likelihoods.T))
    return columns
