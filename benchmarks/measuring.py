"""Timers, memory and processes that the sections of the benchmarks share."""

import cProfile
import json
import os
import pstats
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parent.parent
#: Seconds between two looks at the memory of this process.
LOOK_EVERY = 0.002


def seconds_of(call: Callable[..., Any]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def seconds_in_turn(rounds: int, *calls: Callable[..., Any]) -> list[list[float]]:
    """The seconds of each call, a list a call: all take turns, so that a drift of the machine's
    speed meets each of them. A first round warms up and does not count."""
    for call in calls:
        call()
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, of_call in zip(calls, times, strict=True):
            of_call.append(seconds_of(call))
    return times


def repeat(times: int, call: Callable[..., Any]) -> None:
    """Make a call this many times."""
    for _ in range(times):
        call()


def processor_seconds(call: Callable[..., Any]) -> float:
    """Seconds of the processor that a call takes in one thread, the least of three after one."""
    call()
    times = []
    with threadpool_limits(1):
        for _ in range(3):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
    return min(times)


@dataclass(frozen=True)
class Profiled:
    """What a profile says of one function."""

    calls: int
    share: float  # of the time, with what it calls
    own_share: float  # without


def profile_of(call: Callable[..., Any]) -> dict[str, Profiled]:
    """What a call spends in each function, by the function's name, in one thread and after a first
    call."""
    call()
    with threadpool_limits(1), cProfile.Profile() as profile:
        call()
    found: Any = pstats.Stats(profile)  # its numbers have no declared types
    functions = {}
    for (*_, name), (calls, _, own, inside, _) in found.stats.items():
        functions[name] = Profiled(calls, inside / found.total_tt, own / found.total_tt)
    return functions


def resident_bytes() -> int:
    """Bytes of memory that this process holds now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def peak_bytes() -> int:
    """The most bytes that this process has held; `ru_maxrss` may be that of who started it
    (Linux)."""
    status = Path("/proc/self/status").read_text()
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+)", status)
    return 1024 * int(kilobytes)


class MemoryWatch:
    """Looks at the memory of this process while its block runs."""

    def __enter__(self) -> "MemoryWatch":
        self.before = resident_bytes()
        self.largest = 0
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._finished.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._finished.wait(LOOK_EVERY):
            self.largest = max(self.largest, resident_bytes())

    @property
    def more(self) -> int:
        """The most bytes beyond those at the start."""
        return max(self.largest - self.before, 0)


def in_process(
    function: Callable[..., dict], *arguments: object, environment: Mapping[str, str] | None = None
) -> dict:
    """What a function of a section returns in a process of its own, which has loaded nothing yet.

    Arguments are passed as JSON; `environment` adds variables to that of this process. With the
    functions of a module that nothing else imports, the memory of a process is that of the
    function. Bytecode is kept, as an installation does: else each process compiles all modules.
    """
    variables = os.environ | dict(environment or {})
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    name = f"{function.__module__}:{function.__qualname__}"
    command = [sys.executable, "-m", "benchmarks.child", name, json.dumps(arguments)]
    done = subprocess.run(
        command, cwd=ROOT, env=variables, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout)


@dataclass(frozen=True)
class Run:
    """What a command printed and took."""

    done: subprocess.CompletedProcess
    wall: float  # seconds
    processors: float  # seconds of all processors


def run_command(command: list[str], **settings: Any) -> Run:
    """Run a command with the settings of `subprocess.run`."""
    before = _processor_seconds_of_children()
    start = time.perf_counter()
    done = subprocess.run(command, **settings)
    wall = time.perf_counter() - start
    return Run(done, wall, _processor_seconds_of_children() - before)


def _processor_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
