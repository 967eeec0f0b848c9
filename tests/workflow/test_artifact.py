"""The wheel in empty environments of each Python; the Dockerfile's steps in a copy of the tracked files."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workflow.configuration import ROOT
from workflow.gate import write_examples

pytestmark = pytest.mark.slow


def run(*words, **given):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **given)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    return next(folder.glob("*.whl"))


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_wheel_runs_the_readme_example_the_guide_and_the_command(wheel, version, tmp_path):
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "--version"], capture_output=True).returncode:
        pytest.skip(f"Python {version} is not installed")
    run(python, "-m", "venv", tmp_path / "env")
    own = tmp_path / "env" / "bin" / "python"
    run(own, "-m", "pip", "install", "--quiet", "--no-compile", wheel)
    (installed,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    # Without pip itself, which every environment has, and the byte code that Python writes on the first import.
    files = [file for file in installed.rglob("*") if file.is_file() and file.relative_to(installed).parts[0] != "pip"]
    assert sum(file.stat().st_size for file in files if file.suffix != ".pyc") < 500e6
    assert wheel.stat().st_size < 400_000
    run(own, "-m", "pip", "install", "--quiet", "--no-compile", f"{wheel}[counts,data,events]", "matplotlib")
    code, printed = re.search(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / "README.md").read_text(), re.S
    ).groups()
    assert run(own, "-c", code, cwd=tmp_path) == printed
    package = Path(run(own, "-c", "import tplrepro; print(tplrepro.__path__[0])", cwd=tmp_path).strip())
    assert ROOT not in package.parents
    for guide in (ROOT / "docs" / "guide").glob("*.md"):
        if "from experiments" in guide.read_text():
            continue  # needs a stand-in of the repository, where make test runs it
        page = f"import doctest; print(doctest.testfile({str(guide)!r}, False, optionflags=12))"
        assert "failed=0" in run(own, "-W", "ignore", "-c", page, cwd=tmp_path)
    write_examples(tmp_path)
    (command,) = re.findall(r"`tplrepro (report [^`]+)`", (ROOT / "README.md").read_text())
    assert "30 releases" in run(tmp_path / "env/bin/tplrepro", *command.split(), cwd=tmp_path)


def test_the_steps_of_the_dockerfile_make_a_figure(tmp_path):
    tracked = run("git", "-C", ROOT, "ls-files", "-z").split("\0")
    for name in filter(None, tracked):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = lines.index("COPY . .")
    steps = [line.removeprefix("RUN ") for line in lines[copied:] if line.startswith("RUN ")]
    assert steps == ["make env"]
    for step in [*steps, "make figures ONLY=tkde2019/fig3"]:
        run("sh", "-c", step, cwd=tmp_path)
    assert (tmp_path / "build/quick/figures/tkde2019/fig3.png").is_file()
