"""Models of movement for the evaluation of [5] (section 8): cells of a grid, a Markov chain over them, trajectories.

The paper learns a chain from all trajectories of Geolife within Beijing's 3rd ring (cells of 0.34 km) and of Gowalla in
Los Angeles (0.89 km), and follows 20 trajectories of 100 timestamps. It does not say how long a timestamp is, nor what
is known at the start. Here Geolife is taken at fixed steps, Gowalla check-in by check-in; the chain is the
maximum-likelihood estimate over the largest set of cells that all reach each other, and the cell before the first
timestamp is public, so that possible states are few at first and become many, as section 8.1 reports.

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tplrepro.markov.estimation import count_transitions, transitions_from_counts
from tplrepro.markov.transition import TransitionMatrix

__all__ = ["MobilityModel", "geolife_model", "gowalla_model", "mobility_model"]


@dataclass(frozen=True)
class MobilityModel:
    """A chain over cells and trajectories to be released.

    Attributes
    ----------
    name : str
    answers : ndarray (N, 2), f: centres of the cells, km east and north
    transitions : TransitionMatrix over N states, M
    trajectories : ndarray (k, T + 1) of int; the first state of each is public
    inputs : tuple of Path, the files read; empty for a synthetic stand-in
    """

    name: str
    answers: np.ndarray
    transitions: TransitionMatrix
    trajectories: np.ndarray
    inputs: tuple[Path, ...] = ()

    @property
    def is_real(self) -> bool:
        return bool(self.inputs)

    def __repr__(self) -> str:
        kind = "recorded" if self.is_real else "synthetic"
        k, horizon = self.trajectories.shape
        return f"MobilityModel({self.name}, {kind}: {len(self.answers)} states, {k} trajectories of {horizon - 1})"


def mobility_model(sequences, centres, n_trajectories: int, horizon: int, name="", inputs=()) -> MobilityModel:
    """Estimate a chain and choose trajectories from sequences of cells.

    Parameters
    ----------
    sequences : Sequences over n cells
    centres : ndarray (n, 2), km
    n_trajectories, horizon : int
        How many trajectories of horizon + 1 states are wanted; there may be fewer. The longest sequence of each user
        comes first, users by the length of theirs.

    Raises
    ------
    ValueError
        If no sequence is long enough.

    Examples
    --------
    >>> from tplrepro.datasets import Sequences
    >>> walk = np.array([0, 1, 2, 1, 0, 1, 3])
    >>> sequences = Sequences(walk, np.array([0, 7]), np.arange(4), np.array([9]))
    >>> model = mobility_model(sequences, np.arange(8.0).reshape(4, 2), n_trajectories=5, horizon=4)
    >>> model.trajectories.tolist(), len(model.answers)
    ([[0, 1, 2, 1, 0]], 3)
    """
    from scipy.sparse.csgraph import connected_components

    counts, _ = count_transitions(sequences, sequences.n_states)
    _, component = connected_components(counts, connection="strong")
    kept = np.flatnonzero(component == np.argmax(np.bincount(component)))
    state = np.full(sequences.n_states, -1)
    state[kept] = np.arange(kept.size)
    longest: dict = {}
    for user, cells in zip(sequences.users.tolist(), sequences, strict=True):
        run = _longest_run(state[cells])
        if len(run) > len(longest.get(user, ())):
            longest[user] = run
    runs = sorted((run for run in longest.values() if len(run) > horizon), key=len, reverse=True)
    if not runs:
        most = max(map(len, longest.values()), default=0)
        raise ValueError(
            f"trajectories must have {horizon + 1} states within the largest connected set of cells, found {most} at "
            "most; choose a smaller horizon or more data"
        )
    return MobilityModel(
        name=name,
        answers=np.asarray(centres, dtype=float)[kept],
        transitions=transitions_from_counts(counts[kept][:, kept]),
        trajectories=np.array([run[: horizon + 1] for run in runs[:n_trajectories]]),
        inputs=tuple(inputs),
    )


def geolife_model(
    n_trajectories: int,
    horizon: int,
    *,
    path=None,
    seed: int = 0,
    n_users: int = 6,
    step="10s",
    max_gap="20s",
    cell_km: float = 0.34,
) -> MobilityModel:
    """Movement within Beijing's 3rd ring, from the Geolife files or, where there are none, from a synthetic stand-in.

    Parameters
    ----------
    n_trajectories, horizon : as for `mobility_model`
    path : path-like, optional; by default the files are looked for as `datasets.registry.locate` says
    seed, n_users : of the stand-in
    step, max_gap : time between two timestamps, and how long a position holds
    cell_km : side of a cell, km
    """
    from tplrepro.datasets import Grid, fixed_steps, geolife, registry
    from tplrepro.datasets.grid import BEIJING_3RD_RING

    try:
        source = registry.locate("geolife", path)
        frame = geolife.load(path, box=BEIJING_3RD_RING)
        inputs = [source]
    except registry.DatasetNotFoundError:
        frame, inputs = geolife.synthetic(n_users, seed), []
    grid = Grid(BEIJING_3RD_RING, cell_km)
    sequences = fixed_steps(_with_cells(frame, grid), step, max_gap)
    return mobility_model(sequences, grid.centre(sequences.labels), n_trajectories, horizon, "Geolife", inputs)


def gowalla_model(
    n_trajectories: int,
    horizon: int,
    *,
    path=None,
    seed: int = 0,
    n_users: int = 400,
    max_gap="3D",
    cell_km: float = 0.89,
) -> MobilityModel:
    """Check-ins in Los Angeles, from a Gowalla file or, where there is none, from a synthetic stand-in.

    Parameters
    ----------
    n_trajectories, horizon : as for `mobility_model`
    path : path-like, optional
        By default the official file; without it that file of the same folder that holds the most check-ins there.
    seed, n_users : of the stand-in
    max_gap : how far apart two check-ins may be to count as one step
    cell_km : side of a cell, km
    """
    from tplrepro.datasets import Grid, gowalla, observed_sequences, registry
    from tplrepro.datasets.grid import LOS_ANGELES

    try:
        source = registry.locate("gowalla", path)
        candidates = [source]
        if path is None and "totalCheckins" not in source.name:
            candidates = sorted(p for p in source.parent.glob("*.txt*") if p.suffix in (".txt", ".gz"))
        frames = [gowalla.load(candidate, box=LOS_ANGELES) for candidate in candidates]
        most = int(np.argmax([len(frame) for frame in frames]))
        frame, inputs = frames[most], [candidates[most]]
    except registry.DatasetNotFoundError:
        frame, inputs = gowalla.synthetic(n_users, seed), []
    grid = Grid(LOS_ANGELES, cell_km)
    sequences = observed_sequences(_with_cells(frame, grid), max_gap=max_gap)
    return mobility_model(sequences, grid.centre(sequences.labels), n_trajectories, horizon, "Gowalla", inputs)


def _with_cells(frame, grid):
    return frame.assign(cell=grid.cell(frame["latitude"].to_numpy(), frame["longitude"].to_numpy()))


def _longest_run(states: np.ndarray) -> np.ndarray:
    """The longest part without -1."""
    breaks = np.flatnonzero(states < 0)
    starts, ends = np.append(-1, breaks) + 1, np.append(breaks, len(states))
    longest = int(np.argmax(ends - starts))
    return states[starts[longest] : ends[longest]]
