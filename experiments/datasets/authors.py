"""What the public programs of the papers' own authors return, as numbers: no code of theirs.

`authors/tpl_octave.json` below TPLREPRO_DATA holds what the Matlab code of [1] and [2]
(github.com/yangcao888/TPL) returns under GNU Octave, `authors/qdp_cedp.json` the tables and plots
of [4]'s repository (github.com/m4jidRafiei/QDP_CEDP). Where a file is missing, a stand-in of the
same form holds what our own translations of the printed algorithms return; it compares nothing.
"""

from __future__ import annotations
import json
import re
from dataclasses import dataclass
from functools import cached_property
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tplrepro as tpl
from experiments.datasets.readers.registry import data_folder
from tplrepro import published

ALGORITHM_1 = "Algorithm 1"
ALGORITHM_3 = "Algorithm 3"
ALGORITHM_5 = "Algorithm 5"
LINEAR_PROGRAMME = "linear programme"
#: The routes to L that are compared, by the names of the programs.
ROUTES = {
    "alg1_calcPLbyThm": ALGORITHM_1,
    "alg3_calcPLbyPreComp": ALGORITHM_3,
    "alg5_genLFunc_0_to_alpha": ALGORITHM_5,
    "calcPLbyLP_glpk": LINEAR_PROGRAMME,
}
SUPREMUM = "alg6_findSup"
#: Of the stand-in.
ALPHAS = (0.1, 1.0, 5.0)
EPSILONS = (0.1, 0.5)


@dataclass(frozen=True, eq=False)
class ProgramOfTkde:
    """What the program of [1] and [2] returns; `inputs` is empty for the stand-in."""

    matrices: dict[str, np.ndarray]
    losses: pd.DataFrame  # matrix, route, alpha, value (NaN where it ends without one), problem
    suprema: pd.DataFrame  # matrix, epsilon, value (inf where it says that there is none)
    inputs: list[Path]

    @cached_property
    def loss_functions(self) -> dict[str, tpl.PrivacyLossFunction]:
        """Our loss function of each matrix."""
        return {name: tpl.PrivacyLossFunction(matrix) for name, matrix in self.matrices.items()}


@dataclass(frozen=True, eq=False)
class SeriesOfEventLogs:
    """Leakages that [4]'s repository prints: log, window (0 where unknown), release (from 1),
    epsilon, bpl, fpl, tpl; `inputs` is empty for the stand-in."""

    releases: pd.DataFrame
    inputs: list[Path]


def load_program_of_tkde(seed: int = 0) -> ProgramOfTkde:
    """What the program of [1] and [2] returns, or else a stand-in from `seed`."""
    path = _file_of("tpl_octave.json")
    if path is None:
        return _stand_in(seed)
    content = json.loads(path.read_text(encoding="utf-8"))
    matrices = {entry["name"]: np.array(entry["P"]) for entry in content["matrices"]}
    losses = [row for entry in content["matrices"] for row in _losses_of(entry)]
    suprema = [row for entry in content["matrices"] for row in _suprema_of(entry)]
    return ProgramOfTkde(matrices, pd.DataFrame(losses), pd.DataFrame(suprema), [path])


def _losses_of(entry: dict) -> list[dict]:
    """A row for each route and alpha of one matrix."""
    returned = entry["authors_octave"]
    rows = []
    for program, route in ROUTES.items():
        problems = returned.get(f"{program}_errors", {})
        for alpha, value in zip(entry["alphas"], returned.get(program, ()), strict=False):
            row = {"matrix": entry["name"], "route": route, "alpha": alpha}
            row["value"] = nan
            if value is not None:
                row["value"] = float(value)
            row["problem"] = problems.get(f"{alpha:g}", "")
            rows.append(row)
    return rows


def _suprema_of(entry: dict) -> list[dict]:
    """A row for each epsilon of one matrix."""
    suprema = entry["authors_octave"][SUPREMUM]
    return [
        {"matrix": entry["name"], "epsilon": epsilon, "value": float(value)}
        for epsilon, value in zip(entry["eps"], suprema, strict=True)
    ]


def _stand_in(seed: int) -> ProgramOfTkde:
    """Our own translations of the printed algorithms on two random matrices."""
    rng = np.random.default_rng(seed)
    matrices = {f"stand-in {n}": tpl.TransitionMatrix.random(n, rng=rng).toarray() for n in (3, 5)}
    losses, suprema = [], []
    for name, rows in matrices.items():
        tables = published.algorithm_2(rows)
        pieces = published.algorithm_4(tables, min(ALPHAS), max(ALPHAS))
        for alpha in ALPHAS:
            values = {
                ALGORITHM_1: published.algorithm_1(rows, alpha),
                ALGORITHM_3: published.algorithm_3(alpha, tables),
                ALGORITHM_5: published.algorithm_5(alpha, pieces),
                LINEAR_PROGRAMME: tpl.privacy_loss(rows, alpha),
            }
            of_matrix = {"matrix": name, "alpha": alpha, "problem": ""}
            losses += [
                of_matrix | {"route": route, "value": value} for route, value in values.items()
            ]
        for epsilon in EPSILONS:
            supremum, _, _ = published.algorithm_6(epsilon, tables)
            suprema.append({"matrix": name, "epsilon": epsilon, "value": supremum})
    return ProgramOfTkde(matrices, pd.DataFrame(losses), pd.DataFrame(suprema), [])


def compare_losses(program: ProgramOfTkde) -> pd.DataFrame:
    """`losses` with `ours`, and `difference`, relative to ours, or absolute where ours is 0."""
    functions = program.loss_functions
    table = program.losses.copy()
    table["ours"] = [
        float(functions[name](alpha))
        for name, alpha in zip(table["matrix"], table["alpha"], strict=True)
    ]
    return table.assign(difference=_relative(table["value"], table["ours"]))


def compare_suprema(program: ProgramOfTkde) -> pd.DataFrame:
    """`suprema` with `ours`, inf where there is none, and `difference` as in `compare_losses`."""
    functions = program.loss_functions
    table = program.suprema.copy()
    table["ours"] = [
        _supremum_or_inf(functions[name], epsilon)
        for name, epsilon in zip(table["matrix"], table["epsilon"], strict=True)
    ]
    return table.assign(difference=_relative(table["value"], table["ours"]))


def _relative(theirs: pd.Series, ours: pd.Series) -> pd.Series:
    """The difference of equal numbers is 0, also where they are infinite."""
    scale = ours.where(ours > 0.0, 1.0)
    return ((theirs - ours) / scale).where(theirs != ours, 0.0)


def _supremum_or_inf(loss: tpl.PrivacyLossFunction, epsilon: float) -> float:
    try:
        return float(loss.supremum(epsilon))
    except tpl.NoFiniteSupremumError:
        return inf


def load_series_of_event_logs() -> SeriesOfEventLogs:
    """The series that [4]'s repository prints, or else one made-up series."""
    path = _file_of("qdp_cedp.json")
    if path is None:
        made_up = _straight_series("stand-in", 4, 5, 0.01)
        return SeriesOfEventLogs(pd.DataFrame(made_up), [])
    content = json.loads(path.read_text(encoding="utf-8"))
    rows = []
    for name, table in content["tables"].items():
        for number, (epsilon, bpl, fpl, tpl_) in enumerate(table, start=1):
            row = {"log": f"table {name}", "window": 0, "release": number}
            rows.append(row | {"epsilon": epsilon, "bpl": bpl, "fpl": fpl, "tpl": tpl_})
    for title, plot in content["plots"].items():
        rows += _series_of_plot(title, plot)
    return SeriesOfEventLogs(pd.DataFrame(rows), [path])


def _series_of_plot(title: str, plot: dict[str, Any]) -> list[dict]:
    """The rows of a plot whose markers all lie on the lines BPL = FPL = t epsilon and
    TPL = (2 t - 1) epsilon; ValueError if it says something else."""
    epsilon = plot["epsilon"]
    line = f"{epsilon:g} t"
    of_tpl = f"{2 * epsilon:g} t - {epsilon:g}"
    if [plot["BPL"], plot["FPL"]] != [line, line] or not plot["TPL"].startswith(of_tpl):
        raise ValueError(f"the lines of a plot must be {line} and {of_tpl}, found {plot}")
    window = re.search(r"window (\d+)", title)
    assert window is not None
    log = title.partition(",")[0]
    return _straight_series(log, int(window[1]), plot["releases"], epsilon)


def _straight_series(log: str, window: int, releases: int, epsilon: float) -> list[dict]:
    return [
        {
            "log": log,
            "window": window,
            "release": number,
            "epsilon": epsilon,
            "bpl": number * epsilon,
            "fpl": number * epsilon,
            "tpl": (2 * number - 1) * epsilon,
        }
        for number in range(1, releases + 1)
    ]


def _file_of(name: str) -> Path | None:
    """The file in `authors` below TPLREPRO_DATA, or None."""
    folder = data_folder()
    if folder is None or not (folder / "authors" / name).is_file():
        return None
    return folder / "authors" / name
