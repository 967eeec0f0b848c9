"""Two batches agree but for when they ran, what that cost, and what they measured of time."""

import json

import pytest

from workflow.compare_records import differences, main

RECORD = {"name": "a", "parameters": {"n": 3}, "results": {"x": [1.0, 2.0], "n": 5}}
FIGURE, TIMING = "tkde2019/fig3.json", "tkde2019/fig6a.json"


@pytest.fixture
def folders(tmp_path):
    """Two folders with equal records of a notebook, and of one that measures time."""
    for folder in ("one", "other"):
        for name in (FIGURE, TIMING):
            change(tmp_path / folder / name, time_utc=folder, cost={"s": len(folder)})
            (tmp_path / folder / name).with_suffix(".csv").write_text("1")
    return tmp_path / "one", tmp_path / "other"


def change(path, **facts):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(RECORD | facts))


@pytest.mark.parametrize(
    ("name", "facts", "tolerance", "words"),
    [
        (FIGURE, {}, 0, []),
        (FIGURE, {"results": {"x": [2.0, 2.5], "n": 5}}, 0, ["results / x: 1.0 and 2.0"]),
        (FIGURE, {"results": {"x": [1.0], "n": 5}}, 0, ["results / x: 2.0 and 'nothing'"]),
        (FIGURE, {"data": "real"}, 0, ["data: 'nothing' and 'real'"]),
        # Within a tolerance numbers count as equal, and nothing else does.
        (FIGURE, {"results": {"x": [1.0, 2.5], "n": 5}}, 0.21, []),
        (FIGURE, {"results": {"x": [1.0, 2.5], "n": 5}}, 0.19, ["results / x: 2.0 and 2.5"]),
        (FIGURE, {"results": {"x": [1.0, "inf"], "n": 5}}, 0.21, ["results / x: 2.0 and 'inf'"]),
        # Of a notebook that measures time, numbers with a fraction may differ.
        (TIMING, {"results": {"x": [1.1, 2.2], "n": 5}}, 0, []),
        (
            *(TIMING, {"results": {"x": [1.1, 2.2], "n": 6}, "parameters": {"n": 3.5}}, 0),
            ["parameters / n: 3 and 3.5", "results / n: 5 and 6"],
        ),
    ],
)
def test_parts_of_a_record_that_differ_are_named(folders, capsys, name, facts, tolerance, words):
    change(folders[1] / name, **facts)
    expected = [f"{name}: {part}" for part in words]
    assert differences(*folders, tolerance=tolerance) == expected
    assert main([*map(str, folders), f"--tolerance={tolerance}"]) == bool(words)
    last = f"2 records compared, {len(words)} differences"
    assert capsys.readouterr().out.splitlines() == [*expected, last]


def test_files_count_too_but_tables_of_times_and_within_a_tolerance_all_tables_may_differ(folders):
    (folders[0] / "tkde2019/fig3.csv").write_text("2")
    (folders[1] / "tkde2019/fig6a.csv").write_text("2")
    assert differences(*folders) == ["tkde2019/fig3.csv: other bytes"]
    assert differences(*folders, tolerance=1e-7) == []
    (folders[1] / "tkde2019/fig6a.csv").unlink()
    assert differences(*folders)[0] == f"tkde2019/fig6a.csv: only in {folders[0]}"


@pytest.mark.parametrize(("value", "tolerance", "count"), [(2.9e-13, 1e-7, 0), (2.9e-13, 0, 1), (2.9e-11, 1e-7, 1)])
def test_with_a_tolerance_rounding_of_what_should_be_zero_counts_as_equal(folders, value, tolerance, count):
    for folder, of_folder in zip(folders, (2.4e-13, value), strict=True):
        change(folder / FIGURE, results={"x": of_folder})
    assert len(differences(*folders, tolerance=tolerance)) == count
