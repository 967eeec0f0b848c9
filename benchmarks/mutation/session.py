"""Run the tests of a room once, and once more in a fork for each change that they reach."""

import builtins
import contextlib
import importlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from benchmarks.mutation import grafting
from benchmarks.mutation.changes import Change, Module

#: A test that takes this many times as long as without a change, and so many seconds, has failed.
TIMES = 4
SECONDS = 10
#: Memory (bytes) that a fork may take beyond that of the process.
MEMORY = 4 << 30
SURVIVED = 0
KILLED = 1


@dataclass
class Reach:
    """What a test reached without a change."""

    seconds: float = 0.0
    probes: set[tuple[str, int]] = field(default_factory=set)
    is_left_out: bool = False


@dataclass(frozen=True)
class Outcome:
    """What the tests made of a change."""

    change: Change
    survived: bool
    #: The test that failed; what is told instead of one if none did.
    by: str


@dataclass(frozen=True)
class _End:
    """How a fork ended, and what it wrote."""

    status: int
    words: str


class Session:
    """Plugin of pytest: once tests are collected, it runs them in its own ways."""

    def __init__(
        self,
        drawn: dict[Module, list[Change]],
        has_plain_kernels: bool,
        tell: Callable[[Outcome], None],
    ):
        self.modules = [*drawn]
        #: Told of each change when it is judged.
        self.tell = tell
        self.drawn = {module.path: changes for module, changes in drawn.items()}
        self.has_plain_kernels = has_plain_kernels
        self.outcomes: list[Outcome] = []
        self.failures: list[str] = []
        self.reaches: dict[str, Reach] = {}
        #: What fixtures of a whole file reached, by file.
        self.shared: dict[str, set[tuple[str, int]]] = {}
        self.current: set[tuple[str, int]] = set()
        self.reports: list[pytest.TestReport] = []
        #: The names that doctests find, which a run of them clears.
        self.names_of_doctests: dict[str, dict[str, Any]] = {}
        #: Whether tests that failed with a change passed once more without it.
        self.passes_again: dict[str, bool] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of running each test once."""
        with contextlib.suppress(ImportError):
            for module in self.modules:
                importlib.import_module(grafting.module_name(module.path))
        if self.has_plain_kernels:
            grafting.run_plain_kernels()
        original = {module.path: module.code() for module in self.modules}
        builtins.__dict__[grafting.PROBE] = lambda probe: self.current.add(probe)
        for module in self.modules:
            probing = grafting.with_probes(module, self.drawn[module.path])
            grafting.replace_code(str(module.file), original[module.path], probing)
        for item in session.items:
            if isinstance(item, pytest.DoctestItem):
                self.names_of_doctests[item.nodeid] = dict(item.dtest.globs)
            self._run_unchanged(item)
        for module in self.modules:
            probing = grafting.with_probes(module, self.drawn[module.path])
            grafting.replace_code(str(module.file), probing, original[module.path])
        for module in self.modules:
            for number, change in enumerate(self.drawn[module.path]):
                items = self._items_for(session.items, change, (module.path, number))
                self.outcomes.append(self._judge(module, change, items))
                self.tell(self.outcomes[-1])
        return True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        """What a fixture of a whole file reaches, each test of the file does."""
        previous = self.current
        if fixturedef.scope != "function":
            self.current = self.shared.setdefault(str(request.node.path), set())
        yield
        self.current = previous

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what pytest reports of the test that runs."""
        self.reports.append(report)

    def _run(self, item: pytest.Item) -> list[pytest.TestReport]:
        """Run a test with all that pytest puts around it, filters of warnings among it."""
        self.reports = []
        if isinstance(item, pytest.DoctestItem):
            item.dtest.globs.update(self.names_of_doctests[item.nodeid])
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return self.reports

    def _run_unchanged(self, item: pytest.Item) -> None:
        """Run a test, and note what it reaches."""
        grafting.clear_caches()
        reach = Reach()
        self.reaches[item.nodeid] = reach
        self.current = reach.probes
        start = time.perf_counter()
        with compiled_kernels_refused(self.has_plain_kernels) as refusals:
            reports = self._run(item)
        reach.seconds = time.perf_counter() - start
        if any(report.failed for report in reports) and not refusals:
            self.failures.append(item.nodeid)
        reach.is_left_out = bool(refusals) or not all(report.passed for report in reports)

    def _items_for(
        self, items: list[pytest.Item], change: Change, probe: tuple[str, int]
    ) -> list[pytest.Item]:
        """The tests that reach a change, fastest first; all if importing the module does."""
        wanted = []
        for item in items:
            reach = self.reaches[item.nodeid]
            reached = probe in reach.probes or probe in self.shared.get(str(item.path), ())
            if not reach.is_left_out and (reached or change.statement is None):
                wanted.append(item)
        return sorted(wanted, key=lambda item: self.reaches[item.nodeid].seconds)

    def _judge(self, module: Module, change: Change, items: list[pytest.Item]) -> Outcome:
        """Whether one of these tests fails in a fork with this change."""
        outcome = self._judge_once(module, change, items)
        failed = [item for item in items if item.nodeid == outcome.by]
        if not failed or self._passes_without_change(failed[0]):
            return outcome
        items.remove(failed[0])
        return self._judge(module, change, items)

    def _judge_once(self, module: Module, change: Change, items: list[pytest.Item]) -> Outcome:
        if not items:
            return Outcome(change, True, "no test reaches it")
        ended = self._end_of_fork(
            items, lambda writer: self._first_failure_of_change(module, change, items, writer)
        )
        if ended.status == SURVIVED:
            return Outcome(change, True, f"{len(items)} tests pass")
        return Outcome(change, False, ended.words or "ran too long or ended the process")

    def _passes_without_change(self, item: pytest.Item) -> bool:
        """Whether a test passes in a fork as it did before; else it says nothing of changes."""
        if item.nodeid not in self.passes_again:
            ended = self._end_of_fork([item], lambda writer: self._first_failure([item], writer))
            self.passes_again[item.nodeid] = ended.status == SURVIVED
            if ended.status != SURVIVED:
                self.failures.append(item.nodeid)
                self.reaches[item.nodeid].is_left_out = True
        return self.passes_again[item.nodeid]

    def _end_of_fork(self, items: list[pytest.Item], work: Callable[[int], int]) -> _End:
        """Do this in a fork, which may take some times as long as these tests; `work` is given what
        it can write words to."""
        seconds = TIMES * sum(self.reaches[item.nodeid].seconds for item in items) + SECONDS
        reader, writer = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reader)
            run_in_fork(lambda: work(writer), seconds)
        os.close(writer)
        status = wait(process, seconds)
        with os.fdopen(reader, encoding="utf-8") as lines:
            return _End(status, lines.read())

    def _first_failure_of_change(
        self, module: Module, change: Change, items: list[pytest.Item], writer: int
    ) -> int:
        """Run tests with a change until one fails; in a fork."""
        try:
            changed = module.changed_code(change)
            grafting.replace_code(str(module.file), module.code(), changed)
            if change.statement is None:
                loaded = sys.modules[grafting.module_name(module.path)]
                grafting.replace_values(loaded, changed)
                grafting.forget_plain_kernels()
        except Exception as error:
            os.write(writer, f"importing the module: {error!r}".encode())
            return KILLED
        return self._first_failure(items, writer)

    def _first_failure(self, items: list[pytest.Item], writer: int) -> int:
        """Run tests until one fails, and write which; in a fork."""
        grafting.clear_caches()
        for item in items:
            with compiled_kernels_refused(self.has_plain_kernels):
                reports = self._run(item)
            if any(report.failed for report in reports):
                os.write(writer, item.nodeid.encode())
                return KILLED
        return SURVIVED


@contextlib.contextmanager
def compiled_kernels_refused(is_wanted: bool) -> Iterator[list[Any]]:
    """Compiled kernels, whose code cannot be changed, end a test here; the list holds one entry for
    each time that one was asked for."""
    refusals: list[Any] = []
    if not is_wanted:
        yield refusals
        return
    from tplrepro.leakage.envelope.compiled import Kernel

    def refuse(kernel: Any) -> None:
        refusals.append(kernel)
        pytest.skip("compiled kernels are not changed")

    previous = vars(Kernel)["compiled"]
    Kernel.compiled = property(refuse)  # type: ignore[assignment]
    try:
        yield refusals
    finally:
        Kernel.compiled = previous  # type: ignore[method-assign]


def run_in_fork(work: Any, seconds: float) -> None:
    """Do this with bounded memory and without output, then end the process with its result."""
    os.setsid()
    signal.alarm(int(2 * seconds))  # ends it also if nobody waits for it any more
    status = KILLED
    try:
        with open(os.devnull, "w") as nowhere:
            for number in (1, 2):
                os.dup2(nowhere.fileno(), number)
        with open("/proc/self/statm") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
        status = work()
    finally:
        os._exit(status)


def wait(process: int, seconds: float) -> int:
    """The exit status of a fork, which is ended after so many seconds, with its children."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return KILLED


def run_session(session: Session, tests: list[str]) -> None:
    """Judge the changes of a session by these tests."""
    os.environ["HYPOTHESIS_PROFILE"] = "first failure"
    os.environ.pop("PYTEST_ADDOPTS", None)  # they may be for a plugin that is left out
    left_out = ("nbval", "cacheprovider", "xdist", "terminal")
    options = [f"-pno:{name}" for name in left_out]
    # Else pytest rewrites assertions of the modules, and functions with one are not recognised.
    options.append("--assert=plain")
    status = pytest.main([*options, *tests], plugins=[session])
    if status == pytest.ExitCode.USAGE_ERROR:
        raise RuntimeError(f"pytest must take the tests of a room, found {' '.join(tests)}")
