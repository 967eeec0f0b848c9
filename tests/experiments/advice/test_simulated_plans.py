"""The numbers of simulated plans that a report quotes, from outcomes to the package's table."""

import json

import pandas as pd

from experiments.advice import simulated_plans
from experiments.advice.simulated_plans import COLUMNS, PLANS_BY_FINDING
from tplreport.reporting.checks import USERS
from tplreport.reporting.simulated import NOTHING, TABLE, read_cells
from workflow.configuration import ROOT
from workflow.publishing import publish_figures

OUTCOME = {
    "finding": NOTHING,
    "users": 20,
    "steps": 100.0,
    "composed": False,
    "withheld": False,
    "model_composed": False,
    "is_broken": False,
    "model_tpl": 0.9,
    "alpha": 1.0,
}


def test_the_guide_and_the_changelog_tell_what_the_record_of_the_advice_has():
    kinds = pd.read_csv(ROOT / "figures/explore/advice.csv")
    worlds = kinds["worlds"].sum()
    broken = kinds["above α unwarned"]
    worst = kinds.loc[broken.idxmax(), "kind"]
    guide = " ".join((ROOT / "docs/guide/own_data.md").read_text("utf-8").split())
    assert (
        f"Of {worlds:,} recommended plans {broken.sum()} leak more than α without a warning, and "
        f"of each of {len(kinds)} kinds of data at most {broken.max()} of 100, most where one or "
        "two people nearly always stay." in guide
    )
    assert worst == "one or two stay"
    changes = " ".join((ROOT / "CHANGELOG.md").read_text("utf-8").split())
    assert (
        f"{broken.sum()} recommended plans leak more than α without a warning, of each kind at "
        f"most {broken.max()} of 100." in changes
    )


def test_plans_are_counted_by_finding_and_size(tmp_path):
    doubted = {"finding": USERS, "composed": True, "users": 21, "model_tpl": 1.1}
    changes = [
        {},
        {"is_broken": True, "model_tpl": 1.2},
        {"composed": True, "model_composed": True},  # α/T is as good
        {"steps": 101.0},
        doubted,
        doubted | {"composed": False, "withheld": True},
    ]
    found = simulated_plans.count_plans(pd.DataFrame([OUTCOME | change for change in changes]))
    assert found[[*COLUMNS]].to_numpy().tolist() == [
        [NOTHING, 0, 0, 2, 1, 2, 1],
        [NOTHING, 0, 1, 1, 0, 1, 0],
        [USERS, 1, 0, 0, 0, 2, 2],
    ]
    path = tmp_path / "plans.csv"
    record = json.loads(json.dumps({"results": {PLANS_BY_FINDING: found.to_dict("records")}}))
    path.write_text(simulated_plans.as_csv(simulated_plans.rows_of_record(record)), "utf-8")
    cells = read_cells(path)
    assert [cell.plans_of_one_chain for cell in cells] == [2, 1, 2]
    assert [(cell.many_users, cell.many_steps) for cell in cells] == [
        (False, False),
        (False, True),
        (True, False),
    ]


def test_a_published_record_renews_the_table(monkeypatch, capsys):
    written = []
    monkeypatch.setattr(simulated_plans, "write_table", lambda: written.append(True))
    record = {"commit": {"id": "1"}}
    for names, times in ((["explore/rhythms"], 0), (["explore/rhythms", "explore/advice"], 1)):
        published = dict.fromkeys(names, record), []
        monkeypatch.setattr(publish_figures, "publish", lambda published=published: published)
        assert publish_figures.main() == 0
        assert len(written) == times
    assert "figures/explore/advice" in capsys.readouterr().out


def test_the_table_of_the_package_is_that_of_the_published_record():
    """If not: make publish-figures, or python -m experiments.advice.simulated_plans; and refresh
    the notebook explore/own_data, which prints a report."""
    assert TABLE.read_text("utf-8") == simulated_plans.published_table()
