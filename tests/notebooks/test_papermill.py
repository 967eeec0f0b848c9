"""A notebook run through papermill with other parameters than its own, and the numbers it records."""

import json
import os
from unittest import mock

import numpy as np
import papermill
import pytest

import tplrepro as tpl
from workflow.configuration import ROOT
from workflow.kernel_environment import kernel_environment


def run(name, folder, **parameters):
    """Run a notebook; return the record of its figure."""
    source, target = ROOT / "notebooks" / f"{name}.ipynb", folder / "executed.ipynb"
    options = {"kernel_name": "python3", "language": "python", "progress_bar": False}
    environment = kernel_environment(folder, "test", "pytest", real_data=False)
    with mock.patch.dict(os.environ, environment, clear=True):
        papermill.execute_notebook(source, target, parameters=parameters, **options)
    return json.loads((folder / f"{name}.json").read_text())


@pytest.mark.notebook
def test_figure_3_of_tkde_2019(tmp_path):
    record = run("tkde2019/fig3", tmp_path, epsilon=0.2, horizon=4, stay=0.6)
    assert record["parameters"] == {"epsilon": 0.2, "horizon": 4, "stay": 0.6, "seed": 2019}
    assert record["results"]["largest TPL, strongest"] == pytest.approx(4 * 0.2)
    matrix = [[0.6, 0.4], [0.0, 1.0]]
    leakage = tpl.temporal_privacy_leakage(np.full(4, 0.2), backward=matrix, forward=matrix)
    assert record["results"]["largest TPL, moderate"] == pytest.approx(leakage.tpl.max(), rel=1e-12)
    assert (tmp_path / "tkde2019" / "fig3.png").is_file()
