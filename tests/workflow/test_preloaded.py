import json
import os
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest

from workflow.configuration import ROOT
from workflow.preloaded import SOCKET, module_command, preloaded

# A module that tells how it was run, and then does what it is told.
TELL = """
import json, os, sys, time
given = os.environ.get("GIVEN")
print(json.dumps([sys.argv, sys.path[0], os.getcwd(), given, sorted(sys.modules), os.getppid()]), flush=True)
print("error", file=sys.stderr)
match sys.argv[1:]:
    case ["fail"]: sys.exit(3)
    case ["die"]: os.kill(os.getpid(), 9)
    case ["wait"]: time.sleep(600)
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="forks of loaded libraries are for Linux alone")


@pytest.fixture(scope="module")
def environment():
    with preloaded(dict(os.environ), ROOT, 4) as (environment, held):
        yield environment
    assert held.closed


@pytest.fixture
def run(environment, tmp_path):
    (tmp_path / "tell.py").write_text(TELL)

    def run(*words, **variables):
        given = {"cwd": tmp_path, "env": environment | variables, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(module_command("tell", *words), text=True, **given)

    return run


def told(process):
    arguments, first, folder, given, modules, parent = json.loads(process.stdout.readline())
    return arguments[1:], first, folder, given, set(modules), parent


def test_a_fork_runs_a_module_as_python_would_with_the_libraries_loaded(run, tmp_path):
    with run("fail", GIVEN="1") as forked, run("fail", GIVEN="1", **{SOCKET: ""}) as plain:
        for process in (forked, plain):
            *as_given, modules, parent = told(process)
            assert as_given == [["fail"], str(tmp_path), str(tmp_path), "1"]
            assert process.stderr.read() == "error\n"
            assert process.wait() == 3
            assert ("papermill" in modules, parent == os.getpid()) == (
                (True, False) if process is forked else (False, True)
            )
            # What a run imported of our own stands in its record.
            assert not any(name.split(".")[0] == "tplrepro" for name in modules)


@pytest.mark.parametrize("name", ["NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONHASHSEED", "MPLCONFIGDIR"])
def test_other_settings_of_libraries_need_a_python_of_their_own(run, name):
    with run(**{name: "7"}) as process:
        assert "papermill" not in told(process)[-2]


def test_signals_and_deaths_are_passed_on(run):
    with run("die") as process:
        assert process.wait() == 128 + signal.SIGKILL
    for number in (signal.SIGTERM, signal.SIGKILL):
        with run("wait") as process:
            server = psutil.Process(told(process)[-1])
            process.send_signal(number)
            assert process.wait() == (128 + number if number == signal.SIGTERM else -number)
        limit = time.monotonic() + 60
        while server.children():
            assert time.monotonic() < limit, "the fork lives on"
            time.sleep(0.01)


def test_who_asks_and_goes_disturbs_nobody(run, environment):
    request = json.dumps([["-m", "keyword"], "/", environment]).encode()
    for message in (None, request):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
            asking.connect(environment[SOCKET])
            if message is not None:
                socket.send_fds(asking, [message], [0, 1, 2])
    with run() as process:
        assert "papermill" in told(process)[-2]
        assert process.wait() == 0


def test_the_server_has_loaded_the_libraries_before_anybody_asks():
    others = psutil.Process().children()
    with preloaded(dict(os.environ), ROOT, 4):
        (server,) = set(psutil.Process().children()) - set(others)
        assert any("llvmlite" in library.path for library in server.memory_maps())


def test_a_server_that_ends_while_it_loads_holds_nobody_up(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import os, sys; 'workflow.preloaded' in sys.orig_argv and os._exit(1)")
    (tmp_path / "tell.py").write_text("import sys; print('papermill' in sys.modules)")
    with preloaded(os.environ | {"PYTHONPATH": str(tmp_path)}, ROOT, 4) as (environment, _):
        given = {"cwd": tmp_path, "env": environment, "capture_output": True, "timeout": 120}
        assert subprocess.run(module_command("tell"), **given).stdout == b"False\n"


def test_the_server_ends_with_the_last_who_holds_it():
    start = (
        "import os\nfrom workflow.preloaded import preloaded\nwith preloaded(dict(os.environ), '.', 4):\n    os.abort()"
    )
    # It writes to the same pipe, which is read to its end.
    process = subprocess.run([sys.executable, "-c", start], cwd=ROOT, capture_output=True, timeout=120)
    assert process.returncode == -signal.SIGABRT
