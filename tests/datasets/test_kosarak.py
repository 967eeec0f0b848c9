"""The session reader against a plain reader, on stand-ins, on broken files, and on recorded ones."""

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tplrepro.datasets import kosarak
from tplrepro.datasets.reading import DataFormatError


def plain_reader(data):
    return [[int(page) for page in line.split()] for line in data.decode().splitlines()]


def file_of(tmp_path, data, name="kosarak.dat"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def sessions_of(frame):
    return {s: pages.tolist() for s, pages in frame.groupby("session")["page"]}


@pytest.mark.parametrize("name", ["a.dat", "a.dat.gz"])
def test_stand_in_reads_as_by_a_plain_reader(tmp_path, name):
    path = tmp_path / name
    frame = kosarak.synthetic(500, seed=2, path=path)
    data = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    expected = plain_reader(data)
    assert sessions_of(frame) == dict(enumerate(expected))
    assert frame["position"].tolist() == [i for session in expected for i in range(len(session))]
    assert frame.attrs["synthetic"] is True
    sequences = kosarak.to_sequences(frame)
    assert [sequences.labels[s].tolist() for s in sequences] == expected
    assert sequences.users.tolist() == list(range(len(expected)))


def test_stand_in_has_a_heavy_tail_and_memory(monkeypatch):
    monkeypatch.setattr("tplrepro.datasets.stand_ins.kosarak.N_PAGES", 2000)
    sequences = kosarak.to_sequences(kosarak.synthetic(4000, seed=0))
    counts = np.sort(np.bincount(sequences.values))[::-1]
    assert counts[:20].sum() > 0.25 * counts.sum()
    assert np.median(counts) < counts.max() / 100
    before, after = sequences.transitions()
    top = np.bincount(sequences.values).argmax()
    follows = np.bincount(after[before == top], minlength=sequences.n_states)
    overall = np.bincount(after, minlength=sequences.n_states) / len(after)
    # Links: what follows a page differs from what is popular, in total variation.
    assert 0.5 * np.abs(follows / follows.sum() - overall).sum() > 0.3


def test_blanks_of_all_kinds_and_blocks_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tplrepro.datasets.reading.line_blocks.__defaults__", (7,))
    path = file_of(tmp_path, b"1 2 3 \r\n  4\t5\r\n6\r\n123 0 99\r\n")
    assert sessions_of(kosarak.load(path)) == {0: [1, 2, 3], 1: [4, 5], 2: [6], 3: [123, 0, 99]}


def test_empty_sessions_are_counted(tmp_path):
    path = file_of(tmp_path, b"1 2\n\n3\n \n\n")
    frame = kosarak.load(path)
    assert sessions_of(frame) == {0: [1, 2], 2: [3]}
    assert frame.attrs["skipped"] == {"empty session": 3}
    assert frame.attrs["skipped_examples"] == {"empty session": f"{path}, line 2"}
    with pytest.raises(DataFormatError, match=r"kosarak\.dat, line 2: empty session"):
        kosarak.load(path, strict=True)


def test_only_empty_sessions_give_an_empty_frame(tmp_path):
    path = file_of(tmp_path, b"\n\n")
    assert len(kosarak.load(path)) == 0
    assert len(kosarak.to_sequences(kosarak.load(path))) == 0


def test_to_sequences_takes_frames_in_any_order(tmp_path):
    frame = kosarak.load(file_of(tmp_path, b"5 6 5\n7\n5 7\n"))
    mixed = kosarak.to_sequences(frame.sample(frac=1, random_state=0))
    assert [mixed.labels[s].tolist() for s in mixed] == [[5, 6, 5], [7], [5, 7]]
    some = kosarak.to_sequences(frame[frame["session"] != 1])
    assert some.users.tolist() == [0, 2]


LINES = st.lists(
    st.one_of(
        st.lists(st.integers(0, 2**31 - 1), max_size=5).map(lambda ids: " ".join(map(str, ids)).encode()),
        st.binary(max_size=4).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b"")),
    ),
    max_size=12,
)


@given(LINES)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_broken_file_is_read_in_silence(tmp_path, lines):
    def ids(line):
        tokens = line.translate(bytes.maketrans(b"\t", b" ")).split(b" ")
        tokens = [t for t in tokens if t]
        return [int(t) for t in tokens] if all(t.isdigit() and int(t) < 2**31 for t in tokens) else None

    lines = [b"1", *lines]
    frame = kosarak.load(file_of(tmp_path, b"".join(line + b"\n" for line in lines)), max_malformed=len(lines))
    parsed = [ids(line) for line in lines]
    assert sessions_of(frame) == {i: p for i, p in enumerate(parsed) if p}
    assert frame.attrs["skipped"].get("malformed line", 0) == sum(p is None for p in parsed)
    assert frame.attrs["skipped"].get("empty session", 0) == sum(p == [] for p in parsed)


@pytest.mark.real_data
def test_recorded_sessions(real_data):
    path = real_data("kosarak/kosarak.dat")
    frame = kosarak.load(path)
    assert len(frame) == 801_947
    assert frame["session"].nunique() == 100_000
    assert frame["page"].nunique() == 23_496
    assert frame.attrs["skipped"] == {}
    assert frame["page"].iloc[-4:].tolist() == plain_reader(path.read_bytes()[-300:].split(b"\n", 1)[1])[-1][-4:]
    assert kosarak.to_sequences(frame).n_transitions == 701_947
