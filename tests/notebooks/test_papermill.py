"""A notebook run through papermill with other parameters than its own, and the numbers it records."""

import json
import subprocess
import sys

import numpy as np
import pytest

import tplrepro as tpl
from workflow.configuration import ROOT
from workflow.kernel_environment import kernel_environment

pytestmark = pytest.mark.notebook


def run(name, folder, **parameters):
    """Run a notebook in a process of its own; return the record of its figure."""
    code = (
        "import json, sys, papermill\n"
        "source, target, parameters = sys.argv[1:]\n"
        "papermill.execute_notebook(source, target, parameters=json.loads(parameters), kernel_name='python3',"
        " language='python', progress_bar=False)"
    )
    source, target = ROOT / "notebooks" / f"{name}.ipynb", folder / "executed.ipynb"
    environment = kernel_environment(folder, "test", "pytest", real_data=False)
    command = [sys.executable, "-c", code, str(source), str(target), json.dumps(parameters)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=300)
    return json.loads((folder / f"{name}.json").read_text())


def test_figure_3_of_tkde_2019(tmp_path):
    record = run("tkde2019/fig3", tmp_path, epsilon=0.2, horizon=4, stay=0.6)
    assert record["parameters"] == {"epsilon": 0.2, "horizon": 4, "stay": 0.6, "seed": 2019}
    assert record["results"]["largest TPL, strongest"] == pytest.approx(4 * 0.2)
    matrix = [[0.6, 0.4], [0.0, 1.0]]
    leakage = tpl.temporal_privacy_leakage(np.full(4, 0.2), backward=matrix, forward=matrix)
    assert record["results"]["largest TPL, moderate"] == pytest.approx(leakage.tpl.max(), rel=1e-12)
    assert (tmp_path / "tkde2019" / "fig3.png").is_file()
