"""The wheel in empty environments of each Python, with the newest and with the lowest versions of
what it needs; and the source distribution, whose tests run."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

from workflow.checks.gate import write_examples
from workflow.configuration import ROOT

pytestmark = pytest.mark.slow


def run(*words, **given):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **given)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        folder,
        ROOT,
    )
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def uv(tmp_path_factory):
    """Pip resolves to the newest versions only."""
    folder = tmp_path_factory.mktemp("uv")
    venv.create(folder, with_pip=True)
    run(folder / "bin/python", "-m", "pip", "install", "--quiet", "uv")
    return folder / "bin" / "uv"


def interpreter(version):
    """The Python of this version that `PATH` or pyenv has."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")]
    for python in filter(None, candidates):
        if subprocess.run([python, "--version"], capture_output=True).returncode == 0:
            return python
    pytest.skip(f"Python {version} is not installed")


EXTRAS = ("counts", "dask", "data", "events", "pm4py", "solvers")
#: A use of each extra that README, the guide and the command leave out, and what it prints.
USES = {
    "solvers": (
        """
import warnings
import pulp, tplrepro as tpl
warnings.simplefilter("error")  # of PuLP on its next version
solvers = ["HiGHS", "highspy"]
if int(pulp.__version__.split(".")[0]) < 4:  # PuLP brings CBC
    solvers.append("CBC")
P = [[0.8, 0.2], [0.0, 1.0]]
print({round(tpl.linear_program.loss(P, 0.1, solver=solver), 6) for solver in solvers})
""",
        "{0.080784}",
    ),
    "dask": (
        """
import joblib, tplreport as tr
from dask.distributed import Client
walks = {user: [user % 2, 0, 1, user % 3] for user in range(50)}
alone = tr.population_leakage(walks, [0.1] * 3)
with Client(processes=False, n_workers=1, dashboard_address=None):
    with joblib.parallel_config(backend="dask"):
        print((tr.population_leakage(walks, [0.1] * 3, batch_size=10).tpl == alone.tpl).all())
""",
        "True",
    ),
    "pm4py": (
        """
import pandas as pd, pm4py, tplreport as tr
names = ["case:concept:name", "concept:name", "time:timestamp"]
days = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"], utc=True)
log = pd.DataFrame(dict(zip(names, [["1", "1", "2"], ["a", "b", "a"], days])))
pm4py.write_xes(log, "log.xes")
print(tr.read_xes("log.xes")["concept:name"].tolist())
""",
        "['a', 'b', 'a']",
    ),
}


def size_of(site_packages):
    """Bytes without the byte code that Python writes on the first import."""
    files = (file for file in site_packages.rglob("*") if file.is_file())
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc")


# Where the lowest version of a library has no wheel for a Python, the first that has one counts.
@pytest.mark.parametrize("resolution", ["lowest-direct", "highest"])
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_wheel_runs_the_readme_example_the_guide_the_command_and_each_extra(
    wheel, uv, version, resolution, tmp_path, monkeypatch
):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    run(uv, "venv", "--quiet", "--python", interpreter(version), tmp_path / "env")
    own = tmp_path / "env" / "bin" / "python"
    # whose bounds are those of pyproject.toml
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    package = recipe["requirements"]["run"][1:]
    install = (uv, "pip", "install", "--quiet", "--python", own, "--only-binary", ":all:")
    install += ("--resolution", resolution)
    run(*install, wheel, *package)
    (installed,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    assert size_of(installed) < 500e6
    bounds = [*package, *recipe["requirements"]["run_constraints"], "matplotlib >=3.9"]
    run(*install, f"{wheel}[{','.join(EXTRAS)}]", *bounds)
    readme = (ROOT / "README.md").read_text()
    code = "".join(re.findall(r"```python\n(.*?)```", readme, re.S))
    assert [run(own, "-c", code, cwd=tmp_path)] == re.findall(r"```text\n(.*?)```", readme, re.S)
    assert run(own, "-c", "import tplrepro; print(tplrepro.__path__[0])", cwd=tmp_path).startswith(
        str(tmp_path)
    )
    for guide in (ROOT / "docs" / "guide").glob("*.md"):
        if "from experiments" in guide.read_text():
            continue  # needs a stand-in of the repository, where make test runs it
        page = f"import doctest; print(doctest.testfile({str(guide)!r}, False, optionflags=12))"
        assert "failed=0" in run(own, "-W", "ignore", "-c", page, cwd=tmp_path)
    for code, printed in USES.values():
        lines = run(own, "-W", "ignore", "-c", code, cwd=tmp_path).splitlines()
        assert lines[-1] == printed
    write_examples(tmp_path)
    (command,) = re.findall(r"`tplrepro (report [^`]+)`", readme)
    assert "30 releases" in run(tmp_path / "env/bin/tplrepro", *command.split(), cwd=tmp_path)
    for script in recipe["tests"][1]["script"]:
        run("sh", "-c", f'PATH="{own.parent}:$PATH"; {script}', cwd=tmp_path)


def test_the_package_index_accepts_the_page_and_the_archives(wheel, uv, tmp_path):
    run(uv, "venv", "--quiet", tmp_path / "env")
    own = tmp_path / "env" / "bin" / "python"
    run(uv, "pip", "install", "--quiet", "--python", own, "twine")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=ROOT)
    (archive,) = tmp_path.glob("*.tar.gz")
    checked = run(own, "-m", "twine", "check", "--strict", wheel, archive)
    assert checked.count("PASSED") == 2


def test_the_wheel_holds_source_and_one_table_alone_and_each_of_its_extras_is_used(wheel):
    with zipfile.ZipFile(wheel) as files:
        packaged = [Path(name) for name in files.namelist() if ".dist-info/" not in name]
        assert {path.parts[0] for path in packaged} == {"tplrepro", "tplfrontier", "tplreport"}
        assert {path.suffix for path in packaged} - {".typed"} == {".csv", ".py", ".pyi"}
        tables = [path.as_posix() for path in packaged if path.suffix == ".csv"]
        assert tables == ["tplreport/reporting/simulated_plans.csv"]
        assert max(files.getinfo(path.as_posix()).file_size for path in packaged) < 100_000
        (metadata,) = (name for name in files.namelist() if name.endswith("/METADATA"))
        provided = re.findall(r"^Provides-Extra: (\S+)$", files.read(metadata).decode(), re.M)
    assert sorted(provided) == sorted(EXTRAS)


def test_the_tests_of_the_source_distribution_are_collected_and_run(tmp_path):
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=ROOT)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    for name in ("Makefile", "Snakefile", "config/notebooks.yaml", "figures/tkde2019/fig3.json"):
        assert (unpacked / name).is_file(), name
    pytest_here = (sys.executable, "-m", "pytest", "-p", "no:nbval", "-q")
    own = {"cwd": unpacked, "env": os.environ | {"PYTHONPATH": str(unpacked)}}
    assert "error" not in run(*pytest_here, "--collect-only", **own).splitlines()[-1]
    some = ("tests/test_structure.py", "tests/workflow/test_repository.py")
    assert " passed" in run(*pytest_here, *some, **own).splitlines()[-1]


def test_a_strict_type_checker_knows_the_types_of_the_readme_example(wheel, tmp_path):
    venv.create(tmp_path / "env")
    (installed,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(installed)
    (installed / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    readme = (ROOT / "README.md").read_text()
    first, *others = re.findall(r"```python\n(.*?)```", readme, re.S)
    names = ("P", "leakage", "budgets", "noisy")
    revealed = "".join(f"reveal_type({name})\n" for name in names)
    (tmp_path / "example.py").write_text("".join([first, revealed, *others]))
    own = ("--python-executable", tmp_path / "env" / "bin" / "python")
    options = ("--strict", "--cache-dir", tmp_path / "cache", *own)
    told = run(sys.executable, "-m", "mypy", *options, "example.py", cwd=tmp_path)
    types = re.findall(r'Revealed type is "(.*)"', told)
    starts = ("tplrepro.", "tplrepro.", "numpy.ndarray", "numpy.ndarray")
    for shown, start in zip(types, starts, strict=True):
        assert shown.startswith(start)
