"""Two batches agree but for when they ran, what that cost, and what they measured of time."""

import json

import pytest

from workflow.compare_records import differences, main

RECORD = {"name": "a", "parameters": {"n": 3}, "results": {"x": [1.0, 2.0], "n": 5}}


@pytest.fixture
def folders(tmp_path):
    """Two folders with equal records of a notebook, and of one that measures time."""
    for folder in ("one", "other"):
        for name in ("tkde2019/fig3", "tkde2019/fig6a"):
            change(tmp_path / folder / f"{name}.json", time_utc=folder, cost={"s": len(folder)})
            (tmp_path / folder / f"{name}.csv").write_text("1")
    return tmp_path / "one", tmp_path / "other"


def change(path, **facts):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(RECORD | facts))


def test_times_and_costs_are_no_difference(folders, capsys):
    assert differences(*folders) == []
    assert main([str(folder) for folder in folders]) == 0
    assert capsys.readouterr().out == "2 records compared, 0 differences\n"


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"results": {"x": [1.0, 2.5], "n": 5}}, "results / x: 2.0 and 2.5, relative 2.0e-01 at most"),
        ({"results": {"x": [2.0, 2.5], "n": 5}}, "results / x: 1.0 and 2.0, relative 5.0e-01 at most; 2 values in all"),
        ({"results": {"x": [1.0, "inf"], "n": 5}}, "results / x: 2.0 and 'inf'"),
        ({"results": {"x": [1.0], "n": 5}}, "results / x: 2.0 and 'nothing'"),
        ({"parameters": {"n": 4}}, "parameters / n: 3 and 4, relative 2.5e-01 at most"),
        ({"data": "real"}, "data: 'nothing' and 'real'"),
    ],
)
def test_every_other_part_is(folders, capsys, facts, words):
    change(folders[1] / "tkde2019/fig3.json", **facts)
    assert differences(*folders) == [f"tkde2019/fig3.json: {words}"]
    assert main([str(folder) for folder in folders]) == 1
    assert capsys.readouterr().out.endswith("\n2 records compared, 1 differences\n")


def test_of_a_notebook_that_measures_time_numbers_with_a_fraction_may_differ_and_nothing_else(folders):
    name = "tkde2019/fig6a.json"
    change(folders[1] / name, results={"x": [1.1, 2.2], "n": 5})
    (folders[1] / "tkde2019/fig6a.csv").write_text("2")
    assert differences(*folders) == []
    change(folders[1] / name, results={"x": [1.1, 2.2], "n": 6}, parameters={"n": 3.5})
    parts = ["parameters / n: 3 and 3.5, relative 1.4e-01 at most", "results / n: 5 and 6, relative 1.7e-01 at most"]
    assert differences(*folders) == [f"{name}: {part}" for part in parts]


def test_files_count_too(folders):
    (folders[0] / "tkde2019/fig3.csv").write_text("2")
    (folders[1] / "tkde2019/fig6a.csv").unlink()
    assert differences(*folders) == [
        f"tkde2019/fig6a.csv: only in {folders[0]}",
        "tkde2019/fig3.csv: other bytes",
    ]


def test_within_a_tolerance_numbers_count_as_equal_and_nothing_else_does(folders):
    path = folders[1] / "tkde2019/fig3.json"
    change(path, results={"x": [1.0, 2.5], "n": 5})
    path.with_suffix(".csv").write_text("2")
    assert differences(*folders, tolerance=0.21) == []
    assert differences(*folders, tolerance=0.19) == [
        "tkde2019/fig3.json: results / x: 2.0 and 2.5, relative 2.0e-01 at most"
    ]
    change(path, results={"x": [1.0, "inf"], "n": 5})
    assert differences(*folders, tolerance=0.21) == ["tkde2019/fig3.json: results / x: 2.0 and 'inf'"]


def test_with_a_tolerance_rounding_of_what_should_be_zero_counts_as_equal(folders):
    one, other = (folder / "tkde2019" / "fig3.json" for folder in folders)
    for path, value in ((one, 2.4e-13), (other, 2.9e-13)):
        record = json.loads(path.read_text())
        path.write_text(json.dumps(record | {"results": {"x": value}}))
    assert differences(*folders, tolerance=1e-7) == []
    assert len(differences(*folders)) == 1
    other.write_text(other.read_text().replace("2.9e-13", "2.9e-11"))
    assert len(differences(*folders, tolerance=1e-7)) == 1
