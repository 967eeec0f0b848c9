"""Notebooks give the same numbers with the BLAS kernels of other processors and other numbers of
threads."""

import os
import subprocess
import sys
from unittest import mock

import pytest

from workflow.batch.fingerprint import fingerprint
from workflow.batch.run_notebook import execute, kernel_environment
from workflow.configuration import ROOT, read_notebooks, read_profile
from workflow.publishing.records import find_differences

# Kernels of OpenBLAS that every processor of the last fifteen years runs, and numbers of threads.
PROCESSORS = [("Prescott", 1), ("Nehalem", 2)]
# Minutes of the paper profile: eigenvalues, optimal responses, hulls in the plane, Fourier
# transforms.
SAMPLE = (
    "explore/gaussian_series",
    "sip2023/fig5",
    "dphmm2016/fig11",
    "explore/budgets",
    "tkde2019/fig9",
)
# Above rounding, and below every digit that a claim shows.
TOLERANCE = 1e-7

pytestmark = [pytest.mark.slow, pytest.mark.notebook]


@pytest.mark.parametrize(("processor", "threads"), PROCESSORS)
def test_committed_outputs_are_the_same_on_other_processors(processor, threads):
    command = [
        sys.executable,
        "-m",
        "workflow.checks.committed_notebooks",
        "check",
        "--threads",
        str(threads),
    ]
    environment = os.environ | {"OPENBLAS_CORETYPE": processor}
    environment.pop("MPLBACKEND")  # that of our tests, which shows no figure
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.parametrize("name", SAMPLE)
def test_records_of_the_paper_profile_are_the_same_on_other_processors(name, tmp_path):
    entry, profile = read_notebooks()[name], read_profile("paper")
    folders = []
    for processor, threads in PROCESSORS:
        folders.append(tmp_path / processor)
        environment = kernel_environment(
            folders[-1], "paper", "pytest", real_data=False, threads=threads
        )
        with mock.patch.dict(
            os.environ, environment | {"OPENBLAS_CORETYPE": processor}, clear=True
        ):
            parameters = fingerprint(entry, profile)["parameters"]
            assert (
                execute(entry.path(), tmp_path / f"{processor}.ipynb", parameters, profile) is None
            )
    assert find_differences(*folders, tolerance=TOLERANCE) == []
