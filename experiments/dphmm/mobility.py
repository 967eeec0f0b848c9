"""Models of movement for the evaluation of [5] (section 8): cells of a grid, a Markov chain over
them, trajectories.

The paper learns a chain from all trajectories of Geolife within Beijing's 3rd ring (cells of 0.34
km) and of Gowalla in Los Angeles (0.89 km), and follows 20 trajectories of 100 timestamps. It does
not say how long a timestamp is, how long a position holds, how large Los Angeles is, nor what is
known at the start. Here Geolife is taken at fixed steps and Gowalla check-in by check-in. The chain
is the maximum-likelihood estimate over the largest set of cells that all reach each other, and the
cell before the first timestamp is public.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from experiments.datasets.preparation import joint_record, prepare
from tplrepro.markov.sequences import Sequences, count_transitions
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import FrozenArrays


@dataclass(frozen=True, eq=False)
class MobilityModel(FrozenArrays):
    """A chain over cells and trajectories to be released."""

    answers: np.ndarray  # (N, 2), f: centres of the cells, km east and north
    transitions: TransitionMatrix  # M, over N states
    trajectories: np.ndarray  # (k, T + 1) of int; the first state of each is public

    def __repr__(self) -> str:
        length = self.trajectories.shape[1] - 1
        trajectories = f"{len(self.trajectories)} trajectories of {length}"
        return f"MobilityModel({len(self.answers)} states, {trajectories})"


def recorded_models(
    n_trajectories: int,
    horizon: int,
    *,
    cuts: Sequence[str],
    boxes: Sequence[Sequence[float]],
    stand_ins: dict[str, int],
    seed: int,
) -> tuple[dict[str, MobilityModel], dict]:
    """The models of Geolife and Gowalla by name, such as "Gowalla New York 48 x 47 km", and the
    record of their data.

    There is a model of Geolife for each of the `cuts`, such as "10s/20s": the time between two
    timestamps, and how long a position holds; and one of Gowalla for each of the `boxes` (south,
    north, west, east). `stand_ins` are the numbers of users of the stand-ins of missing files.
    """
    models = {}
    sets = {}
    for choice in [*map(_geolife_cut, cuts), *map(_gowalla_box, boxes)]:
        stand_in = {"n_users": stand_ins[choice.data_set], "seed": seed}
        prepared = prepare(choice.data_set, stand_in=stand_in, **choice.options)
        assert prepared.grid is not None  # both sets are positions
        words = [prepared.name, choice.words]
        if choice.data_set == "gowalla" and prepared.place:
            words.insert(1, prepared.place)
        centres = prepared.grid.centre(prepared.sequences.labels)
        models[" ".join(words)] = mobility_model(
            prepared.sequences, centres, n_trajectories, horizon
        )
        sets[choice.data_set, prepared.inputs] = prepared  # two cities may come from two files
    return models, joint_record(*sets.values())


@dataclass(frozen=True)
class Choice:
    """What the paper leaves open about a data set, in words and as arguments of `prepare`."""

    data_set: str
    words: str
    options: dict[str, Any]


def _geolife_cut(cut: str) -> Choice:
    """The time between two timestamps and how long a position holds, such as "10s/20s"."""
    step, max_gap = cut.split("/")
    return Choice("geolife", cut, {"cell_km": 0.34, "step": step, "max_gap": max_gap})


def _gowalla_box(box: Sequence[float]) -> Choice:
    """The sides of a city, (south, north, west, east)."""
    south, north, west, east = box
    height = 111.2 * (north - south)
    width = 111.2 * (east - west) * np.cos(np.radians((south + north) / 2))
    options = {"cell_km": 0.89, "max_gap": "3D", "box": (south, north, west, east)}
    return Choice("gowalla", f"{height:.0f} x {width:.0f} km", options)


def mobility_model(
    sequences: Sequences, centres: ArrayLike, n_trajectories: int, horizon: int
) -> MobilityModel:
    """Estimate a chain and choose trajectories from sequences of cells with centres (n, 2), km.

    There are at most `n_trajectories`, of horizon + 1 states: of the longest sequence of each user
    the longest ones.
    """
    counts, _ = count_transitions(sequences)
    _, component = connected_components(counts, connection="strong")
    kept = np.flatnonzero(component == np.argmax(np.bincount(component)))
    state = np.full(sequences.n_states, -1)
    state[kept] = np.arange(kept.size)
    longest = []
    for of_user in sequences.by_user().values():
        parts = []
        for cells in of_user:
            walk = state[cells]
            leaves = np.flatnonzero(walk < 0)
            parts += [part[part >= 0] for part in np.split(walk, leaves)]
        longest.append(max(parts, key=len))
    longest.sort(key=len, reverse=True)
    if len(longest[0]) <= horizon:
        raise ValueError(
            f"trajectories must have {horizon + 1} states within connected cells, "
            f"found {len(longest[0])} at most; shorten horizon"
        )
    trajectories = [run[: horizon + 1] for run in longest[:n_trajectories] if len(run) > horizon]
    return MobilityModel(
        answers=np.asarray(centres, dtype=float)[kept],
        transitions=TransitionMatrix.from_counts(counts[kept][:, kept], sparse=True),
        trajectories=np.array(trajectories),
    )
