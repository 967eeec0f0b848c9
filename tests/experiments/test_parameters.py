"""What papermill was given: names, types and ranges, one sentence each."""

import json
import re
import sys
from types import SimpleNamespace

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel

from experiments import parameters
from workflow.configuration import ROOT

DECLARED = (
    "epsilon: float = 0.1\nhorizon: int = 10\nsizes: list = [2, 5]\n"
    "stay: float = 0.8\nseed: int = 1\nbins: int = 0"
)
NAMES = ("epsilon", "horizon", "sizes", "stay", "seed", "bins")


def kernel(cells, names, monkeypatch):
    """Executed cells, the last of which is running, and the names that they have left."""
    shell = SimpleNamespace(user_ns={"In": cells} | names)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    return shell.user_ns


def run(cells, monkeypatch):
    """The names of a kernel in which these cells have been executed; the check is running."""
    names = {}
    for source in cells:
        exec(source, names)
    return kernel([*cells, "parameters.check()"], names, monkeypatch)


@pytest.mark.parametrize(
    ("injected", "problem"),
    [
        ("epsilon = 1\nhorizon = 1\nsizes = [9]\nstay = 0.0\nseed = 0\nbins = 0", None),
        ("horizon = 20.0", "horizon must be a whole number, found 20.0; its default is 10"),
        ("horizon = 0", "horizon must be a whole number above 0, found 0"),
        ("horizon = True", "horizon must be a whole number, found True"),
        ("epsilon = 1e999", "epsilon must be a number above 0, found inf"),
        ("epsilon = '1'", "epsilon must be a number, found '1'"),
        ("stay = 1.5", "stay must be a number from 0 to 1, found 1.5"),
        ("bins = -1", "bins must be a whole number from 0 on, found -1"),
        ("sizes = [2, 0]", "sizes must be a list, each entry a whole number above 0, found [2, 0]"),
        ("sizes = 3", "sizes must be a list, found 3"),
        (
            "horizn = 3",
            "there is no parameter 'horizn'; "
            "the parameters cell declares epsilon, horizon, sizes, stay",
        ),
    ],
)
def test_each_value_that_cannot_be_used_gets_a_sentence(injected, problem, monkeypatch):
    run(["older = 1", "import math", DECLARED, f"# Parameters\n{injected}"], monkeypatch)
    if problem is None:
        parameters.check()
        return
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}"):
        parameters.check()


def test_values_edited_in_the_parameters_cell_are_checked_and_all_problems_are_named(monkeypatch):
    edited = DECLARED.replace("0.1", "-0.1").replace("0.8", "8.0")
    run([edited], monkeypatch)
    with pytest.raises(
        ValueError, match="epsilon must be .* found -0.1; .*\nstay must be .* found 8.0"
    ):
        parameters.check()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    parameters.check()
    assert parameters.checked_parameters() == {}


def test_a_scratch_cell_is_neither_the_parameters_cell_nor_a_parameter(monkeypatch):
    for cells in (["x = 3", DECLARED], [DECLARED, "x = 3"], ["x = 3", DECLARED, "y = 'a'"]):
        run(cells, monkeypatch)
        parameters.check()
        assert [*parameters.checked_parameters()] == [*NAMES]


def test_a_record_states_the_values_of_the_kernel_or_saving_fails(monkeypatch):
    names = run([DECLARED], monkeypatch)
    with pytest.raises(ValueError, match="must have run before a figure is saved, found no run"):
        parameters.checked_parameters()
    parameters.check()
    assert parameters.checked_parameters()["epsilon"] == 0.1
    names["epsilon"] = 0.5
    message = r"epsilon must be as when parameters.check\(\) ran, 0.1, found 0.5; run the notebook"
    with pytest.raises(ValueError, match=message):
        parameters.checked_parameters()
    parameters.check()  # a later cell set another value before the check
    assert parameters.checked_parameters()["epsilon"] == 0.5
    names["sizes"].append(9)
    with pytest.raises(ValueError, match=r"sizes must be as .* found \[2, 5, 9\]"):
        parameters.checked_parameters()
    parameters.check()
    names["In"][-1:] = [f"{DECLARED}\nlevel: float = 0.9", "figures.save_figure(...)"]
    with pytest.raises(ValueError, match="found another one executed since then; run all cells"):
        parameters.checked_parameters()


def test_the_parameters_cell_must_have_been_executed(monkeypatch):
    run(["x = 3"], monkeypatch)
    with pytest.raises(ValueError, match="must be executed before .* from its beginning"):
        parameters.check()


def execute(client, *sources):
    """Run cells in a kernel, as a user does; the error that stopped one, if any."""
    for source in sources:
        reply = client.execute_interactive(source, timeout=120, output_hook=lambda _: None)
        if reply["content"]["status"] == "error":
            return reply["content"]["evalue"]
    return None


@pytest.mark.notebook
def test_a_notebook_run_again_in_its_kernel_records_the_values_of_the_second_run(
    tmp_path, monkeypatch
):
    """The parameters cell edited and all cells run again; a scratch cell run first; and the figure
    saved again after the parameters alone."""
    monkeypatch.setenv("TPLREPRO_FIGURES", str(tmp_path))
    monkeypatch.setenv("TPLREPRO_PICTURES", "no")
    monkeypatch.delenv("TPLREPRO_PROFILE", raising=False)
    notebook = nbformat.read(ROOT / "notebooks/tkde2019/fig3.ipynb", as_version=4)
    first, *rest = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    saving = next(source for source in rest if "save_figure" in source)
    record = tmp_path / "tkde2019" / "fig3.json"
    manager, client = start_new_kernel(cwd=str(ROOT / "notebooks/tkde2019"))
    try:
        assert execute(client, "x = 3", first, *rest) is None
        before = json.loads(record.read_text())
        assert before["parameters"]["epsilon"] == 0.1
        assert "x" not in before["parameters"]
        edited = first.replace("epsilon: float = 0.1", "epsilon: float = 0.5")
        edited += "\nlevel: float = 0.9  # a new line"
        assert edited.count("0.5") == 1
        assert "found another one" in execute(client, edited, saving)
        assert "epsilon must be as when" in execute(client, first, "epsilon = 0.5", saving)
        check = next(source for source in rest if "parameters.check()" in source)
        assert "found one drawn before" in execute(client, edited, check, saving)
        assert json.loads(record.read_text()) == before
        assert execute(client, edited, *rest) is None
        after = json.loads(record.read_text())
        assert after["parameters"] == before["parameters"] | {"epsilon": 0.5, "level": 0.9}
        assert max(after["results"]["TPL, strongest"]) > max(before["results"]["TPL, strongest"])
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
