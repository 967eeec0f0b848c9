"""CPU seconds: what counts as work of a call, and what does not."""

import subprocess
import sys
import time

import pytest

from experiments import timing
from experiments.timing import LONG, SHORTEST_ROUND, cpu_clock, cpu_seconds


def test_the_clock_counts_work_of_this_process_and_of_children_and_no_waiting():
    began = cpu_clock()
    time.sleep(0.2)
    slept = cpu_clock() - began
    work = "import time; sum(range(5_000_000)); print(time.process_time())"  # of the child alone
    spent = float(subprocess.check_output([sys.executable, "-S", "-c", work]))
    assert cpu_clock() - began - slept > 0.5 * spent
    assert slept < 0.5 * spent
    sum(range(5_000_000))
    assert cpu_clock() - began - slept > 1.2 * spent


@pytest.fixture
def work(monkeypatch):
    """A function that lets this many seconds of the CPU pass, on a clock of its own."""

    class Clock:
        now = 0.0

        def advance(self, seconds):
            self.now += seconds

    clock = Clock()
    monkeypatch.setattr(timing, "cpu_clock", lambda: clock.now)
    return clock.advance


def test_the_first_call_only_warms_up_and_short_ones_are_repeated(work):
    calls = []

    def call():
        calls.append(None)
        work(0.5 * LONG if len(calls) == 1 else 0.001)
        return len(calls)

    value, seconds = cpu_seconds(call)
    assert seconds == pytest.approx(0.001)
    assert value == len(calls) > 3 * SHORTEST_ROUND / 0.001


def test_a_long_call_is_not_repeated(work):
    calls = []
    assert cpu_seconds(lambda: calls.append(work(LONG)))[1] == LONG
    assert len(calls) == 1
