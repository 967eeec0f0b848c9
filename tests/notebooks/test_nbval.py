"""The check of committed outputs can fail: nbval notices a changed number and ignores what is tagged."""

import re
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from workflow.configuration import ROOT

CELLS = [
    ("print(round(2 / 3, 4))", "0.6667\n", [], "PASSED"),
    ("print(round(2 / 3, 4))", "0.6666\n", [], "FAILED"),
    ("print(3.2)", "2.9 seconds\n", ["nbval-ignore-output"], "PASSED"),
    ("print('<thing at 0x7f00>')", "<thing at 0x1234abcd>\n", [], "PASSED"),
]


@pytest.mark.notebook
def test_another_number_fails_alone_but_not_addresses_and_what_is_tagged(tmp_path):
    cells = []
    for count, (source, committed, tags, _) in enumerate(CELLS, start=1):
        output = new_output("stream", name="stdout", text=committed)
        cells.append(new_code_cell(source, outputs=[output], execution_count=count, metadata={"tags": tags}))
    notebook = tmp_path / "example.ipynb"
    nbformat.write(new_notebook(cells=cells), notebook)
    sanitize = ROOT / "tests" / "notebooks" / "sanitize.cfg"
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", f"--nbval-sanitize-with={sanitize}"]
    command += ["-v", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), str(notebook)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    found = re.findall(r"^\S+::Cell \d+ (PASSED|FAILED)", done.stdout, re.MULTILINE)
    assert found == [outcome for *_, outcome in CELLS], done.stdout + done.stderr
