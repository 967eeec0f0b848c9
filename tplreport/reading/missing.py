"""Rows that lack a user, a time or the end of a spell, and what can still be known of them.

Such rows are an error that counts them, or are left out. A row of a user without a time stands
between two others in the file: if the user's rows are in order of time there, no step is taken from
one to the other. The state of a spell without an end is not known from its begin on, up to the
user's next row. A row without a user may be anybody's, so that it ends no sequence.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from tplreport.reading.times import Absent, PlaceOfRow
from tplrepro.display import count_noun
from tplrepro.validation import warn_caller

#: Column of a table -> what it is called.
CALLED = {"user": "a user", "time": "a time", "until": "an end"}
#: Column of a table -> what a row does that lacks it.
EFFECTS = {
    "user": "ends no sequence: it may be anybody's",
    "time": "ends a sequence where it stands in the file",
    "until": "ends a sequence at its begin",
}


@dataclass(eq=False)
class Lacking:
    """Rows that lack something, gathered over the blocks of a table."""

    counts: Counter[str] = field(default_factory=Counter)  # rows by the column that they lack
    left_out: Counter[str] = field(default_factory=Counter)  # the same, each row once
    first: dict[str, tuple[int, str]] = field(default_factory=dict)  # row, and what stands there
    users: list[np.ndarray] = field(default_factory=list)  # codes, of rows without a time
    timeless: list[np.ndarray] = field(default_factory=list)  # numbers of these rows
    endless: list[np.ndarray] = field(default_factory=list)  # of rows without an end

    def add(self, users: np.ndarray, absent: Mapping[str, Absent], begin: int) -> np.ndarray:
        """Note the rows of a block.

        Parameters
        ----------
        users : array (m,) of codes, -1 for none
        absent : the rows that lack something, by the column that they lack
        begin : number of the first row of the block in the table

        Returns
        -------
        array (m,) of bool: which rows have no user or no time

        Raises
        ------
        IndexError
            For rows beyond those of the block.
        """
        lacks = {}
        for name, rows in absent.items():
            self.counts[name] += len(rows.rows)
            self.first.setdefault(name, (begin + int(rows.rows[0]), rows.found))
            lacks[name] = np.zeros(len(users), dtype=bool)
            lacks[name][rows.rows] = True
        nothing = np.zeros(len(users), dtype=bool)
        has_user = ~lacks.get("user", nothing)
        is_timeless = lacks.get("time", nothing) & has_user
        is_endless = lacks.get("until", nothing) & has_user & ~is_timeless
        timeless = np.flatnonzero(is_timeless)
        endless = np.flatnonzero(is_endless)
        self.users.append(users[timeless].astype(np.int64))
        self.timeless.append(begin + timeless)
        self.endless.append(begin + endless)
        self.left_out["user"] += int((~has_user).sum())
        self.left_out["time"] += len(timeless)
        self.left_out["until"] += len(endless)
        return ~has_user | is_timeless

    def warn(self, source: str) -> None:
        """Warn of rows of `source` without a user, as it is not known whose steps they end."""
        if count := self.left_out["user"]:
            warn_caller(
                f"{count_noun(count, 'row', ',')} of {source} without a user are left out, which "
                "may be anybody's: a step may lead across one of them; with step= and no max_gap= "
                "the gap that it leaves ends a sequence"
            )

    def check(self, place: PlaceOfRow, n_rows: int) -> None:
        """ValueError for rows that lack something, of `n_rows`; `place` tells where a row
        stands."""
        problems = []
        for name, count in self.counts.items():
            row, shown = self.first[name]
            found = f"{name} must not be empty, found {shown} in {place(row)}"
            if count > 1:
                others = count_noun(count - 1, "other row", ",")
                found += f" and in {others} of the {n_rows:,} read"
            problems.append(found)
        them = "it"
        if self.counts.total() > 1:
            them = "them"
        effects = "; ".join(f"a row without {CALLED[name]} {EFFECTS[name]}" for name in self.counts)
        raise ValueError(
            f"{', and '.join(problems)}; drop {them} by missing='drop' ({effects}), or write what "
            "is missing"
        )

    def reasons(self) -> dict[str, int]:
        """Why rows do not count -> how many."""
        return {
            f"without {CALLED[name]}, and {EFFECTS[name]}": self.left_out[name]
            for name in EFFECTS
            if self.left_out[name]
        }

    def heeded(self, reports: pd.DataFrame, place: PlaceOfRow) -> pd.DataFrame:
        """The reports with columns that say after which something is missing ("is_cut"), and which
        spells have no end ("is_endless"), in place of which their begin stands.

        Parameters
        ----------
        reports : DataFrame, sorted by user, in the order of the file
        place : function of the number of a row, which tells where it stands

        Returns
        -------
        DataFrame

        Raises
        ------
        ValueError
            If the reports of a user with a row without a time are not in order of time.
        """
        user = reports["user"].to_numpy(np.int64)
        row = reports["row"].to_numpy(np.int64)
        is_cut = np.zeros(len(reports), dtype=bool)
        users = np.concatenate(self.users)
        timeless = np.concatenate(self.timeless)
        if timeless.size:
            of_part = np.isin(users, user)
            users = users[of_part]
            timeless = timeless[of_part]
            _check_order(reports[np.isin(user, users)], place)
            many = 1 + max(row.max(initial=0), timeless.max(initial=0))
            before = np.searchsorted(user * many + row, users * many + timeless) - 1
            is_first = (before < 0) | (user[before] != users)
            is_cut[before[~is_first]] = True
        is_endless = np.isin(row, np.concatenate(self.endless))
        if is_endless.any():
            reports = reports.assign(until=reports["until"].mask(is_endless, reports["time"]))
        return reports.assign(is_cut=is_cut, is_endless=is_endless)


def _check_order(reports: pd.DataFrame, place: PlaceOfRow) -> None:
    """ValueError unless the reports of each user, in the order of the file, are in order of
    time."""
    user = reports["user"].to_numpy()
    time = reports["time"].to_numpy()
    is_back = (user[1:] == user[:-1]) & (time[1:] < time[:-1])
    if is_back.any():
        later = int(np.argmax(is_back))
        rows = reports["row"].to_numpy()
        raise ValueError(
            "rows of a user with a row without a time must be in order of time, which tells where "
            f"it belongs, found {place(int(rows[later]))} before {place(int(rows[later + 1]))}; "
            "sort the file by user and time, or leave that row out, and no step is known to be "
            "false there"
        )
