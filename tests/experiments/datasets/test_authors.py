"""What the authors' programs return: read as it stands, and compared with ours."""

import json
from math import inf, isnan

import pytest

from experiments.datasets import authors


def test_the_stand_in_agrees_with_itself_and_names_no_file(monkeypatch):
    monkeypatch.delenv("TPLREPRO_DATA", raising=False)
    program = authors.load_program_of_tkde()
    assert program.inputs == []
    assert authors.compare_losses(program)["difference"].abs().max() < 1e-12
    assert authors.compare_suprema(program)["difference"].abs().max() < 1e-12
    assert authors.load_series_of_event_logs().inputs == []


def test_values_that_are_missing_or_wrong_show(tmp_path, monkeypatch):
    returned = {
        "alg1_calcPLbyThm": [0.0808, 0.0],
        "alg3_calcPLbyPreComp": [None, 0.8648397251631903],
        "alg3_calcPLbyPreComp_errors": {"0.1": "EMPTY"},
        "alg5_genLFunc_0_to_alpha": [0.08078403386384084, 0.8648397251631903],
        "alg6_findSup": [0.2, "inf"],
    }
    entry = {"name": "one", "P": [[0.8, 0.2], [0, 1]], "alphas": [0.1, 1.0], "eps": [0.1, 3.0]}
    write(tmp_path, "tpl_octave.json", {"matrices": [entry | {"authors_octave": returned}]})
    monkeypatch.setenv("TPLREPRO_DATA", str(tmp_path))
    program = authors.load_program_of_tkde()
    assert [path.name for path in program.inputs] == ["tpl_octave.json"]
    table = authors.compare_losses(program).set_index(["route", "alpha"])
    assert table.loc[("Algorithm 1", 1.0), "difference"] == -1.0
    assert 1e-4 < table.loc[("Algorithm 1", 0.1), "difference"] < 1e-3
    assert isnan(table.loc[("Algorithm 3", 0.1), "value"])
    assert table.loc[("Algorithm 3", 0.1), "problem"] == "EMPTY"
    assert table.loc["Algorithm 5", "difference"].abs().max() < 1e-13
    suprema = authors.compare_suprema(program)
    assert list(suprema["ours"])[1] == inf == list(suprema["value"])[1]
    assert suprema["difference"].abs().iloc[0] > 1e-3
    assert suprema["difference"].iloc[1] == 0.0


def test_a_plot_must_say_what_is_read_off_it(tmp_path, monkeypatch):
    plot = {"releases": 3, "epsilon": 0.01, "BPL": "0.01 t", "FPL": "0.01 t"}
    plot["TPL"] = "0.02 t - 0.01, up to 0.05 at release 3"
    content = {"tables": {"A": [[0.1, 0.2, 0.3, 0.4]]}, "plots": {"Sepsis, window 8, all": plot}}
    monkeypatch.setenv("TPLREPRO_DATA", str(tmp_path))
    write(tmp_path, "qdp_cedp.json", content)
    rows = authors.load_series_of_event_logs().releases
    assert list(rows["log"]) == ["table A", "Sepsis", "Sepsis", "Sepsis"]
    assert list(rows["window"]) == [0, 8, 8, 8]
    assert rows["tpl"].round(12).tolist() == [0.4, 0.01, 0.03, 0.05]
    plot["FPL"] = "0.02 t"
    write(tmp_path, "qdp_cedp.json", content)
    with pytest.raises(ValueError, match="found"):
        authors.load_series_of_event_logs()


def write(folder, name, content):
    (folder / "authors").mkdir(exist_ok=True)
    (folder / "authors" / name).write_text(json.dumps(content), encoding="utf-8")
