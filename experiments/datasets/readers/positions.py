"""The known defects of geographic positions, which the readers of Geolife and Gowalla skip and
count."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tplreport.reading.grid import as_box
from tplreport.reading.text_files import DataFormatError, Defects, Rows, finish

OUT_OF_RANGE = "coordinates out of range"


class Positions:
    """Drops the known defects of geographic positions and counts them in `defects`.

    With a `box` (None: everywhere) positions outside it are dropped too, and counted apart. Times
    before `earliest`, an ISO date in UTC, or after now are defects.
    """

    def __init__(self, box: Any, defects: Defects, earliest: str = "1970-01-01"):
        self.box = None if box is None else as_box(box)
        self.earliest = pd.Timestamp(earliest).value // 1000
        self.latest = pd.Timestamp.now().value // 1000
        self.defects = defects
        self.total = 0
        self.outside = 0

    def select(self, rows: Rows, group: str | None = None) -> None:
        """Keep the rows in the box without known defects, by `group` and time, microseconds since
        1970."""
        self.total += len(rows)
        rows.drop(
            ~((np.abs(rows["latitude"]) <= 90) & (np.abs(rows["longitude"]) <= 180)), OUT_OF_RANGE
        )
        rows.drop(rows["time"] < self.earliest, "time before the recording began")
        rows.drop(rows["time"] > self.latest, "time in the future")
        rows.put_in_time(None if group is None else rows[group])
        if self.box is not None:
            inside = np.flatnonzero(self.box.contains(rows["latitude"], rows["longitude"]))
            self.outside += len(rows) - len(inside)
            rows.keep(inside)

    def finish(self, frame: pd.DataFrame, path: str | Path) -> pd.DataFrame:
        """The frame with its attributes; raises if most positions were out of range."""
        wrong = self.defects.skipped.get(OUT_OF_RANGE, 0)
        if 2 * wrong > self.total:
            raise DataFormatError(
                f"{wrong} of {self.total} points are out of range, so the columns may be swapped; "
                "put latitude before longitude",
                self.defects.examples[OUT_OF_RANGE],
            )
        return finish(frame, path, self.defects, outside_box=self.outside)
