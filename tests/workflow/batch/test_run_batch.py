import fcntl
import json
import os
import re
import shutil
import signal
import threading
from contextlib import suppress
from unittest import mock

import nbformat
import psutil
import pytest

from tests.page.serving import PATIENCE, wait_until
from workflow.batch import run_batch, run_notebook
from workflow.batch.fingerprint import is_current, read_status
from workflow.configuration import Profile

BAR = (
    "from tplrepro import progress\nprogress.PATIENCE = -1.0\n"
    "_ = [*progress.with_progress(range(3), 'steps', 'step')]"
)
SAVE = "from experiments import figures, parameters\nparameters.check()\n"
SAVE += "figures.save_figure(figures.subplots()[0], 'a/one', results={'value': value})"


@pytest.mark.notebook
def test_killed_and_repaired_the_batch_runs_the_rest_only(repository, monkeypatch):
    monkeypatch.setenv("TPLREPRO_PICTURES", "no")
    go_on = repository.root / "go-on"
    wait = (
        "import pathlib, time\n"
        f"while not pathlib.Path({str(go_on)!r}).exists():\n    time.sleep(0.05)"
    )
    repository.notebook("a/bad", "limit = 1\nassert value < limit < value")
    repository.notebook("a/one", "print(f'value {value}')", BAR, SAVE)
    repository.notebook("a/slow", wait)
    one = "a/one: {quick: {value: 0.75}}"
    repository.configure(f"a/bad: {{figure: false}}\n{one}\na/slow: {{figure: false}}")
    build = repository.root / "build/quick"

    # One notebook fails, and the next one still runs; a third is in the middle.
    with repository.running("--jobs=3") as killed:
        wait_until(
            lambda: (
                read_status("a/bad", "quick", repository.root)
                and repository.result("a/one").is_file()
            )
        )
        wait_until((build / "partial/a/slow.ipynb").is_file)
        # Two batches at once would write the same files.
        status, words = repository.batch()
        assert (status, f"Another batch is running (process {killed.pid}" in words) == (3, True)
        others = psutil.Process(killed.pid).children(recursive=True)
        snakemake = next(process for process in others if "snakemake" in process.cmdline())
        others.remove(snakemake)
        for process in (killed, snakemake):  # as by the out-of-memory killer
            process.kill()
            process.wait()
        # Its notebooks, still running, keep other batches away.
        status, words = repository.batch()
        for process in others:
            with suppress(psutil.NoSuchProcess):  # that of a/one may have ended by itself
                process.kill()
        with open(repository.root / "build/lock", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # which a killed process keeps until it has ended
    assert (status, "); wait for it or end it" in words) == (3, True)
    assert any(f"process {process.pid} runs a/slow;" in words for process in others)
    error = "AssertionError: assert value < limit < value"
    for words in ("Profile quick: 3 of 3 notebooks to run, synthetic data", "[2/3]", error):
        assert words in repository.output.read_text()
    assert not any(repository.result(name).exists() for name in ("a/bad", "a/slow"))

    # The executed copy holds the injected parameter and no bar, the log shows how far cells and
    # computations are, and the figure's record says where it came from.
    outputs = [
        cell.get("outputs")
        for cell in nbformat.read(repository.result("a/one"), as_version=4).cells
    ]
    assert "value 0.75" in json.dumps(outputs[2:4])
    assert outputs[4:5] == [[]]
    log = (build / "logs/a/one.log").read_text()
    assert re.search(
        r"Executing: +0%.*\n(.|\n)*steps: +33%.*\n(.|\n)*Executing: 100%.*6/6 .*\n", log
    )
    record = json.loads((build / "figures/a/one.json").read_text())
    assert (record["results"], record["command"]) == ({"value": 0.75}, "make figures PROFILE=quick")
    assert read_status("a/one", "quick", repository.root)["seconds"] > 0
    before = repository.result("a/one").stat().st_mtime_ns

    # After the repair what failed and what was killed run again.
    repository.notebook("a/bad", "assert True")
    go_on.touch()
    status, words = repository.batch()
    assert status == 0, words
    assert re.search(r"2 of 3 notebooks to run(.|\n)*\na/slow .* ok\n", words)
    assert repository.result("a/one").stat().st_mtime_ns == before
    assert not list((build / "partial").rglob("*.ipynb"))

    # Nothing to do costs nothing, whatever was touched; a change in the package is a reason to run
    # again.
    for path in (repository.root / "notebooks").rglob("*.ipynb"):
        path.touch()
    status, words = repository.batch()
    assert (status, "0 of 3 notebooks to run" in words) == (0, True)
    repository.write("tplrepro/module.py", "answer = 43\n")
    assert not any(is_current(*repository.entry(name)) for name in ("a/bad", "a/slow"))


def test_a_notebook_that_saves_nothing_has_failed_and_only_limits_what_runs(
    repository, monkeypatch
):
    """Without kernels: the cells of every notebook succeed."""
    repository.of("a/none", "a/other")
    ran = []

    def snakemake(planned, jobs, lock):
        monkeypatch.setenv("TPLREPRO_BATCH", planned.number)
        for name in planned.waiting:
            ran.append(run_notebook.run_notebook(name, planned.profile, root=planned.root))
        return 1

    monkeypatch.setattr(run_notebook, "execute", lambda *given: None)
    monkeypatch.setattr(run_batch, "run_snakemake", snakemake)
    with mock.patch.dict(os.environ):
        status, words = repository.batch("a/none")
    assert (status, repository.result("a/none").exists()) == (1, False)
    assert [run["error"].split(";")[0] for run in ran] == ["saved nothing under its own name"]
    assert "1 of 1 notebooks to run" in words
    assert re.search(
        r"(?m)^a/none .* failed$(.|\n)*a/none: see build/quick/partial/a/none.ipynb", words
    )


@pytest.mark.parametrize(
    ("only", "given", "data", "message"),
    [
        (["a/none"], {}, "", "ONLY: no notebook is called 'a/none'"),
        (
            [],
            {},
            "/nowhere",
            "TPLREPRO_DATA must name a folder with the data, found '/nowhere'; correct it",
        ),
        *(
            ([], {"profile": one}, "", f"paper, quick, found {one!r}; write")
            for one in ("fast", "../../etc", "x; y")
        ),
        (
            [],
            {"jobs": 0},
            "",
            "JOBS must be a whole number of notebooks at once, at least 1, found 0",
        ),
        (
            [],
            {"jobs": -1},
            "",
            "JOBS must be a whole number of notebooks at once, at least 1, found -1",
        ),
    ],
)
def test_wrong_settings_are_named_before_anything_runs(
    repository, monkeypatch, only, given, data, message
):
    monkeypatch.setenv("TPLREPRO_DATA", data)
    status, words = repository.batch(*only, **given)
    assert (status, message in words) == (2, True)
    assert not (repository.root / "build").exists()


def test_a_folder_without_permission_and_a_full_disk_are_named_before_anything_runs(
    repository, monkeypatch
):
    repository.of("a/none")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: mock.Mock(free=3 << 20))
    status, words = repository.batch()
    assert (status, "must have 16 MB free, found 3 MB; free some" in words) == (2, True)
    shutil.rmtree(repository.root / "build")
    repository.write("build", "a file")
    status, words = repository.batch()
    assert (status, "must be a folder that can be written to, found: Not a directory" in words) == (
        2,
        True,
    )


@pytest.fixture
def hung(repository):
    """A file that appears when a notebook's kernel keeps Python's own lock for ever: only a kill
    ends it."""
    started = repository.root / "started"
    hang = f"import ctypes\nopen({str(started)!r}, 'w').close()\nctypes.PyDLL(None).sleep(600)"
    repository.notebook("a/hung", hang)
    repository.configure("a/hung: {figure: false}", "quick: {hours: 0.05}\npaper:\n")
    return started


@pytest.mark.notebook
def test_a_notebook_that_hangs_fails_after_the_hours_of_its_profile(repository, hung):
    before = psutil.Process().children()  # of other tests

    def expire():
        """The alarm that the limit has set rings as soon as the notebook hangs."""
        wait_until(hung.exists)
        left.append(signal.getitimer(signal.ITIMER_REAL)[0])
        os.kill(os.getpid(), signal.SIGALRM)

    left, impatient = [], threading.Thread(target=expire)
    impatient.start()
    with mock.patch.dict(os.environ):
        status = run_notebook.run_notebook("a/hung", "quick", root=repository.root)
    impatient.join()
    assert 0.0 < left[0] < 3600 * 0.05
    assert status["status"] == "failed"
    assert status["error"].startswith(
        "TimeLimitError: ran for 0.05 h, the limit in config/profiles.yaml; find what"
    )
    assert not set(psutil.Process().children()) - set(before)


@pytest.mark.parametrize(
    ("failures", "error"),
    [
        (["Kernel died"], None),
        (["Kernel died", "Kernel died"], "RuntimeError: Kernel died"),
        (["no disk"], "RuntimeError: no disk"),
    ],
)
def test_a_kernel_that_dies_at_its_start_is_started_once_more(
    tmp_path, monkeypatch, failures, error
):
    left = list(map(RuntimeError, failures))

    def execute_notebook(*given, **options):
        if left:
            raise left.pop(0)

    monkeypatch.setattr("papermill.execute_notebook", execute_notebook)
    profile = Profile("quick")
    assert run_notebook.execute(tmp_path / "a.ipynb", tmp_path / "b.ipynb", {}, profile) == error
    assert left == []


@pytest.mark.notebook
@pytest.mark.parametrize(
    ("number", "end", "expected"),
    [
        (signal.SIGTERM, os.kill, 143),
        pytest.param(signal.SIGINT, os.killpg, 130, marks=pytest.mark.slow),
    ],
)
def test_a_terminated_or_interrupted_batch_ends_its_notebooks(
    repository, hung, number, end, expected
):
    """As `kill` sends it to one process, and a terminal to the whole group."""
    with repository.running("--profile", "paper") as batch:
        wait_until(hung.exists)
        started = psutil.Process(batch.pid).children(recursive=True)
        end(batch.pid, number)
        assert batch.wait(PATIENCE) == expected
        assert [
            process for process in started if process.is_running() and process.status() != "zombie"
        ] == []
    assert "Interrupted. The same command finishes the rest." in repository.output.read_text()
    assert read_status("a/hung", "paper", repository.root) == {}


@pytest.mark.slow
@pytest.mark.notebook
@pytest.mark.parametrize("alone", [True, False])
def test_timing_notebooks_run_alone_where_times_are_evidence(repository, alone):
    """Each notebook notes when it began and ended; nothing may overlap with the one that
    measures."""
    note = "import pathlib, time\nbegan = time.time()\ntime.sleep(0.7)\n"
    note += "pathlib.Path(folder, label).write_text(f'{began} {time.time()}')"
    names = ("first", "second", "timing", "fourth")
    for name in names:
        parameters = f"folder = {str(repository.root)!r}\nlabel = {name!r}"
        repository.notebook(f"a/{name}", note, parameters=parameters)
    facts = "\n".join(f"a/{name}: {{figure: false, timing: {name == 'timing'}}}" for name in names)
    repository.configure(facts, f"quick: {{alone: {alone}}}\npaper:\n")
    assert repository.batch()[0] == 0
    spans = {
        name: tuple(map(float, (repository.root / name).read_text().split())) for name in names
    }
    began, ended = spans.pop("timing")
    assert all(end <= began or start >= ended for start, end in spans.values()) == alone
