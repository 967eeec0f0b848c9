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


# Some of the lowest versions have no wheels for newer versions of Python.
RUNS = [("3.11", "lowest"), *((version, "newest") for version in ("3.11", "3.12", "3.13", "3.14"))]


@pytest.mark.parametrize(("version", "libraries"), RUNS)
def test_the_wheel_runs_the_readme_example_the_guide_and_the_command(
    wheel, version, libraries, tmp_path
):
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "--version"], capture_output=True).returncode:
        pytest.skip(f"Python {version} is not installed")
    run(python, "-m", "venv", tmp_path / "env")
    own = tmp_path / "env" / "bin" / "python"
    # whose bounds are those of pyproject.toml
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    bounds = (
        recipe["requirements"]["run"][1:]
        + recipe["requirements"]["run_constraints"]
        + ["matplotlib >=3.9"]
    )
    lowest = tmp_path / "lowest.txt"
    lowest.write_text("\n".join(bounds).replace(" >=", "=="))
    install = [
        own,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        *(["-c", lowest] * (libraries == "lowest")),
    ]
    run(*install, wheel)
    (installed,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    # Without pip itself, which every environment has, and the byte code that Python writes on the
    # first import.
    files = [
        file
        for file in installed.rglob("*")
        if file.is_file() and file.relative_to(installed).parts[0] != "pip"
    ]
    assert sum(file.stat().st_size for file in files if file.suffix != ".pyc") < 500e6
    assert wheel.stat().st_size < 400_000
    run(*install, f"{wheel}[counts,data,events]", "matplotlib")
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
    write_examples(tmp_path)
    (command,) = re.findall(r"`tplrepro (report [^`]+)`", readme)
    assert "30 releases" in run(tmp_path / "env/bin/tplrepro", *command.split(), cwd=tmp_path)
    for script in recipe["tests"][1]["script"]:
        run("sh", "-c", f'PATH="{own.parent}:$PATH"; {script}', cwd=tmp_path)


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
