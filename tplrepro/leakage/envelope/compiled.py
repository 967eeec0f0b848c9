"""Compilation: functions that run as plain Python first, and compiled by Numba once there is enough
work.

A small problem takes less time than loading Numba, so kernels run as plain Python until more work
is announced (`announce_steps`), with the same results to the last digit. Then each is compiled on
its first call, for one type of argument only: rows are read-only, C-contiguous float64, rows in
steps uint16, pairs of rows C-contiguous int64. Where `np.int64(0)` is written, a literal 0, which
has a type of its own in Numba, would cause a second compilation. Kernels release the GIL, and all
sums that enter a result are compensated. Inputs are finite.

Numba keeps compiled functions on disk and compiles a function again if its own file has changed,
but not if a function or constant in another file has. So the folder's name holds a hash of all
files of the room.
"""

import hashlib
import sys
import warnings
from collections.abc import Callable
from functools import cache, cached_property
from math import inf
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from tplrepro.leakage import vertex

# ORDERED keeps all operations and their order, and so the results of plain Python; FAST lets sums
# be in any order, and so vectorised: they only decide which pairs of rows are looked at again.
# Compensated sums are compiled with neither.
ORDERED = {"nnan", "ninf", "nsz"}
FAST = ORDERED | {"contract", "reassoc"}
# Elementary steps that take as long uncompiled as loading Numba and its stored kernels.
WORTH = 200_000
#: Address space (MiB) that Numba, SciPy and the compilation of all kernels take; without it LLVM
#: aborts the process.
ROOM = 700


class Kernel:
    """A function that runs as plain Python until enough work has been announced to compile it."""

    def __init__(self, function: Callable, options: dict[str, Any], in_python: Callable | None):
        self.function = function
        self.options = options
        self.in_python = in_python

    @cached_property
    def compiled(self):
        options = {
            "cache": True,
            "nogil": True,
            "error_model": "numpy",
            "no_cfunc_wrapper": True,
        } | self.options
        from tplrepro.locks import COMPILING

        numba = load_numba()
        with COMPILING:
            previous = numba.config.CACHE_DIR
            numba.config.CACHE_DIR = cache_folder()
            try:
                return numba.njit(**options)(self.function)
            finally:
                numba.config.CACHE_DIR = previous

    @cached_property
    def plain(self) -> Callable:
        """The function where the kernels that it calls are plain functions, too."""
        return plain_names(self.function.__module__)[self.function.__name__]

    @property
    def _numba_type_(self):  # compiled, kernels call each other's compiled functions
        return self.compiled._numba_type_

    def __call__(self, *arguments):
        if is_worthwhile():
            return self.compiled(*arguments)
        with np.errstate(all="ignore"):  # as in compiled code
            return self.plain(*arguments)

    #: Steps left before kernels are compiled.
    worth = WORTH


def kernel(in_python: Callable | None = None, **options) -> Callable[[Callable], Kernel]:
    """Decorator that makes a function a kernel.

    Parameters
    ----------
    in_python : callable or None, what stands for the function until it is compiled; None: itself
    **options : of numba.njit, added to those of all kernels
    """
    return lambda function: Kernel(function, options, in_python)


def announce_steps(steps: int) -> None:
    """Announce `steps` elementary steps; when a process has announced more than WORTH, kernels are
    compiled."""
    Kernel.worth -= steps


def is_worthwhile() -> bool:
    """Whether enough steps have been announced for kernels to be compiled."""
    return Kernel.worth <= 0


@cache
def plain_names(module: str) -> dict[str, Any]:
    """A module's names, but its kernels are plain functions that call each other as such."""
    names = dict(vars(sys.modules[module]))
    for name, value in names.items():
        if isinstance(value, Kernel):
            is_defined_here = value.function.__module__ == module
            if is_defined_here:
                names[name] = value.in_python or FunctionType(value.function.__code__, names)
            else:
                names[name] = value.plain
    return names


@cache
def load_numba():
    """Numba, with the formulas of `vertex` registered; it warns once in a process when it compiles
    a kernel.

    MemoryError if a limit of the address space (`ulimit -v`) leaves too little room.
    """
    left = address_space_left()
    if left < ROOM:
        raise MemoryError(
            f"compiled kernels need {ROOM} MiB of address space, found {left:.0f} MiB left below "
            "this process's limit; raise it (ulimit -v), or give fewer states or steps"
        )
    import numba
    from numba.core import event
    from numba.extending import register_jitable

    formulas = (
        vertex.vertex_crossing,
        vertex.log_of_one_and_ratio,
        vertex.vertex_loss,
        vertex.vertex_slope,
    )
    for formula in formulas:
        register_jitable(error_model="numpy")(formula)

    class Announcer(event.Listener):
        said = False

        def on_start(self, event):
            dispatcher = event.data["dispatcher"]
            if self.said or not is_of_kernel(dispatcher.py_func):
                return
            self.said = True
            message = (
                "compiling kernels, which takes seconds, once: "
                f"they are kept in {dispatcher.stats.cache_path}"
            )
            # in one line, as no source belongs to it
            warnings.warn_explicit(message, UserWarning, "tplrepro", 1)

        def on_end(self, event):
            pass

    event.register("numba:compile", Announcer())
    return numba


def is_of_kernel(function: Callable) -> bool:
    """Whether a function is that of a kernel, in whatever module."""
    module = sys.modules.get(function.__module__)
    return isinstance(getattr(module, function.__name__, None), Kernel)


def has_room() -> bool:
    """Whether kernels can be compiled: Numba is loaded already, or a limit of the address space
    leaves enough."""
    is_loaded = load_numba.cache_info().currsize > 0
    return is_loaded or address_space_left() >= ROOM


def address_space_left() -> float:
    """MiB up to this process's limit of the address space, inf without one or where it cannot be
    read."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError):
        return inf
    if limit == resource.RLIM_INFINITY:
        return inf
    return (limit - pages * resource.getpagesize()) / 2**20


@cache
def cache_folder() -> str:
    """Where kernels compiled from these sources are kept: below the folder that Numba takes for
    this room."""
    numba = load_numba()
    folder = numba.config.CACHE_DIR or numba.njit(cache=True)(hash_of_sources).stats.cache_path
    return str(Path(folder, f"kernels-{hash_of_sources()}"))


def hash_of_sources() -> str:
    """A hash of all source files of this room, and of `vertex`."""
    files = [*sorted(Path(__file__).parent.glob("*.py")), Path(vertex.__file__)]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:12]


def thread_count(n: int, enough: int) -> int:
    """Number of threads that Numba may use; 1 for fewer states than `enough`, which do not repay
    starting more."""
    if n < enough:
        return 1
    return load_numba().config.NUMBA_NUM_THREADS
