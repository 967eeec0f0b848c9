"""A small repository of its own with the real workflow and tiny notebooks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).resolve().parents[2]


class SmallRepository:
    """Writes notebooks and configuration, and runs batches on them."""

    def __init__(self, root):
        self.root = root
        shutil.copytree(ROOT / "workflow", root / "workflow", ignore=shutil.ignore_patterns("__pycache__"))
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
        path = self.root / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        tagged = new_code_cell(parameters, metadata={"tags": ["parameters"]})
        content = new_notebook(cells=[new_markdown_cell("# Title"), tagged, *map(new_code_cell, cells)])
        for number, cell in enumerate(content.cells):
            cell["id"] = f"cell-{number}"
        nbformat.write(content, path)
        return path

    def configure(self, notebooks="", quick="", paper=None):
        """Each argument is the YAML text of one file; the paper's profile is the quick one by default."""
        self.write("config/notebooks.yaml", notebooks)
        self.write("config/quick.yaml", quick)
        self.write("config/paper.yaml", quick if paper is None else paper)

    def command(self, *options):
        return [sys.executable, "-m", "workflow.batch", "--jobs", "2", *options]

    def environment(self, **changes):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TPLREPRO_")}
        return {**environment, **changes}

    def batch(self, *options, **changes):
        return subprocess.run(
            self.command(*options),
            cwd=self.root,
            env=self.environment(**changes),
            capture_output=True,
            text=True,
            timeout=240,
        )

    def result(self, name, profile="quick"):
        return self.root / "build" / profile / "notebooks" / f"{name}.ipynb"


@pytest.fixture
def repository(tmp_path):
    return SmallRepository(tmp_path)
