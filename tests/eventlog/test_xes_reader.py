"""The XES reader: what it reads, what it counts, what it refuses."""

import gzip
import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from tests.eventlog.logs import COLUMNS, event, trace, write
from tplrepro.eventlog import DataFormatError, prepare, read_xes, recorded_logs, synthetic
from tplrepro.eventlog.preparation import write_synthetic

TIMES = ("08:00:00.123Z", "08:00:00.123", "10:00:00.123000+02:00", "09:00:00.123+0100")  # as writers put them


@pytest.mark.parametrize("time", [*(f"2022-08-03T{time}" for time in TIMES), "2022-08-03 08:00:00.123"])
def test_reads_columns_types_and_offsets(tmp_path, time):
    log = read_xes(write(tmp_path, f"<log>{trace(event('b', time), name='7')}</log>"))
    assert list(log.columns) == COLUMNS
    assert log.iloc[0].tolist() == ["7", "b", pd.Timestamp("2022-08-03T08:00:00.123", tz="UTC")]
    assert str(log.dtypes["time:timestamp"]) == "datetime64[us, UTC]"
    assert (log.attrs["synthetic"], log.attrs["skipped"]) == (False, {})


PROM = f"""<?xml version="1.0" encoding="UTF-8" ?>
    <!-- OpenXES -->
    <log xes.version="1.0" xes.features="nested-attributes" xmlns="http://www.xes-standard.org/">
    <extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
    <global scope="event"><string key="concept:name" value="UNKNOWN"/>
    <date key="time:timestamp" value="1970-01-01T00:00:00.000+01:00"/></global>
    <classifier name="Activity" keys="concept:name lifecycle:transition"/>
    <float key="meta" value="1.0"><string key="concept:name" value="not a case"/></float>
    {trace(event("a", more='<string key="lifecycle:transition" value="COMPLETE"/>'))}</log>"""
DISCO = (
    '\ufeff<log openxes.version="1.0RC7"><trace><string key="variant" value="V 1"/>'
    f'<string key="concept:name" value="A &amp; B"/>{event("x &lt; y")}</trace></log>'
)
NESTED = (
    '<string key="data" value="v"><string key="concept:name" value="inner"/>'
    '<date key="time:timestamp" value="1999-01-01T00:00:00Z"/></string>'
    '<list key="items"><values><string key="concept:name" value="inner"/></values></list>'
)


LATE = f'<log><trace>{event("a") * 3}<string key="concept:name" value="late"/></trace></log>'


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        pytest.param(PROM, [["1", "a"]], id="ProM: namespace, globals, nested log attributes"),
        pytest.param(DISCO, [["A & B", "x < y"]], id="Disco: byte order mark, entities of XML, name second"),
        pytest.param(f"<log>{trace(event('outer', more=NESTED))}</log>", [["1", "outer"]], id="nested attributes"),
        pytest.param(LATE, [["late", "a"]] * 3, id="name of the trace after its events"),
    ],
)
def test_names_as_different_writers_put_them(tmp_path, text, rows):
    log = read_xes(write(tmp_path, text))
    assert log[COLUMNS[:2]].values.tolist() == rows
    assert set(log["time:timestamp"].dt.year) == {2022}


def test_gz_is_told_by_its_content(tmp_path):
    plain = write(tmp_path, f"<log>{trace(event())}</log>")
    for name in ("log.xes.gz", "other.xes"):
        (tmp_path / name).write_bytes(gzip.compress(plain.read_bytes()))
        pd.testing.assert_frame_equal(read_xes(tmp_path / name), read_xes(plain))


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_unordered_events_are_sorted_and_counted(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr("tplrepro.eventlog.events.EVENTS_AT_ONCE", at_once)
    days = [event(name, f"2022-01-{day:02d}") for name, day in zip("dcbea", (4, 3, 2, 4, 1), strict=True)]
    log = read_xes(write(tmp_path, f"<log>{trace(*days)}</log>"))
    assert "".join(log["concept:name"]) == "abcde"  # equal times keep their order
    assert log.attrs["reordered"] == 3
    with pytest.raises(DataFormatError, match="line 3: times must be in order, found .*2022-01-03"):
        read_xes(tmp_path / "log.xes", strict=True)


@pytest.mark.parametrize(
    ("bad", "reason", "found"),
    [
        (event(None), "event without concept:name", "activity ''"),
        (event(time=None), "event without time:timestamp", "activity 'a'"),
        (event(time="soon"), "event with an unreadable time:timestamp", "activity 'a', time 'soon'"),
    ],
)
def test_broken_events_are_skipped_counted_and_placed(tmp_path, bad, reason, found):
    path = write(tmp_path, f"<log>{trace(event(), bad, bad, event())}</log>")
    log = read_xes(path)
    assert len(log) == 2
    assert log.attrs["skipped"] == {reason: 2}
    assert log.attrs["skipped_examples"][reason].endswith("log.xes, line 3")
    with pytest.raises(DataFormatError, match=f"line 3: {reason}, found .*{found}.*strict=False"):
        read_xes(path, strict=True)


def test_cases_without_a_name_or_events_and_with_one_twice(tmp_path):
    text = f"<log>{trace(event(), name=None)}{trace(name='empty')}{trace(event('a'))}{trace(event('b'))}</log>"
    log = read_xes(write(tmp_path, text))
    assert log["case:concept:name"].tolist() == ["trace 1", "1", "1"]
    assert [log.attrs[name] for name in ("unnamed_cases", "empty_cases", "repeated_cases")] == [1, 1, 1]


def test_truncated_and_damaged_gz(tmp_path):
    rng = np.random.default_rng(0)
    events = "".join(event(f"a{k}") for k in rng.integers(0, 10**9, 5000))
    content = gzip.compress(f"<log>{trace(events)}</log>".encode())
    half, path = len(content) // 2, tmp_path / "log.xes.gz"
    damaged = content[:half] + bytes([content[half] ^ 0xFF]) + content[half + 1 :]
    early = "line \\d+: the compressed file ends early .*; download it again"
    for found, message in ((content[:half], early), (damaged, "damaged|XML with")):
        path.write_bytes(found)
        with pytest.raises(DataFormatError, match=message):
            read_xes(path)


BILLION_LAUGHS = (
    '<?xml version="1.0"?>\n<!DOCTYPE log [\n<!ENTITY a0 "ha">\n'
    + "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">\n' for k in range(1, 10))
    + "]>\n"
)


FILE = 'SYSTEM "file:///etc/hostname"'
HEADS = (f"[<!ENTITY a9 {FILE}>]", 'SYSTEM "http://localhost:9/log.dtd"', f"[<!ENTITY % p {FILE}> %p;]")


@pytest.mark.parametrize("head", [BILLION_LAUGHS, *(f"<!DOCTYPE log {head}>" for head in HEADS)])
def test_entities_are_refused_at_once(tmp_path, head):
    path = write(tmp_path, f"{head}<log>{trace(event('&a9;'))}</log>")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataFormatError, match="must not declare a document type or entities"):
        read_xes(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes


def test_an_element_without_end_does_not_fill_memory(tmp_path):
    path = tmp_path / "log.xes.gz"
    with gzip.open(path, "wb", compresslevel=1) as out:
        out.write(b'<log><string key="' + b"a" * (10 << 20))
    with pytest.raises(DataFormatError, match="at most 8 MiB long"):
        read_xes(path)


#: A million events as Python objects would take hundreds of MiB.
MEASURE = """import resource, sys
from tplrepro.eventlog import read_xes
print(len(read_xes(sys.argv[1])), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"""


# MiB; the frame is 100 bytes an event
@pytest.mark.parametrize(("cases", "most"), [(4_000, 25), pytest.param(70_000, 220, marks=pytest.mark.slow)])
def test_a_log_is_read_in_bounded_memory(tmp_path, cases, most):
    peaks = []
    for size in (100, cases):
        path = tmp_path / f"{size}.xes.gz"
        write_synthetic(path, size, seed=1)
        done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
        count, peak = done.stdout.split()
        assert int(count) > 10 * size
        peaks.append(float(peak))
    assert peaks[1] - peaks[0] < most


def test_synthetic_logs_are_marked_and_repeat(tmp_path, monkeypatch):
    log = synthetic(50, seed=4, path=tmp_path / "eventlogs" / "made.xes")
    assert (log.attrs["synthetic"], log.attrs["generator"]["seed"]) == (True, 4)
    assert "tplrepro:synthetic" in (tmp_path / "eventlogs" / "made.xes").read_text()
    pd.testing.assert_frame_equal(log, synthetic(50, seed=4), check_like=False)
    assert not log.equals(synthetic(50, seed=5))
    monkeypatch.setenv("TPLREPRO_DATA", str(tmp_path))
    assert recorded_logs() == {}  # not taken for recorded data
    prepared = prepare(["made"], stand_in={"n_cases": 5})
    assert list(prepared.logs) == ["stand-in"]
    assert prepared.record == {"data": "synthetic", "inputs": []}
    path = write(tmp_path / "eventlogs", f"<log>{trace(event())}</log>", "own.xes")
    prepared = prepare(["made", "own"])
    assert prepared.record == {"data": "real", "inputs": [path]}
    assert prepared.sizes.loc["own"].tolist() == [1, 1]


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "cases", "events"),
    [
        ("Sepsis", 1050, 15214),
        ("receipt", 1434, 8577),
        ("roadtraffic100traces", 100, None),
        ("running-example", 6, 42),
        pytest.param("bpic2012", 13087, 262200, marks=pytest.mark.slow),
        pytest.param("bpic2013_incidents", 7554, 65533, marks=pytest.mark.slow),
    ],
)
def test_recorded_logs_have_their_published_counts(recorded, name, cases, events):
    log = read_xes(recorded(name))
    assert log["case:concept:name"].nunique() == cases
    assert events is None or len(log) == events
    assert log.attrs["skipped"] == {}
