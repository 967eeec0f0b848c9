"""A file on the page and on the command line: one verdict, one report, one refusal."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from page.leakage_page import OBSERVATIONS, LeakagePage
from tests.page.serving import upload
from tplreport.command import main
from tplrepro.markov.generators import smoothed, strongest
from tplrepro.markov.transition import TransitionMatrix


def page_with(name, content, columns=(), **begin):
    """A page that begins with a file."""
    page = LeakagePage(**begin)
    page.chain.entry.value = OBSERVATIONS
    upload(page.data_file, content, name)
    for column, value in dict(columns).items():
        page.columns[column].entry.value = value
    return page


@pytest.fixture
def undrawn(monkeypatch):
    """Reports without their picture, which takes most of the time of a page with a file; it is
    drawn where page and command are compared as a whole."""
    monkeypatch.setattr(
        "tplreport.reporting.html.figure_in_html", lambda figure, description: "<img alt=''>"
    )


def visits(seed):
    """A file of few or many observations of a chain."""
    rng = np.random.default_rng(seed)
    users, days = ((3, 7), (5, 14), (30, 20), (60, 40))[seed % 4]
    states = 2 + seed % 3
    chain = smoothed(strongest(states), (0.1, 0.5, 1.0)[seed % 3])
    walks = [TransitionMatrix(chain).sample(days, rng=rng) for _ in range(users)]
    rows = [
        (f"u{k}", day, f"s{state}")
        for k, walk in enumerate(walks)
        for day, state in enumerate(walk)
    ]
    return pd.DataFrame(rows, columns=["user", "time", "state"]).to_csv(index=False).encode()


#: Each number of users with each number of states comes once among twelve in a row.
EVERY_DAY = range(8)
SELDOM = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 20)]


@pytest.mark.parametrize("seed", [*EVERY_DAY, *SELDOM])
@pytest.mark.filterwarnings("ignore:states .* never")
@pytest.mark.usefixtures("undrawn")
def test_page_and_command_give_the_same_verdict(seed, tmp_path, capsys):
    content, path = visits(seed), tmp_path / f"visits{seed}.csv"
    path.write_bytes(content)
    page = page_with(path.name, content, epsilon=0.15, horizon=8)
    assert main(["report", str(path), "--alpha=1", "--horizon=8", "--epsilon=0.15", "--json"]) in (
        0,
        3,
    )
    said = json.loads(capsys.readouterr().out)
    assert page.problems == []
    assert page.analysis.verdict.sentence == said["sentences"][0]
    assert ("✓" in page.verdict.value) == said["sentences"][0].startswith("Yes:")
    page.kind.entry.value = "Algorithm 8 (T known)"
    name = f"{page.kind.value}, against the estimate"
    (row,) = (row for row in said["table"] if row["plan"] == name)
    assert f"<th>{name}</th><td>✗ no</td>" in page.table.value
    recommended = said["recommendation"]
    if recommended is not None:
        shown = f"<th>recommended: {recommended['plan']}</th><td>✓ yes</td>"
        assert shown.replace("'", "&#x27;") in page.table.value
        assert repr(recommended["plan"]) in said["sentences"][1]
    worst = max(
        value
        for name, value in row.items()
        if name.startswith("TPL to") and name != "TPL to any prior on both sides"
    )
    assert page.analysis.verdict.worst == pytest.approx(worst, rel=1e-12)
    # a plan for the estimate, where the data allow more
    assert page.analysis.leakage.tpl.max() <= 1.0 < worst
    assert (page.analysis.verdict.answer, "✓" in page.verdict.value) == ("no", False)


def test_the_report_is_that_of_the_command_and_columns_are_chosen(tmp_path):
    content = visits(2).replace(b"user,time,state", b"Kunde,Tag,Ort")
    path, expected = tmp_path / "kunden.csv", tmp_path / "expected.html"
    path.write_bytes(content)
    chosen = {"user": "Kunde", "time": "Tag", "state": "Ort"}
    words = [f"--{name}={value}" for name, value in chosen.items()]
    numbers = ["--alpha=1", "--horizon=5", "--epsilon=0.1", "--sensitivity=2", "--delta=1e-06"]
    assert main(["report", str(path), *words, *numbers, f"--html={expected}"]) == 0
    page = page_with("kunden.csv", content, chosen, horizon=5)
    page.delta.entry.value = 10.0**-6
    body = re.search(r"<h2>Verdict.*?</table>", expected.read_text(), re.S)[0].split("<img")[0]
    assert body in page.advice.value
    assert "report.html" in page.advice.value
    page.chain.entry.value = "home and office"
    assert "<h2>" not in page.advice.value


REFUSED = {
    "noon.csv": ("user,time,state\n1,1,a\n1,noon,b\n", "times must all be numbers"),
    "still.csv": ("user,time,state\n1,1,a\n1,2,a\n", "steps between at least two states"),
    "unnamed.csv": ("Kunde,Datum,Ort\n1,1,a\n", "one column of state"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.usefixtures("undrawn")
def test_a_file_is_refused_by_the_sentence_of_the_command_line(name, tmp_path, capsys):
    content, message = REFUSED[name]
    (tmp_path / name).write_text(content)
    assert main(["report", str(tmp_path / name), "--alpha=1", "--horizon=10"]) == 2
    said = capsys.readouterr().err.replace(f"{tmp_path}/", "").strip()
    # which the command calls options
    said = said.replace("--state '", "state='").replace("--state", "state=")
    page = page_with(name, content.encode())
    assert [f"tplrepro report: {problem}" for problem in page.problems] == [said]
    assert message in said
    assert message in page.data_file.error.value
    upload(page.data_file, visits(2), "good.csv")
    assert page.problems == []


@pytest.mark.usefixtures("undrawn")
def test_warnings_of_the_reader_stand_beside_the_file():
    page = page_with("cut.csv", visits(2).rstrip(b"\n"))
    assert "the last line has no end" in page.data_file.note.value
    assert "/" not in page.data_file.note.value


@pytest.mark.usefixtures("undrawn")
def test_labels_are_escaped_wherever_they_are_shown():
    page = page_with("<script>y.csv", visits(2).replace(b"s0", b"<script>"))
    shown = [page.verdict, page.table, page.advice, page.data_file.note, page.status]
    assert "<script" not in " ".join(one.value for one in shown)
    page.chain.entry.value = "home and office"
    page.forward.entry.value = "<script>alert(1)</script>,b\n0.8,0.2\n0.1,0.9"
    assert page.problems == []
    assert "&lt;script&gt;" in page.verdict.value
    page.forward.entry.value = "<script>"
    assert "<script" not in page.forward.error.value
