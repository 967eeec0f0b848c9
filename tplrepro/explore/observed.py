"""Matrices estimated from observed sequences: an uploaded file, or one of the data sets.

A forward matrix comes from the counts of steps, the backward one from the same counts with time reversed. Of a data set
the most visited states are kept, because the page shall answer while a slider moves; a visit to another state ends a
sequence. Data sets are read from the files that TPLREPRO_DATA names; a synthetic stand-in takes the place of a missing
one and is called synthetic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tplrepro.markov.transition import TransitionMatrix

__all__ = ["DATASETS", "Observed", "from_dataset", "from_sequences"]

DATASETS = ("Geolife", "Gowalla", "Kosarak", "Gaze")
#: States kept of a data set.
MOST_VISITED = 40


@dataclass(frozen=True, eq=False)
class Observed:
    """Counts of steps between states.

    Attributes
    ----------
    counts : ndarray (n, n), steps from state (row) to state (column)
    states : list of n labels
    title : str, what the counts are of
    synthetic : bool, whether they come from a synthetic stand-in
    """

    counts: np.ndarray
    states: list
    title: str
    synthetic: bool = False

    def matrices(self, smoothing: float, drop: bool = False) -> tuple[TransitionMatrix, TransitionMatrix]:
        """The backward and the forward matrix, with `smoothing` added to each count.

        Parameters
        ----------
        smoothing : float >= 0
        drop : bool
            Leave out states that are never left or never entered, which have no row without smoothing.

        Raises
        ------
        ValueError
            Without smoothing, if a state is never left or never entered and `drop` is false, or no state remains.
        """
        import scipy.sparse

        from tplrepro.markov.transition import TransitionMatrix, drop_dead_ends

        counts, states = drop_dead_ends(self.counts, self.states) if drop else (self.counts, self.states)
        counts = scipy.sparse.csr_array(counts)
        return tuple(TransitionMatrix.from_counts(c, smoothing, states) for c in (counts.T.tocsr(), counts))


def from_sequences(sequences: list[list], title: str = "sequences") -> Observed:
    """Counts of the steps in sequences of labels.

    >>> from_sequences([["a", "b", "b"], ["b", "a"]]).counts.tolist()
    [[0.0, 1.0], [1.0, 1.0]]
    """
    from tplrepro.markov.sequences import count_transitions

    counts, states = count_transitions(sequences)
    return Observed(counts.toarray(), states, title)


def from_dataset(name: str) -> Observed:
    """Counts of the steps between the most visited states of a data set, or of its synthetic stand-in.

    Parameters
    ----------
    name : one of `DATASETS`

    Raises
    ------
    ValueError
        For an unknown name or a file that does not follow its format.
    """
    if name not in DATASETS:
        raise ValueError(f"a data set must be one of {', '.join(DATASETS)}; found {name!r}")
    sequences, labels, synthetic = {"Geolife": _geolife, "Gowalla": _gowalla, "Kosarak": _kosarak, "Gaze": _gaze}[
        name
    ]()
    visits = np.bincount(sequences.values, minlength=len(labels))
    kept = np.sort(np.argsort(-visits, kind="stable")[:MOST_VISITED])
    code = np.full(len(labels), -1)
    code[kept] = np.arange(kept.size)
    origin, target = (code[states] for states in sequences.transitions())
    inside = (origin >= 0) & (target >= 0)
    counts = np.bincount(origin[inside] * kept.size + target[inside], minlength=kept.size**2)
    counts = counts.reshape(kept.size, kept.size).astype(float)
    title = f"{name} (synthetic data)" if synthetic else name
    return Observed(counts, [labels[k] for k in kept.tolist()], title, synthetic)


def _geolife():
    from tplrepro import datasets

    box = datasets.BEIJING_3RD_RING
    try:
        points = datasets.geolife.load(box=box)
    except datasets.DatasetNotFoundError:
        points = datasets.geolife.synthetic(12, seed=2007, n_trajectories=120)
    grid = datasets.Grid(box, 2.0)
    points["cell"] = grid.cell(points["latitude"].to_numpy(), points["longitude"].to_numpy())
    sequences = datasets.fixed_steps(points, "5min", "30min")
    return sequences, [f"cell {label}" for label in grid.labels(sequences.labels)], points.attrs["synthetic"]


def _gowalla():
    from tplrepro import datasets

    box = datasets.LOS_ANGELES
    try:
        checkins = datasets.gowalla.load(box=box)
    except datasets.DatasetNotFoundError:
        checkins = datasets.gowalla.synthetic(500, seed=2011)
    grid = datasets.Grid(box, 10.0)
    checkins["cell"] = grid.cell(checkins["latitude"].to_numpy(), checkins["longitude"].to_numpy())
    sequences = datasets.observed_sequences(checkins, max_gap="2D")
    return sequences, [f"cell {label}" for label in grid.labels(sequences.labels)], checkins.attrs["synthetic"]


def _kosarak():
    from tplrepro import datasets

    try:
        clicks = datasets.kosarak.load()
    except datasets.DatasetNotFoundError:
        clicks = datasets.kosarak.synthetic(2000, seed=2003)
    sequences = datasets.kosarak.to_sequences(clicks)
    return sequences, [f"page {page}" for page in sequences.labels.tolist()], clicks.attrs["synthetic"]


def _gaze():
    from tplrepro import datasets

    layout, columns, rows = datasets.gaze.GAZEGRAPH, 4, 3
    try:
        samples = datasets.gaze.load(**layout)
    except datasets.DatasetNotFoundError:
        samples = datasets.gaze.synthetic(8, seed=2017, layout=layout)
    samples["area"] = datasets.gaze.areas(samples, columns, rows, 1.0, 1.0)
    sequences = datasets.fixed_steps(samples, 0.2, 0.5, state="area", user=["user", "recording"])
    labels = [f"area in row {area // columns + 1}, column {area % columns + 1}" for area in sequences.labels.tolist()]
    return sequences, labels, samples.attrs["synthetic"]
