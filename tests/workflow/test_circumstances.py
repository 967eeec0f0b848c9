"""Little memory, no home, no language. Kills, full disks, threads and forks are tested beside what
they threaten."""

import os
import subprocess
import sys

import pytest

from tests.page.serving import PATIENCE
from workflow.configuration import ROOT

SMALL = """
import tplrepro as tpl
print(tpl.allocate_by_upper_bound(1.0, [[0.8, 0.2], [0.1, 0.9]], None))
"""
LARGE = """
import numpy as np, tplrepro as tpl
print(tpl.PrivacyLossFunction(np.random.default_rng(0).dirichlet(np.ones(300), 300))(1.0))
"""


def run(*command, **environment):
    settings = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "OPENBLAS_NUM_THREADS": "1",
    } | environment
    return subprocess.run(command, env=settings, capture_output=True, timeout=PATIENCE)


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the limit of the address space is not kept"
)
def test_little_memory_ends_in_a_message_of_ours_and_small_problems_need_none():
    script = 'ulimit -v 600000; exec "$@"'
    small, large = (
        run("sh", "-c", script, "sh", sys.executable, "-c", code) for code in (SMALL, LARGE)
    )
    assert (small.returncode, small.stdout) == (0, run(sys.executable, "-c", SMALL).stdout)
    assert large.returncode == 1
    said = large.stderr.splitlines()[-1]
    assert said.startswith(b"MemoryError: compiled kernels need 700 MiB of address space, found ")


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the limit of the address space is not kept"
)
@pytest.mark.parametrize(
    ("megabytes", "status"), [(100, 2), (400, 2), (550, 0), (1200, 0), (2000, 0)]
)
def test_a_report_under_a_limit_of_memory_is_made_or_says_so(tmp_path, megabytes, status):
    found = report_under_a_limit(tmp_path, megabytes, rows=1000)
    assert found.returncode == status, found.stderr
    assert b"Traceback" not in found.stderr
    assert (b"500 MiB of address space are needed, found " in found.stderr) == (status == 2)


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the limit of the address space is not kept"
)
def test_a_report_of_many_steps_needs_no_room_for_compiled_kernels(tmp_path):
    small, large = (
        report_under_a_limit(tmp_path, megabytes, rows=70_000) for megabytes in (600, 2000)
    )
    assert (small.returncode, small.stdout) == (0, large.stdout), small.stderr


def report_under_a_limit(folder, megabytes, rows):
    """A finished process of `tplrepro report` on so many rows, with so much address space."""
    table = folder / "table.csv"
    table.write_text(
        "user,day,place\n" + "".join(f"{k % 20},{k // 20},{k * k % 7 % 3}\n" for k in range(rows))
    )
    words = [sys.executable, "-m", "tplreport.command", "report", str(table)]
    words += ["--alpha", "1", "--horizon", "5"]
    script = f'ulimit -v {megabytes}000; exec "$@"'
    return run("sh", "-c", script, "sh", *words, OPENBLAS_NUM_THREADS="8")


@pytest.mark.slow
@pytest.mark.parametrize(
    "circumstances", [{"LC_ALL": "C"}, {"LC_ALL": "C", "HOME": "/dev/null"}, {"LANG": "xx_YY"}]
)
def test_the_command_prints_the_same_without_a_language_and_a_home(tmp_path, circumstances):
    table = tmp_path / "données.csv"
    table.write_text(
        "user,day,place\n"
        + "".join(f"{k % 7},{k // 7},{'café' if k % 3 else '家'}\n" for k in range(200)),
        "utf-8",
    )
    words = [
        sys.executable,
        "-m",
        "tplreport.command",
        "report",
        str(table),
        "--user",
        "user",
        "--time",
        "day",
    ]
    words += ["--state", "place", "--alpha", "1", "--horizon", "5", "--html"]
    found = [
        run(*words, str(tmp_path / name), **given)
        for name, given in (("a.html", {}), ("b.html", circumstances))
    ]
    assert [one.returncode for one in found] == [0, 0], found[1].stderr.decode()
    assert found[0].stdout.replace(b"a.html", b"b.html") == found[1].stdout
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
