"""Batches are compared part by part; records older than their code, and how far claims moved, are
said so."""

import json
import subprocess

import pytest

from workflow.configuration import ROOT
from workflow.publishing import other_runs
from workflow.publishing.judging import judge_all
from workflow.publishing.older_records import describe_older_records, find_older_records
from workflow.publishing.other_runs import (
    Movement,
    add_run,
    movement_of,
    movements_of_claims,
    summarise_runs,
)
from workflow.publishing.records import find_differences, main

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


def results(*x, n=5):
    return {"results": {"x": list(x), "n": n}}


@pytest.mark.parametrize(
    ("name", "facts", "tolerance", "words"),
    [
        (FIGURE, {}, 0, []),
        (FIGURE, results(2.0, 2.5), 0, ["results / x: 1.0 and 2.0"]),
        (FIGURE, results(1.0), 0, ["results / x: 2.0 and 'nothing'"]),
        (FIGURE, {"data": "real"}, 0, ["data: 'nothing' and 'real'"]),
        # Within a tolerance numbers count as equal, and nothing else does.
        (FIGURE, results(1.0, 2.5), 0.21, []),
        (FIGURE, results(1.0, 2.5), 0.19, ["results / x: 2.0 and 2.5"]),
        (FIGURE, results(1.0, "inf"), 0.21, ["results / x: 2.0 and 'inf'"]),
        # Of a notebook that measures time, numbers with a fraction may differ.
        (TIMING, results(1.1, 2.2), 0, []),
        (TIMING, results(1.1, 2.2, n=6), 0, ["results / n: 5 and 6"]),
        (TIMING, {"parameters": {"n": 3.5}}, 0, ["parameters / n: 3 and 3.5"]),
    ],
)
def test_each_part_in_which_two_records_differ_is_named(
    folders, capsys, name, facts, tolerance, words
):
    change(folders[1] / name, **facts)
    expected = [f"{name}: {part}" for part in words]
    assert main([*map(str, folders), f"--tolerance={tolerance}"]) == bool(words)
    last = f"2 records compared, {len(words)} differences"
    assert capsys.readouterr().out.splitlines() == [*expected, last]


def test_tables_are_compared_unless_they_hold_times_or_a_tolerance_is_given(folders):
    (folders[0] / "tkde2019/fig3.csv").write_text("2")
    (folders[1] / "tkde2019/fig6a.csv").write_text("2")
    assert find_differences(*folders) == ["tkde2019/fig3.csv: other bytes"]
    assert find_differences(*folders, tolerance=1e-7) == []
    (folders[1] / "tkde2019/fig6a.csv").unlink()
    assert find_differences(*folders)[0] == f"tkde2019/fig6a.csv: only in {folders[0]}"


@pytest.mark.parametrize(
    ("value", "tolerance", "count"), [(2.9e-13, 1e-7, 0), (2.9e-13, 0, 1), (2.9e-11, 1e-7, 1)]
)
def test_with_a_tolerance_rounding_of_what_should_be_zero_counts_as_equal(
    folders, value, tolerance, count
):
    for folder, of_folder in zip(folders, (2.4e-13, value), strict=True):
        change(folder / FIGURE, **results(of_folder))
    assert len(find_differences(*folders, tolerance=tolerance)) == count


PUBLISHED = "figures/a/one_more.json"

MODULE = '''"""What it is."""
from math import inf, nan

answer = 42

def increased(answer):
    return answer + 1

class Size:
    height: float
'''
# The same to Python, but not to a type checker.
TYPED = """from math import inf, nan
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from pandas import Series

answer = 42

@overload
def increased(answer: int) -> int: ...
@overload
def increased(answer: "Series") -> "Series": ...
def increased(answer: "int | Series") -> "int | Series":
    return answer + 1

class Size:
    height: float
"""


@pytest.fixture
def published(repository):
    """A figure made by a committed notebook and module."""
    repository.notebook("a/one", "import tplrepro.module", "answer = 1  # the answer")
    repository.configure("a/one: {paper: {value: 0.75}}")
    repository.write("tplrepro/module.py", MODULE)
    repository.write("experiments/claims/judging.py", "answer = 0\n")
    git = ("git", "-C", str(repository.root), "-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    commit = {"id": subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()}
    parameters = {"value": 0.75, "seed": 1}
    record = {
        "commit": commit,
        "modules": ["tplrepro.module", "experiments.claims.judging"],
        "parameters": parameters,
    }
    repository.write(PUBLISHED, json.dumps(record))
    return repository


@pytest.mark.parametrize(
    ("file", "text", "changed"),
    [
        (
            "tplrepro/module.py",
            MODULE.replace("= 42", "= (42)  # and why").replace("What it is", "Other words"),
            [],
        ),
        ("experiments/claims/judging.py", "answer = 1\n", []),
        ("tplrepro/other.py", "answer = 1\n", []),
        ("tplrepro/module.py", MODULE.replace("42", "43"), ["tplrepro/module.py"]),
        ("tplrepro/module.py", MODULE.replace("inf, nan", "nan, inf"), []),
        ("tplrepro/module.py", MODULE.replace("inf, nan", "nan"), ["tplrepro/module.py"]),
        ("tplrepro/module.py", TYPED, []),
        ("tplrepro/module.py", TYPED.replace("+ 1", "+ 2"), ["tplrepro/module.py"]),
        ("tplrepro/module.py", f"{TYPED}    width: float\n", ["tplrepro/module.py"]),
        (
            "tplrepro/module.py",
            TYPED.replace("\nanswer", "else:\n    other = 1\n\nanswer", 1),
            ["tplrepro/module.py"],
        ),
        ("tplrepro/module.py", None, ["tplrepro/module.py"]),
    ],
)
def test_changed_and_moved_code_makes_a_record_older_but_words_types_and_other_modules_do_not(
    published, file, text, changed
):
    (published.root / file).unlink(missing_ok=True)
    if text is not None:
        published.write(file, text)
    assert find_older_records(published.root).get("a/one_more", []) == changed
    said = (
        "1 of 1 published records (all) are older than their code "
        "(tplrepro/module.py changed since)"
    )
    assert describe_older_records(published.root).partition(";")[0] == (said if changed else "")


def test_a_record_is_older_than_another_or_changed_notebook_and_a_missing_commit_is_named(
    published,
):
    published.notebook(
        "a/one", "import tplrepro.module", "answer = 2", parameters="value = 1.0\nseed = 2"
    )
    assert find_older_records(published.root) == {
        "a/one_more": ["notebooks/a/one.ipynb", "parameters"]
    }
    published.notebook("a/other", "answer = 1")
    published.configure("a/one: {notebook: a/other, paper: {value: 0.75}}")
    assert find_older_records(published.root) == {"a/one_more": ["notebooks/a/other.ipynb"]}
    record = json.loads((published.root / PUBLISHED).read_text())
    published.write(PUBLISHED, json.dumps(record | {"commit": {"id": "0123456789"}}))
    assert find_older_records(published.root) == {
        "a/one_more": ["commit 0123456, which this clone does not have"]
    }


@pytest.mark.parametrize(
    ("factor", "expected"), [(1.0, {Movement()}), (0.5, {Movement(is_other=True)})]
)
def test_another_run_is_compared_by_the_numbers_and_verdicts_of_its_claims(
    tmp_path, factor, expected
):
    record = json.loads((ROOT / "figures" / FIGURE).read_text())
    halved = json.loads(
        json.dumps(record["results"]), parse_float=lambda text: float(text) * factor
    )
    change(tmp_path / FIGURE, **record | {"results": halved})
    found = movements_of_claims(ROOT / "figures", tmp_path)
    assert len(found) > 3
    assert expected <= set(found.values())
    assert factor != 1.0 or expected == set(found.values())


def test_a_run_of_some_records_leaves_what_is_known_of_other_claims(tmp_path, monkeypatch):
    written = []
    known = {"one": {"a#other": Movement(1.5)}, "two": {"a#other": Movement()}}
    monkeypatch.setattr(other_runs, "read_runs", lambda: known)
    monkeypatch.setattr(other_runs, "write_json", lambda _, content: written.append(content))
    change(tmp_path / FIGURE, **json.loads((ROOT / "figures" / FIGURE).read_text()))
    runs = add_run("one", ROOT / "figures", tmp_path)
    compared = movements_of_claims(ROOT / "figures", tmp_path)
    assert runs == {"one": {"a#other": Movement(1.5)} | compared, "two": {"a#other": Movement()}}
    assert written[0]["one"]["a#other"] == {"percent": 1.5}


def test_what_is_known_of_other_runs_is_about_claims_that_there_are():
    claims = {f"{judged.page}#{judged.claim.id}" for judged in judge_all(outcomes={})[1]}
    assert [name for run in other_runs.read_runs().values() for name in run.keys() - claims] == []


def test_differences_are_rounded_up_and_absolute_near_0_and_a_run_is_summed_up_in_a_sentence():
    others = {
        "2 of 1,000 s": Movement(),
        "2 of 1,010 s": Movement(1.0),
        "3 of 1,000 s": Movement(33.4),
        "2 s": Movement(is_other=True),
    }
    assert {other: movement_of("2 of 1,000 s", other) for other in others} == others
    near_zero = {
        "0.01 to 2": Movement(),
        "0.05 to 2": Movement(near_zero=0.04),
        "-0.2 to 2": Movement(105.0),
        "0.5 to 2": Movement(98.0),
        "0 to 3": Movement(33.4, 0.01),
    }
    assert {other: movement_of("0.01 to 2", other) for other in near_zero} == near_zero
    assert str(Movement(33.4, 0.01)) == "up to 33.4 %, near 0 up to 0.01"
    found = {
        "a#same": Movement(),
        "a#near": Movement(1.5),
        "b#far": Movement(20.0),
        "b#zero": Movement(near_zero=1.0),
        "b#both": Movement(57.1, 0.06),
        "b#other": Movement(is_other=True),
    }
    assert summarise_runs({"another seed": found}) == (
        "With another seed, 1 of 6 claims showed the same digits, "
        "the numbers of 3 moved by 1.5 to 57.1 %; "
        "numbers near 0 moved in 2, and in 1 of these no others; another result: b#other."
    )
