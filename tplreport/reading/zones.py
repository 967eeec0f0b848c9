"""Times by the clock of a zone that is named, where the file does not say whose clock counts.

Instants, which are times with an offset from UTC or seconds since 1970, are shown by that clock.
Times without an offset are taken for what it shows; of an hour that it repeats they are the first
one.
"""

from __future__ import annotations
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from tplreport.reading.times import PlaceOfRow, has_dates, seconds_of

EXCEL = "excel"


@dataclass(frozen=True)
class NamedZone:
    """The zone by whose clock hours and days count, and the unit of times that are numbers."""

    name: str
    unit: str | None

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.name)
        except (LookupError, OSError, ValueError, TypeError, AttributeError):
            raise ValueError(
                f"zone must be the name of a time zone, found {self.name!r}; give such as "
                "'Europe/Berlin'"
            ) from None

    def times(
        self, instants: np.ndarray, has_offset: bool, place: PlaceOfRow
    ) -> tuple[np.ndarray, np.ndarray]:
        """Times of a column by this clock.

        Parameters
        ----------
        instants : array (m,) of datetime64, or of numbers
            In UTC where they have an offset, and otherwise as they are written.
        has_offset : bool
        place : function of the number of a row, which tells where it stands

        Returns
        -------
        tuple of instants in UTC and what the clock shows then, arrays (m,) of datetime64

        Raises
        ------
        ValueError
            For numbers that are not dates, and for times that the clock leaves out.
        """
        is_instant = has_offset
        if instants.dtype.kind != "M":
            is_instant = self.unit != EXCEL
            instants = self._dates_of_numbers(instants, place)
        written = pd.DatetimeIndex(instants)
        if is_instant:
            there = written.tz_localize("UTC").tz_convert(self.name)
            return instants, there.tz_localize(None).to_numpy()
        is_first = np.ones(len(written), dtype=bool)
        local = written.tz_localize(self.name, ambiguous=is_first, nonexistent="NaT")
        if local.hasnans:
            row = int(np.argmax(local.isna()))
            raise ValueError(
                f"the clock of {self.name} leaves out an hour, found {written[row]} of it in "
                f"{place(row)}; leave zone= out, or give the zone in which the times were written"
            )
        return local.tz_convert(None).to_numpy(), instants

    def _dates_of_numbers(self, numbers: np.ndarray, place: PlaceOfRow) -> np.ndarray:
        seconds = seconds_of(numbers, self.unit).astype(float)
        if not has_dates(seconds):
            raise ValueError(
                f"zone= needs times that are dates, found {numbers[0]} in {place(0)}; give "
                "time_unit= if they count from 1970, or leave zone= out"
            )
        return np.rint(seconds * 1e6).astype(np.int64).astype("datetime64[us]")
