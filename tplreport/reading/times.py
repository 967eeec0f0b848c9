"""Times of observations, as they are written: time stamps, ISO 8601, another format, or numbers.

A time is a complete ISO 8601 date, with or without a time of day: 2022-08-03, 2022/08/03 10:00,
2022-08-03T10:00:00.1Z, 2022-08-03 10:00:00 +02:00. Other texts that pandas accepts ("2022-8",
"today") are unreadable here, because truncated and damaged files contain such texts; so are years
before 1000 and from 9999 on, which stand for "unknown" and "never". Nanoseconds are kept; with
them, years are those from 1678 to 2261. No format is assumed: one that fits all values at hand is
named in the error, and two if both fit.

An *instant* orders observations: a time in UTC where offsets or a zone are given. The *local clock*
is the time as it is written, without its offset; it determines the time steps.
"""

import re
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
from pandas.tseries.api import guess_datetime_format

from tplreport.reading.rows_by_user import MISSING, arrow_of

ISO_TIME = (
    r" *([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}/[0-9]{2}/[0-9]{2})"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?( ?(Z|[-+][0-9]{2}(:?[0-9]{2})?))?)?"
)
CLOCK = r"\d?\d:\d\d(:\d\d)?( [AP]M)?"  # a time of day alone
# after a time of day, perhaps before the year
OFFSET = r"(\d:\d\d\S*?)\s*(?:Z|[+-]\d\d(?::?\d\d)?)( \d{4})?$"
# instants -> the local clock there, where it differs
LOCAL = {"time": "clock of time", "until": "clock of until"}
#: Unit of times that are numbers -> seconds, as a fraction; "excel" are days since the end of 1899.
UNITS = {"s": (1, 1), "ms": (1, 10**3), "us": (1, 10**6), "ns": (1, 10**9)}
UNITS |= {"min": (60, 1), "h": (3600, 1), "D": (86_400, 1), "excel": (86_400, 1)}
EXCEL_1970 = 25_569
LATEST = 1e11  # seconds since 1970: the year 5138
#: At most so many blanks stand around a text that is looked up.
MOST_BLANKS = 4
#: Seconds by which times in minutes, hours or days miss a whole second where digits are left out.
NEARLY_WHOLE = 0.05
#: So many different numbers that may all be times of day, such as 0830, are.
FEWEST_CLOCKS = 12
#: A time of day after 24:00, as timetables have them, and before it perhaps a date.
LATE = r"^(.*[T ])?(2[4-9]|[34]\d):([0-5]\d(:[0-5]\d)?)$"
WITH_DIGIT = "(?s).*[0-9].*"  # unlike "now" and "today", which pandas accepts in any format
FIRST_TIME, LAST_TIME = np.datetime64("1000-01-01", "us"), np.datetime64("9998-12-31", "us")
#: Formats of dates and of times of day that are tried beside those that pandas guesses.
MORE = ("%d-%m-%Y", "%m-%d-%Y", "%d-%b-%Y", "%y-%m-%d", "%d-%m-%y")
DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", *MORE)
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", ":%H.%M", ":%H.%M.%S")
#: Formats of weeks, months and quarters; "%q", the number of a quarter, is ours.
WEEKS = ("%G-W%V", "%GW%V", "%G-W%V-%u", "W%V %G")
QUARTERS = ("%Y-Q%q", "%YQ%q", "%Y Q%q", "Q%q %Y", "Q%q/%Y")
MONTHS = ("%Y-%m", "%Y/%m", "%m/%Y", "%m-%Y", "%m.%Y", "%b %Y", "%b-%Y", "%b-%y", "%B %Y")
QUARTERS_YEAR = "(?P<year>[0-9]{4})"
OTHERS = ("%a %b %d %H:%M:%S %z %Y", "%d/%b/%Y:%H:%M:%S %z", "%a, %d %b %Y %H:%M:%S %z")
#: Formats of dates that are whole numbers -> their digits.
DIGITS = {
    "%Y%m%d": 8,
    "%Y%m%d%H": 10,
    "%Y%m%d%H%M": 12,
    "%Y%m%d%H%M%S": 14,
    "%d%m%Y": 8,
    "%m%d%Y": 8,
    "%Y%m": 6,
    "%y%m%d": 6,
}
#: Formats that nobody writes; the last is a zone by name.
UNUSUAL = r"%Y.%d|%m\.%d|.*%Z"
#: So many values decide which formats fit.
SAMPLE = 1000

PlaceOfRow = Callable[[int], str]  # a row -> where it stands, for messages
OnClock = Callable[[np.ndarray, bool, PlaceOfRow], tuple[np.ndarray, np.ndarray]]


def zone_of(column: pd.Series) -> str | None:
    """The name of the zone of a column of time stamps, None if it has none."""
    kind = column.dtype
    if isinstance(kind, pd.ArrowDtype):
        return getattr(kind.pyarrow_dtype, "tz", None)
    zone = getattr(kind, "tz", None)
    if zone is None:
        return None
    return str(zone)


def has_unit(duration: str) -> bool:
    """Whether a text may be a duration: pandas takes a number alone for nanoseconds.

    >>> has_unit("5min"), has_unit("01:00:00"), has_unit("3600")
    (True, True, False)
    """
    return re.fullmatch(r"[\s+\-.0-9]*", duration) is None


def texts_of(column: pd.Series) -> pa.Array:
    """The values of a column as texts."""
    if isinstance(column.dtype, pd.ArrowDtype) and pa.types.is_string(column.dtype.pyarrow_dtype):
        return arrow_of(column)
    return pa.array(column.astype(str), pa.string())


def parse_numbers(texts: pa.Array) -> np.ndarray | None:
    """Texts as whole numbers, or else as floats; None if one of them is no number."""
    for kind in (pa.int64(), pa.uint64(), pa.float64()):
        with suppress(pa.ArrowInvalid):
            texts[:1].cast(kind)  # most texts that are no numbers are refused here, at once
            numbers = texts.cast(kind).to_numpy(zero_copy_only=False)
            has_letters = pa.compute.any(
                pa.compute.match_substring_regex(texts, "[^-+.0-9eE]")
            ).as_py()
            if has_letters:  # "nan" and "0x10"
                return None
            return numbers
    return None


def parse_times(texts: pa.Array, time_format: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Instants in UTC, as datetime64 without a zone, and which texts have an offset; times without
    one are UTC.

    An unreadable text is NaT. `time_format` is as for `strptime`, by default ISO 8601.
    """
    uniform = None
    if not time_format:
        uniform = _uniform_times(texts)
    if uniform is not None:
        instants, all_have_offset = uniform
        has_offset = np.full(len(texts), all_have_offset)
    else:
        instants = _instants_in_format(texts.to_pandas(), time_format)
        has_offset = pa.compute.match_substring_regex(texts, OFFSET).to_numpy(zero_copy_only=False)
    if np.datetime_data(instants.dtype)[0] != "ns":
        instants = instants.astype("datetime64[us]", copy=False)
        wrong = (instants < FIRST_TIME) | (instants > LAST_TIME)
        if wrong.any():
            instants = np.where(wrong, np.datetime64("NaT"), instants)
    return instants, has_offset


def _instants_in_format(column: pd.Series, time_format: str | None) -> np.ndarray:
    """Instants in UTC; NaT for a text in another format, by default ISO 8601."""
    pattern = ISO_TIME
    if time_format:
        pattern = WITH_DIGIT
    formed = column.where(column.str.fullmatch(pattern).astype(bool))
    parsed = _parsed(formed, time_format or "ISO8601")
    return parsed.dt.tz_localize(None).to_numpy()


def _parsed(texts: pd.Series, form: str) -> pd.Series:
    """The times of texts in a format, in UTC, NaT for other texts; ValueError for what is no
    format.

    A week is its Monday, and a quarter ("%q") the first day of its first month.

    >>> _parsed(pd.Series(["2024-Q2", "2024-04"]), "%Y-Q%q").astype(str).tolist()
    ['2024-04-01 00:00:00+00:00', nan]
    """
    if "%q" in form:
        pattern = re.escape(form).replace("%q", "(?P<quarter>[1-4])")
        found = texts.str.extract(f"^{pattern.replace('%Y', QUARTERS_YEAR)}$")
        months = (found["quarter"].astype(float) * 3 - 2).map("{:02.0f}".format)
        texts = (found["year"] + months).where(found["quarter"].notna())
        form = "%Y%m"
    elif "%V" in form and not re.search("%[uwaA]", form):
        texts = texts + " 1"
        form += " %u"
    try:
        return pd.to_datetime(texts, format=form, utc=True, errors="coerce")
    except ValueError as error:
        raise ValueError(
            f"time_format must be a format as of strptime, found {form!r} ({error}); give such as "
            "'%d.%m.%Y %H:%M'"
        ) from None


def _uniform_times(texts: pa.Array) -> tuple[np.ndarray, bool] | None:
    """The instants of ISO 8601 texts that all have an offset or all have none, and which; None for
    others.

    Reading a CSV file takes 1.4 times as long without it.
    """
    if texts.null_count:
        return None
    for zone, unit in product((None, "UTC"), ("us", "ns")):
        with suppress(pa.ArrowInvalid):
            instants = (
                texts.cast(pa.timestamp(unit, zone))
                .cast(pa.timestamp(unit))
                .to_numpy(zero_copy_only=False)
            )
            if zone is None:
                no_minutes = pa.compute.equal(pa.compute.binary_length(texts), len("2022-08-03T10"))
            else:
                no_minutes = pa.compute.not_equal(
                    pa.compute.utf8_slice_codeunits(texts, 13, 14), ":"
                )
            if pa.compute.any(no_minutes).as_py():
                return None
            return instants, zone is not None
    return None


def fitting_formats(values: Iterable[Any]) -> list[str]:
    """The formats, as for `strptime`, in which all these values are times from 1900 to 2100.

    >>> fitting_formats(["01/02/2019", "03/02/2019"]), fitting_formats(["13/02/2019"])
    (['%d/%m/%Y', '%m/%d/%Y'], ['%d/%m/%Y'])
    >>> fitting_formats([20240131, 20240201]), fitting_formats(["soon"])
    (['%Y%m%d'], [])
    """
    texts = pd.Series(list(dict.fromkeys(str(value).strip() for value in values)), dtype=str)
    if texts.str.fullmatch(r"[0-9]+(\.0)?").all():
        return _formats_of_digits(texts)
    forms = [form for form in _formats_of_texts(texts) if _fits(texts, form)]
    return [form for form in forms if "%b" not in form or form.replace("%b", "%B") not in forms]


def _formats_of_digits(texts: pd.Series) -> list[str]:
    """The formats in which numbers such as 20240131, or 20240131.0, are times."""
    point = ""
    if texts.str.endswith(".0").all():  # of a column of floats
        point = ".0"
    lengths = set(texts.str.len() - len(point))
    if lengths == {7, 8}:  # the zero of a day or month is lost
        texts = texts.str.zfill(8 + len(point))
        lengths = {8}
    if lengths == {6} and len(texts) < 3:  # few numbers of six digits may be anything
        return []
    forms = [form + point for form, digits in DIGITS.items() if lengths == {digits}]
    return [form for form in forms if _fits(texts, form)]


def _formats_of_texts(texts: pd.Series) -> list[str]:
    """Formats that may be those of the texts, without those that nobody writes."""
    first = texts.iloc[0]
    with warnings.catch_warnings(action="ignore"):  # pandas says that it swaps day and month
        guesses = [guess_datetime_format(first, dayfirst=is_first) for is_first in (True, False)]
    guesses = [form for form in guesses if form]
    guesses += [form.replace("%B", "%b") for form in guesses]  # "May" may be short
    usual = ["".join(parts) for parts in product(DATES, CLOCKS)]
    forms = dict.fromkeys([*guesses, *OTHERS, *usual, *WEEKS, *QUARTERS, *MONTHS])
    return [form for form in forms if not re.match(UNUSUAL, form)]


def _fits(texts: pd.Series, form: str) -> bool:
    with warnings.catch_warnings(action="ignore"):
        times = _parsed(texts, form)
    return bool(times.notna().all() and times.dt.year.between(1900, 2100).all())


def looks_like_times(column: pd.Series) -> bool:
    """Whether the values of a column seem to be times: dates, or seconds to nanoseconds since 1985
    to 2100."""
    column = column.dropna()[:SAMPLE]
    if column.dtype.kind == "M" or isinstance(column.dtype, pd.DatetimeTZDtype):
        return True
    texts = column.astype(str)
    texts = texts[~texts.isin(MISSING)]
    if not len(texts) or column.dtype.kind == "b":
        return False
    numbers = parse_numbers(texts_of(texts))
    if numbers is not None and _may_be_since_1970(numbers):
        return True
    return bool(texts.str.fullmatch(ISO_TIME).all()) or fitting_formats(texts) != []


def _may_be_since_1970(numbers: np.ndarray) -> bool:
    """Whether numbers are of 1985 to 2100 as seconds, ms, us or ns."""
    return any(has_dates(numbers / 10**k) for k in (0, 3, 6, 9))


def has_dates(seconds: np.ndarray) -> bool:
    """Whether seconds since 1970 are of 1985 to 2100."""
    return bool((np.abs(seconds - 2.3e9) < 1.8e9).all())


@dataclass(frozen=True)
class Absent:
    """Rows of a block without a value in one column."""

    rows: np.ndarray  # their numbers in the block
    found: str  # what stands in the first of them

    @classmethod
    def of(cls, is_absent: np.ndarray, column: pd.Series) -> "Absent":
        """The rows of a column where `is_absent` (m,) is true, of which there is one."""
        rows = np.flatnonzero(is_absent)
        found = column.iloc[rows[0]]
        if isinstance(found, str) and found.strip():
            return cls(rows, repr(found))
        return cls(rows, "nothing")


def with_instants(
    block: pd.DataFrame,
    time_format: str | None,
    place: PlaceOfRow,
    kinds: dict[str, tuple[bool, bool]],
    missing: frozenset[str] = frozenset(MISSING),
    on_clock: OnClock | None = None,
) -> tuple[pd.DataFrame, dict[str, Absent]]:
    """The block with instants for times, and columns of the local clock where it differs.

    Parameters
    ----------
    block : DataFrame
    time_format : as for `strptime`; None: ISO 8601, or numbers
    place : function of the number of a row, which tells where it stands
    kinds : what times of each column are
        It is changed, so that those of later blocks must be alike.
    missing : texts that stand for no time
    on_clock : function of times, whether they have an offset, and their place
        Gives the times in UTC and by the clock of a zone that is named.

    Returns
    -------
    DataFrame, and the rows without a time by the name of the column
        In these rows the instant is another row's, or 0 where no row of the block has one.

    Raises
    ------
    ValueError
        For a time that cannot be read, or is unlike the others.
    """
    block = block.copy(deep=False)
    if "clock" in block:
        block["time"] = _joined(block["time"], block.pop("clock"), missing)
    absent = {}
    for name in block.columns.intersection([*LOCAL]):
        column = _objects_as_texts(block[name])
        is_absent = _is_absent(column, missing)
        if is_absent.any():
            absent[name] = Absent.of(is_absent, column)
        known = np.flatnonzero(~is_absent)
        if not known.size:
            _stand_in(block, name)
            continue
        if is_absent.any():
            column = column.iloc[np.where(is_absent, known[0], np.arange(len(column)))]
        instants, clock = _times(column, time_format, place)
        if on_clock is not None:
            instants, clock = on_clock(instants, clock is not instants, place)
        kind = instants.dtype.kind == "M", clock is instants
        is_first = name not in kinds and kind == (False, True)
        if is_first and (forms := fitting_formats(column[:SAMPLE])) and forms[0][1] not in "Yy":
            # dates that numbers do not put in order
            raise _unlike_times(column.astype(str), 0, time_format, place)
        if kinds.setdefault(name, kind) != kind:
            raise _unlike_times(column.astype(str), 0, time_format, place)
        block[name] = instants
        if clock is not instants:
            block[LOCAL[name]] = clock
    return block, absent


def _stand_in(block: pd.DataFrame, name: str) -> None:
    """Give the column `name`, which holds nothing, the instants of that of times, or 0 for times
    themselves."""
    if name == "time":
        block[name] = np.zeros(len(block), np.int64)
        return
    block[name] = block["time"]
    if LOCAL["time"] in block:
        block[LOCAL[name]] = block[LOCAL["time"]]


def _joined(dates: pd.Series, clocks: pd.Series, missing: frozenset[str]) -> pd.Series:
    """Dates and times of day in one column, None where one of them is missing."""
    joined = dates.astype(str) + " " + clocks.astype(str)
    is_absent = _is_absent(dates, missing) | _is_absent(clocks, missing)
    if is_absent.any():
        joined = joined.astype(object).where(~is_absent, None)
    return joined


def _objects_as_texts(column: pd.Series) -> pd.Series:
    """A column of Python objects as one of texts, which takes a while; others as they are."""
    if column.dtype.kind != "O" or isinstance(column.dtype, pd.ArrowDtype):
        return column
    return pd.Series(pd.array(texts_of(column), pd.ArrowDtype(pa.string())))


def _is_absent(column: pd.Series, missing: frozenset[str]) -> np.ndarray:
    """Which values (m,) of a column are none, or texts that stand for none."""
    is_absent = column.isna().to_numpy(bool)
    if column.dtype.kind not in "OU":
        return is_absent
    texts = texts_of(column)
    shortest = pa.compute.min(pa.compute.binary_length(texts)).as_py()
    longest = max(map(len, missing), default=0) + MOST_BLANKS
    if shortest is None or shortest > longest:
        return is_absent
    trimmed = pa.compute.utf8_trim_whitespace(texts)
    stand_for_none = pa.compute.is_in(trimmed, value_set=pa.array([*missing], pa.string()))
    return is_absent | stand_for_none.to_numpy(zero_copy_only=False)


def _times(
    column: pd.Series, time_format: str | None, place: PlaceOfRow
) -> tuple[np.ndarray, np.ndarray]:
    """Instants and local clock (m,) of a column of times; one and the same array, by which
    `with_instants` tells them apart, where no offset or zone is given."""
    is_arrow = isinstance(column.dtype, pd.ArrowDtype)
    if is_arrow and not pa.types.is_string(column.dtype.pyarrow_dtype):
        column = arrow_of(column).to_pandas()
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return column.dt.tz_convert(None).to_numpy(), column.dt.tz_localize(None).to_numpy()
    if column.dtype.kind == "M" or (column.dtype.kind in "iuf" and time_format is None):
        numbers = column.to_numpy()
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            row = int(np.argmin(np.isfinite(numbers)))
            raise ValueError(
                f"times must be finite numbers, found {numbers[row]} in {place(row)}; leave it "
                "empty if it stands for none"
            )
        return numbers, numbers
    return _times_of_texts(texts_of(column), time_format, place)


def _times_of_texts(
    texts: pa.Array, time_format: str | None, place: PlaceOfRow
) -> tuple[np.ndarray, np.ndarray]:
    """Instants and local clock of texts, as `_times` gives them; texts that are all numbers count
    as numbers, unless there is a format."""
    if not time_format:
        parsed = parse_numbers(texts)
        if parsed is not None:
            return parsed, parsed
    instants, has_offset = parse_times(texts, time_format)
    clock = instants
    if has_offset.any():
        there = pa.compute.replace_substring_regex(texts, OFFSET, r"\1\2")
        clock, _ = parse_times(there, time_format and re.sub(" ?%z", "", time_format))
    wrong = np.isnat(instants) | np.isnat(clock) | (has_offset != has_offset[0])
    if wrong.any():
        late = _times_after_midnight(texts.to_pandas(), time_format)
        if late is not None:
            return late, late
        column = texts.to_pandas()
        no_number = pd.to_numeric(column, errors="coerce").isna().to_numpy()
        if no_number.mean() < 0.5 and not time_format:
            wrong = no_number  # unlike the others
        raise _unlike_times(column, int(np.argmax(wrong)), time_format, place)
    return instants, clock


def _times_after_midnight(texts: pd.Series, time_format: str | None) -> np.ndarray | None:
    """The times of texts some of which are clocks from 24:00 to 49:59, of the day of service, or,
    if none has a date, of one day; None if there are none of these, or others cannot be read."""
    found = texts.str.extract(LATE)
    is_late = found[1].notna()
    if not is_late.any():
        return None
    hours = found.loc[is_late, 1].astype(int)
    prefix = found.loc[is_late, 0].fillna("")
    texts = texts.copy()
    texts[is_late] = prefix + (hours % 24).map("{:02}".format) + ":" + found.loc[is_late, 2]
    if not time_format and texts.str.fullmatch(CLOCK).all():
        texts = "1970-01-01 " + texts.str.replace(r"^(\d:)", r"0\1", regex=True)
    instants, has_offset = parse_times(pa.array(texts, pa.string()), time_format)
    if np.isnat(instants).any() or has_offset.any():
        return None
    days = np.zeros(len(texts), "timedelta64[D]")
    days[is_late.to_numpy()] = (hours // 24).to_numpy().astype("timedelta64[D]")
    return instants + days


def _unlike_times(
    texts: pd.Series, row: int, time_format: str | None, place: PlaceOfRow
) -> ValueError:
    """The error for the time in this row, which cannot be read in the format, or is not like the
    others; `place` tells where a row stands."""
    text = texts.iloc[row]
    forms = [
        repr(form) for form in fitting_formats(texts.iloc[[row, *range(min(SAMPLE, len(texts)))]])
    ]
    remedy = "write all of them in one way"
    zone = re.fullmatch(ISO_TIME + " ?([A-Za-z]+)", text)
    if re.fullmatch(CLOCK, text):
        remedy = "join the columns of the date and of this time of day, such as time='date+time'"
    elif _names_no_time(text):
        remedy = "there is no such time: correct it"
    elif re.fullmatch(r"[-+]?\d+,\d+", text):
        remedy = "write numbers with a decimal point"
    elif forms:
        remedy = f"give such as time_format={' or '.join(forms)}"
        if len(forms) > 1:
            remedy += ", for each of which they fit"
    elif zone is not None:
        remedy = f"write the offset from UTC, such as +00:00, in place of {zone.groups()[-1]}"
    return ValueError(
        f"times must all be numbers, or in the format {time_format or 'ISO8601'}, all with an "
        f"offset from UTC or all without, found {text!r} in {place(row)}; {remedy}"
    )


def _names_no_time(text: str) -> bool:
    """Whether a date in full, perhaps with a time of day, is none of the calendar and the clock."""
    if re.fullmatch(ISO_TIME, text) is None:
        return False
    try:
        pd.Timestamp(text)
    except ValueError:
        return True
    return False


def seconds_of(times: np.ndarray, unit: str | None) -> np.ndarray:
    """Times that are numbers of a unit, by default seconds, as seconds.

    >>> seconds_of(np.array([45355.333333, 45355.375]), "excel")
    array([1.7095392e+09, 1.7095428e+09])
    """
    many, parts = UNITS[unit or "s"]
    if unit == "excel":
        times = times - EXCEL_1970
    if many == parts:
        return times
    seconds = times.astype(float) * many / parts
    if many > parts:  # a fraction of a day is written with few digits
        whole = np.rint(seconds)
        seconds = np.where(np.abs(seconds - whole) <= NEARLY_WHOLE, whole, seconds)
    return seconds


def check_seconds(times: np.ndarray, span: list[float], step: float, place: PlaceOfRow) -> None:
    """ValueError for numbers of no named unit that can hardly be seconds: dates, days, serials,
    milliseconds.

    `times` are the first ones, with their `place`; `span` are the least and the largest of all;
    `step` is that of the sequences, in seconds.
    """
    low, high = map(float, span)
    found = f"found {times[0]} in {place(0)}"
    if forms := fitting_formats(times[:SAMPLE]):
        found += ", a date"
        remedy = f"give time_format={' or '.join(map(repr, forms))}"
    elif max(abs(low), abs(high)) > LATEST:
        first = int(np.argmax(np.abs(times.astype(float)) > LATEST))
        likely = next(
            (name for name in ("ms", "us") if max(abs(low), abs(high)) / UNITS[name][1] <= LATEST),
            "ns",
        )
        found = f"found {times[first]} in {place(first)}, after the year 5000"
        remedy = f"give time_unit={likely!r} for {likely} since 1970"
    elif 0 < high - low < step:
        found += f", and none further than {high - low:g} from another, within one step"
        remedy = (
            "give time_unit='D' for days, 'h' for hours, 'excel' for days of a spreadsheet, 's' "
            "for seconds"
        )
    elif are_clocks(times):
        found += ", a time of day such as 0830 for 08:30"
        remedy = "write it as 08:30, with its date"
    else:
        return
    raise ValueError(f"times that are numbers must be seconds, {found}; {remedy}")


def are_clocks(times: np.ndarray, fewest: int = FEWEST_CLOCKS) -> bool:
    """Whether numbers seem to be times of day without their colon.

    Parameters
    ----------
    times : array (m,)
    fewest : int, so many different numbers must there be, none with more than 59 minutes

    Returns
    -------
    bool

    Raises
    ------
    TypeError
        For what has no order.

    Examples
    --------
    >>> half_hours = np.array([100 * (8 + k // 2) + 30 * (k % 2) for k in range(20)])
    >>> are_clocks(half_hours), are_clocks(np.arange(0, 2000, 30))
    (True, False)
    """
    numbers = np.unique(times)
    if numbers.dtype.kind not in "iuf" or len(numbers) < fewest:
        return False
    minutes = numbers % 100
    is_whole = (numbers % 1 == 0).all()
    return bool(is_whole and 0 <= numbers[0] and 100 <= numbers[-1] <= 2400) and bool(
        (minutes < 60).all() and minutes.any()
    )
