"""Evenly spaced time points of a publisher: whole numbers, or dates with a step such as "1h"."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timezone
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Clock:
    """Times start + k step, k = 0, 1, ...; dates in nanoseconds since 1970, in UTC if they have a
    zone."""

    dates: bool
    zone: str | None
    start: int
    step: int

    @staticmethod
    def checked_step(step: int | str) -> int | str:
        """A step that is a whole number, or text of a Timedelta."""
        checked = (
            int(step)
            if isinstance(step, (int, np.integer)) and not isinstance(step, bool)
            else str(pd.Timedelta(step))
        )
        if (checked if isinstance(checked, int) else pd.Timedelta(checked).value) <= 0:
            raise ValueError(f"step must be above 0, found {step}; give such as 1 or '1h'")
        return checked

    @classmethod
    def starting(cls, time: Any, step: int | str) -> dict:
        """The fields of the clock whose first time this is."""
        ticks, dates, zone = _ticks([time])
        if dates != isinstance(step, str):
            must = (
                "a step such as '1h' if times are dates"
                if dates
                else "a whole number as step if times are"
            )
            raise ValueError(
                f"the publisher needs {must}, found time {time!r} and step {step!r}; make it with step="
            )
        width = pd.Timedelta(step).value if isinstance(step, str) else step
        return {"dates": dates, "zone": zone, "start": ticks[0], "step": width}

    def positions(self, times: Any) -> list[int]:
        """The numbers k of times; ValueError for one in between, or of another kind."""
        ticks, dates, zone = _ticks(times)
        if dates != self.dates or (zone is None) != (self.zone is None):
            kinds = {
                False: "whole numbers",
                True: "dates " + ("without" if self.zone is None else "with") + " a zone",
            }
            raise ValueError(
                f"times must be {kinds[self.dates]} as before, found {times[0]!r}; convert them"
            )
        numbers, rest = np.divmod(np.array(ticks, dtype=np.int64) - self.start, self.step)
        if rest.any():
            found, before = (
                times[int(np.argmax(rest > 0))],
                self.label(int(numbers[np.argmax(rest > 0)])),
            )
            raise ValueError(
                f"times must be whole steps apart, found {found} after {before}; round it to the step"
            )
        return numbers.tolist()

    def check_follow(self, positions: Sequence[int], following: int) -> None:
        """ValueError unless positions follow each other, the first of them at most `following`."""
        if any(later - earlier != 1 for earlier, later in pairwise(positions)):
            hour = "; an hour that clocks repeat needs its offset from UTC, such as 2024-10-27 02:00+01:00"
            must = "times must follow each other step by step, found gaps, duplicates or a way back; sort them"
            raise ValueError(must + hour * (self.dates and self.zone is None))
        gap = positions[0] - following
        wanted, found, before = (
            self.label(at) for at in (following, following + gap, following + gap - 1)
        )
        if positions[0] < 0:
            raise ValueError(
                f"times begin at {self.label(0)}, found {found}; the clock went back: set it"
            )
        if gap > 0:
            raise ValueError(
                f"{wanted} is next, not {found}: {gap} missing; publish them, or skip from {wanted} until {before}"
            )

    def label(self, position: int) -> Any:
        """One time as it is shown."""
        return self.index([position])[0]

    def index(self, positions: Sequence[int]) -> pd.Index:
        """Times by their numbers."""
        ticks = self.start + np.array(positions, dtype=np.int64) * self.step
        if not self.dates:
            return pd.Index(ticks, name="time")
        times = pd.DatetimeIndex(ticks, name="time")
        return times if self.zone is None else times.tz_localize("UTC").tz_convert(self.zone)


def _ticks(times: Any) -> tuple[list[int], bool, str | None]:
    """Whole numbers of times, whether they are dates, and their zone."""
    if all(isinstance(time, (int, np.integer)) and not isinstance(time, bool) for time in times):
        return [int(time) for time in times], False, None
    try:
        stamps = [*map(pd.Timestamp, times)]
        # offsets differ where clocks were changed
        dates = pd.to_datetime(stamps, utc=True).as_unit("ns")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"times must be whole numbers or dates, found {times[0]!r} ({error}); convert them"
        ) from None
    if dates.hasnans:
        raise ValueError("times must not be missing, found NaT; leave out rows without a time")
    if len({stamp.tz is None for stamp in stamps}) > 1:
        raise ValueError("times must be dates with a zone or without one, found both; convert them")
    zone = stamps[0].tz
    if zone is None:
        return dates.asi8.tolist(), True, None
    # Names such as CEST, which are those of an offset, are not found again.
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    return dates.asi8.tolist(), True, name or str(timezone(stamps[0].utcoffset()))
