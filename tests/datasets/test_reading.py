"""Blocks of lines and the search for malformed ones, against plain line-by-line code."""

import gzip
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tplrepro.datasets.reading import DataFormatError, Defects, attempt, in_time, line_blocks, parse_table, rows_of

TEXT = st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b"")), max_size=30)


@given(TEXT, st.integers(1, 40), st.booleans(), st.booleans())
@settings(max_examples=60)
def test_blocks_join_to_the_file(tmp_path_factory, lines, size, compressed, ended):
    data = b"\n".join(lines) + (b"\n" if ended else b"")
    path = tmp_path_factory.mktemp("blocks") / "lines"
    path.write_bytes(gzip.compress(data) if compressed else data)
    if data.startswith(b"\x1f\x8b") and not compressed:
        return
    blocks = list(line_blocks(path, size))
    assert b"".join(block for block, _ in blocks) == data
    assert all(block.endswith(b"\n") for block, _ in blocks[:-1])
    before = 1
    for block, first_line in blocks:
        assert first_line == before
        before += block.count(b"\n")


GZIP = gzip.compress(b"".join(b"%d\t%d\n" % (i, i * i) for i in range(1000)))
HALF = len(GZIP) // 2


@pytest.mark.parametrize(
    ("data", "message"),
    [(GZIP[:kept], "ends early; download it again") for kept in (20, 200, -9)]
    + [(GZIP[:HALF] + bytes([GZIP[HALF] ^ 0xFF]) + GZIP[HALF + 1 :], "damaged|ends early")],
)
def test_truncated_and_damaged_gzip_names_the_file_and_says_so(tmp_path, data, message):
    path = tmp_path / "cut.txt.gz"
    path.write_bytes(data)
    with pytest.raises(DataFormatError, match=message) as error:
        list(line_blocks(path))
    assert error.value.file == str(path)
    assert error.value.line >= 1


def test_a_line_without_end_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("tplrepro.datasets.reading.LONGEST_LINE_BYTES", 1000)
    path = tmp_path / "binary"
    path.write_bytes(b"\0" * 5000)
    with pytest.raises(DataFormatError, match="a line must not be longer"):
        list(line_blocks(path, 100))


TOKENS = st.sampled_from([b"1", b"23", b"-4", b"x", b"", b"1.5", b"7\t8", b"\xff", b"9999999999999999999999"])


@given(st.lists(TOKENS, min_size=1, max_size=25))
@settings(max_examples=80)
def test_malformed_lines_are_found_as_line_by_line(tokens):
    def accepts(token):
        try:
            return token.isascii() and -(2**63) <= int(token) < 2**63
        except ValueError:
            return False

    # A blank line is no row; the first line is made sound, as a file that fails there is of another format.
    tokens = [b"0", *tokens]
    bad = [i for i, token in enumerate(tokens) if token and not accepts(token)]
    defects = Defects(False, len(tokens), "a number")
    rows = numbers(tokens, defects)
    assert list(rows.rejected) == bad
    assert rows["n"].tolist() == [int(t) for i, t in enumerate(tokens) if t and i not in bad]
    assert rows.block.count(b"\n") == len(tokens)
    assert defects.skipped.get("malformed line", 0) == len(bad)
    if bad:
        assert defects.examples["malformed line"] == f"f, line {bad[0] + 1}"
        with pytest.raises(DataFormatError, match=rf"f, line {bad[0] + 1}: expected a number, found"):
            numbers(tokens, Defects(False, 0, "a number"))


def numbers(tokens, defects):
    block = b"\n".join(tokens) + b"\n"

    def parse(lines):
        return parse_table(lines, {"n": pa.int64()}, "\t")

    return rows_of(block, 1, "f", parse, defects, attempt(parse, block))


def test_dropped_rows_are_placed_at_their_lines():
    defects = Defects(False, 0, "a number")
    rows = numbers([b"5", b"", b"6", b"7", b"6", b"8"], defects)
    rows.drop(rows["n"] == 7, "seven")
    rows.drop(rows["n"] == 6, "six")
    assert rows["n"].tolist() == [5, 8]
    assert defects.skipped == {"seven": 1, "six": 2}
    assert defects.examples == {"seven": "f, line 4", "six": "f, line 3"}
    with pytest.raises(DataFormatError, match="f, line 6: eight, found '8'"):
        numbers([b"5", b"", b"6", b"7", b"6", b"8"], Defects(True, 0, "")).drop(np.arange(5) == 4, "eight")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=30))
def test_rows_in_time_are_the_first_of_each_group_and_time(pairs):
    group, time = np.array(pairs, dtype=int).reshape(-1, 2).T
    defects = Defects(False, 0, "")
    kept = in_time(time, defects, lambda row: (f"f{row}", ""), group)
    first = {pair: pairs.index(pair) for pair in set(pairs)}
    assert kept.tolist() == [first[pair] for pair in sorted(first)]
    again = set(range(len(pairs))) - set(first.values())
    assert defects.skipped.get("duplicate time", 0) == len(again)
    assert set(defects.examples.values()) <= {f"f{row}" for row in again}


def test_negative_max_malformed_is_an_error():
    with pytest.raises(ValueError, match="max_malformed must be at least 0, found -1"):
        Defects(False, -1, "")


def test_importing_the_package_loads_no_pandas():
    code = "import sys, tplrepro.datasets; sys.exit(any(m in sys.modules for m in ('pandas', 'pyarrow', 'pooch')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
