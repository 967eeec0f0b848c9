"""What readers of positions, Geolife and Gowalla, check alike: coordinates, times, and the box."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tplrepro.datasets.grid import as_box
from tplrepro.datasets.reading import DataFormatError, Defects, Rows, finish

__all__ = ["Positions"]


class Positions:
    """Drops the defects of positions, and counts positions outside the `box`, which may be None."""

    def __init__(self, box, defects: Defects, earliest: str = "1970-01-01"):
        self.box = None if box is None else as_box(box)
        self.earliest = pd.Timestamp(earliest).value // 1000
        self.latest = pd.Timestamp.now().value // 1000
        self.defects = defects
        self.total = self.out_of_range = self.outside = 0

    def check(self, rows: Rows) -> None:
        """Drop rows with known defects of latitude, longitude and time, in microseconds since 1970."""
        self.total += len(rows)
        wrong = ~((np.abs(rows["latitude"]) <= 90) & (np.abs(rows["longitude"]) <= 180))
        self.out_of_range += int(wrong.sum())
        rows.drop(wrong, "coordinates out of range")
        rows.drop(rows["time"] < self.earliest, "time before the recording began")
        rows.drop(rows["time"] > self.latest, "time in the future")

    def select(self, rows: Rows) -> None:
        """Keep the rows in the box and count the others."""
        if self.box is not None:
            inside = self.box.contains(rows["latitude"], rows["longitude"])
            self.outside += len(rows) - int(inside.sum())
            rows.keep(inside)

    def finish(self, frame: pd.DataFrame, path: str | Path) -> pd.DataFrame:
        """The frame with what it carries, unless most positions were out of range."""
        if 2 * self.out_of_range > self.total:
            file, _, line = self.defects.examples["coordinates out of range"].rpartition(", line ")
            problem = f"{self.out_of_range} of {self.total} points have coordinates out of range"
            remedy = "so the columns may be swapped; latitude must come before longitude"
            raise DataFormatError(f"{problem}, {remedy}", file, int(line))
        return finish(frame, path, self.defects, outside_box=self.outside)
