"""Snakemake itself, as on a cluster: what it plans; reading the Snakefile changes nothing."""

import os
import subprocess
import sys

import pytest

from workflow.batch.fingerprint import fingerprint, is_current, write_status
from workflow.configuration import ROOT

NAMES = ("a/one", "a/two", "a/three")


def snakemake(repository, *words):
    command = [sys.executable, "-m", "snakemake", "--config", "profile=quick", *words]
    folders = [str(repository.root), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(
        command, cwd=repository.root, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def files_in(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def finished(repository):
    """Three results that are up to date, without having run their notebooks."""
    repository.of(*NAMES)
    for name in NAMES:
        repository.write(f"build/quick/notebooks/{name}.ipynb", "{}")
        status = {"fingerprint": fingerprint(*repository.entry(name))}
        write_status(name, "quick", status, repository.root)
    return repository


def test_a_dry_run_names_what_is_outdated_and_removes_nothing(finished):
    finished.notebook("a/two", "print('edited')")
    before = files_in(finished.root / "build")
    planned = snakemake(finished, "--dry-run", "--cores=1")
    assert [name for name in NAMES if f"wildcards: name={name}" in planned] == ["a/two"]
    assert files_in(finished.root / "build") == before
    other = snakemake(finished, "--dry-run", "--cores=1", "build/quick/notebooks/a/one.ipynb")
    assert "Nothing to be done" in other


def test_a_job_that_reads_the_snakefile_plans_nothing_and_removes_nothing(finished):
    """As a cluster starts it, while the results of other jobs appear."""
    for name in NAMES:
        finished.notebook(name, "print('edited')")
    before = files_in(finished.root / "build")
    child = ("--cores=1", "--mode=remote", "--dry-run", "--nolock")
    assert "Nothing to be done" in snakemake(finished, *child)
    assert files_in(finished.root / "build") == before


@pytest.mark.notebook
@pytest.mark.slow
def test_an_executor_of_clusters_runs_three_notebooks_and_keeps_each_result(finished):
    finished.configure("".join(f"{name}: {{figure: false}}\n" for name in NAMES))
    for name in NAMES:
        finished.notebook(name, "print('edited')")
    submit = ("--executor=cluster-generic", "--cluster-generic-submit-cmd=sh")
    words = snakemake(finished, *submit, "--jobs=3", "--latency-wait=60")
    assert "4 of 4 steps (100%) done" in words
    assert all(is_current(*finished.entry(name)) for name in NAMES)
    assert all("edited" in finished.result(name).read_text() for name in NAMES)
