"""Mutated logs: refused by name, or read as a strict parser reads them, every defect counted."""

import csv
import gzip
import io
import re
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest

from tests.fuzzing import mutations, read_within_limits
from tests.tplrepro.eventlog.logs import COLUMNS, event, trace
from tplreport import read_xes
from tplreport.reading.event_logs import read_log_csv
from tplreport.reading.table import USUAL_NAMES

TIME = re.compile(
    r" *(\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d)"
    r"([T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|[-+]\d\d(:?[0-5]\d)?))?)?",
    re.ASCII,
)


#: What the columns of a log are in the table of usual names.
ROLES = ("user", "state", "time")


def instant(text):
    """The time, or None where it is not whole, outside the calendar, or of no year from 1000 to
    9998."""
    try:
        when = datetime.fromisoformat(re.sub(" (?=[-+Z])", "", text.lstrip(" ")).replace("/", "-"))
    except ValueError:
        return None
    sound = TIME.fullmatch(text) and 1000 <= when.year <= 9998
    return (
        when.astimezone(UTC)
        if sound and when.tzinfo
        else when.replace(tzinfo=UTC)
        if sound
        else None
    )


def csv_events(data):
    """Case, activity and time of each row, by Python's own parser."""
    text = io.StringIO(data.decode("utf-8-sig"), newline="")
    header, *rows = (row for row in csv.reader(text, strict=True) if row not in ([], [""]))
    assert {len(row) for row in rows} == {len(header)}
    header = [name.casefold().translate(dict.fromkeys(map(ord, " _-"))) for name in header]
    places = [
        header.index(next(name for name in USUAL_NAMES[role] if name in header)) for role in ROLES
    ]
    return [[row[place] for place in places] for row in rows]


def xes_events(data):
    """Case, activity and time of each event, by the tree of all elements."""
    log = ElementTree.fromstring(data)
    traces = [element for element in log if element.tag == "trace"]
    numbered = [(number, element) for number, trace in enumerate(traces, 1) for element in trace]
    events = [(number, element) for number, element in numbered if element.tag == "event"]
    tags = [element.tag for element in log.iter()]
    found = log.tag, tags.count("log"), tags.count("trace"), tags.count("event")
    assert found == ("log", 1, len(traces), len(events))
    names = [
        value(element, COLUMNS[1]) or f"trace {number}" for number, element in enumerate(traces, 1)
    ]
    return [
        [names[number - 1], *(value(element, key) for key in COLUMNS[1:])]
        for number, element in events
    ]


def value(element, key):
    (found,) = [child.get("value", "") for child in element if child.get("key") == key] or [""]
    return found


ROW = '2022-01-0{}T0{}:30:00+01:00,{},"case {}","b ""{}"""\n'
CSV = "timestamp,cost,Case ID,activity\n" + "".join(
    ROW.format(k % 9 + 1, k % 8, k, k // 4, k % 2) for k in range(16)
)
TRACES = [trace(*(event("ab"[k % 2]) for k in range(n)), name=str(n)) for n in range(5)]
XES = f"<log>{''.join(TRACES)}</log>\n"


@pytest.mark.slow
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("read", "events_of", "text"), [(read_log_csv, csv_events, CSV), (read_xes, xes_events, XES)]
)
def test_a_mutated_log_is_read_correctly_or_refused_by_an_error_that_names_it(
    tmp_path, read, events_of, text, packed
):
    data = gzip.compress(text.encode(), mtime=0) if packed else text.encode()
    assert read_within_limits(read, tmp_path / "log", data)[0].attrs["skipped"] == {}
    for case, mutated in enumerate(mutations(data, 1100, seed=2022)):
        found = read_within_limits(read, tmp_path / "log", mutated)
        if found is None:
            continue
        try:
            plain = gzip.decompress(mutated) if mutated[:2] == b"\x1f\x8b" else mutated
            events = [(case, activity, instant(time)) for case, activity, time in events_of(plain)]
        except Exception as error:
            raise AssertionError(f"case {case} is read though {error!r}: {mutated!r}") from error
        log, warned = found
        cases = [case for case, *_ in events]
        good = sorted(
            (row for row in events if all(row)), key=lambda row: (cases.index(row[0]), row[2])
        )
        assert list(log[COLUMNS].itertuples(index=False, name=None)) == good, (case, mutated)
        assert sum(log.attrs["skipped"].values()) == len(events) - len(good)
        assert warned or plain.endswith(b"\n") or read is read_xes
