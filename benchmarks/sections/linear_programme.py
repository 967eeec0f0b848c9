"""The papers' linear programme by three solvers beside one value and the whole function."""

from collections.abc import Iterator

import numpy as np

import tplrepro as tpl
from benchmarks.measuring import repeat, seconds_in_turn, seconds_of
from benchmarks.tables import RATIO_HEAD, ratio_row

#: The aim of each solver.
AIMS = {"CBC": "10⁴", "HiGHS": "10⁴", "highspy": ""}
#: Calls of ours in one round.
CALLS = 100


def measure() -> Iterator[str]:
    P = tpl.TransitionMatrix.random(30, rng=np.random.default_rng(1)).probabilities
    yield RATIO_HEAD
    for formulation in ("scaled", "pairwise"):
        for solver in AIMS:
            yield from measure_solver(P, solver, formulation)


def measure_solver(P: np.ndarray, solver: str, formulation: str) -> Iterator[str]:
    """The rows of one solver and formulation of the linear programme for a matrix P (n, n)."""

    def baseline() -> None:
        tpl.linear_program.loss(P, 1.0, solver=solver, formulation=formulation)

    def one_value() -> None:
        repeat(CALLS, lambda: tpl.privacy_loss(P, 1.0))

    theirs, own = seconds_in_turn(1, baseline, one_value)
    what = f"n = 30, α = 1: {solver}, {formulation} constraints, one L(α)"
    yield ratio_row(what, theirs, own, AIMS[solver], per=CALLS)
    if formulation == "pairwise":
        of_function = seconds_of(lambda: repeat(CALLS, lambda: tpl.PrivacyLossFunction(P)))
        yield ratio_row("the same against our whole function", theirs, [of_function], per=CALLS)
