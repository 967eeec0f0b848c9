"""Evenly spaced time points of a publisher: whole numbers, or dates with a step such as "1h".

A time is written in full and as finely as the step (`check_fine`), so that it names one time point
whatever the day on which it is read: 2024-05-01 08:00 on a clock of hours, 2024-05-01 on one of
days. Neither "10:00" nor "today" does, nor a number of a spreadsheet.

Steps of whole days follow the calendar of a zone that the first time names, such as Europe/Berlin,
also over the nights in which clocks change. All others count elapsed time.

**The phase of a day or week** is what the clock on the wall shows at a time: as the time is
written, by its offset from UTC, or by that of its zone. Where steps count elapsed time, it is known
only as long as that clock is not changed. So a series with such phases refuses a first time in a
zone whose clocks change within `FAR_AHEAD` days, and any time with another offset from UTC than the
first.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone, tzinfo
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from tplreport.reading.time_steps import in_units_of
from tplreport.reading.times import ISO_TIME, has_unit

SECOND = 10**9  # nanoseconds
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE
#: Units of numpy.datetime64 that name an instant -> nanoseconds.
UNITS = {"D": DAY, "h": 60 * MINUTE, "m": MINUTE, "s": SECOND, "ms": 10**6, "us": 1000, "ns": 1}
INSTANT = 1  # nanoseconds that a date with a full time of day leaves open
MONDAY = 4 * DAY  # 1970-01-05, in nanoseconds since 1970
LENGTH_OF = {"day": DAY, "week": 7 * DAY}
FAR_AHEAD = 1500  # days, in which a zone with summer time has some
FARTHEST = 2**62  # of times that are whole numbers, and of numbers of steps
EXAMPLE = "2024-05-01 08:00"
OFFSETS = (
    "; an hour that clocks repeat needs its offset from UTC, such as 2024-10-27 02:00+01:00, and "
    "so do all times of a series over a change of clocks"
)


@dataclass(frozen=True)
class Moments:
    """Times as numbers: whole numbers, or dates in nanoseconds since 1970 in UTC."""

    ticks: list[int]
    dates: bool
    zone: str | None
    offsets: frozenset[int] = frozenset()  # from UTC, of dates with a zone


@dataclass(frozen=True)
class CycleOnClock:
    """Which times have which phase: phase 0 of a "day" or "week" begins so many nanoseconds after
    midnight, or midnight before Monday."""

    period: str
    begins: int
    phases: list

    def phase_at(self, local: int, step: int) -> int:
        """The phase at a time, `local` nanoseconds since 1970 by the clock on the wall, of steps of
        `step` nanoseconds; ValueError for a time between two phases."""
        since = (local - MONDAY - self.begins) % LENGTH_OF[self.period]
        phase, rest = divmod(since, step)
        if rest:
            shown = pd.Timestamp(local)
            raise ValueError(
                f"the first time must be one at which a phase of the cycle begins, found {shown} "
                f"after {pd.Timestamp(local - rest)}; round it to the step"
            )
        return phase


@dataclass(frozen=True)
class Clock:
    """Times start + k step, k = 0, 1, ...; dates in nanoseconds since 1970, in UTC if they have a
    zone.

    With `calendar`, they are the same local time of each step's day in that zone. `phase` is that
    of the first time in a cycle of a day or week, None without one.
    """

    dates: bool
    zone: str | None
    start: int
    step: int
    calendar: bool = False
    phase: int | None = None

    @staticmethod
    def checked_step(step: int | str) -> int | str:
        """A step that is a whole number, or text of a Timedelta."""
        if _is_whole(step):
            width = int(step)
            checked: int | str = width
        else:
            duration = _duration(step)
            width = duration.value
            checked = str(duration)
        if not 0 < width < FARTHEST:
            raise ValueError(
                f"step must be above 0 and below 2**62, found {step}; give such as 1 or '1h'"
            )
        return checked

    @classmethod
    def starting(cls, time: Any, step: int | str, cycle: CycleOnClock | None = None) -> dict:
        """The fields of the clock whose first time this is; ValueError if its phase of the cycle
        would not be known later."""
        is_text = isinstance(step, str)
        width = _duration(step).value if isinstance(step, str) else step
        moments = _moments([time], width if is_text else DAY)
        if moments.dates != is_text:
            must = "a whole number as step if times are"
            if moments.dates:
                must = "a step such as '1h' if times are dates"
            shown = step
            if is_text:
                shown = repr(in_units_of(step))
            raise ValueError(
                f"the publisher needs {must}, found time {_shown(time)} and step {shown}; make it "
                "with step="
            )
        fields: dict[str, Any] = {
            "dates": moments.dates,
            "zone": moments.zone,
            "start": moments.ticks[0],
            "step": width,
            "calendar": moments.dates and width % DAY == 0 and _is_place(moments.zone),
            "phase": None,
        }
        if cycle is not None:
            clock = cls(**fields)
            clock._check_is_not_changed(time)
            fields["phase"] = cycle.phase_at(clock._local([clock.start])[0], width)
        return fields

    def positions(self, times: Any) -> list[int]:
        """The numbers k of times; ValueError for one in between, or of another kind."""
        moments = _moments(times, self.step)
        self._check_kind(moments, times[0])
        self._check_offsets(moments, times[0])
        start = self.start
        ticks = moments.ticks
        if self.calendar:
            start = self._local([start])[0]
            ticks = self._local(ticks)
        numbers = []
        for number, tick in enumerate(ticks):
            position, rest = divmod(tick - start, self.step)
            if abs(position) >= FARTHEST:
                raise ValueError(
                    f"times must be within 2**62 steps, found {times[number]}; correct it"
                )
            if rest and not self._is_moved_to(position, moments.ticks[number]):
                raise self._between(times[number], position)
            numbers.append(position)
        return numbers

    def local_time(self, position: int) -> int:
        """What a clock on the wall shows at a time, in nanoseconds since 1970."""
        return self._local([self.start])[0] + position * self.step

    def check_keeps_hours(self) -> None:
        """ValueError if the hour of each time is not known for ever."""
        self._check_is_not_changed(self.label(0))

    def check_follow(self, positions: Sequence[int], following: int) -> None:
        """ValueError unless positions follow each other, the first of them at most `following`."""
        if any(later - earlier != 1 for earlier, later in pairwise(positions)):
            raise ValueError(
                f"times must follow each other step by step, found {self._unlike_steps(positions)}"
            )
        self._check_first(positions[0], following)

    def _unlike_steps(self, positions: Sequence[int]) -> str:
        """The first two times that do not follow each other, and what to do about them: sorting
        comes before all else, since it may show gaps and mend others."""
        pairs = list(pairwise(positions))
        remark = ""
        if self.dates and self.zone is None:
            remark = OFFSETS
        for earlier, later in pairs:
            if later < earlier:
                return f"{self.label(later)} after {self.label(earlier)}; sort them{remark}"
        earlier, later = next(pair for pair in pairs if pair[1] - pair[0] != 1)
        if earlier == later:
            return f"{self.label(later)} twice; leave one of them out{remark}"
        before = self.label(earlier)
        return (
            f"{self.label(later)} after {before}: {later - earlier - 1} missing; add them, or "
            f"publish those up to {before} alone, and then skip from {self.label(earlier + 1)} "
            f"until {self.label(later - 1)} before the others"
        )

    def _check_first(self, first: int, following: int) -> None:
        """ValueError if position `first` is before the clock's first, or after `following`, the one
        that is next."""
        if first < 0:
            raise ValueError(
                f"times begin at {self.label(0)}, found {self.label(first)}; the clock went back: "
                "set it"
            )
        if first > following:
            wanted = self.label(following)
            found = self.label(first)
            before = self.label(first - 1)
            raise ValueError(
                f"{wanted} is next, not {found}: {first - following} missing; publish them, or "
                f"skip from {wanted} until {before}"
            )

    def label(self, position: int) -> Any:
        """One time as it is shown."""
        return self.index([position])[0]

    def index(self, positions: Sequence[int]) -> pd.Index:
        """Times by their numbers."""
        start = self.start
        if self.calendar:
            start = self._local([start])[0]
        ticks = start + np.array(positions, dtype=np.int64) * self.step
        if not self.dates:
            return pd.Index(ticks, name="time")
        times = pd.DatetimeIndex(ticks, name="time")
        if self.zone is None:
            return times
        if self.calendar:
            earlier = np.ones(len(times), dtype=bool)  # of two hours that clocks repeat
            return times.tz_localize(self.zone, ambiguous=earlier, nonexistent="shift_forward")
        return times.tz_localize("UTC").tz_convert(self.zone)

    def _local(self, ticks: list[int]) -> list[int]:
        """What a clock of the zone shows then, in nanoseconds."""
        if self.zone is None:
            return ticks
        instants = pd.DatetimeIndex(np.array(ticks, dtype=np.int64)).tz_localize("UTC")
        return instants.tz_convert(self.zone).tz_localize(None).asi8.tolist()

    def _is_moved_to(self, position: int, tick: int) -> bool:
        """Whether `tick` is the time at this position, on a day on which clocks leave out the usual
        one."""
        return self.calendar and self.index([position]).asi8[0] == tick

    def _check_kind(self, moments: Moments, first: Any) -> None:
        """ValueError unless times are numbers, dates with a zone or without one, as before;
        `first`, the first of them, is for the message."""
        if moments.dates == self.dates and (moments.zone is None) == (self.zone is None):
            return
        kind = "whole numbers"
        if self.dates and self.zone is None:
            kind = "dates without a zone"
        elif self.dates:
            kind = "dates with a zone"
        raise ValueError(
            f"times must be {kind} as before, found {_shown(first)}; convert them, with dates in "
            "full"
        )

    def _check_is_not_changed(self, time: Any) -> None:
        """ValueError for elapsed time in a zone whose clocks will be changed."""
        if self.calendar or self.zone is None:
            return
        days_ahead = [self.start + day * DAY for day in range(FAR_AHEAD)]
        later = np.array(days_ahead, dtype=np.int64)
        offsets = np.unique(np.array(self._local(days_ahead), dtype=np.int64) - later)
        if len(offsets) > 1:
            raise ValueError(
                f"the hour of each time must be known for ever, found {_shown(time)} in "
                f"{self.zone}, whose clocks are changed; give times without a zone, as the clock "
                "on the wall shows them: skip an hour that it leaves out, and publish one that it "
                "repeats once"
            )

    def _check_offsets(self, moments: Moments, time: Any) -> None:
        """ValueError for times with another offset from UTC than the first, if they have phases."""
        if self.phase is None or self.calendar or self.zone is None:
            return
        offset = self._local([self.start])[0] - self.start
        if moments.offsets - {offset}:
            raise ValueError(
                f"times of a cycle must keep the offset from UTC of the first, {self.zone}, found "
                f"another one in {_shown(time)} or after it; convert them, if the clock by which "
                "people live was not changed"
            )

    def _between(self, time: Any, before: int) -> ValueError:
        """The error for a time after the one at `before`, and before the next one."""
        remedy = "round it to the step"
        if self.dates and self.zone is not None and not self.calendar:
            remedy += (
                f"; steps count the {in_units_of(self.step)} that elapse, also over a change of "
                "clocks: 2024-04-01 01:00+02:00 comes 24 hours after 2024-03-31 00:00+01:00; for "
                "local days give times with a zone by name (tz='Europe/Berlin'), or without "
                "offsets, from the first time on"
            )
        return ValueError(
            f"times must be whole steps apart, found {time} after {self.label(before)}; {remedy}"
        )


def check_fine(time: Any, step: int) -> None:
    """ValueError unless a date is written as finely as the step: it then names one time point.

    Parameters
    ----------
    time : text in ISO 8601, datetime.date, datetime.datetime or numpy.datetime64
    step : int, nanoseconds

    Raises
    ------
    ValueError
        If no instant is named, or several time points begin within what is named.

    Examples
    --------
    >>> check_fine("2024-05-01 08:00", 60 * MINUTE)
    >>> check_fine("2024-05-01", 60 * MINUTE)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: times must be as fine as the step 1h, found '2024-05-01'; write it ...
    """
    left_open = _open_nanoseconds(time)
    if left_open is None:
        raise _no_time(time)
    if left_open > step:
        raise ValueError(
            f"times must be as fine as the step {in_units_of(step)}, found {str(time)!r}; "
            f"write it such as {_example_as_fine_as(step)}"
        )


def _example_as_fine_as(step: int) -> str:
    """A date that names one time point of this step, nanoseconds."""
    if step < SECOND:
        digits = 10 - len(str(step))
        return f"{EXAMPLE}:00.{'0' * digits}"
    if step < MINUTE:
        return f"{EXAMPLE}:00"
    return EXAMPLE


def _open_nanoseconds(time: Any) -> int | None:
    """How many nanoseconds begin within what a date names: `DAY` for 2024-05-01, `INSTANT` for a
    datetime; None for what is no date."""
    if isinstance(time, str):
        return _open_nanoseconds_of_text(time)
    if isinstance(time, datetime):
        return INSTANT
    if isinstance(time, date):
        return DAY
    if isinstance(time, np.datetime64):
        return _open_nanoseconds_of_numpy(time)
    return None


def _open_nanoseconds_of_numpy(time: np.datetime64) -> int | None:
    """The length of its unit; None for one of months, or longer."""
    unit, count = np.datetime_data(time.dtype)
    if unit not in UNITS:
        return None
    return UNITS[unit] * count


def _open_nanoseconds_of_text(time: str) -> int | None:
    """A unit of the last digit that is written; None for other text than ISO 8601."""
    found = re.fullmatch(ISO_TIME, time)
    if found is None:
        return None
    _, clock, seconds, fraction = found.groups()[:4]
    if clock is None:
        return DAY
    if seconds is None:
        return MINUTE
    if fraction is None:
        return SECOND
    digits = len(fraction) - 1
    if digits > 9:
        return None
    return 10 ** (9 - digits)


def _no_time(time: Any) -> ValueError:
    """The error for what is no time, whatever the step."""
    remedy = f"write dates in full, such as {EXAMPLE}"
    if isinstance(time, float | np.floating):
        remedy += ": a spreadsheet shows its 45413.5 as 2024-05-01 12:00 in cells of dates"
    return ValueError(f"times must be whole numbers or dates, found {_shown(time)}; {remedy}")


def _shown(time: Any) -> str:
    """A time as people write it: np.int64(1) is 1, a text stands in quotes."""
    if isinstance(time, np.number):
        return repr(time.item())
    if isinstance(time, pd.Timestamp):
        return str(time)
    return repr(time)


def _is_whole(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


def _duration(step: Any) -> pd.Timedelta:
    """A step that is no whole number; ValueError unless it has a unit."""
    must = (
        f"step must be a whole number, or a duration with its unit, found {step!r}; "
        "give such as 1 or '1h'"
    )
    if isinstance(step, float | np.floating | bool):
        raise ValueError(must)
    if isinstance(step, str) and not has_unit(step):
        raise ValueError(must)
    try:
        return pd.Timedelta(step).as_unit("ns")
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ValueError(f"{must} ({error})") from None


def _moments(times: Any, step: int) -> Moments:
    """Times as numbers; ValueError for what does not name one time point of the step each."""
    if isinstance(times, pd.DatetimeIndex):
        return _moments_of_dates(times, times[0], _offsets_of_index(times))
    if all(map(_is_whole, times)):
        return _moments_of_numbers(times)
    for time in times:
        if _is_missing(time):
            raise _missing()
        check_fine(time, step)
    try:
        stamps = _stamps(times)
        _check_alike_in_zone(stamps)
        # offsets differ where clocks were changed
        return _moments_of_dates(
            pd.to_datetime(stamps, utc=True), stamps[0], _offsets_of_stamps(stamps)
        )
    except (OverflowError, pd.errors.OutOfBoundsDatetime):
        shown = f"{times[0]} to {times[-1]}"
        raise ValueError(
            f"times must be of the years 1678 to 2261, found {shown}; correct them"
        ) from None


def _moments_of_numbers(times: Any) -> Moments:
    ticks = [int(time) for time in times]
    for tick in ticks:
        if abs(tick) >= FARTHEST:
            raise ValueError(
                f"times that are whole numbers must be within 2**62, found {tick}; correct it"
            )
    return Moments(ticks, dates=False, zone=None)


def _moments_of_dates(
    dates: pd.DatetimeIndex, first: pd.Timestamp, offsets: frozenset[int]
) -> Moments:
    """The moments of dates, whose zone is that of the `first` one; ValueError for a missing one.
    `offsets` are theirs from UTC, in nanoseconds."""
    if dates.hasnans:
        raise _missing()
    instants = dates.as_unit("ns").asi8
    return Moments(instants.tolist(), True, _zone_name(first.tz, first), offsets)


def _offsets_of_index(times: pd.DatetimeIndex) -> frozenset[int]:
    """The different offsets from UTC of times with a zone, in nanoseconds."""
    if times.tz is None:
        return frozenset()
    local = times.tz_localize(None).as_unit("ns").asi8
    return frozenset((local - times.as_unit("ns").asi8).tolist())


def _offsets_of_stamps(stamps: Sequence[pd.Timestamp]) -> frozenset[int]:
    """The different offsets from UTC of times with a zone, in nanoseconds."""
    offsets = {stamp.utcoffset() for stamp in stamps if stamp.tz is not None}
    return frozenset(pd.Timedelta(offset).as_unit("ns").value for offset in offsets)


def _stamps(times: Any) -> list[pd.Timestamp]:
    """Time stamps of dates that are written in full."""
    stamps = []
    for time in times:
        written = time.replace("/", "-") if isinstance(time, str) else time
        try:
            stamps.append(pd.Timestamp(written))
        except pd.errors.OutOfBoundsDatetime:
            raise
        except ValueError as error:
            raise ValueError(
                f"times must be dates of the calendar, found {_shown(time)} ({error}); correct it"
            ) from None
    return stamps


def _check_alike_in_zone(stamps: Sequence[pd.Timestamp]) -> None:
    """ValueError for dates of which some have a zone, and others have none."""
    if len({stamp.tz is None for stamp in stamps}) > 1:
        raise ValueError("times must be dates with a zone or without one, found both; convert them")


def _is_missing(time: Any) -> bool:
    return time is None or time is pd.NaT or time is pd.NA or time != time


def _missing() -> ValueError:
    return ValueError("times must not be missing, found NaT; leave out rows without a time")


def _zone_name(zone: tzinfo | None, first: pd.Timestamp) -> str | None:
    """The name of a zone, or its offset from UTC at the first time."""
    if zone is None:
        return None
    # Names such as CEST, which are those of an offset, are not found again.
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    return name or str(timezone(first.utcoffset()))


def _is_place(zone: str | None) -> bool:
    """Whether a zone is one by name, whose offset from UTC may change."""
    return zone is not None and not zone.startswith("UTC")
