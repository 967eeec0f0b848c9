"""Chains of tens of thousands of pages: one value, the function, and from a file to budgets."""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import tplrepro as tpl
from benchmarks.measuring import in_process, peak_bytes, seconds_of
from benchmarks.sections.data_set_readers import write_set
from benchmarks.tables import PLAIN_HEAD, megabytes, row, shown
from experiments.datasets.readers import kosarak

SMOOTHINGS = (1e-4, 0.01, 1.0)


def measure() -> Iterator[str]:
    yield PLAIN_HEAD
    recorded = Path(os.environ.get("TPLREPRO_DATA", "")) / "kosarak" / "kosarak.dat"
    with tempfile.TemporaryDirectory() as folder:
        full = Path(folder) / "kosarak.dat.gz"
        write_set("kosarak", full)
        if recorded.is_file():
            yield from measure_function("the Kosarak sessions at hand", recorded)
        yield from measure_function("synthetic sessions of the official size", full)
        found = in_process(budgets_of_file, str(full))
        what = "synthetic sessions of the official size: file to ten budgets, both sides"
        yield row(what, shown(sum(found["seconds"].values())), "15 s")
        for part, took in found["seconds"].items():
            yield row(f"of which {part}", shown(took), "")
        memory = megabytes(found["memory"])
        yield row("the same: peak memory, Python included", memory, "1,000 MB")


def measure_function(name: str, path: Path) -> Iterator[str]:
    """Rows for each smoothing."""
    for smoothing in SMOOTHINGS:
        found = in_process(function_of_file, str(path), smoothing)
        size = f"{found['states']:,} pages, {found['transitions']:,} transitions"
        what = f"{name}: {size}, s = {smoothing:g}: one L(α), slowest of α = 0.1, 1, 10"
        yield row(what, shown(found["one"]), "1 s")
        what = f"the same: whole function, {found['vertices']} vertices"
        yield row(what, shown(found["whole"]), "8 s")
        memory = megabytes(found["memory"])
        yield row("the same: peak memory, Python included", memory, "2,000 MB")


def budgets_of_file(path: str) -> dict:
    """Seconds of each part of the way from a file to budgets, and memory."""
    started = time.perf_counter()
    sequences = kosarak.to_sequences(kosarak.load(path))
    have_read = time.perf_counter()
    backward, forward = (
        tpl.TransitionMatrix.from_sequences(
            sequences, n_states=sequences.n_states, smoothing=0.01, direction=direction
        )
        for direction in ("backward", "forward")
    )
    have_matrices = time.perf_counter()
    tpl.allocate_by_quantification(1.0, backward, forward, horizon=10)
    have_budgets = time.perf_counter()
    spent = {
        "read": have_read - started,
        "matrices": have_matrices - have_read,
        "budgets": have_budgets - have_matrices,
    }
    return {"seconds": spent, "memory": peak_bytes()}


def function_of_file(path: str, smoothing: float) -> dict[str, float]:
    """Seconds of one value and of the function of a file's chain, its size, and memory."""
    load_kernels()
    sequences = kosarak.to_sequences(kosarak.load(path))
    n_states = sequences.n_states
    P = tpl.TransitionMatrix.from_sequences(sequences, n_states=n_states, smoothing=smoothing)
    one = max(seconds_of(lambda a=alpha: tpl.privacy_loss(P, a)) for alpha in (0.1, 1.0, 10.0))
    made: list[tpl.PrivacyLossFunction] = []
    whole = seconds_of(lambda: made.append(tpl.PrivacyLossFunction(P)))
    return {
        "states": n_states,
        "transitions": sequences.n_transitions,
        "vertices": len(made[0].vertices),
        "one": one,
        "whole": whole,
        "memory": peak_bytes(),
    }


def load_kernels() -> None:
    """Load the compiled functions of sparse matrices."""
    walk = np.random.default_rng(0).integers(0, 300, 3000)
    P = tpl.TransitionMatrix.from_sequences([walk], n_states=300, smoothing=0.01, sparse=True)
    tpl.PrivacyLossFunction(P)
    tpl.privacy_loss(P, 1.0)
