"""The XES reader: what it reads, what it counts, what it refuses."""

import gzip
import resource
import subprocess
import sys

import pandas as pd
import pytest

from tests.eventlog.logs import COLUMNS, event, named, recorded, trace, write
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
    <global scope="event">{named("UNKNOWN")}<date key="time:timestamp" value="1970-01-01T00:00:00.000+01:00"/></global>
    <classifier name="Activity" keys="concept:name lifecycle:transition"/>
    <float key="meta" value="1.0">{named("not a case")}</float>
    {trace(event("a", more='<string key="lifecycle:transition" value="COMPLETE"/>'))}</log>"""
DISCO = f"""\ufeff<log openxes.version="1.0RC7"><trace><string key="variant" value="V 1"/>
    {named("A &amp; B")}{event("x &lt; y")}</trace></log>"""
NESTED = f"""<string key="data" value="v">{named("inner")}<date key="time:timestamp" value="1999-01-01T00:00:00Z"/>
    </string><list key="items"><values>{named("inner")}</values></list>"""
LATE = f"<log><trace>{event() * 3}{named('late')}</trace></log>"


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
    unnamed, named = trace(event(), name=None), f"{trace(name='empty')}{trace(event('a'))}{trace(event('b'))}"
    log = read_xes(write(tmp_path, f"<log>{unnamed}{named}</log>"))
    assert log["case:concept:name"].tolist() == ["trace 1", "1", "1"]
    assert [log.attrs[name] for name in ("unnamed_cases", "empty_cases", "repeated_cases")] == [1, 1, 1]
    log = read_xes(write(tmp_path, f"<log>{unnamed}{trace(event(), name='trace 1')}</log>"))
    assert log["case:concept:name"].tolist() == ["trace 1'", "trace 1"]  # not one case


ENTITIES = [f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, 10)]
FILE = 'SYSTEM "file:///etc/hostname"'
HEADS = [
    f'[<!ENTITY a0 "ha">{"".join(ENTITIES)}]',  # a billion laughs
    f"[<!ENTITY a9 {FILE}>]",
    f"[<!ENTITY % p {FILE}> %p;]",
    'SYSTEM "http://localhost:9/log.dtd"',
]


@pytest.mark.parametrize("head", HEADS)
def test_entities_are_refused_at_once(tmp_path, head):
    path = write(tmp_path, f"<!DOCTYPE log {head}><log>{trace(event('&a9;'))}</log>")
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


#: In a process of its own, whose peak is that of the reader.
MEASURE = """import resource, sys
from tplrepro.eventlog import read_xes
print(len(read_xes(sys.argv[1])), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)"""
MANY = pytest.param(lambda path: write_synthetic(path, 70_000, seed=1), 1_000_000, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("make", "fewest"),
    [
        (lambda path: write_synthetic(path, 4_000, seed=1), 50_000),
        (lambda path: write(path.parent, f"<log>{trace(event() * 200_000, name=None)}</log>", path.name), 200_000),
        MANY,
    ],
)
def test_a_log_is_read_in_bounded_memory(tmp_path, make, fewest):
    """As Python objects, events would take several hundred bytes each; the frame takes 100."""
    found = []
    for name, made in (("few.xes", lambda path: write_synthetic(path, 100, seed=1)), ("many.xes", make)):
        made(tmp_path / name)
        command = [sys.executable, "-c", MEASURE, str(tmp_path / name)]
        found.append([int(number) for number in subprocess.check_output(command, text=True).split()])
    (_, before), (events, peak) = found
    assert events >= fewest
    assert peak - before < 15 + events * 210 / 2**20  # MiB


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


RECORDED = [
    ("Sepsis", 1050, 15214),
    ("receipt", 1434, 8577),
    ("roadtraffic100traces", 100, 390),
    ("running-example", 6, 42),
]
LARGE = [("bpic2012", 13087, 262200), ("bpic2013_incidents", 7554, 65533)]


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "cases", "events"), [*RECORDED, *(pytest.param(*large, marks=pytest.mark.slow) for large in LARGE)]
)
def test_recorded_logs_have_their_published_counts(name, cases, events):
    log = read_xes(recorded(name))
    assert (log["case:concept:name"].nunique(), len(log), log.attrs["skipped"]) == (cases, events, {})
