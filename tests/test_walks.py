"""How many of our files a reader walks through from a question to its answer: those that its run
imports.

Files that name what a folder holds, ``__init__``, do not count, and the room of the joint hull,
which others enter by its face alone, counts once. The numbers may only fall: aimed at are 9, 13 and
8.
"""

import subprocess
import sys

import pytest

from workflow.configuration import ROOT

BUDGETS = "import tplrepro as tpl; tpl.allocate_by_quantification(1.0, {0}, {0}, horizon=5)\n"
SAVE = (
    "from experiments import figures; "
    "figures.save_figure(figures.subplots()[0], 'a/b', results={'x': 1})\n"
)
READ = "import tplreport as tr; walks = tr.read_sequences('{0}/visits.csv')\n"
CHAIN = "chain = tpl.TransitionMatrix.from_sequences(walks, smoothing=0.1)\n"
RUN = "from workflow.batch.run_notebook import run_notebook\n"
COUNT = """
import sys
rooms = ("tplrepro", "tplfrontier", "tplreport", "experiments", "page", "workflow")
files = {module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] in rooms}
files = {file for file in files if "/envelope/" in file or not file.endswith("__init__.py")}
rooms = {file.partition("/envelope/")[0] for file in files}
print(*sorted(rooms), sep="\\n")
"""


@pytest.mark.parametrize(
    ("steps", "most"),
    [
        (BUDGETS.format("[[0.8, 0.2], [0.1, 0.9]]"), 9),
        (READ + "import tplrepro as tpl\n" + CHAIN + BUDGETS.format("chain"), 18),
        # From a line of config/ to a record: the process that runs a notebook, and the notebook
        # that saves.
        (RUN + SAVE, 8),
    ],
    ids=["matrix to budgets", "table to budgets", "configuration to record"],
)
def test_a_run_imports_no_more_files_than_promised(steps, most, tmp_path, monkeypatch):
    monkeypatch.setenv("TPLREPRO_FIGURES", str(tmp_path))
    (tmp_path / "visits.csv").write_text(
        "user,time,state\n" + "".join(f"a,{t},{t % 3}\n" for t in range(9))
    )
    code = steps.replace("{0}", str(tmp_path)) + COUNT
    files = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT).split()
    assert len(files) <= most, files
