"""A file on the page and on the command line: the same result, or the same refusal."""

import re
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from page.leakage_page import WITH_DELTA, LeakagePage
from page.sources import SEQUENCES_FILE
from tests.page.serving import upload
from tplreport.command import main

RNG = np.random.default_rng(0)
ROWS = [(f"u{user}", day, "abc"[RNG.integers(3)]) for user in range(6) for day in range(1, 20)]
VISITS = pd.DataFrame(ROWS, columns=["user", "time", "state"])
DATES = pd.to_datetime("2024-01-01") + pd.to_timedelta(VISITS["time"], "D")
SPLIT = VISITS.assign(time=DATES.dt.strftime("%d.%m.%Y"), clock="08:30")
GAPS = VISITS.assign(time=DATES)[DATES.dt.day_of_week.isin([0, 2, 4])]

# Name -> content, what is chosen on the page after the file, and the same on the command line.
FILES = {
    "german.csv": (
        VISITS.set_axis(["Kunde", "Datum", "Ort"], axis=1).to_csv(index=False, sep=";"),
        {"Users": "Kunde", "Times": "Datum", "States": "Ort"},
        ["--user=Kunde", "--time=Datum", "--state=Ort"],
    ),
    "split.csv": (
        SPLIT.to_csv(index=False),
        {"Options": "time=time+clock time_format='%d.%m.%Y %H:%M'"},
        ["--time=time+clock", "--time-format=%d.%m.%Y %H:%M"],
    ),
    "gaps.csv": (GAPS.to_csv(index=False), {"Options": "STEP=1D, max-gap=2D"}, ["--step=1D", "--max-gap=2D"]),
    "visits.parquet": (VISITS.to_parquet(), {}, []),
}
MIXED = VISITS.astype({"time": object}).replace({"time": {3: "noon"}})
REFUSED = {
    "noon.csv": (MIXED, "times must all be numbers, .*, found '1' in line 2 of noon.csv; give such"),
    "still.csv": (VISITS.assign(state="a"), "steps between at least two states, found 108 steps and 1 state; check"),
    "unnamed.csv": (VISITS.set_axis(["Kunde", "Datum", "Ort"], axis=1), "one column of state, found 'Kunde', 'Datum'"),
    "milliseconds.csv": (VISITS.assign(time=DATES.astype("int64") // 1000), "give time_unit="),
}


def page_with(name, content, chosen=()):
    """A page whose forward matrix is that of a file."""
    page = LeakagePage(horizon=5)
    page.forward.kind.value = SEQUENCES_FILE
    observations = page.forward.observations
    upload(observations.file, content if isinstance(content, bytes) else content.encode(), name)
    controls = {control.description: control for control in (*observations.columns.values(), observations.options)}
    for label, value in dict(chosen).items():
        controls[label].value = value
    return page


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore:.* of all states are held")
def test_a_file_gives_the_same_report_as_on_the_command_line(name, tmp_path, figures_folder):
    content, chosen, words = FILES[name]
    path, expected = tmp_path / name, tmp_path / "expected.html"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    numbers = ["--alpha=1", "--horizon=5", "--epsilon=0.1", "--sensitivity=2", "--smoothing=2", "--delta=1e-05"]
    assert main(["report", str(path), *words, *numbers, f"--html={expected}"]) == 0
    page = page_with(name, content, chosen)
    page.forward.smoothing.entry.value, page.privacy.value, page.delta.entry.value = 2.0, WITH_DELTA, 1e-5
    assert page.problems == []
    page.browser.download = Mock()
    page.save["report"].click()
    saved, _, report = page.browser.download.call_args.args
    assert saved == "report-alpha-1-T-5-delta-1e-05.html"
    reports = [re.sub(rb"base64,[^']+", b"", page) for page in (report, expected.read_bytes())]  # without the figure
    assert reports[0] == reports[1]
    leaked = float(re.search(r"Largest TPL .* ([0-9.]+) with 2, ", report.decode())[1])
    assert leaked == float(f"{page.analysis.leakage.tpl.max():.4g}")
    assert page.saved.value.count("<p>") == 5
    assert ("held from an earlier step" in page.forward.about.value) == (name == "gaps.csv")


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_refused_by_the_sentence_of_the_command_line(name, tmp_path, capsys):
    table, message = REFUSED[name]
    path = tmp_path / name
    table.to_csv(path, index=False)
    words = ["--step=1D"] if name == "milliseconds.csv" else []
    assert main(["report", str(path), *words, "--alpha=1", "--horizon=5", "--draws=0"]) == 2
    said = capsys.readouterr().err.replace(f"{tmp_path}/", "").strip()
    page = page_with(name, path.read_bytes(), {"Options": " ".join(words).replace("--", "")})
    (problem,) = page.problems
    assert problem.replace("forward matrix: ", "tplrepro report: ") == said
    assert re.search(message, problem)


@pytest.mark.parametrize("typed", ["step", "steps=1D", "bins=few", "step='1D"])
def test_an_option_that_there_is_not_is_named(typed):
    page = page_with("split.csv", FILES["split.csv"][0], {"Options": typed})
    assert re.search(r"options must be written as step=1D .*, found .*; the options are user, time, ", page.problems[0])
