"""A lock of a module is never lost by a fork, nor taken twice by a signal's handler."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tplrepro.locks import ForkLock

LOCK = ForkLock()


def hold_for_a_while(reached):
    with LOCK:
        reached.set()
        time.sleep(0.3)


def test_a_fork_waits_and_its_child_can_take_the_lock():
    reached = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold_for_a_while, reached)
        reached.wait()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(10)
            with LOCK:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def test_a_fork_waits_also_if_a_signal_handler_raises():
    """Python prints the exception and forks all the same."""
    reached = threading.Event()
    before = signal.signal(signal.SIGALRM, lambda *_: LOCK.is_held or 1 / 0)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold_for_a_while, reached)
        reached.wait()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        LOCK._insist()
        assert LOCK.is_held
        LOCK._lock.release()
    signal.signal(signal.SIGALRM, before)


def test_a_thread_cannot_take_the_lock_twice():
    with LOCK, pytest.raises(RuntimeError, match="a lock must be taken once by a thread"), LOCK:
        pass
    assert not LOCK.is_held
