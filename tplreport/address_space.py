"""Little address space (`ulimit -v`): what is done to need less of it, and how its want is told.

Threads of Arrow and OpenBLAS, and an arena of the C library for each, reserve most of what a small
report takes: 2.1 GB on two cores, and 0.4 GB without them. Where there is no more, these libraries
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
    with suppress(ImportError, AttributeError):  # not on Windows; only glibc has mallopt
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            if limit < LEAST * 2**20:
                raise MemoryError(
                    f"{LEAST} MiB of address space are needed, found {limit >> 20}; "
                    "raise it (ulimit -v)"
                )
            os.environ.update(ONE_THREAD, ARROW_DEFAULT_MEMORY_POOL="system")
            CDLL(None).mallopt(M_ARENA_MAX, 1)


def explain(error: Exception) -> str:
    """The error's message, or in plain words that memory is wanting.

    >>> explain(RuntimeError("can't start new thread")), explain(ValueError("found 3"))
    ('more memory is needed than there is; raise its limit (ulimit -v)', 'found 3')
    """
    if WANT.search(str(error)):
        return "more memory is needed than there is; raise its limit (ulimit -v)"
    return str(error)
