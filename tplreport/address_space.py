"""Little address space (`ulimit -v`): what is done to need less of it, and how its want is told.

Threads of Arrow and OpenBLAS, and an arena of the C library for each, reserve most of what a small
report takes: 2.1 GB on two cores, and 0.5 GB without them. Where there is no more, these libraries
abort, or wait for ever.
"""

import os
import re
from contextlib import suppress
from ctypes import CDLL

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "ARROW_IO_THREADS"), "1")
M_ARENA_MAX = -8
LEAST = 500  # MiB; with less, OpenBLAS may wait for ever while SciPy is loaded
#: What is raised for want of memory: nothing, or what NumPy, the loader of libraries or threads
#: say.
WANT = re.compile("^$|Unable to allocate|failed to map segment|can't start new thread")


def spare_address_space() -> None:
    """If a limit is set, before numeric libraries are loaded: one thread of each, and one arena.

    MemoryError if the limit is below 500 MiB.
    """
    limit = limit_of_address_space()
    if limit is None:
        return
    if limit < LEAST:
        raise MemoryError(
            f"{LEAST} MiB of address space are needed, found {limit}; raise it (ulimit -v)"
        )
    os.environ.update(ONE_THREAD, ARROW_DEFAULT_MEMORY_POOL="system")
    with suppress(AttributeError):  # only glibc has mallopt
        CDLL(None).mallopt(M_ARENA_MAX, 1)


def limit_of_address_space() -> int | None:
    """In whole MiB; None if there is no limit, or none can be set, as on Windows."""
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    return limit >> 20


def explain(error: Exception) -> str:
    """The error's message, or in plain words that memory is wanting, and how much is allowed.

    >>> explain(RuntimeError("can't start new thread")), explain(ValueError("found 3"))
    ('more memory is needed than there is; raise its limit (ulimit -v)', 'found 3')
    """
    if not WANT.search(str(error)):
        return str(error)
    limit = limit_of_address_space()
    if limit is None:
        return "more memory is needed than there is; raise its limit (ulimit -v)"
    return (
        f"more address space is needed than its limit allows, found {limit} MiB; "
        "raise it (ulimit -v)"
    )
