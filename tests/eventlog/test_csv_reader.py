import gzip
import lzma

import pandas as pd
import pytest

from tests.eventlog.logs import COLUMNS, event, trace, write
from tplrepro.eventlog import DataFormatError, read_csv, read_xes, synthetic

HEAD = "case,activity,timestamp\n"


@pytest.mark.parametrize(
    "text",
    [
        "case:concept:name,concept:name,time:timestamp,cost\n7,register,2022-08-03T08:00:00Z,3\n",
        "Case ID;Activity;Resource;Complete Timestamp\n7;register;me;2022/08/03 10:00:00 +02:00\n",
        "case_id\tactivity\ttimestamp\n7\tregister\t2022-08-03 08:00:00\n",
        '\ufeffCase ID,Activity,Complete Timestamp\n\n"7","register","2022-08-03 08:00:00"\r\n',
    ],
)
def test_headers_and_separators_of_process_mining_tools(tmp_path, text):
    log = read_csv(write(tmp_path, text, "log.csv"))
    assert list(log.columns) == COLUMNS
    assert log.iloc[0].tolist() == ["7", "register", pd.Timestamp("2022-08-03T08:00:00", tz="UTC")]


def test_other_names_and_times(tmp_path):
    path = write(tmp_path, "who|what|when\nx|b|02.01.2022\nx|a|01.01.2022\ny|a|03.01.2022\ny|b|now\n", "log.csv")
    options = {"columns": dict(zip(COLUMNS, ["who", "what", "when"], strict=True)), "separator": "|"}
    log = read_csv(path, **options, time_format="%d.%m.%Y")
    assert log["concept:name"].tolist() == ["a", "b", "a"]
    assert (log.attrs["reordered"], *log.attrs["skipped"].values()) == (1, 1)
    with pytest.raises(DataFormatError, match="line 5: row with an unreadable time.*'now'"):
        read_csv(path, **options, time_format="%d.%m.%Y", strict=True)
    for given, wanted in ({}, "case:concept:name"), ({"case:concept:name": "nobody"}, "nobody"):
        with pytest.raises(DataFormatError, match=f"expected one column '{wanted}', found who, what, when; name it by"):
            read_csv(path, columns=given, separator="|")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": "||"}, "separator must be one character, found '||'; replace it in .*log.csv"),
        ({"columns": {"case": "who"}}, "columns must be one of 'case:concept:name', .*, found 'case'"),
        ({"time_format": "mixed"}, "time_format must be 'ISO8601' or made of directives such as %Y, found 'mixed'"),
    ],
)
def test_options_of_a_table(tmp_path, options, message):
    with pytest.raises(ValueError, match=message.replace("|", "[|]")):
        read_csv(write(tmp_path, HEAD + "1,a,2022-01-01\n", "log.csv"), **options)


def test_broken_rows_are_skipped_and_counted(tmp_path):
    path = write(tmp_path, HEAD + "1,a,2022-01-01\n,a,2022-01-01\n1,,2022-01-01\n1,a,\n1,a,soon\n", "log.csv")
    log = read_csv(path)
    assert len(log) == 1
    reasons = [*(f"row without {name}" for name in COLUMNS), "row with an unreadable time:timestamp"]
    assert log.attrs["skipped"] == dict.fromkeys(reasons, 1)
    assert log.attrs["skipped_examples"][reasons[2]].endswith("log.csv, line 5")
    with pytest.raises(DataFormatError, match="line 3: row without case:concept:name, found \"case '', activity 'a'"):
        read_csv(path, strict=True)


NO_TIMES = ["today", "now", "-1-01-01", "2022", "2022-08", "2022-08-1", "2022-08-03T1", "2022-08-03 10:0", "10:00"]


@pytest.mark.parametrize("time", [*NO_TIMES, "2022-08-03 10:00:00+2", "2022-02-30", "0001-01-01", "9999-12-31"])
def test_what_is_no_whole_time_is_counted_by_both_readers(tmp_path, time):
    by_xes = read_xes(write(tmp_path, f"<log>{trace(event(), event(time=time))}</log>"))
    by_csv = read_csv(write(tmp_path, f"{HEAD}1,a,2022-01-01\n1,a,{time}\n", "log.csv"))
    pd.testing.assert_frame_equal(by_xes, by_csv)
    for log, unit in ((by_xes, "event"), (by_csv, "row")):
        assert log.attrs["skipped"] == {f"{unit} with an unreadable time:timestamp": 1}


def test_a_file_that_was_cut(tmp_path):
    path = write(tmp_path, HEAD + "1,a,2022-08-03\n1,b,2022-08-03 10:00", "log.csv")  # the time was 10:00:59
    with pytest.warns(UserWarning, match="log.csv, line 3: the last line has no end, so the file may have been cut"):
        assert len(read_csv(path)) == 2
    with pytest.raises(DataFormatError, match="line 3: the last line has no end"):
        read_csv(path, strict=True)


@pytest.mark.parametrize("name", ["log.csv", "log.xes.gz", "log.zip", "log.xz", "log.zst"])
@pytest.mark.parametrize(
    ("read", "text", "found"),
    [
        (read_csv, HEAD + "1,a,2022-01-01\n" * 1000, "line 1: .*(damaged|UTF-8, found .*unpack)"),
        (read_xes, f"<log>{trace(event() * 1000)}</log>", "(damaged|expected an XES event log, found )"),
    ],
)
def test_compression_is_told_by_the_content(tmp_path, name, read, text, found):
    plain, packed, path = text.encode(), gzip.compress(text.encode()), tmp_path / name
    for data in (plain, packed):
        path.write_bytes(data)
        assert len(read(path)) == 1000
    for data in (packed[:-20], packed[:40] + b"\xff\xff" + packed[42:], lzma.compress(plain), b"PK\3\4\xff" + plain):
        path.write_bytes(data)
        with pytest.raises(DataFormatError, match=f"{name}.*{found}"):
            read(path)


def test_agrees_with_the_xes_reader(tmp_path):
    log = synthetic(30, seed=6, path=tmp_path / "log.xes")
    log.to_csv(tmp_path / "log.csv.gz", index=False)
    pd.testing.assert_frame_equal(read_csv(tmp_path / "log.csv.gz"), read_xes(tmp_path / "log.xes"))
