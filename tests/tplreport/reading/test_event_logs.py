"""The readers of XES and CSV: what they read, what they count, what they refuse."""

import gzip
import resource
import subprocess
import sys

import pandas as pd
import pytest

from experiments.datasets.event_logs import (
    prepare_logs,
    recorded_logs,
    synthetic_log,
    write_synthetic,
)
from tests.tplrepro.eventlog.logs import COLUMNS, event, named, recorded, trace, write
from tplreport import DataFormatError, read_log_csv, read_xes
from tplrepro.eventlog import TransitionSystem
from workflow.configuration import ROOT

HEAD = "case,activity,timestamp\n"
# as writers put them
TIMES = ("08:00:00.123Z", "08:00:00.123", "10:00:00.123000+02:00", "09:00:00.123+0100")


@pytest.mark.parametrize(
    "time", [*(f"2022-08-03T{time}" for time in TIMES), "2022-08-03 08:00:00.123"]
)
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
    <global scope="event">{named("UNKNOWN")}
    <date key="time:timestamp" value="1970-01-01T00:00:00.000+01:00"/></global>
    <classifier name="Activity" keys="concept:name lifecycle:transition"/>
    <float key="meta" value="1.0">{named("not a case")}</float>
    {trace(event("a", more='<string key="lifecycle:transition" value="COMPLETE"/>'))}</log>"""
DISCO = f"""\ufeff<log openxes.version="1.0RC7"><trace><string key="variant" value="V 1"/>
    {named("A &amp; B")}{event("x &lt; y")}</trace></log>"""
NESTED = f"""<string key="data" value="v">{named("inner")}
    <date key="time:timestamp" value="1999-01-01T00:00:00Z"/>
    </string><list key="items"><values>{named("inner")}</values></list>"""
LATE = f"<log><trace>{event() * 3}{named('late')}</trace></log>"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        pytest.param(PROM, [["1", "a"]], id="ProM: namespace, globals, nested log attributes"),
        pytest.param(
            DISCO, [["A & B", "x < y"]], id="Disco: byte order mark, entities of XML, name second"
        ),
        pytest.param(
            f"<log>{trace(event('outer', more=NESTED))}</log>",
            [["1", "outer"]],
            id="nested attributes",
        ),
        pytest.param(LATE, [["late", "a"]] * 3, id="name of the trace after its events"),
    ],
)
def test_names_are_read_from_the_logs_of_different_writers(tmp_path, text, rows):
    log = read_xes(write(tmp_path, text))
    assert log[COLUMNS[:2]].values.tolist() == rows
    assert set(log["time:timestamp"].dt.year) == {2022}


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_unordered_events_are_sorted_and_counted(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr("tplreport.reading.event_logs.EVENTS_AT_ONCE", at_once)
    days = [
        event(name, f"2022-01-{day:02d}")
        for name, day in zip("dcbea", (4, 3, 2, 4, 1), strict=True)
    ]
    log = read_xes(write(tmp_path, f"<log>{trace(*days)}</log>"))
    assert "".join(log["concept:name"]) == "abcde"  # equal times keep their order
    assert log.attrs["reordered"] == 3


@pytest.mark.parametrize(
    ("bad", "row", "reason"),
    [
        (event(None), "1,,2022-01-01", "without concept:name"),
        (event(time=None), "1,a,", "without time:timestamp"),
        (event(time="soon"), "1,a,soon", "with an unreadable time:timestamp"),
        (None, ",a,2022-01-01", "without case:concept:name"),
    ],
)
def test_broken_events_are_skipped_counted_and_placed(tmp_path, bad, row, reason):
    good = "1,a,2022-01-01"
    kinds = [(read_log_csv, "row", "\n".join([HEAD.strip(), good, row, row, good, ""]))]
    if bad is not None:
        kinds.append((read_xes, "event", f"<log>{trace(event(), bad, bad, event())}</log>"))
    for read, unit, text in kinds:
        path = write(tmp_path, text)
        log = read(path)
        assert len(log) == 2
        with pytest.warns(
            UserWarning,
            match=f"read without 2 times {unit} {reason}: its traces count as if nothing",
        ):
            TransitionSystem.from_log(log)
        assert log.attrs["skipped"] == {f"{unit} {reason}": 2}
        assert log.attrs["skipped_examples"][f"{unit} {reason}"].endswith("log.xes, line 3")


def test_unnamed_cases_are_numbered_and_cases_of_one_name_joined(tmp_path):
    unnamed, others = (
        trace(event(), name=None),
        f"{trace(name='empty')}{trace(event('a'))}{trace(event('b'))}",
    )
    log = read_xes(write(tmp_path, f"<log>{unnamed}{others}</log>"))
    assert log["case:concept:name"].tolist() == ["trace 1", "1", "1"]
    log = read_xes(write(tmp_path, f"<log>{unnamed}{trace(event(), name='trace 1')}</log>"))
    assert log["case:concept:name"].tolist() == ["trace 1'", "trace 1"]  # not one case


@pytest.mark.parametrize(
    "text",
    [
        "case:concept:name,concept:name,time:timestamp,cost\n7,register,2022-08-03T08:00:00Z,3\n",
        "Case ID;Activity;Resource;Complete Timestamp\n7;register;me;2022/08/03 10:00:00 +02:00\n",
        "case-name;Activity_Name;end_timestamp\n7;register;2022-08-03 08:00:00\n",
        "case_id\tactivity\ttimestamp\n7\tregister\t2022-08-03 08:00:00\n",
        "\ufeffCase ID,Activity,Complete Timestamp,Variant\n\n"
        '"7","register","2022-08-03 08:00:00",v\r\n',
    ],
)
def test_csv_logs_of_process_mining_tools_are_read(tmp_path, text):
    log = read_log_csv(write(tmp_path, text, "log.csv"))
    assert list(log.columns) == COLUMNS
    assert log.iloc[0].tolist() == ["7", "register", pd.Timestamp("2022-08-03T08:00:00", tz="UTC")]


NO_TIMES = [
    "today",
    "now",
    "-1-01-01",
    "2022",
    "2022-08",
    "2022-08-1",
    "2022-08-03T1",
    "2022-08-03 10:0",
    "10:00",
]


@pytest.mark.parametrize(
    "time", [*NO_TIMES, "2022-08-03 10:00:00+2", "2022-02-30", "0001-01-01", "9999-12-31"]
)
def test_both_readers_count_an_incomplete_time_as_unreadable(tmp_path, time):
    by_xes = read_xes(write(tmp_path, f"<log>{trace(event(), event(time=time))}</log>"))
    by_csv = read_log_csv(write(tmp_path, f"{HEAD}1,a,2022-01-01\n1,a,{time}\n", "log.csv"))
    pd.testing.assert_frame_equal(by_xes, by_csv)
    for log, unit in ((by_xes, "event"), (by_csv, "row")):
        assert log.attrs["skipped"] == {f"{unit} with an unreadable time:timestamp": 1}


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_log_csv, HEAD, "an activity and a readable time .no rows.; check the file"),
        (read_log_csv, f"{HEAD}1,a,soon\n", "1 times row with an unreadable time:timestamp"),
        (
            read_log_csv,
            f"{HEAD}1{',a' * 10_000},2022-01-01\n",
            "line 2: expected as many fields as in line 1, .*; mend",
        ),
        (
            read_log_csv,
            f'{HEAD}7",a,2022-01-01\n',
            "line 2: .*any with a quote in quotes, .*found '7\",a,2022-01-01'",
        ),
        (
            read_log_csv,
            "case,Case,activity,time\n1,2,a,2022-01-01\n",
            "column of user, found 'case', 'Case'",
        ),
        (
            read_log_csv,
            "who,activity,time\n1,a,2022-01-01\n",
            "name it by a header such as case,activity,timestamp",
        ),
        (
            read_xes,
            '<?xml version="1.0" encoding="bogus"?><log/>',
            "line 1: .*unknown encoding: bogus",
        ),
        (
            read_xes,
            '<?xml version="1.0" encoding="gb2312"?><log/>',
            "multi-byte encodings are not supported",
        ),
        (read_xes, f"<log>{trace(trace())}</log>", "found <trace> in <trace>"),
        (
            read_xes,
            f"<log>{event()}</log>",
            "line 1: expected an XES event log, .*found <event> in <log>",
        ),
        (
            read_xes,
            f"<log>{trace(event(more=named('b')))}</log>",
            "<event> must have one concept:name, found two",
        ),
        (read_xes, "<log/>", "no events.; check that the export of the traces took"),
        (
            read_xes,
            f"<log>{trace(event(time=None) * 2)}</log>",
            "2 times event without time:timestamp",
        ),
        (read_xes, "<html><body/></html>", "outermost element <log>, found <html>"),
        (
            read_xes,
            "case,activity,time\n1,a,2022",
            "expected an XES event log, found a comma-separated file",
        ),
        (read_xes, f"<log>{trace(event())}", "the file ends early"),
        (read_xes, f"<log>{trace(event())}</trace></log>", "found XML with mismatched tag"),
        (read_xes, "<log>&unknown;</log>", "found XML with undefined entity"),
        (read_xes, "<log>" + "<list>" * 10_001, "nested more than 10000 deep"),
    ],
)
def test_a_file_that_is_no_log_is_refused_by_an_error_that_names_it(tmp_path, read, text, message):
    path = write(tmp_path, text)
    with pytest.raises(DataFormatError, match=f"{path}.*{message}"):
        read(path)


LAUGHS = "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, 10))
FILE = 'SYSTEM "file:///etc/hostname"'
HEADS = (
    f"[<!ENTITY a9 {FILE}>]",
    f"[<!ENTITY % p {FILE}> %p;]",
    'SYSTEM "http://localhost:9/log.dtd"',
)


@pytest.mark.parametrize("head", [f'[<!ENTITY a0 "ha">{LAUGHS}]', *HEADS])
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
MEASURE = """import sys
from tests.fuzzing import peak
from tplreport import read_xes
print(len(read_xes(sys.argv[1])), peak() >> 10)"""


@pytest.mark.parametrize(
    ("make", "fewest"),
    [
        (
            lambda path: write(
                path.parent, f"<log>{trace(event() * 200_000, name=None)}</log>", path.name
            ),
            200_000,
        ),
        pytest.param(
            lambda path: write_synthetic(path, 70_000, seed=1), 1_000_000, marks=pytest.mark.slow
        ),
    ],
)
def test_a_log_is_read_in_bounded_memory(tmp_path, make, fewest):
    """As Python objects, events would take several hundred bytes each; the frame takes 100."""
    found = []
    for name, made in (
        ("few.xes", lambda path: write_synthetic(path, 100, seed=1)),
        ("many.xes", make),
    ):
        made(tmp_path / name)
        command = [sys.executable, "-c", MEASURE, str(tmp_path / name)]
        found.append(
            [
                int(number)
                for number in subprocess.check_output(command, text=True, cwd=ROOT).split()
            ]
        )
    (_, before), (events, peak) = found
    assert events >= fewest
    assert peak - before < 13 + events * 250 / 2**20  # MiB


def test_synthetic_logs_are_marked_and_repeat(tmp_path, monkeypatch):
    log = synthetic_log(50, seed=4, path=tmp_path / "eventlogs" / "made.xes")
    assert (log.attrs["synthetic"], log.attrs["generator"]["seed"]) == (True, 4)
    pd.testing.assert_frame_equal(log, synthetic_log(50, seed=4), check_like=False)
    monkeypatch.setenv("TPLREPRO_DATA", str(tmp_path))
    assert recorded_logs() == {}  # not taken for recorded data
    path = write(tmp_path / "eventlogs", f"<log>{trace(event())}</log>", "own.xes")
    prepared = prepare_logs(["made", "own"])
    assert prepared.record == {"data": "real", "inputs": [path]}
    assert prepared.sizes.loc["own"].tolist() == [1, 1]


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "cases", "events"),
    [
        ("Sepsis", 1050, 15214),
        ("receipt", 1434, 8577),
        ("running-example", 6, 42),
        ("bpic2013_incidents", 7554, 65533),
    ],
)
def test_recorded_logs_have_their_published_counts(name, cases, events):
    log = read_xes(recorded(name))
    assert (log["case:concept:name"].nunique(), len(log), log.attrs["skipped"]) == (
        cases,
        events,
        {},
    )


def test_only_lifecycles_are_phases(tmp_path):
    start, end = (f'<string key="lifecycle:transition" value="{word}"/>' for word in "sc")
    other = '<string key="org:resource" value="Ada"/>'
    path = tmp_path / "log.xes"
    path.write_text(f"<log>{trace(event('a', more=start + other) + event('a', more=end))}</log>")
    assert read_xes(path).attrs["phases"] == ["c", "s"]
