"""From observations at irregular times to sequences of states, as reported or one per time step.

The chains of the papers move in fixed steps, while people are observed whenever a GPS device or an
app reports. Between two reports the last known state holds, but no longer than a maximum gap. After
a longer gap a new sequence begins, so no transition is invented across the gap. A report of the
state -1 (off the map) also ends a sequence.

A *report* is one observation of a user. Times are time stamps in UTC, or seconds as numbers. They
order the reports exactly, nanoseconds included. *Ticks* are times as whole numbers: nanoseconds of
time stamps that have them, else microseconds.
"""

from __future__ import annotations
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tplreport.reading.rows_by_user import stable_order
from tplreport.reading.times import LOCAL, PlaceOfRow, has_unit, zone_of
from tplrepro.display import count_noun
from tplrepro.markov.sequences import MICROSECONDS, Sequences, common_step, with_even_times
from tplrepro.validation import warn_caller

if TYPE_CHECKING:
    from tplreport.reading.missing import Lacking
    from tplreport.reading.skipped_hours import SkippedHours

OUTSIDE = -1
DAY = 86_400  # seconds
HOUR = 3600
SECOND = 1_000_000  # times are counted in microseconds, time stamps with nanoseconds in those
CLOCK_OF_TIME = LOCAL["time"]
#: Reasons why rows do not count.
BETWEEN = "between two steps"
REPEATED = "the same user, time and state again"
#: Gaps are regular if so many of them are within a tenth of the median: months and leap years are.
REGULAR = 0.99
ABOUT = 0.1
#: With fewer gaps nothing is said of them; with fewer to judge, any are taken for regular.
FEWEST_GAPS = 1
FEWEST_TO_JUDGE = 4
#: Fewer changes do not show that states are noted as they change.
FEWEST_CHANGES = 50
#: At most so many gaps of a part are kept, evenly among all.
KEPT_GAPS = 1 << 14
#: Steps that people take, in seconds, the longest first.
USUAL_STEPS = (604_800, 86_400, 43_200, 21_600, 14_400, 10_800, 7200, 3600, 1800, 900, 600, 300, 60)
Duration = str | float | timedelta | None


@dataclass(frozen=True, eq=False)
class Pieces:
    """Sequences of states, whose users are codes."""

    states: np.ndarray  # (m,)
    offsets: np.ndarray  # (k + 1,) where each of k sequences begins, and m
    owners: np.ndarray  # (k,) codes of users
    source: np.ndarray  # (m,) the report that each state is of
    times: np.ndarray | None = None  # (m,) of datetime64, if there are any
    step: timedelta | None = None  # between two states of a sequence, if it is always the same

    @property
    def n_transitions(self) -> int:
        return len(self.states) - int((np.diff(self.offsets) > 0).sum())

    def named(self, reports: Reports) -> Sequences:
        """The sequences with the users that the codes stand for."""
        found = Sequences.from_flat(self.states, self.offsets, reports.users[self.owners])
        if self.times is None:
            return found
        times = self.times
        if reports.zone is not None:
            times = on_clock_of(reports.zone, times)
        return with_even_times(found, times, self.step, reports.zone)


@dataclass(frozen=True, eq=False)
class Reports:
    """Reports sorted by user and time; arrays (m,)."""

    times: np.ndarray
    group: np.ndarray  # codes of users
    states: np.ndarray
    users: np.ndarray  # (n,) what the codes stand for
    zone: str | None  # whose clock shows the times, where they have a zone


def fixed_steps(
    frame: pd.DataFrame,
    step: str | float | timedelta,
    max_gap: Duration = None,
    *,
    state: str = "cell",
    user: str | list[str] = "user",
) -> Sequences:
    """Sequences of states at fixed time steps, the last known state holding for at most `max_gap`.

    At a time t that is a multiple of `step` (since 1970, or since second 0), a user's state is that
    of the latest report at or before t, if that report is not older than `max_gap`; without
    `max_gap`, if it came after the step before. The last report holds until the next multiple of
    `step`.

    Parameters
    ----------
    frame : DataFrame of one report per row, in any order, with the columns time, state and user
        Of two reports at one time the later row counts. Times are time stamps, or seconds.
    step : duration such as "5min", or seconds
    max_gap : duration; by default less than one step
    state : column of states, integers or other hashable values
    user : column or columns that identify the user

    Returns
    -------
    Sequences

    Raises
    ------
    ValueError
        If a column, a time or a user is missing, or a duration is not positive.

    Examples
    --------
    >>> reports = pd.DataFrame({"user": 1, "time": [0.0, 4.0, 11.0, 31.0], "cell": [5, 6, 5, 6]})
    >>> [s.tolist() for s in fixed_steps(reports, step=5, max_gap=10)]
    [[0, 1, 1, 0, 0], [1]]
    """
    reports = _sorted_reports(frame, state, user)
    pieces, _ = _at_steps(reports.times, reports.group, reports.states, step, max_gap)
    return pieces.named(reports)


def _at_steps(
    times: np.ndarray,
    group: np.ndarray,
    states: np.ndarray,
    step: Any,
    max_gap: Duration,
    is_cut: np.ndarray | None = None,
    *,
    until: Any = None,
) -> tuple[Pieces, np.ndarray]:
    """The sequences at fixed time steps, and the states of the reports that lie between two steps.

    Reports (m,) are sorted by `group`, the codes of users, and `times`; a state holds for
    `max_gap`, None: until the next step; the last one of a user no longer than the next step, or
    the time `until`. Nothing is known between a report where `is_cut` (m,) is true and the next
    one, and no step leads across.
    """
    ticks, second = _ticks(times)
    step = _duration(step, "step", second)
    longest: Any = step - 1
    if max_gap is not None:
        longest = _duration(max_gap, "max_gap", second)
    if is_cut is not None:
        longest = np.where(is_cut, 0, longest)
    last = np.append(np.diff(group) != 0, True)[: len(ticks)]
    begin = _steps_from(ticks, step)
    before_next = _steps_from(np.append(ticks[1:], 0), step) - 1
    end_of_last = begin
    if until is not None:
        last_tick, _ = _ticks(np.array([until]).astype(times.dtype))
        end_of_last = np.maximum(begin, last_tick // step)
    end = np.minimum(np.where(last, end_of_last, before_next), (ticks + longest) // step)
    lengths = np.where(states == OUTSIDE, 0, np.maximum(end - begin + 1, 0))
    source = np.repeat(np.arange(len(states)), lengths)
    stops = np.cumsum(lengths)
    index = np.arange(len(source)) - np.repeat(stops - lengths, lengths) + begin[source]
    breaks = (np.diff(index) != 1) | (np.diff(group[source]) != 0)
    if is_cut is not None:
        cuts_before = np.cumsum(is_cut) - is_cut
        breaks |= np.diff(cuts_before[source]) > 0
    unused = states[(lengths == 0) & (states != OUTSIDE)]
    pieces = _cut(states, group, source, breaks)
    microseconds, rest = divmod(step * SECOND, second)
    length = None
    if rest == 0:
        length = timedelta(microseconds=microseconds)
    times = (index * step // (second // SECOND)).astype(MICROSECONDS)
    return replace(pieces, times=times, step=length), unused


def _steps_from(ticks: np.ndarray, step: int) -> np.ndarray:
    """The number of the first step of `step` ticks at or after each time, in ticks."""
    return -(-ticks // step)


def observed_sequences(
    frame: pd.DataFrame,
    *,
    max_gap: Duration = None,
    state: str = "cell",
    user: str | list[str] = "user",
) -> Sequences:
    """Sequences of states as reported, one state per report.

    Parameters
    ----------
    frame : DataFrame of one report per row, in any order, with the columns time, state and user
        Times are time stamps, or seconds.
    max_gap : duration such as "5min", or seconds; a longer gap ends a sequence
    state : column of states, integers or other hashable values
    user : column or columns that identify the user

    Returns
    -------
    Sequences

    Raises
    ------
    ValueError
        If a column, a time or a user is missing, or a duration is not positive.

    Examples
    --------
    >>> reports = pd.DataFrame({"user": [1, 1, 1, 2], "time": [0.0, 4.0, 31.0, 0.0]})
    >>> reports["cell"] = [5, 6, 5, 6]
    >>> [s.tolist() for s in observed_sequences(reports, max_gap=10)]
    [[0, 1], [0], [1]]
    """
    reports = _sorted_reports(frame, state, user)
    pieces = _as_reported(reports.times, reports.group, reports.states, max_gap)
    return pieces.named(reports)


def _as_reported(
    times: np.ndarray,
    group: np.ndarray,
    states: np.ndarray,
    max_gap: Duration,
    is_cut: np.ndarray | None = None,
) -> Pieces:
    """The sequences of all reported states; a gap above `max_gap`, if that is given, ends one.

    Reports (m,) are sorted by `group`, the codes of users, and `times`. A sequence also ends where
    `is_cut` is true.
    """
    broken = np.diff(group) != 0
    if is_cut is not None:
        broken |= is_cut[:-1]
    if max_gap is not None:
        ticks, second = _ticks(times)
        broken |= np.diff(ticks) > _duration(max_gap, "max_gap", second)
    inside = states != OUTSIDE
    run = np.cumsum(~inside)
    run[1:] += np.cumsum(broken)
    pieces = _cut(states, group, np.flatnonzero(inside), np.diff(run[inside]) != 0)
    if times.dtype.kind != "M":
        return pieces
    own_times = times[inside]
    step = common_step(own_times, pieces.offsets)
    return replace(pieces, times=own_times.astype(MICROSECONDS), step=step)


class Gaps:
    """The gaps between the rows of each user, where each row is a step; of time stamps in
    seconds."""

    def __init__(self) -> None:
        self.n = 0
        self.stays = 0  # rows with the state of the row before
        self.longest = 0.0
        self.row_after_longest = 0
        self.kept: list[np.ndarray] = []
        self.weights: list[np.ndarray] = []

    def add(self, times: np.ndarray, rows: np.ndarray, pieces: Pieces) -> None:
        """Add the gaps within the sequences of a part.

        Parameters
        ----------
        times, rows : array (m,)
            Of the reports: when, and which row of the file.
        pieces : Pieces of these reports
        """
        is_inside = np.ones(len(pieces.source), dtype=bool)
        starts = pieces.offsets[:-1]
        is_inside[starts[starts < len(is_inside)]] = False
        is_inside = is_inside[1:]
        gaps = _differences(times[pieces.source])[is_inside]
        if gaps.size and gaps.max() > self.longest:
            self.longest = float(gaps.max())
            later = pieces.source[1:][is_inside]
            self.row_after_longest = int(rows[later[np.argmax(gaps)]])
        stays = pieces.states[1:] == pieces.states[:-1]
        self.stays += int(stays[is_inside].sum())
        self.n += len(gaps)
        every = 1 + len(gaps) // KEPT_GAPS
        kept = np.sort(gaps)[every // 2 :: every]
        self.kept.append(kept)
        self.weights.append(np.full(len(kept), every))

    @property
    def shows_changes_only(self) -> bool:
        """Whether no state ever follows itself, at times of no one step."""
        if self.stays > 0 or self.n < FEWEST_CHANGES:
            return False
        return regular_gap(self.sizes) is None

    @property
    def sizes(self) -> np.ndarray:
        """The gaps that are kept, in order, each as often as it stands for."""
        if not self.kept:
            return np.zeros(0)
        sizes = np.repeat(np.concatenate(self.kept), np.concatenate(self.weights))
        sizes.sort()
        return sizes


def _differences(times: np.ndarray) -> np.ndarray:
    """From each time to the next, as floats; of time stamps in seconds."""
    if times.dtype.kind == "M":
        return np.diff(times) / np.timedelta64(1, "s")
    if times.dtype.kind == "i":
        return np.diff(times.astype(np.int64)).astype(float)
    return np.diff(times.astype(float))


def regular_gap(sizes: np.ndarray) -> float | None:
    """The gap that nearly all of these have, which are in order; None if they differ.

    Of gaps that differ, but are too few to judge, it is the shortest.

    >>> regular_gap(np.array([28.0, 30, 30, 31, 31, 31])), regular_gap(np.array([1.0, 1, 1, 5]))
    (30.5, None)
    >>> regular_gap(np.array([1.0, 1, 99]))
    1.0
    """
    middle = sizes[(len(sizes) - 1) // 2 : len(sizes) // 2 + 1]
    typical = float(np.mean(middle))
    distances = sizes - typical
    np.abs(distances, out=distances)  # there may be many
    fits = distances <= ABOUT * typical
    if typical > 0 and fits.mean() >= REGULAR:
        return typical
    if len(sizes) < FEWEST_TO_JUDGE:
        return float(sizes[0])
    return None


def fitting_step(sizes: np.ndarray, are_seconds: bool) -> float:
    """The step that fits irregular gaps: that of half of them, or one that nearly all are multiples
    of, or else one that few of them are shorter than.

    Parameters
    ----------
    sizes : array (m,) of gaps in order, in seconds or in numbers of no unit
    are_seconds : bool

    Returns
    -------
    float, in the unit of the gaps

    Examples
    --------
    >>> fitting_step(np.array([2.0, 2, 2, 5]), False), fitting_step(np.array([3600.0, 7200]), True)
    (2.0, 3600)
    >>> fitting_step(np.array([3725.0, 5011, 90_001]), True)
    3600
    """
    positive = sizes[sizes > 0]
    if positive.size == 0:
        return 1
    values, counts = np.unique(positive, return_counts=True)
    if 2 * counts.max() >= positive.size and counts.max() > 1:
        return float(values[np.argmax(counts)])
    short = np.quantile(positive, 0.1)
    candidates: Sequence[float] = [float(values[0])]
    if are_seconds:
        candidates = USUAL_STEPS
    for step in candidates:
        if step <= short and (positive % step == 0).mean() >= REGULAR and 20 * step >= short:
            return step
    if are_seconds:
        return next((step for step in USUAL_STEPS if step <= short), 1)
    return float(short)


def in_units(seconds: float) -> str:
    """Seconds as a duration, in the longest unit of which it is a whole number.

    >>> in_units(3600), in_units(86_400 * 500), in_units(90), in_units(0.5)
    ('1h', '500D', '90s', '0.5s')
    """
    for unit, length in (("D", DAY), ("h", 3600), ("min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds // length:g}{unit}"
    return f"{seconds:g}s"


def in_units_of(step: Any) -> str:
    """A duration as one types it, from a second on.

    >>> in_units_of("0 days 01:00:00"), in_units_of("20ms")
    ('1h', '0 days 00:00:00.020000')
    """
    seconds = pd.Timedelta(step).total_seconds()
    if seconds < 1.0:
        return str(pd.Timedelta(step))
    return in_units(seconds)


def about(seconds: float) -> str:
    """Seconds in words, to two digits.

    >>> about(86_400 * 30.5), about(5000.0), about(60), about(0.02)
    ('30 days', '1.4 hours', '1 minute', '0.02 seconds')
    """
    for unit, length in (("day", DAY), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return _amount(seconds / length, unit)
    return _amount(seconds, "second")


def _amount(number: float, unit: str) -> str:
    digits = f"{number:.2g}"
    if number >= 10:
        digits = f"{number:,.0f}"
    if digits == "1":
        return f"1 {unit}"
    return f"{digits} {unit}s"


class Cutter:
    """Cuts the rows of whole users into sequences; counts the rows that do not count, and states
    that are held.

    `step` and `max_gap` are durations, None for sequences as reported and of any gaps. Of rows of a
    user at one time, `same_time` says which count ("first", "last", "rows" for all; None: an
    error). `place` tells where a row stands; `zone` is that whose clock shows the times; `lacking`
    are rows that lack something. `last` is the last time of any user, until which states hold where
    rows stand at changes only: else the stays that last longest would be left out.
    """

    def __init__(
        self,
        step: Duration,
        max_gap: Duration,
        same_time: str | None,
        place: PlaceOfRow,
        has_users: bool,
        *,
        zone: str | None = None,
        lacking: Lacking | None = None,
        last: Any = None,
    ):
        self.lacking = lacking
        self.step = step
        self.max_gap = max_gap
        self.same_time = same_time
        self.place = place
        self.has_users = has_users
        self.zone = zone
        self.last = last
        self.seconds: float = 0  # of a step
        if step is not None:
            has_numbers = isinstance(last, int | float | np.number)
            self.seconds = _duration(step, "step", 1000, has_numbers) / 1000
        self.rows = 0
        self.held = 0
        self.gaps = Gaps()
        self.holds_changes = False  # rows stand where the state changes, which holds until then
        self.dropped = Counter[str]()  # rows by the reason why they do not count
        self.unused: set[int] = set()  # states of rows between two steps
        self.skipped: SkippedHours | None = None  # at hours that clocks may leave out

    def pieces(self, part: pd.DataFrame, cells: np.ndarray) -> Pieces:
        """The sequences of these rows, which are sorted by user, and whose states are `cells`."""
        reports = part.assign(cell=cells)
        self.rows += len(reports)
        if self.lacking is not None:
            reports = self.lacking.heeded(reports, self.place)
            is_endless = reports["is_endless"].to_numpy()
            reports["cell"] = np.where(is_endless, OUTSIDE, cells)
            cells = cells[~is_endless]
        self._drop("without a state, which ends a sequence", int((cells == OUTSIDE).sum()))
        reports = self._in_order(reports)
        if self.seconds >= DAY:
            _follow_clocks(reports)
        max_gap = self.max_gap
        if "until" in reports:
            reports = self._closed(reports)
            max_gap = reports["time"].max() - reports["time"].min()
        times = reports["time"].to_numpy()
        group = reports["user"].to_numpy()
        states = reports["cell"].to_numpy()
        is_cut = _cuts_of(reports)
        if self.step is None:
            reported = _as_reported(times, group, states, max_gap, is_cut)
            self.gaps.add(times, reports["row"].to_numpy(), reported)
            return self._on_local_clock(reported, reports)
        until = None
        if max_gap is None and self._are_changes(reports):
            until = max(reports["time"].max(), self.last)
            max_gap = (until - reports["time"].min()) or self.step
        found, unused = _at_steps(times, group, states, self.step, max_gap, is_cut, until=until)
        self._drop(BETWEEN, len(unused))
        self.unused.update(np.unique(unused).tolist())
        if self.max_gap is not None or self.holds_changes:
            not_held, _ = _at_steps(times, group, states, self.step, None, is_cut)
            self.held += max(0, len(found.states) - len(not_held.states))
        self._note_skipped_hours(found, reports)
        return self._on_local_clock(found, reports)

    def _note_skipped_hours(self, pieces: Pieces, reports: pd.DataFrame) -> None:
        """Note sequences that an hour cuts or holds which a clock may leave out, where times are
        written without a zone or an offset."""
        times = reports["time"].to_numpy()
        has_zone = self.zone is not None or CLOCK_OF_TIME in reports
        if pieces.times is None or times.dtype.kind != "M" or has_zone or HOUR % self.seconds:
            return
        ends = pieces.offsets[1:-1]
        starts = pieces.times[ends]
        cuts = pieces.times[ends - 1] + np.timedelta64(round(self.seconds * SECOND), "us")
        is_one_hour = starts - cuts == np.timedelta64(1, "h")
        is_one_hour &= pieces.owners[1:] == pieces.owners[:-1]
        is_held = self.max_gap is not None or self.holds_changes
        if not is_one_hour.any() and not is_held:
            return
        if self.skipped is None:
            from tplreport.reading.skipped_hours import SkippedHours

            self.skipped = SkippedHours()
        held = pieces.times[:0]
        if is_held:
            held = pieces.times
        self.skipped.add(cuts[is_one_hour], held, times)

    def _are_changes(self, reports: pd.DataFrame) -> bool:
        """Whether the rows stand where states change, as those of the first part do."""
        if not self.gaps.kept:
            times, group, states, rows = (
                reports[name].to_numpy() for name in ("time", "user", "cell", "row")
            )
            reported = _as_reported(times, group, states, None, _cuts_of(reports))
            self.gaps.add(times, rows, reported)
            self.holds_changes = self.gaps.shows_changes_only
        return self.holds_changes

    def _on_local_clock(self, pieces: Pieces, reports: pd.DataFrame) -> Pieces:
        """The pieces with times as the clock shows them where their user is."""
        if pieces.times is None or CLOCK_OF_TIME not in reports or self.seconds >= DAY:
            return pieces
        if self.zone is not None:
            return replace(pieces, times=on_clock_of(self.zone, pieces.times))
        clock = reports[CLOCK_OF_TIME].to_numpy()
        ahead = clock - reports["time"].to_numpy()  # of UTC, by the offset of each report
        local = pieces.times + ahead[pieces.source]
        return replace(pieces, times=local.astype(MICROSECONDS))

    def _in_order(self, reports: pd.DataFrame) -> pd.DataFrame:
        """The rows that count, in order of time, or without times in that of the file."""
        if "time" not in reports:
            return reports.assign(time=reports["row"])
        reports = _in_time(reports)
        if self.same_time != "rows":
            reports = self._one_state_at_a_time(reports)
        return reports

    def _drop(self, reason: str, count: int) -> None:
        if count:
            self.dropped[reason] += count

    def warn(
        self, source: str, labels: np.ndarray, n_values: int, labels_of: Callable[[np.ndarray], Any]
    ) -> None:
        """Warn of rows that do not count, and of how many of all `n_values` values are held.

        `source` is what was read; `labels` are the states that occur, and `labels_of` gives those
        of codes.
        """
        if repeated := self.dropped[REPEATED]:
            repeat = "row repeats a user, a time and a state, and counts once"
            if repeated > 1:
                repeat = "rows repeat a user, a time and a state, and count once"
            warn_caller(f"{repeated} {repeat}")
        if between := self.dropped.pop(BETWEEN, 0):
            occur = set(labels.tolist())
            between_labels = np.asarray(labels_of(np.array([*self.unused]))).tolist()
            lost = _lost_states([label for label in between_labels if label not in occur])
            self._drop(BETWEEN + lost, between)
            warn_caller(
                f"{between:,} of {self.rows:,} rows of {source} do not count, {BETWEEN} of "
                f"{self.step!r}{lost}; give a shorter step to count more"
            )
        if self.skipped is not None and str(self.skipped):
            warn_caller(f"{source}: {self.skipped}")
        if self.held and self.holds_changes:
            warn_caller(
                f"no state of {source} follows itself, so rows seem to stand at changes only: each "
                f"state holds until the next row, the last one of a user until the last of all "
                f"({self.held / n_values:.1%} of all states are held); give max_gap= to hold it "
                "for less"
            )
        elif self.held:
            warn_caller(
                f"{self.held / n_values:.1%} of all states are held from an earlier step, for up "
                f"to max_gap={self.max_gap!r}: stays among them are assumed, not observed; give a "
                "shorter one, or none"
            )

    def _one_state_at_a_time(self, reports: pd.DataFrame) -> pd.DataFrame:
        """The rows that count, where each user is in one state at a time."""
        user = reports["user"].to_numpy()
        time = reports["time"].to_numpy()
        if not ((user[1:] == user[:-1]) & (time[1:] == time[:-1])).any():
            return reports
        keys = ["user", "time"]
        if "is_cut" in reports:
            reports = reports.assign(is_cut=reports.groupby(keys)["is_cut"].transform("any"))
        if self.same_time is not None:
            kept = reports[~reports.duplicated(keys, keep=self.same_time)].copy()
            self._drop(f"not the {self.same_time} of a user at one time", len(reports) - len(kept))
            return kept
        if "until" in reports:
            self._check_ends(reports[reports.duplicated(keys, keep=False)])
        distinct = reports.drop_duplicates([*keys, "cell"])
        others = distinct[distinct.duplicated(keys)].sort_values("row")
        if len(others):
            raise self._two_states(reports, others)
        self._drop(REPEATED, len(reports) - len(distinct))
        return distinct

    def _check_ends(self, together: pd.DataFrame) -> None:
        """ValueError if spells that begin together have one state and several ends."""
        same = together.groupby(["user", "time", "cell"])
        others = together[together["until"] != same["until"].transform("first")]
        if others.empty:
            return
        second = others.iloc[0]
        is_first = np.logical_and.reduce(
            [together[name] == second[name] for name in ("user", "time", "cell")]
        )
        first = together["row"][is_first].iloc[0]
        raise ValueError(
            "spells of a user that begin together must end together, found "
            f"{count_noun(len(others), 'other end')}, such as in {self.place(int(first))} and "
            f"{self.place(int(second['row']))}; keep one of them"
        )

    def _two_states(self, reports: pd.DataFrame, others: pd.DataFrame) -> ValueError:
        """The error for a user in two states at one time; `others` are the rows of the second."""
        user, time, second = (others[name].iloc[0] for name in ("user", "time", "row"))
        first = reports["row"][(reports["user"] == user) & (reports["time"] == time)].iloc[0]
        remedy = "same_time= 'first', 'last', or 'rows' if all are steps in the order of the rows"
        if not self.has_users:
            remedy = "user= the column that tells users apart, or " + remedy
        if self._may_be_repeated(time, reports):
            remedy += (
                "; or, if clocks went back in that night, times with their offset from UTC, such "
                "as pandas' tz_localize(zone, ambiguous='infer') gives"
            )
        return ValueError(
            "a user must be in one state at a time, found another one in "
            f"{count_noun(len(others), 'row')}, such as in {self.place(int(first))} and "
            f"{self.place(int(second))}; give {remedy}"
        )

    def _may_be_repeated(self, time: Any, reports: pd.DataFrame) -> bool:
        """Whether a time of these reports may be one that a clock shows twice, as it goes back in
        autumn: by the clock of a zone that is given, or else in the small hours of any."""
        if reports["time"].dtype.kind != "M":
            return False
        if self.zone is not None:
            instants = np.array([time], MICROSECONDS) + np.array([0, HOUR * SECOND], "m8[us]")
            first, second = on_clock_of(self.zone, instants)
            return first == second
        return CLOCK_OF_TIME not in reports and time.hour < 4

    def _closed(self, reports: pd.DataFrame) -> pd.DataFrame:
        """Reports with one more, of no state, at the end of each spell that no other one follows at
        once."""
        same = reports["user"].eq(reports["user"].shift(-1))
        following = reports["time"].shift(-1)
        is_wrong = (reports["until"] <= reports["time"]) | (same & (following < reports["until"]))
        is_open = same & (following == reports["until"])
        if "is_cut" in reports:
            is_wrong &= ~reports["is_endless"]
            is_open = (is_open | reports["is_endless"]) & ~reports["is_cut"]
        wrong = reports[is_wrong]
        if len(wrong):
            raise ValueError(
                "a spell must end after its begin and before the next one, found one until "
                f"{wrong['until'].iloc[0]} in {self.place(int(wrong['row'].iloc[0]))}; shorten it, "
                "or leave out until="
            )
        closing = reports[~is_open]
        ends = closing.assign(time=closing["until"], cell=OUTSIDE)
        if "is_cut" in reports:
            reports = reports.assign(is_cut=False)  # but from the end of the spell on
        return _in_time(pd.concat([ends, reports]))


def _cuts_of(reports: pd.DataFrame) -> np.ndarray | None:
    """After which reports (m,) something is missing; None where nothing is known of that."""
    if "is_cut" not in reports:
        return None
    return reports["is_cut"].to_numpy()


def on_clock_of(zone: str, times: np.ndarray) -> np.ndarray:
    """What the clock of a zone shows at instants (m,) in UTC.

    >>> on_clock_of("Europe/Berlin", np.array(["2024-03-31T00:59", "2024-03-31T01:00"], "M8[us]"))
    array(['2024-03-31T01:59:00.000000', '2024-03-31T03:00:00.000000'],
          dtype='datetime64[us]')
    """
    there = pd.DatetimeIndex(times).tz_localize("UTC").tz_convert(zone)
    return there.tz_localize(None).to_numpy().astype(MICROSECONDS)


def _follow_clocks(reports: pd.DataFrame) -> None:
    """Let local clocks order the rows of each user; one that goes back stands still until it is
    ahead again."""
    for name, clock in LOCAL.items():
        if clock in reports:
            reports[name] = reports.groupby("user")[clock].cummax()


def _lost_states(unused: list) -> str:
    """What is said of states that do not occur among those that count."""
    if not unused:
        return ""
    names = ", ".join(map(repr, unused[:5]))
    if len(unused) > 5:
        names += f" and {len(unused) - 5} more"
    return f", which loses the states {names}"


def _sorted_reports(frame: pd.DataFrame, state: str, user: str | list[str]) -> Reports:
    """Reports sorted by user and time; those at one time keep their order. `state` and `user` name
    the columns."""
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(
            f"the reports must be a DataFrame, found {type(frame).__name__}; "
            "read a file with tplreport.read_sequences"
        )
    columns = list(user)
    if isinstance(user, str):
        columns = [user]
    _check_columns_of_reports(frame, state, columns)
    times = _times_of_reports(frame["time"])
    zone = zone_of(frame["time"])
    keys = frame[columns[0]]
    if len(columns) > 1:
        keys = pd.MultiIndex.from_frame(frame[columns])
    group, users = pd.factorize(keys, sort=True)
    order = _order(group, times)
    states = frame[state].to_numpy()
    return Reports(times[order], group[order], states[order], pd.Index(users).to_numpy(), zone)


def _check_columns_of_reports(frame: pd.DataFrame, state: str, users: list[str]) -> None:
    """ValueError unless the columns of the state, of users and of times are there, and each row has
    a user and a time."""
    wanted = [state, *users, "time"]
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        raise ValueError(
            f"the frame must have the columns {wanted}, found {list(frame.columns)}; add {missing} "
            "or name yours with state= and user="
        )
    for name in [*users, "time"]:
        absent = int(frame[name].isna().sum())
        if absent:
            raise ValueError(
                f"column {name!r} must not miss values, found {absent:,} in {len(frame):,} rows; "
                "read them by tplreport.read_sequences with missing='drop', which takes no step "
                "across them"
            )


def _times_of_reports(column: pd.Series) -> np.ndarray:
    """Time stamps in UTC, or numbers of seconds."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        column = pd.to_datetime(column, utc=True).dt.tz_localize(None)
    elif not pd.api.types.is_numeric_dtype(column.dtype):
        raise ValueError(
            f"column 'time' must hold time stamps or seconds, found {column.dtype}; convert it "
            "first"
        )
    return column.to_numpy()


def _order(group: np.ndarray, times: np.ndarray) -> np.ndarray | slice:
    """What sorts reports by `group`, the codes of users, and time: indices, or a slice of all if
    they are sorted."""
    numbers = times
    if times.dtype.kind == "M":
        numbers = times.view(np.int64)  # are sorted faster
    step = np.diff(group)
    if ((step > 0) | ((step == 0) & (numbers[1:] >= numbers[:-1]))).all():
        return slice(None)
    return stable_order(numbers, group)


def _in_time(reports: pd.DataFrame) -> pd.DataFrame:
    return reports.iloc[_order(reports["user"].to_numpy(), reports["time"].to_numpy())]


def _ticks(times: np.ndarray) -> tuple[np.ndarray, int]:
    """Times as whole numbers, and how many of these make a second."""
    if times.dtype.kind == "M":
        if np.datetime_data(times.dtype)[0] == "ns":
            return times.astype(np.int64), 1000 * SECOND
        return times.astype("datetime64[us]").astype(np.int64), SECOND
    within = np.abs(times.astype(float)) <= 2**62 / SECOND
    if not within.all():
        raise ValueError(
            f"times must be within {2**62 // SECOND} seconds of 0, found "
            f"{times[np.argmin(within)]}; convert them to time stamps"
        )
    if times.dtype.kind in "iu":
        return times.astype(np.int64) * SECOND, SECOND
    return np.rint(times * float(SECOND)).astype(np.int64), SECOND


def _duration(
    value: str | float | timedelta, name: str, second: int, has_numbers: bool = False
) -> int:
    """A duration in ticks, at least one, of which `second` make a second; ValueError with the
    `name` of the argument for any other value.

    `has_numbers`: whether times are numbers, for which a text may be a number alone if they have no
    unit.
    """
    remedy = "give seconds or such as '5min'"
    if isinstance(value, str):
        remedy = "give such as '5min'"
    if isinstance(value, str) and has_numbers:
        remedy += ", or a number such as 1 for times that are numbers without a unit"
    if isinstance(value, str) and not has_unit(value):
        raise ValueError(
            f"{name} must be a positive duration with its unit, found {value!r}; {remedy}"
        )
    try:
        if isinstance(value, str | timedelta):
            seconds = pd.Timedelta(value).total_seconds()
        else:
            seconds = float(value)
    except (TypeError, ValueError):
        seconds = np.nan
    if not 1 <= np.rint(seconds * second) <= 2**62:
        raise ValueError(f"{name} must be a positive duration, found {value!r}; {remedy}")
    return round(seconds * second)


def _cut(states: np.ndarray, group: np.ndarray, source: np.ndarray, breaks: np.ndarray) -> Pieces:
    """The states of the reports `source` (m,), numbers of rows of `states` and `group`, cut after
    each position where `breaks` (m - 1,) is true."""
    starts = np.flatnonzero(np.append(True, breaks)[: len(source)])
    offsets = np.append(starts, len(source))
    return Pieces(states[source], offsets, group[source[starts]], source)
