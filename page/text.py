"""Text that a user types, pastes or uploads: the cells of its lines, numbers, and budgets.

Many layouts are accepted. Errors say where the problem is and what to do.
"""

import csv
import re
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike

from tplreport.reading import describe_content

# Longer series would make the page slow.
MAX_RELEASES = 1000


def decode(content: bytes, name: str) -> str:
    """The text of an uploaded file; ValueError if it is empty or not text in UTF-8."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if not text.strip() or "\0" in text:
        found = describe_content(content.strip() and content)
        raise ValueError(f"{name} must be text in UTF-8, found {found}; save it as CSV in UTF-8")
    return text


def cells_of_lines(text: str) -> list[tuple[int, list[str]]]:
    """(line number, cells) of each line that is neither empty nor a comment (#); ValueError if there is none.

    The separator is the first of tab, semicolon and comma that occurs in the text, otherwise blanks.
    """
    is_filled = re.compile(r"(?!\s*#).*[^\s,;]").match
    lines = {k: line for k, line in enumerate(text.splitlines(), 1) if is_filled(line)}
    if not lines:
        raise ValueError("there must be at least one line, found no text; give one row of a matrix per line")
    filled_text = "\n".join(lines.values())
    separator = next((mark for mark in ("\t", ";", ",") if mark in filled_text), None)
    if separator in ("\t", ";") and re.search(r"\d,\d", filled_text) and not re.search(r"\d\.\d", filled_text):
        lines = {k: line.replace(",", ".") for k, line in lines.items()}  # decimal commas
    rows = []
    for k, line in lines.items():
        cells = line.split()
        if separator:
            cells = next(csv.reader([line], delimiter=separator, skipinitialspace=True))
        cells = [cell.strip().strip("\"'") for cell in cells]
        while len(cells) > 1 and not cells[-1]:  # a comma at the end, or padding by a spreadsheet
            cells.pop()
        rows.append((k, cells))
    return rows


def number(cell: str) -> float | None:
    """The number in a cell, or a fraction such as 1/3; None for anything else."""
    numerator, slash, denominator = cell.partition("/")
    try:
        return float(numerator) / float(denominator) if slash else float(cell)
    except (ValueError, ZeroDivisionError):
        return None


def parse_budgets(text: str, horizon: int) -> np.ndarray:
    """The budgets of T = `horizon` releases, (T,), from text such as "0.5, 0.2 x 8, 0.7"."""
    budgets: list[float] = []
    joined = re.sub(r"\s*[x×*]\s*(?=\d+(?:[\s,;]|$))", "*", text.strip())
    for entry in filter(None, re.split(r"[\s,;]+", joined)):
        value, _, times = entry.partition("*")
        budget = number(value)
        count = int(times) if re.fullmatch("[1-9][0-9]{0,3}", times) else int(value == entry)
        if budget is None or not 0.0 < budget < np.inf or not 1 <= count <= MAX_RELEASES:
            raise ValueError(
                f"budgets must be numbers greater than 0, each repeated at most {MAX_RELEASES} times, found {entry!r} "
                f"as entry {len(budgets) + 1}; separate them by commas, such as 0.5, 0.2 x 8, 0.7"
            )
        budgets += [budget] * count
    if len(budgets) != horizon:
        raise ValueError(f"there must be one budget per release, found {len(budgets)} for T = {horizon}; edit them")
    return np.array(budgets)


def format_budgets(budgets: ArrayLike) -> str:
    """Text that `parse_budgets` reads back exactly."""
    runs = [(value, len(list(run))) for value, run in groupby(np.asarray(budgets, dtype=float).tolist())]
    return ", ".join(repr(value) if count == 1 else f"{value!r} x {count}" for value, count in runs)
