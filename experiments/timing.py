"""CPU time of calls, for the figures of running times: that of all threads and of children, such as
CBC."""

import resource
from collections.abc import Callable
from time import process_time
from typing import Any

#: Seconds from which a first call counts.
LONG = 0.2
#: Seconds that a round of calls must take.
SHORTEST_ROUND = 0.005
#: Rounds of which the fastest counts; a single call that is long enough needs no others.
ROUNDS = 3


def cpu_seconds(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of `call`, and its CPU seconds.

    The first call is a warm-up, whose time counts only if it is `LONG`. A shorter call is repeated
    until a round of calls takes far longer than the resolution of the clock; the fastest of three
    rounds counts.

    >>> value, seconds = cpu_seconds(lambda: sum(range(1000)))
    >>> value, seconds > 0.0
    (499500, True)
    """
    value, spent = _time_round(call, 1)
    if spent >= LONG:
        return value, spent
    value, spent = _time_round(call, 1)
    if spent >= SHORTEST_ROUND:
        return value, spent
    count = 2
    times: list[float] = []
    while len(times) < ROUNDS:
        value, spent = _time_round(call, count)
        if spent >= SHORTEST_ROUND:
            times.append(spent / count)
        else:
            count *= 2
    return value, min(times)


def _time_round(call: Callable[[], Any], count: int) -> tuple[Any, float]:
    """The last result of `count` calls, and the seconds of all of them."""
    began = cpu_clock()
    for _ in range(count):
        value = call()
    return value, cpu_clock() - began


def cpu_clock() -> float:
    """CPU seconds so far of this process and of its finished children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime
