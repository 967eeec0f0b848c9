"""First calls in an empty cache of compiled kernels: what a new user waits for."""

import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np

import tplrepro as tpl
from benchmarks.measuring import ROOT, in_process, seconds_of
from benchmarks.tables import PLAIN_HEAD, row, shown


def measure() -> Iterator[str]:
    yield PLAIN_HEAD
    walls = [in_empty_cache(readme_example)["wall"] for _ in range(3)]
    what = "the README's example, from starting Python on"
    yield row(what, shown(statistics.median(walls)), "2 s")
    found = in_empty_cache(first_calls)
    for what, processor in found["spent"].items():
        yield row(f"{what}, CPU time", shown(processor), "")
    total = sum(found["spent"].values())
    yield row("all kernels together, CPU time", shown(total), "10 s")
    functions = found["functions"]
    yield ""
    yield f"Numba compiles {functions} functions, its own among them, each in"
    yield f"{shown(total / functions)} on average and for one type of argument; LLVM takes"
    yield f"{found['llvm']:.0%} of it, since it optimises a kernel again in each that calls it."
    yield "Only fewer kernels, or fewer that call each other, would take much less: LLVM's lowest"
    yield "level of optimisation does not."


def in_empty_cache(function: Callable[[], dict]) -> dict:
    """What a function returns in a process that finds no compiled kernel."""
    with tempfile.TemporaryDirectory() as folder:
        return in_process(function, environment={"NUMBA_CACHE_DIR": folder})


def readme_example() -> dict[str, float]:
    """Seconds of the README's first example in a Python of its own."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = readme.split("```python\n")[1].split("```")[0]
    command = [sys.executable, "-c", code]

    def run() -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    return {"wall": seconds_of(run)}


def first_calls() -> dict:
    """CPU seconds of each first call, one after the other, in a process that has compiled
    nothing."""
    from numba.core.event import install_recorder, install_timer

    from tplfrontier.pairs.leakage import compile_kernels

    walk = np.random.default_rng(0).integers(0, 300, 3000)
    sparse = tpl.TransitionMatrix.from_sequences([walk], n_states=300, smoothing=0.01, sparse=True)
    P = tpl.TransitionMatrix.random(200, rng=np.random.default_rng(0))
    calls = {
        "first function, n = 200": lambda: tpl.PrivacyLossFunction(P),
        "then the first L(α)": lambda: tpl.privacy_loss(P, 1.0),
        "then the first sparse function": lambda: tpl.PrivacyLossFunction(sparse),
        "then the first sparse L(α)": lambda: tpl.privacy_loss(sparse, 1.0),
        "then all other kernels": compile_kernels,
    }
    spent = {}
    of_llvm: list[float] = []
    of_compiler: list[float] = []
    warnings.simplefilter("ignore")  # of the compilation
    with (
        install_timer("numba:llvm_lock", of_llvm.append),
        install_timer("numba:compiler_lock", of_compiler.append),
        install_recorder("numba:compile") as recorder,
    ):
        for what, call in calls.items():
            start = time.process_time()
            call()
            spent[what] = time.process_time() - start
    functions = sum(event.is_start for _, event in recorder.buffer)
    return {"spent": spent, "functions": functions, "llvm": of_llvm[0] / of_compiler[0]}
