"""CPU seconds: what counts as work of a call, and what does not."""

import subprocess
import sys
import time

import pytest

from experiments.timing import LONG, cpu_seconds


def busy(seconds):
    ends = time.process_time() + seconds
    while time.process_time() < ends:
        pass
    return seconds


def test_work_counts_and_waiting_does_not():
    assert cpu_seconds(lambda: busy(0.05))[1] == pytest.approx(0.05, rel=0.2)
    assert cpu_seconds(lambda: [time.sleep(0.02), busy(0.001)])[1] < 0.01
    child = [sys.executable, "-S", "-c", "import time\nwhile time.process_time() < 0.3: pass"]
    assert cpu_seconds(lambda: subprocess.run(child, check=True))[1] > 0.25


def test_the_first_call_only_warms_up_and_a_long_one_is_not_repeated():
    calls = []

    def warming_up():
        calls.append(busy(0.1 if not calls else 0.001))
        return len(calls)

    value, seconds = cpu_seconds(warming_up)
    assert value == len(calls) > 4
    assert seconds == pytest.approx(0.001, rel=0.3)
    calls.clear()
    assert cpu_seconds(lambda: calls.append(busy(LONG)))[1] >= LONG
    assert len(calls) == 1
