"""Small tables as people brought them: what is read, what is refused with which remedy, and what is
warned of."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from tests.tplreport.reading.test_observations import listed
from tplreport import read_sequences, read_table, report, to_sequences, to_states
from tplreport.command import main

EVENT = (
    '<event><string key="concept:name" value="{}"/>'
    '<date key="time:timestamp" value="2024-01-01T1{}:00:00Z"/>{}</event>'
)
PHASE = '<string key="lifecycle:transition" value="{}"/>'
STAY = EVENT.format("A", 1, PHASE.format("start")) + EVENT.format("A", 2, PHASE.format("complete"))
LOG = "<log><trace><string key='concept:name' value='c1'/>{}</trace></log>"
R = '"","id","time","state"\n"1",1,1,"a"\n"2",1,2,{}\n"3",1,3,"b"\n'
DAYS = "user,date,place\n1,20240131,a\n1,20240201,b\n1,20240202,c\n"
EVERY = "user,time,place\n" + "".join(
    f"u,2024-01-01 0{k // 60}:{k % 60:02},{'abc'[k % 3]}\n" for k in range(180)
)
STARTED = "user,started_at,place\nu,2024-02-13,b\nu,2024-01-26,c\nv,2024-01-01,b\n"
DISCO = (
    "Case ID,Activity,Complete Timestamp,Variant\n"
    "1,a,2024/01/01 10:00:00.000,v\n1,b,2024/01/01 09:00:00.000,v\n"
)
STAYS = (
    "user_id;started_at;finished_at;location_id\n"
    "0;2024-03-31T00:00:00+01:00;2024-03-31T01:30:00+01:00;4\n"
)
NOON = "user,day,hour,place\n1,2022-02-14,{},a\n1,2022-02-14,1:05:00 AM,b\n"
JSON = (
    '{"user":"a","time":"2024-01-01","place":"caf\xe9"}\n'
    '{"user":"a","time":"2024-01-02","place":"x"}\n'
)
TIMES = "user,time,place\n1,{},a\n1,{},b\n"
CHECK_INS = TIMES.format("Tue Apr 10 11:51:20 +0000 2012", "Mon Apr 09 11:51:20 +0000 2012")
WORDS = "user,time,place\n" + "".join(
    f"u,{k},{name}\n" for k, name in enumerate(["x", "NULL", "y", "None", "nan", "z"])
)
BIG = WORDS.replace("NULL", "9007199254740993").replace("None", "2.0")

LATE = "".join(
    f'{{"user": "u", "time": {k}, "state": {"2.0" if k < 1000 else 2**53 + 1}}}\n'
    for k in range(1001)
)

#: The file, the arguments, its sequences or the error, and the warning.
CASES = {
    "times of another name": (
        STARTED,
        {},
        "none among .*'started_at' holds times: name .* time=, or .* order='rows'",
    ),
    "times by name": (STARTED, {"time": "started_at"}, [("u", ["c", "b"]), ("v", ["b"])]),
    "rows in order": (STARTED, {"order": "rows"}, [("u", ["b", "c"]), ("v", ["b"])]),
    "order and time": (
        STARTED,
        {"order": "rows", "time": "started_at"},
        "without time, found time='started_at'",
    ),
    "Disco": (DISCO, {}, [(1, ["b", "a"])]),
    "two columns of times": (
        STAYS,
        {"state": "location_id"},
        "'started_at' and 'finished_at' hold times",
    ),
    "state and time unnamed": (
        STAYS,
        {},
        "one column of state, .*'started_at' and 'finished_at' hold times",
    ),
    "NA of R": (
        R.format("NA"),
        {},
        [(1, ["a"]), (1, ["b"])],
        "1 row .* with state 'NA', which stands for a missing",
    ),
    "NA kept": (R.format("NA"), {"missing": "-"}, [(1, ["a", "NA", "b"])]),
    "null in all spellings": (
        WORDS,
        {},
        [("u", ["x"]), ("u", ["y"]), ("u", ["z"])],
        "'NULL'.*|'None'.*|'nan'",
    ),
    "nameless user": (
        WORDS.replace("u,3", "nan,3"),
        {"missing": "nan"},
        "user must .*, found 'nan' in line 5",
    ),
    "steps that drop": (
        EVERY,
        {"step": "1h"},
        [("u", ["a", "a", "a", "c"])],
        "176 of 180 rows .* not count, between .* loses the states 'b'",
    ),
    "dates as numbers": (
        DAYS,
        {"step": "1D"},
        r"found 20240131 in line 2 of .*, a date; .*='%Y%m%d'$",
    ),
    "dates in their format": (
        DAYS,
        {"step": "1D", "time_format": "%Y%m%d"},
        [(1, ["a", "b", "c"])],
    ),
    "days as numbers": (
        TIMES.format(3, 80),
        {"step": "1D"},
        "3 in line 2 .* within one step; give time_unit='D'",
    ),
    "hours as parts of a day": (
        TIMES.format(3.25, 3.75),
        {"step": "1h"},
        "none further than 0.5 from another, within one step; give time_unit='D'",
    ),
    "days": (TIMES.format(3, 4), {"step": "1D", "time_unit": "D"}, [(1, ["a", "b"])]),
    "serials": (
        TIMES.format(45292.5, 45293),
        {"step": "12h", "time_unit": "excel"},
        [(1, ["a", "b"])],
    ),
    "dates in no order": (
        TIMES.format("01022024", "02012024"),
        {},
        "='%d%m%Y' or '%m%d%Y', for each",
    ),
    "month first": (
        TIMES.format("09/13/2019", "09/14/2019"),
        {},
        "give such as time_format='%m/%d/%Y'$",
    ),
    "either first": (
        TIMES.format("01/02/2019", "03/02/2019"),
        {},
        "='%d/%m/%Y' or '%m/%d/%Y', for each of which",
    ),
    "noon": (
        NOON.format("12:10:00 AM"),
        {"time": "day+hour"},
        "time_format='%Y-%m-%d %I:%M:%S %p'$",
    ),
    "dots": (TIMES.format("30-12-2010:11.02", "30-12-2010:11.03"), {}, "='%d-%m-%Y:%H.%M'$"),
    "no advice": (
        TIMES.format("0 days 01:00:00", "1"),
        {},
        "line 2 of .*; write all of them in one way$",
    ),
    "check-ins": (CHECK_INS, {}, "give such as time_format='%a %b %d %H:%M:%S %z %Y'$"),
    "check-ins, read": (CHECK_INS, {"time_format": "%a %b %d %H:%M:%S %z %Y"}, [(1, ["b", "a"])]),
    "equal rows": (
        R.format('"b"').replace("1,3", "1,2"),
        {},
        [(1, ["a", "b"])],
        "1 row repeats a user, a time and",
    ),
    "autumn": (
        TIMES.format(*["2024-10-27 02:30"] * 2),
        {},
        "if clocks went back .* offset from UTC",
    ),
    "JSON in Latin-1": (
        JSON.encode("latin-1"),
        {},
        "line 1: .*not UTF-8: convert .* iconv -f LATIN1",
    ),
    "JSON array": (
        '[{"user": 1, "place": "a"}]',
        {},
        "line 1: .*found a JSON array; write one object a line",
    ),
    "dates as floats": (
        DAYS.replace(",a", ".0,a").replace(",b", ".0,b").replace(",c", ".0,c"),
        {"step": "1D", "time_format": "%Y%m%d.0"},
        [(1, ["a", "b", "c"])],
    ),
    "GeoJSON": (
        '{"type": "FeatureCollection", "features": [1]}',
        {},
        "lists or records in it: write one object",
    ),
    "JSON of lists": (
        '{"locations": [{"user": 1}]}',
        {},
        "lists or records in it: write one object a line",
    ),
    "JSON, line": (JSON.replace("2024-01-02", "soon"), {}, "found 'soon' in line 2 of"),
    "NUL": (
        TIMES.format(1, 2).replace("1,1,a", "1,1,a\0"),
        {},
        r"found 'a\\x00' in line 2 of .*NUL",
    ),
    "large": (BIG, {}, [("u", ["x", "9007199254740993", "y", "2"]), ("u", ["z"])], "'nan'"),
    "large, late": (LATE, {}, [("u", [2] * 1000 + [9007199254740993])]),
    "long name": (
        f"user,time,state,{'x' * 200_000}\n1,1,a,b\n",
        {},
        "line 1: .* short names, found another file",
    ),
    "XML": (
        LOG.format(EVENT.format("B", 2, "") + EVENT.format("A", 1, "")),
        {},
        [("c1", ["A", "B"])],
    ),
    "ties": (
        LOG.format(EVENT.format("B", 1, "") + EVENT.format("A", 1, "")),
        {},
        [("c1", ["B", "A"])],
    ),
    "phases": (LOG.format(STAY), {}, [("c1", ["A", "A"])], r"several phases \(complete, start\)"),
}


@pytest.mark.parametrize("name", CASES)
def test_small_files_are_read_correctly_or_refused_with_a_remedy(tmp_path, name):
    content, options, expected, *warning = CASES[name]
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if isinstance(expected, str):
            with pytest.raises(ValueError, match=expected):
                read_sequences(path, **options)
        else:
            assert listed(read_sequences(path, **options)) == expected
    texts = [str(one.message) for one in said]
    assert bool(texts) == bool(warning)
    assert all(re.search(warning[0], text) for text in texts)


def test_a_row_that_holds_a_list_is_refused_in_every_format(tmp_path):
    frame = pd.DataFrame({"user": ["a"], "time": [1], "state": [["x", "y"]]})
    frame.to_parquet(tmp_path / "list.parquet")
    frame.to_json(tmp_path / "list.jsonl", orient="records", lines=True)
    for data in (frame, tmp_path / "list.parquet", tmp_path / "list.jsonl"):
        with pytest.raises(
            ValueError,
            match="state must be one text or number a row, found .*; write a row for each",
        ):
            read_sequences(data)


def test_a_declared_category_that_never_occurs_is_a_state(tmp_path):
    states = pd.Categorical(["home", "bar", "home"], ["bar", "home", "sea"])
    frame = pd.DataFrame({"user": 1, "time": [1, 2, 3], "state": states})
    frame.to_parquet(tmp_path / "visits.parquet")
    for data in (frame, tmp_path / "visits.parquet"):
        assert read_sequences(data).labels.tolist() == ["bar", "home", "sea"]


def test_read_sequences_equals_its_three_steps_and_says_what_was_read():
    frame = pd.DataFrame(
        {"who": 1, "day": ["2024-01-02", "2024-01-01", "2024-01-03"], "x": [1.5, 2.0, None]}
    )
    table = read_table(frame, user="who", time="day", state="x")
    found = to_sequences(to_states(table, bins=2), step="1D")
    assert listed(found) == listed(
        read_sequences(frame, user="who", time="day", state="x", bins=2, step="1D")
    )
    assert found.reading.lines == (
        "Read: user from 'who', time from 'day', state from 'x'",
        "Times: time stamps, from 2024-01-01 00:00:00 to 2024-01-03 00:00:00; hours and weekdays "
        "as written, without a zone",
        "Rows: 2 of 3 count; not 1: without a state, which ends a sequence",
        "first row: user 1, time 2024-01-02 00:00:00, state 1.5; "
        "last row: user 1, time 2024-01-03 00:00:00, state None",
    )
    unnamed = to_sequences(
        to_states(
            read_table(frame.rename(columns={"who": "n"}), order="rows", state="day", user="none")
        )
    )
    assert "no column of users: all rows are one user's" in unnamed.reading.lines[0]


def test_a_report_on_a_file_asks_for_its_times_and_begins_with_what_was_read(tmp_path, capsys):
    """Rows in no order, of a chain that mostly goes round: what is read in their order would look
    like no chain."""
    rng = np.random.default_rng(3)
    rows = [
        (u, day, "abc"[k % 3])
        for u in range(20)
        for day, k in enumerate(np.cumsum(rng.random(40) < 0.9))
    ]
    frame = pd.DataFrame(rows, columns=["user", "started_at", "place"]).sample(
        frac=1, random_state=1
    )
    frame["started_at"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["started_at"], "D")
    frame.to_csv(tmp_path / "shuffled.csv", index=False)
    words = [
        "report",
        str(tmp_path / "shuffled.csv"),
        "--alpha",
        "1",
        "--horizon",
        "5",
        "--draws",
        "0",
    ]
    assert main(words) == 2
    assert "'started_at' holds times" in capsys.readouterr().err
    assert main([*words, "--time", "started_at"]) == 0
    by_time = capsys.readouterr().out
    assert main([*words, "--order", "rows"]) == 0
    by_row = capsys.readouterr().out
    assert by_time.startswith(
        "shuffled.csv\nRead: user from 'user', time from 'started_at', state from 'place'\n"
    )
    assert by_row.startswith(
        "shuffled.csv\nRead: user from 'user', state from 'place'\n"
        "Times: rows in the order of the file"
    )


def test_a_single_user_is_not_checked_for_differences_and_rare_states_are_doubtful():
    rng = np.random.default_rng(2)
    often, rarely = rng.integers(0, 4, 4000), np.arange(4, 14).repeat(3)
    single = report([rng.permutation([*often, *rarely]).tolist()], 1.0, 5, draws=0)
    verdicts = {check.name: check.verdict for check in single.checks}
    assert verdicts["differences between users"] == "not checked"
    assert verdicts["steps a state"] == "doubtful"  # though a state is left 288 times on average
    assert (
        "The median state is left 3 times; 71% of the states, "
        "in which users spend 0.7% of their time" in str(single)
    )
    of_often = report([often.tolist()], 1.0, 5, draws=0)
    verdicts = {check.name: check.verdict for check in of_often.checks}
    assert verdicts["steps a state"] == "fine"
