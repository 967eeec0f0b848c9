"""Budgets for several candidate matrices at once, such as posterior or bootstrap draws of an estimated chain."""

from collections.abc import Callable, Iterable
from math import ceil
from typing import Any

import numpy as np

from tplrepro.allocation.published import NoFiniteSupremumError
from tplrepro.validation import check_probability

EPS = float(np.finfo(float).eps)


def allocate_for_several(
    allocate: Callable[[Any, Any], Any], pairs: Iterable[tuple[Any, Any]], *, share: float = 1.0
) -> Any:
    """The largest budgets that `allocate` finds for every one of several pairs of matrices, or for a share of them.

    TPL grows with each budget, so that the least budget at each time is within alpha for every pair that
    counts.

    Parameters
    ----------
    allocate : callable (backward, forward) -> float or array (T,), in nats
        Such as ``lambda backward, forward: allocate_by_upper_bound(alpha, backward, forward)``.
    pairs : iterable of (backward, forward)
        Anything that `allocate` takes; for draws from a posterior see `tplrepro.markov.posterior_draws`.
    share : float in (0, 1]
        The part of the pairs that must be within alpha; those with the least budget at any time are left out.

    ValueError if there is no pair, or for a share outside (0, 1]; NoFiniteSupremumError if too many pairs
    have no budget. The promise holds for the pairs that count, not for a matrix between them.

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
    for pair in pairs:
        try:
            found.append(allocate(*pair))
        except NoFiniteSupremumError as error:
            failures.append(error)
    number = len(found) + len(failures)
    if number == 0:
        raise ValueError("pairs must hold at least one (backward, forward), found none; give draws of the chain")
    count = ceil(share * number * (1.0 - EPS))  # 0.95 of 20 draws are 19
    if count > len(found):
        raise failures[0]
    budgets = np.array(found, dtype=float)
    least = budgets.reshape(len(found), -1).min(axis=1)
    kept = budgets[np.argsort(-least, kind="stable")[:count]].min(axis=0)
    return kept if kept.ndim else float(kept)
