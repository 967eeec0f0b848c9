"""Budgets for several candidate matrices at once, such as draws of an estimated chain."""

from collections.abc import Callable, Iterable
from math import ceil
from typing import Any

import numpy as np

from tplrepro.allocation.published import NoFiniteSupremumError
from tplrepro.progress import with_progress
from tplrepro.validation import check_probability


def allocate_for_several(
    allocate: Callable[[Any, Any], Any], pairs: Iterable[tuple[Any, Any]], *, share: float = 1.0
) -> Any:
    """Budgets that are within alpha for each of several pairs of matrices, or for a share of the
    pairs.

    TPL grows with each budget, so that the least budget at each time is within alpha for every pair
    that counts. The promise does not hold for a matrix between them.

    Parameters
    ----------
    allocate : callable
        Takes (backward, forward), and returns a budget or budgets (T,) in nats.
    pairs : iterable of (backward, forward)
        Such as draws of an estimated chain.
    share : float, optional
        In (0, 1]: the pairs with the least budget at any time are left out, so that this share
        remains.

    Returns
    -------
    float or ndarray (T,)
        In nats, as `allocate` returns.

    Raises
    ------
    ValueError
        If there is no pair, or the share is out of range.
    NoFiniteSupremumError
        If too many pairs have no budget.

    Examples
    --------
    >>> from functools import partial
    >>> from tplrepro import allocate_by_upper_bound
    >>> chains = [[[0.8, 0.2], [0.1, 0.9]], [[0.7, 0.3], [0.2, 0.8]], [[0.9, 0.1], [0.1, 0.9]]]
    >>> draws = [(P, P) for P in chains]
    >>> allocate = partial(allocate_by_upper_bound, 1.0)
    >>> [round(allocate_for_several(allocate, draws, share=share), 3) for share in (1.0, 0.6)]
    [0.116, 0.169]
    """
    share = check_probability(share, "share", zero=False)
    found = []
    failures = []
    for pair in with_progress(pairs, "allocations", "pair"):
        try:
            found.append(allocate(*pair))
        except NoFiniteSupremumError as error:
            failures.append(error)
    number = len(found) + len(failures)
    if number == 0:
        raise ValueError(
            "pairs must hold at least one (backward, forward), found none; give draws of the chain"
        )
    count = ceil(share * number * (1.0 - 2.0**-52))  # 0.95 of 20 draws are 19
    if count > len(found):
        raise failures[0]
    budgets = np.array(found, dtype=float)
    least_of_pair = budgets.reshape(len(found), -1).min(axis=1)
    most_first = np.argsort(-least_of_pair, kind="stable")
    kept = budgets[most_first[:count]].min(axis=0)
    if kept.ndim:
        return kept
    return float(kept)
