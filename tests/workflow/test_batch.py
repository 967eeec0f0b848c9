import json
import os
import signal
import subprocess
import time

import nbformat
import pytest

pytestmark = pytest.mark.notebook

SAVE = "from tplrepro import figures\nfigures.save_figure(figures.subplots()[0], 'a/one', results={'value': value})"


def wait_for(condition, seconds=60):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.05)


def test_a_batch_from_beginning_to_end(repository):
    repository.notebook("a/one", "print(f'value {value}')", SAVE)
    repository.notebook("a/bad", "limit = 1\nassert value < limit < value")
    repository.notebook("a/none", "print(value)")
    profile = "notebooks:\n  a/bad: {}\n  a/none: {}\n  a/one: {value: 0.75}\n"
    repository.configure("a/bad: {figure: false}\na/none:\na/one:", profile)

    # Two notebooks fail; the other still runs, and each failure is told by name, cell and error.
    first = repository.batch()
    assert first.returncode == 1, first.stdout + first.stderr
    assert "Profile quick: 3 of 3 notebooks to run, synthetic data" in first.stdout
    assert "[3/3]" in first.stdout
    assert "AssertionError: assert value < limit < value" in first.stdout
    assert "saved nothing under its own name; end it with save_figure(figure, 'a/none', ...)" in first.stdout
    assert "a/bad: see build/quick/partial/a/bad.ipynb" in first.stdout
    assert not repository.result("a/bad").exists()
    rows = [line.split() for line in first.stdout.splitlines()]
    assert any(row[:1] == ["a/bad"] and row[-1] == "failed" for row in rows)
    assert any(row[:1] == ["a/one"] and row[-1] == "ok" for row in rows)

    # The executed copy holds the injected parameter, and the figure's record says where it came from.
    executed = nbformat.read(repository.result("a/one"), as_version=4)
    assert "value 0.75" in json.dumps(executed)
    record = json.loads((repository.root / "build/quick/figures/a/one.json").read_text())
    assert record["results"] == {"value": 0.75}
    assert record["command"] == "make figures PROFILE=quick"

    # After the repair only what failed runs again.
    before = repository.result("a/one").stat().st_mtime_ns
    repository.notebook("a/bad", "assert True")
    repository.configure("a/bad: {figure: false}\na/none: {figure: false}\na/one:", profile)
    second = repository.batch()
    assert second.returncode == 0, second.stdout + second.stderr
    assert "2 of 3 notebooks to run" in second.stdout
    assert repository.result("a/one").stat().st_mtime_ns == before

    # Nothing to do costs nothing, whatever was touched.
    for path in (repository.root / "notebooks").rglob("*.ipynb"):
        path.touch()
    third = repository.batch()
    assert third.returncode == 0
    assert "0 of 3 notebooks to run" in third.stdout

    # A change in the package runs them again; ONLY limits that to what is named.
    repository.write("tplrepro/module.py", "answer = 43\n")
    fourth = repository.batch("--only", "a/bad")
    assert fourth.returncode == 0
    assert "1 of 1 notebooks to run" in fourth.stdout
    assert repository.result("a/one").stat().st_mtime_ns == before


def test_killed_in_the_middle_the_batch_finishes_the_rest_only(repository):
    go_on = repository.root / "go-on"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(go_on)!r}).exists():\n    time.sleep(0.05)"
    repository.notebook("a/fast", "print(value)")
    repository.notebook("a/slow", wait)
    facts = "a/fast: {figure: false}\na/slow: {figure: false}"
    repository.configure(facts, "notebooks:\n  a/fast: {}\n  a/slow: {}\n")

    batch = subprocess.Popen(
        repository.command(),
        cwd=repository.root,
        env=repository.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        partial = repository.root / "build/quick/partial/a/slow.ipynb"
        wait_for(lambda: repository.result("a/fast").is_file() and partial.is_file())
        # Two batches at once would write the same files.
        other = repository.batch()
        assert other.returncode == 3
        assert f"Another batch is running (process {batch.pid}" in other.stdout
    finally:
        os.killpg(batch.pid, signal.SIGKILL)
        batch.wait()

    assert not repository.result("a/slow").exists()
    before = repository.result("a/fast").stat().st_mtime_ns
    go_on.touch()
    again = repository.batch()
    assert again.returncode == 0, again.stdout + again.stderr
    assert "1 of 2 notebooks to run" in again.stdout
    assert repository.result("a/slow").is_file()
    assert repository.result("a/fast").stat().st_mtime_ns == before
    assert not list((repository.root / "build/quick/partial").rglob("*.ipynb"))


def test_interrupted_the_batch_says_how_to_go_on(repository):
    repository.notebook("a/slow", "import time\ntime.sleep(60)")
    repository.configure("a/slow: {figure: false}", "notebooks:\n  a/slow: {}\n")
    batch = subprocess.Popen(
        repository.command(),
        cwd=repository.root,
        env=repository.environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for((repository.root / "build/quick/partial/a/slow.ipynb").is_file)
    os.killpg(batch.pid, signal.SIGINT)
    output, _ = batch.communicate(timeout=60)
    assert batch.returncode == 130, output
    assert "Interrupted. The same command finishes the rest." in output


def test_only_must_name_a_notebook(repository):
    done = repository.batch("--only", "a/none")
    assert done.returncode == 2
    assert "ONLY: no notebook is called 'a/none'" in done.stdout


def test_data_folder_must_exist(repository):
    done = repository.batch(TPLREPRO_DATA="/nowhere/at/all")
    assert done.returncode == 2
    assert "TPLREPRO_DATA must name a folder with the data, got '/nowhere/at/all'; correct it, or unset" in done.stdout


@pytest.mark.slow
def test_timing_notebooks_run_alone(repository):
    """Each notebook notes when it began and ended; nothing may overlap with the one that measures."""
    note = "import pathlib, time\nbegan = time.time()\ntime.sleep(0.7)\n"
    note += "pathlib.Path(folder, label).write_text(f'{began} {time.time()}')"
    names = ("first", "second", "timing", "fourth")
    for name in names:
        repository.notebook(f"a/{name}", note, parameters=f"folder = {str(repository.root)!r}\nlabel = {name!r}")
    facts = "\n".join(f"a/{name}: {{figure: false, timing: {str(name == 'timing').lower()}}}" for name in names)
    repository.configure(facts, "notebooks:\n" + "\n".join(f"  a/{name}: {{}}" for name in names))
    assert repository.batch().returncode == 0
    spans = {name: tuple(map(float, (repository.root / name).read_text().split())) for name in names}
    began, ended = spans.pop("timing")
    assert all(end <= began or start >= ended for start, end in spans.values())
