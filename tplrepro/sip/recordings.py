"""The sequences of the experiments of [3]: Kosarak sessions and gaze recordings, or synthetic stand-ins.

[3] uses recordings ("MOJO") that are not published; here gaze is that of GazeGraph (8 people, six desktop
activities, 30 Hz),
or of any folder in that layout. Coordinates become cells of a grid over the screen.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tplrepro.validation import check_horizon

__all__ = ["Recordings", "gaze_cells", "halves", "kosarak_sessions", "merge_rare"]


@dataclass(frozen=True, eq=False)
class Recordings:
    """Sequences of symbols by user.

    Attributes
    ----------
    by_user : dict of lists of int arrays
    n_symbols : int
    is_real : bool, recorded, not a synthetic stand-in
    inputs : tuple of paths, files that were read
    """

    by_user: dict
    n_symbols: int
    is_real: bool
    inputs: tuple

    @property
    def sequences(self) -> list:
        """All sequences, user by user."""
        return [sequence for own in self.by_user.values() for sequence in own]

    def __str__(self) -> str:
        kind = "recorded" if self.is_real else "synthetic"
        return f"{kind}: {len(self.by_user)} users, {len(self.sequences)} sequences, {self.n_symbols} symbols"


def kosarak_sessions(standin: int = 2000, seed: int = 0) -> Recordings:
    """Click streams of Kosarak, a session a user; a stand-in of `standin` sessions where the file is absent."""
    from tplrepro.datasets import DatasetNotFoundError, kosarak, registry

    try:
        path = registry.locate("kosarak")
    except DatasetNotFoundError:
        found, inputs = kosarak.to_sequences(kosarak.synthetic(n_users=standin, seed=seed)), ()
    else:
        found, inputs = kosarak.to_sequences(kosarak.load(path)), (path,)
    by_user = {user: [sequence] for user, sequence in zip(found.users.tolist(), found, strict=True)}
    return Recordings(by_user, found.n_states, bool(inputs), inputs)


def merge_rare(recordings: Recordings, keep: int) -> Recordings:
    """The `keep` most frequent symbols, renumbered by falling frequency, and one symbol, `keep`, for all others.

    >>> merge_rare(Recordings({0: [np.array([3, 3, 1, 2, 1, 3])]}, 4, False, ()), 2).sequences[0].tolist()
    [0, 0, 1, 2, 1, 0]
    """
    check_horizon(keep, "keep")
    counts = np.bincount(np.concatenate(recordings.sequences), minlength=recordings.n_symbols)
    number = np.full(recordings.n_symbols, keep)
    kept = np.argsort(-counts, kind="stable")[:keep]
    number[kept] = np.arange(kept.size)
    by_user = {user: [number[s] for s in own] for user, own in recordings.by_user.items()}
    return Recordings(by_user, keep + 1, recordings.is_real, recordings.inputs)


def gaze_cells(columns: int, rows: int, stride: int = 1, standin: int = 8, seconds: float = 60.0, seed: int = 0):
    """Gaze recordings as cells of a grid, every `stride`-th sample; a stand-in of `standin` users where there are none.

    Samples off the screen or lost are left out.
    """
    from tplrepro.datasets import DatasetNotFoundError, gaze, registry

    layout = gaze.GAZEGRAPH
    wanted = [layout["time"], layout["x"], layout["y"]]
    try:
        path = registry.locate("gaze", accept=lambda p: gaze._has_columns(p, wanted))
    except DatasetNotFoundError:
        frame, inputs = gaze.synthetic(n_users=standin, seed=seed, seconds=seconds, rate=30.0, n_recordings=2), ()
    else:
        frame, inputs = gaze.load(path, **layout), (path,)
    cells = gaze.areas(frame, columns, rows, 1.0, 1.0)
    by_user: dict = {}
    for (user, _), index in frame.groupby(["user", "recording"], observed=True).indices.items():
        own = cells[index]
        by_user.setdefault(user, []).append(own[own >= 0][:: check_horizon(stride, "stride")])
    return Recordings(by_user, columns * rows, bool(inputs), inputs)


def halves(recordings: Recordings, length: int, most: int | None = None) -> tuple[dict, dict]:
    """First half of each sequence for training; the second half cut into pieces of `length`, at most `most` a user.

    >>> halves(Recordings({"a": [np.arange(8)]}, 8, False, ()), 2)[1]["a"][1].tolist()
    [6, 7]
    """
    check_horizon(length, "length")
    train, test = {}, {}
    for user, own in recordings.by_user.items():
        train[user] = [s[: s.size // 2] for s in own if s.size >= 2]
        pieces = [s[start : start + length] for s in own for start in range(s.size // 2, s.size - length + 1, length)]
        if most is not None and len(pieces) > most:
            pieces = [pieces[i] for i in np.linspace(0, len(pieces) - 1, most).astype(int)]
        test[user] = pieces
    return train, test
