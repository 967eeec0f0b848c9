"""Names of event logs in, logs with their provenance out: the recorded ones, or else a synthetic stand-in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tplrepro.datasets.reading import read_marker
from tplrepro.datasets.registry import data_folder
from tplrepro.eventlog.log import CASE
from tplrepro.eventlog.stand_in import synthetic
from tplrepro.eventlog.xes_reader import read_xes

__all__ = ["PreparedLogs", "prepare", "recorded_logs"]


@dataclass(frozen=True, eq=False)
class PreparedLogs:
    """Event logs by name, and the files they come from; none for the stand-in."""

    logs: dict[str, pd.DataFrame]
    inputs: list[Path]

    @property
    def record(self) -> dict:
        """The keywords `data` and `inputs` of `figures.save_figure`."""
        return {"data": "real" if self.inputs else "synthetic", "inputs": self.inputs}

    @property
    def sizes(self) -> pd.DataFrame:
        """The numbers of cases and of events of each log."""
        rows = {name: {"cases": log[CASE].nunique(), "events": len(log)} for name, log in self.logs.items()}
        return pd.DataFrame.from_dict(rows, orient="index")


def prepare(names: Iterable[str], *, stand_in: dict | None = None) -> PreparedLogs:
    """Those of the named logs that are found, or else one stand-in with the arguments `stand_in` of `synthetic`.

    >>> prepare([], stand_in={"n_cases": 3}).record
    {'data': 'synthetic', 'inputs': []}
    """
    wanted = set(names)
    found = {name: path for name, path in recorded_logs().items() if name in wanted}
    if not found:
        return PreparedLogs({"stand-in": synthetic(**(stand_in or {}))}, [])
    return PreparedLogs({name: read_xes(path) for name, path in found.items()}, list(found.values()))


def recorded_logs() -> dict[str, Path]:
    """The XES files in the folder eventlogs below TPLREPRO_DATA, by name, but for those marked as synthetic."""
    folder = data_folder()
    found = sorted([*folder.glob("eventlogs/*.xes"), *folder.glob("eventlogs/*.xes.gz")]) if folder else []
    return {path.name.split(".xes")[0]: path for path in found if read_marker(path) is None}
