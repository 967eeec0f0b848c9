"""From names of event logs to logs with their provenance: recorded logs, or else a synthetic
stand-in.

A stand-in has the format of a real log, XES, but not its statistics.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.datasets.readers.registry import data_folder
from experiments.datasets.stand_ins import make_stand_in, open_for_writing
from tplreport.reading.event_logs import read_xes
from tplreport.reading.text_files import read_marker
from tplrepro.eventlog.log import ACTIVITY, CASE, TIMESTAMP
from tplrepro.eventlog.transition_system import TransitionSystem
from tplrepro.validation import check_horizon

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1.0" xmlns="http://www.xes-standard.org/">
\t<extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
\t<extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>
\t<string key="tplrepro:synthetic" value="a synthetic log: no recorded data"/>
"""
EVENT = f"""\t\t<event>
\t\t\t<string key="{ACTIVITY}" value="{{}}"/>
\t\t\t<date key="{TIMESTAMP}" value="{{}}+00:00"/>
\t\t</event>
"""
#: Names of recorded logs in figures and tables, as their publishers write them.
TITLES = {
    "bpic2012": "BPI Challenge 2012",
    "bpic2013_incidents": "BPI Challenge 2013, incidents",
    "receipt": "Receipt phase",
    "roadtraffic100traces": "Road Traffic Fines",
    "running-example": "Running example",
}
N_ACTIVITIES = 16
MEAN_LENGTH = 14.5  # events a case
FIRST_SECOND = 1_640_995_200  # since 1970: 2022-01-01
HOUR_SECONDS = 3600


def title_of(log: str) -> str:
    """The name of a log in figures.

    >>> title_of("bpic2012"), title_of("stand-in")
    ('BPI Challenge 2012', 'stand-in')
    """
    return TITLES.get(log, log)


@dataclass(frozen=True, eq=False)
class PreparedLogs:
    """Event logs by name, and the files that were read; no files for the stand-in."""

    logs: dict[str, pd.DataFrame]
    inputs: list[Path]

    @property
    def record(self) -> dict:
        """The keywords `data` and `inputs` of `figures.save_figure`."""
        if self.inputs:
            return {"data": "real", "inputs": self.inputs}
        return {"data": "synthetic", "inputs": []}

    @property
    def sizes(self) -> pd.DataFrame:
        """The numbers of cases and of events of each log, by its title."""
        rows = {
            title_of(name): {"cases": log[CASE].nunique(), "events": len(log)}
            for name, log in self.logs.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index")


def prepare_logs(names: Iterable[str], *, stand_in: dict | None = None) -> PreparedLogs:
    """The named logs that are found, or else one stand-in with the arguments `stand_in` of
    `synthetic_log`."""
    wanted = set(names)
    found = {name: path for name, path in recorded_logs().items() if name in wanted}
    if not found:
        return PreparedLogs({"stand-in": synthetic_log(**(stand_in or {}))}, inputs=[])
    logs = {name: read_xes(path) for name, path in found.items()}
    return PreparedLogs(logs, inputs=list(found.values()))


def entries_of(system: TransitionSystem) -> dict[str, float]:
    """How full the matrix of single events of a transition system is."""
    n = system.n_states
    return {
        "entries a row": system.counts.nnz / n,
        "entries of the fullest row": int(system.counts.count_nonzero(axis=1).max()),
        "share of pairs": system.counts.nnz / n**2,
    }


def recorded_logs() -> dict[str, Path]:
    """The XES files in eventlogs below TPLREPRO_DATA, by name, except those marked as synthetic."""
    folder = data_folder()
    if folder is None:
        return {}
    files = sorted([*folder.glob("eventlogs/*.xes"), *folder.glob("eventlogs/*.xes.gz")])
    return {path.name.split(".xes")[0]: path for path in files if read_marker(path) is None}


def synthetic_log(
    n_cases: int = 1000, seed: int = 0, path: str | Path | None = None
) -> pd.DataFrame:
    """Write a synthetic log of `n_cases` cases to a file (`path` None: a temporary one; ending in
    .gz: compressed), and read it back.

    A case begins with the first activity and goes on to one of two to four activities that follow
    each one; it ends after any event with the same probability.
    """
    return make_stand_in(
        path, "event log", "synthetic.xes", write_synthetic, read_xes, n_cases=n_cases, seed=seed
    )


def write_synthetic(path: str | Path, n_cases: int, seed: int) -> None:
    """Write a synthetic XES log of `n_cases` cases, one by one, so that memory holds one case."""
    with open_for_writing(path) as out:
        out.write(HEAD.encode())
        for case, events in _draw_cases(n_cases, seed):
            out.write(f'\t<trace>\n\t\t<string key="{ACTIVITY}" value="{case}"/>\n'.encode())
            for activity, time in events:
                out.write(EVENT.format(activity, np.datetime64(time, "ms")).encode())
            out.write(b"\t</trace>\n")
        out.write(b"</log>\n")


@dataclass(frozen=True)
class Followers:
    """The activities that may follow one, and their shares summed up."""

    activities: list[int]
    cumulative_shares: list[float]

    def choose(self, draw: float) -> int:
        """The activity at a uniform draw from 0 to 1."""
        passed = sum(draw > share for share in self.cumulative_shares[:-1])
        return self.activities[passed]


def _draw_followers(rng: np.random.Generator) -> Followers:
    """Two to four activities with random shares."""
    count = int(rng.integers(2, 5))
    activities = rng.choice(N_ACTIVITIES, count, replace=False).tolist()
    shares = rng.dirichlet(np.full(count, 1.5))
    return Followers(activities, np.cumsum(shares).tolist())


def _draw_cases(n_cases: int, seed: int) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Names of cases with their events (activity, milliseconds since 1970 UTC)."""
    rng = np.random.default_rng([seed, 5])
    followers = [_draw_followers(rng) for _ in range(N_ACTIVITIES)]
    for case in range(1, check_horizon(n_cases, "n_cases") + 1):
        n_events = int(rng.geometric(1.0 / MEAN_LENGTH))
        time = FIRST_SECOND + rng.uniform(0, 365 * 24 * HOUR_SECONDS)
        gaps = rng.exponential(6 * HOUR_SECONDS, n_events).tolist()
        draws = rng.random(n_events).tolist()
        activity = 0
        events = []
        for gap, draw in zip(gaps, draws, strict=True):
            events.append((f"activity {activity + 1:02d}", int(time * 1000)))
            time += gap
            activity = followers[activity].choose(draw)
        yield f"synthetic {case}", events
