"""The hour that clocks leave out in spring, in times that are written without a zone.

Where no row stands in such an hour, steps of an hour or less seem to be missing: sequences are cut
there, or a state is held for an hour that has not passed. Which zone the times are of is not known,
so an hour counts if one of `ZONES`, which stand for the rules of most countries, leaves it out.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from tplrepro.display import count_noun

HOUR = np.timedelta64(1, "h")
ZONES = (
    "Europe/London",
    "Europe/Berlin",
    "Europe/Athens",
    "America/New_York",
    "America/Havana",
    "America/Santiago",
    "Atlantic/Azores",
    "Africa/Cairo",
    "Asia/Beirut",
    "Asia/Jerusalem",
    "Australia/Sydney",
    "Pacific/Auckland",
)


def left_out_hours(first: np.datetime64, last: np.datetime64) -> np.ndarray:
    """The hours that the clocks of `ZONES` leave out in the years of two times.

    Parameters
    ----------
    first, last : datetime64

    Returns
    -------
    array (h,) of datetime64[h]

    Raises
    ------
    ValueError
        For NaT.

    Examples
    --------
    >>> summer = left_out_hours(np.datetime64("2024-03-12"), np.datetime64("2024-03-31"))
    >>> [str(hour) for hour in summer if "2024-03" in str(hour)]
    ['2024-03-10T00', '2024-03-10T02', '2024-03-29T02', '2024-03-31T00', '2024-03-31T01', \
'2024-03-31T02', '2024-03-31T03']
    """
    begin = first.astype("datetime64[Y]")
    end = last.astype("datetime64[Y]") + np.timedelta64(1, "Y")
    hours = np.arange(begin, end, dtype="datetime64[h]")
    found = []
    for zone in ZONES:
        local = pd.DatetimeIndex(hours).tz_localize("UTC").tz_convert(zone).tz_localize(None)
        before = local.to_numpy()[:-1][np.diff(local.to_numpy()) == 2 * HOUR]
        found.append((before + HOUR).astype("datetime64[h]"))
    return np.unique(np.concatenate(found))


@dataclass(eq=False)
class SkippedHours:
    """Sequences at hours that clocks leave out, gathered over parts of whole users."""

    cut: Counter[str] = field(default_factory=Counter)  # sequences cut there, by the hour
    held: Counter[str] = field(default_factory=Counter)  # states held there

    def add(self, cuts: np.ndarray, values: np.ndarray, rows: np.ndarray) -> None:
        """Note what stands at such hours in which there is no row, but before and after.

        Parameters
        ----------
        cuts : array of datetime64, times at which a sequence ends that goes on an hour later
        values, rows : arrays of datetime64, times of the values of sequences, and of rows

        Raises
        ------
        ValueError
            For NaT.
        """
        if not rows.size:
            return
        hours = left_out_hours(rows.min(), rows.max())
        seen = np.unique(rows.astype("datetime64[h]"))
        hours = np.setdiff1d(hours, seen)
        # at other hours of that night, too, nothing may have been seen
        hours = hours[np.isin(hours - HOUR, seen) & np.isin(hours + HOUR, seen)]
        hour_of_cut = cuts.astype("datetime64[h]")
        # A row between two full steps counts at the next one, and so ends its sequence later.
        is_later = ~np.isin(hour_of_cut, hours)
        hour_of_cut[is_later] -= HOUR
        hour_of_value = values.astype("datetime64[h]")
        for counter, found in ((self.cut, hour_of_cut), (self.held, hour_of_value)):
            counter.update(map(str, found[np.isin(found, hours)]))

    def __str__(self) -> str:
        """What is said of them; empty if there are none."""
        said = [_said(self.cut, "sequence", "cut"), _said(self.held, "state", "held")]
        said = [words for words in said if words]
        if not said:
            return ""
        return (
            f"{' and '.join(said)}, which no row has, as where clocks are put forward; give times "
            "with their offset from UTC, in a column with a zone, or zone= if it is one for all, "
            "so that no hour is missing"
        )


def _said(counter: Counter[str], what: str, done: str) -> str:
    """How many of `what` are cut or held ("done") at which hours; empty for none."""
    if not counter:
        return ""
    hours = sorted(counter)
    shown = hours[0].replace("T", " ") + ":00"
    if len(hours) > 1:
        shown += f" and {count_noun(len(hours) - 1, 'other hour')}"
    verb = "are"
    if counter.total() == 1:
        verb = "is"
    return f"{count_noun(counter.total(), what, ',')} {verb} {done} at {shown}"
