"""The check of committed outputs can fail: nbval notices a changed number and ignores what is tagged."""

import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from workflow.configuration import ROOT

pytestmark = pytest.mark.notebook


def check(folder, source, committed, tags=()):
    output = new_output("stream", name="stdout", text=committed)
    cell = new_code_cell(source, outputs=[output], execution_count=1, metadata={"tags": list(tags)})
    nbformat.write(new_notebook(cells=[cell]), folder / "example.ipynb")
    sanitize = ROOT / "tests" / "notebooks" / "sanitize.cfg"
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", f"--nbval-sanitize-with={sanitize}"]
    command += ["-q", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), str(folder / "example.ipynb")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert "1 passed" in done.stdout or "1 failed" in done.stdout, done.stdout + done.stderr
    return done.returncode == 0


def test_same_number_passes_and_another_fails(tmp_path):
    assert check(tmp_path, "print(round(2 / 3, 4))", "0.6667\n")
    assert not check(tmp_path, "print(round(2 / 3, 4))", "0.6666\n")


def test_what_is_tagged_is_not_compared(tmp_path):
    assert check(tmp_path, "print(3.2)", "2.9 seconds\n", tags=["nbval-ignore-output"])


def test_addresses_of_objects_are_not_compared(tmp_path):
    assert check(tmp_path, "print('<thing at 0x7f00>')", "<thing at 0x1234abcd>\n")
