"""Text that a person types, pastes or uploads: cells of its lines, numbers, and the budgets of a series of releases.

Text is read generously and refused precisely: each error says where and what to do.
"""

import csv
import re
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.sequences import whole_numbers

__all__ = [
    "MAX_BYTES",
    "MAX_RELEASES",
    "cells_of_lines",
    "check_most",
    "decode",
    "format_budgets",
    "number",
    "parse_budgets",
]

#: Larger files and longer series are for the package itself: a page that answers within a tenth of a second is not.
MAX_BYTES = 5_000_000
MAX_RELEASES = 1000


def decode(content: bytes, name: str = "the file") -> str:
    """The text of an uploaded file; a ValueError if it is empty or no text in UTF-8 or UTF-16."""
    try:
        text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} must be text in UTF-8, found byte 0x{content[error.start]:02x}; save it so") from None
    if "\0" in text:
        raise ValueError(f"{name} must be text, found binary content; save it as CSV in UTF-8")
    if not text.strip():
        raise ValueError(f"{name} must not be empty, found no text; choose another file")
    return text


def cells_of_lines(text: str) -> list[tuple[int, list[str]]]:
    """(number of the line, cells) of each line that holds something and does not begin with #.

    Cells are separated by tabs, semicolons, commas or blanks, whichever of these comes first in that order in the text.
    ValueError if no line holds anything.
    """
    numbered = enumerate(text.splitlines(), 1)
    lines = [(place, line) for place, line in numbered if re.match(r"(?!\s*#).*[^\s,;]", line)]
    if not lines:
        raise ValueError(
            "there must be at least one line, found no text; give one row of a matrix, or one sequence, a line"
        )
    everything = "\n".join(line for _, line in lines)
    separator = next((mark for mark in ("\t", ";", ",") if mark in everything), None)
    comma_is_point = (
        separator in (";", "\t") and re.search(r"\d,\d", everything) and not re.search(r"\d\.\d", everything)
    )
    rows = []
    for place, line in lines:
        cells = next(csv.reader([line], delimiter=separator, skipinitialspace=True)) if separator else line.split()
        cells = [cell.strip().strip("\"'") for cell in cells]
        while len(cells) > 1 and not cells[-1]:  # a comma at the end, or padding by a spreadsheet
            cells.pop()
        rows.append((place, [cell.replace(",", ".") for cell in cells] if comma_is_point else cells))
    return rows


def number(cell: str) -> float | None:
    """The number that a cell holds, or a fraction such as 1/3; None for anything else."""
    numerator, slash, denominator = cell.partition("/")
    try:
        return float(numerator) / float(denominator) if slash else float(cell)
    except (ValueError, ZeroDivisionError):
        return None


def check_most(found: int, name: str, limit: int) -> None:
    """Raise ValueError for more of something than the page can show while a slider moves."""
    if found > limit:
        raise ValueError(f"{name} must be at most {limit} here, found {found}; take fewer, or use tplrepro directly")


def parse_budgets(text: str, horizon: int) -> np.ndarray:
    """Budgets of T releases, (T,): numbers in nats separated by commas, semicolons, blanks or line ends.

    "0.2 x 8" (or 0.2*8) stands for eight times 0.2. Entries that are not positive and finite, and more or fewer than T
    of them, are ValueErrors.

    >>> parse_budgets("0.5, 0.2 x 3, 0.7", 5).tolist()
    [0.5, 0.2, 0.2, 0.2, 0.7]
    """
    budgets: list[float] = []
    joined = re.sub(r"\s*[x×*]\s*(?=\d+(?:[\s,;]|$))", "*", text.strip())
    for entry in filter(None, re.split(r"[\s,;]+", joined)):
        value, star, times = entry.partition("*")
        amount, count = number(value), whole_numbers([times])[0] if star else 1
        if amount is None or not 0.0 < amount < np.inf or count not in range(1, MAX_RELEASES + 1):
            raise ValueError(
                f"budgets must be numbers in nats greater than 0, each repeated at most {MAX_RELEASES} times, found "
                f"{entry!r} as entry {len(budgets) + 1}; separate them by commas, such as 0.5, 0.2 x 8, 0.7"
            )
        budgets += [amount] * int(count)
    if len(budgets) != horizon:
        raise ValueError(
            f"there must be one budget a release, found {len(budgets)} for T = {horizon}; edit or reset them"
        )
    return np.array(budgets)


def format_budgets(budgets: ArrayLike) -> str:
    """Text that `parse_budgets` reads back exactly, equal neighbours joined.

    >>> format_budgets([0.5, 0.2, 0.2, 0.7])
    '0.5, 0.2 x 2, 0.7'
    """
    runs = [(value, len(list(run))) for value, run in groupby(np.asarray(budgets, dtype=float).tolist())]
    return ", ".join(repr(value) if count == 1 else f"{value!r} x {count}" for value, count in runs)
