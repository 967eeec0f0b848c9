"""A small repository of its own with the real workflow and tiny notebooks."""

import io
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, redirect_stdout
from functools import partial

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from workflow.batch.run_batch import run_batch
from workflow.configuration import ROOT, read_notebooks, read_profile


class SmallRepository:
    """Writes notebooks and configuration, and runs batches on them."""

    def __init__(self, root):
        self.root, self.output = root, root / "output.txt"
        shutil.copytree(
            ROOT / "workflow", root / "workflow", ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.copy(ROOT / "Snakefile", root / "Snakefile")
        for folder in ("config", "notebooks", "tplrepro"):
            (root / folder).mkdir()
        self.write("requirements.lock", "numpy==2.0\n")
        self.write("tplrepro/module.py", "answer = 42\n")
        self.configure()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def notebook(self, name, *cells, parameters="value: float = 0.5\nseed: int = 1"):
        path = self.write(f"notebooks/{name}.ipynb", "")
        tagged = new_code_cell(parameters, metadata={"tags": ["parameters"]})
        content = new_notebook(
            cells=[new_markdown_cell("# Title"), tagged, *map(new_code_cell, cells)]
        )
        for number, cell in enumerate(content.cells):
            cell["id"] = f"cell-{number}"
        nbformat.write(content, path)
        return path

    def configure(self, notebooks="", profiles="quick:\npaper:\n"):
        """Each argument is the YAML text of one file."""
        self.write("config/notebooks.yaml", notebooks)
        self.write("config/profiles.yaml", profiles)

    def of(self, *names):
        """Notebooks of these names, configured with nothing of their own."""
        for name in names:
            self.notebook(name)
        self.configure("".join(f"{name}:\n" for name in names))

    def entry(self, name):
        """What functions of the workflow take: the notebook's entry, the quick profile and the
        folder."""
        return read_notebooks(self.root)[name], read_profile("quick", self.root), self.root

    def batch(self, *only, profile="quick", jobs=2):
        """Exit status and words of a batch run in this process."""
        with redirect_stdout(io.StringIO()) as words:
            status = run_batch(profile, jobs=jobs, only=only, root=self.root)
        return status, words.getvalue()

    @contextmanager
    def running(self, *options):
        """A batch in a process group of its own, which writes to `output` and is killed at the
        end."""
        command = [sys.executable, "-m", "workflow.batch.run_batch", "--jobs", "2", *options]
        # A shell's background jobs, which these tests may be, ignore interrupts.
        settings = {
            "start_new_session": True,
            "preexec_fn": partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        }
        with open(self.output, "w") as output:
            batch = subprocess.Popen(
                command, cwd=self.root, stdout=output, stderr=output, **settings
            )
        try:
            yield batch
        finally:
            if batch.poll() is None:
                os.killpg(batch.pid, signal.SIGKILL)
                batch.wait()

    def result(self, name, profile="quick"):
        return self.root / "build" / profile / "notebooks" / f"{name}.ipynb"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("TPLREPRO_")]:
        monkeypatch.delenv(name)
    return SmallRepository(tmp_path)
