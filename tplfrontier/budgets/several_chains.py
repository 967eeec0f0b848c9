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

    `allocate` takes (backward, forward) and gives a budget or budgets (T,) in nats. TPL grows with
    each budget, so that the least budget at each time is within alpha for every pair that counts;
    the pairs with the least budget at any time are left out, so that a `share` in (0, 1] remains.
    The promise does not hold for a matrix between them. ValueError if there is no pair;
    NoFiniteSupremumError if too many have no budget.

    Examples
    --------
    >>> from functools import partial
    >>> from tplrepro import allocate_by_upper_bound
    >>> draws = [([[0.8, 0.2], [0.1, 0.9]],) * 2, ([[0.7, 0.3], [0.2, 0.8]],) * 2, ([[0.9, 0.1], [0.1, 0.9]],) * 2]
    >>> allocate = partial(allocate_by_upper_bound, 1.0)
    >>> [round(allocate_for_several(allocate, draws, share=share), 3) for share in (1.0, 0.6)]
    [0.116, 0.169]
    """
    share = check_probability(share, "share", zero=False)
    found, failures = [], []
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
    least = budgets.reshape(len(found), -1).min(axis=1)
    kept = budgets[np.argsort(-least, kind="stable")[:count]].min(axis=0)
    return kept if kept.ndim else float(kept)
