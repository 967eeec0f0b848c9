"""Budgets of releases from text and back."""

from __future__ import annotations

import re

import numpy as np

from tplrepro.explore.inputs import number
from tplrepro.validation import check_budgets

__all__ = ["MAX_RELEASES", "format_budgets", "parse_budgets"]

#: The longest series that the page shows.
MAX_RELEASES = 1000


def parse_budgets(text: str, horizon: int) -> np.ndarray:
    """Budgets of T releases from text: numbers in nats separated by commas, semicolons, blanks or line ends.

    "0.2 x 8" (or 0.2*8) stands for eight times 0.2.

    Returns
    -------
    ndarray (T,)

    Raises
    ------
    ValueError
        If an entry is no positive, finite number, or there are not T of them.

    Examples
    --------
    >>> parse_budgets("0.5, 0.2 x 3, 0.7", 5).tolist()
    [0.5, 0.2, 0.2, 0.2, 0.7]
    """
    budgets: list[float] = []
    joined = re.sub(r"\s*[x×*]\s*(?=\d+(?:[\s,;]|$))", "*", text.strip())
    for token in re.split(r"[\s,;]+", joined):
        if not token:
            continue
        value, _, times = token.partition("*")
        amount = number(value)
        if amount is None or (times and int(times) < 1):
            raise ValueError(
                f"budgets must be numbers in nats, found {token!r} as entry {len(budgets) + 1}; "
                "separate them by commas, such as 0.5, 0.2 x 8, 0.7"
            )
        if times and int(times) > MAX_RELEASES:
            raise ValueError(
                f"a budget must be repeated at most {MAX_RELEASES} times, found {times}; lower the number of releases"
            )
        budgets += [amount] * (int(times) if times else 1)
    if len(budgets) != horizon:
        raise ValueError(
            f"there must be one budget a release, found {len(budgets)} for T = {horizon} releases; "
            f"give {horizon} numbers, change T, or press Reset"
        )
    return check_budgets(budgets)


def format_budgets(budgets) -> str:
    """Text that `parse_budgets` reads back exactly, equal neighbours joined.

    >>> format_budgets([0.5, 0.2, 0.2, 0.7])
    '0.5, 0.2 x 2, 0.7'
    """
    runs: list[list] = []
    for value in np.asarray(budgets, dtype=float).tolist():
        if runs and runs[-1][0] == value:
            runs[-1][1] += 1
        else:
            runs.append([value, 1])
    return ", ".join(repr(value) if count == 1 else f"{value!r} x {count}" for value, count in runs)
