"""Sequences of states from text: a sequence a line, or a table of observations."""

from __future__ import annotations

from tplrepro.explore.inputs import MAX_STATES, cells_of_lines, number, whole_numbers

__all__ = ["parse_sequences"]

STATE_COLUMNS = ("state", "cell", "location", "label")
USER_COLUMNS = ("user", "sequence", "id")
MISSING = ("nan", "na", "null")


def parse_sequences(text: str) -> list[list]:
    """Sequences of states from text, for estimation.

    Two layouts: one sequence a line, its states separated by commas (semicolons, tabs, blanks); or one observation a
    line below a header with a column "state" (or "cell", "location", "label"), and optionally a column "user" (or
    "sequence", "id") and a column "time", by which the observations are sorted. Where a state is missing a sequence
    ends, and the next one begins.

    Returns
    -------
    list of lists of states, whole numbers if all states are, else str

    Raises
    ------
    ValueError
        If there is no step from one state to another or to itself.

    Examples
    --------
    >>> parse_sequences("home, office, home\\noffice, office")
    [['home', 'office', 'home'], ['office', 'office']]
    >>> parse_sequences("user,time,state\\n7,1,3\\n9,1,4\\n7,2,5")
    [[3, 5], [4]]
    """
    rows = [row for _, row in cells_of_lines(text)]
    if not rows:
        raise ValueError("sequences need at least one line, found no text; give one sequence of states a line")
    table = _observations(rows)
    pieces = [piece for row in (rows if table is None else table) for piece in _split_at_gaps(row)]
    if not any(len(piece) > 1 for piece in pieces):
        raise ValueError(
            f"sequences need at least one step, found {len(pieces)} sequences of one state at most; "
            "give one sequence a line, with two states or more, or a column named state"
        )
    states = {state for piece in pieces for state in piece}
    if len(states) > MAX_STATES:
        raise ValueError(
            f"sequences must have at most {MAX_STATES} different states here, found {len(states)}; "
            "merge states into areas or groups first"
        )
    if isinstance(next(iter(whole_numbers(list(states)))), int):
        return [whole_numbers(piece) for piece in pieces]
    return pieces


def _observations(rows: list[list[str]]) -> list[list[str]] | None:
    """Sequences from a table of observations, None if the first row is no header that names a column of states."""
    header = [cell.lower() for cell in rows[0]]
    state = next((header.index(name) for name in STATE_COLUMNS if name in header), None)
    if state is None or not (len(header) == 1 or {"time", *USER_COLUMNS} & set(header)):
        return None
    user = next((header.index(name) for name in USER_COLUMNS if name in header), None)
    time = header.index("time") if "time" in header else None
    padded = [row + [""] * (len(header) - len(row)) for row in rows[1:]]
    if time is not None:
        numbers = [number(row[time]) for row in padded]
        keys = [row[time] for row in padded] if None in numbers else numbers
        padded = [padded[k] for k in sorted(range(len(padded)), key=keys.__getitem__)]
    grouped: dict[str, list[str]] = {}
    for row in padded:
        grouped.setdefault("" if user is None else row[user], []).append(row[state])
    return list(grouped.values())


def _split_at_gaps(row: list[str]) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    for state in row:
        if state and state.lower() not in MISSING:
            pieces[-1].append(state)
        else:
            pieces.append([])
    return [piece for piece in pieces if piece]
