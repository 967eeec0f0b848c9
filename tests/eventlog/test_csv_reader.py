import pandas as pd
import pytest

from tests.eventlog.logs import COLUMNS, write
from tplrepro.eventlog import DataFormatError, read_csv, read_xes, synthetic


@pytest.mark.parametrize(
    "text",
    [
        "case:concept:name,concept:name,time:timestamp,cost\n7,register,2022-08-03T08:00:00Z,3\n",
        "Case ID;Activity;Resource;Complete Timestamp\n7;register;me;2022-08-03 10:00:00+02:00\n",
        "case_id\tactivity\ttimestamp\n7\tregister\t2022-08-03 08:00:00\n",
        '\ufeffCase ID,Activity,Complete Timestamp\n"7","register","2022-08-03 08:00:00"\n',
    ],
)
def test_headers_and_separators_of_process_mining_tools(tmp_path, text):
    log = read_csv(write(tmp_path, text, "log.csv"))
    assert list(log.columns) == COLUMNS
    assert log.iloc[0].tolist() == ["7", "register", pd.Timestamp("2022-08-03T08:00:00", tz="UTC")]


def test_other_names_and_times(tmp_path):
    path = write(tmp_path, "who,what,when\nx,b,02.01.2022\nx,a,01.01.2022\ny,a,03.01.2022\n", "log.csv")
    columns = dict(zip(COLUMNS, ["who", "what", "when"], strict=True))
    log = read_csv(path, columns=columns, time_format="%d.%m.%Y")
    assert log["concept:name"].tolist() == ["a", "b", "a"]
    assert log.attrs["reordered"] == 1
    with pytest.raises(DataFormatError, match="line 3: times must be in order"):
        read_csv(path, columns=columns, time_format="%d.%m.%Y", strict=True)
    for given, wanted in ({}, "case:concept:name"), ({"case:concept:name": "nobody"}, "nobody"):
        with pytest.raises(DataFormatError, match=f"expected one column '{wanted}', found who, what, when; name it by"):
            read_csv(path, columns=given)


def test_broken_rows_are_skipped_and_counted(tmp_path):
    rows = "1,a,2022-01-01\n,a,2022-01-01\n1,,2022-01-01\n1,a,\n1,a,soon\n"
    path = write(tmp_path, "case,activity,timestamp\n" + rows, "log.csv")
    log = read_csv(path)
    assert len(log) == 1
    reasons = [*(f"row without {name}" for name in COLUMNS), "row with an unreadable time:timestamp"]
    assert log.attrs["skipped"] == dict.fromkeys(reasons, 1)
    assert log.attrs["skipped_examples"][reasons[2]].endswith("log.csv, line 5")
    with pytest.raises(
        DataFormatError,
        match="line 3: row without case:concept:name, found \"case '', activity 'a', time '2022-01-01 00:00",
    ):
        read_csv(path, strict=True)


def test_agrees_with_the_xes_reader(tmp_path):
    log = synthetic(30, seed=6, path=tmp_path / "log.xes")
    log.to_csv(tmp_path / "log.csv.gz", index=False)
    pd.testing.assert_frame_equal(read_csv(tmp_path / "log.csv.gz"), read_xes(tmp_path / "log.xes"))
