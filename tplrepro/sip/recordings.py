"""The sequences of the experiments of [3]: gaze as cells of a grid, rare pages as one, halves to train and to test.

[3] uses recordings ("MOJO") that are not published; here gaze is that of GazeGraph (8 people, six desktop activities,
30 Hz), or of any folder in that layout, or a synthetic stand-in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tplrepro.datasets.preparation import Prepared, prepare
from tplrepro.markov.sequences import Sequences
from tplrepro.validation import check_horizon

__all__ = ["gaze_cells", "grid_distance", "halves", "merge_rare"]


def gaze_cells(columns: int, rows: int, stride: int = 1, **stand_in: Any) -> Prepared:
    """Gaze as cells of a grid over the screen, seen or not, every `stride`-th sample; a sequence a recording.

    Samples off the screen or lost are left out. `stand_in` are arguments of `tplrepro.datasets.gaze.synthetic`.
    """
    step = check_horizon(stride, "stride")
    stand_in = {"seconds": 60.0, "rate": 30.0, "n_recordings": 2} | stand_in
    prepared = prepare("gaze", columns=columns, rows=rows, stand_in=stand_in)
    cells = prepared.observations["area"].to_numpy()
    recordings = prepared.observations.groupby(["user", "recording"], observed=True).indices
    kept = [cells[index][cells[index] >= 0][::step] for index in recordings.values()]
    ends = np.cumsum([len(own) for own in kept])
    users = [user for user, _ in recordings]
    sequences = Sequences(np.concatenate(kept), np.append(0, ends), np.arange(columns * rows), np.array(users))
    names = [f"area r{row}c{column}" for row in range(rows) for column in range(columns)]
    return replace(prepared, sequences=sequences, state_names=names)


def grid_distance(columns: int, rows: int) -> np.ndarray:
    """Euclidean distance between the cells of a grid, numbered along the lines, (cells, cells); unit: one cell.

    >>> grid_distance(2, 2).round(3).tolist()[0]
    [0.0, 1.0, 1.0, 1.414]
    """
    down, across = np.divmod(np.arange(check_horizon(columns, "columns") * check_horizon(rows, "rows")), columns)
    return np.hypot(np.subtract.outer(across, across), np.subtract.outer(down, down))


def merge_rare(sequences: Sequences, keep: int) -> Sequences:
    """The `keep` most frequent symbols, renumbered by falling frequency, and one symbol, `keep`, for all others.

    >>> merge_rare(Sequences.from_flat(np.array([3, 3, 1, 2, 1, 3]), [0, 6]), 2)[0].tolist()
    [0, 0, 1, 2, 1, 0]
    """
    check_horizon(keep, "keep")
    kept = np.argsort(-np.bincount(sequences.values, minlength=sequences.n_states), kind="stable")[:keep]
    number = np.full(sequences.n_states, keep)
    number[kept] = np.arange(kept.size)
    labels = np.array([*sequences.labels[kept].tolist(), "other"], dtype=object)
    return replace(sequences, values=number[sequences.values], labels=labels)


def halves(sequences: Sequences, length: int, most: int | None = None) -> tuple[dict, dict]:
    """First half of each sequence for training; the second half cut into pieces of `length`, at most `most` a user.

    >>> halves(Sequences(np.arange(8), [0, 8], np.arange(8), np.array(["a"])), 2)[1]["a"][1].tolist()
    [6, 7]
    """
    check_horizon(length, "length")
    train, test = {}, {}
    for user, own in sequences.by_user().items():
        train[user] = [s[: s.size // 2] for s in own if s.size >= 2]
        starts = [range(s.size // 2, s.size - length + 1, length) for s in own]
        pieces = [s[start : start + length] for s, first in zip(own, starts, strict=True) for start in first]
        if most is not None and len(pieces) > most:
            pieces = [pieces[i] for i in np.linspace(0, len(pieces) - 1, most).astype(int)]
        test[user] = pieces
    return train, test
