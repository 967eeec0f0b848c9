"""Leakages of many users, one transition matrix each (section 3.5 of [1]: leakage is personal; the worst user counts).

Each user's matrix is shrunk towards that of everybody (`markov.shrinkage`). `_leakages_of_user` says what is computed
for one user; those with few states are computed many at a time, with the same bits but without an object for each.

Batches of users run through joblib, with any of its backends: processes by default,
``joblib.parallel_config(backend="dask")`` for a cluster. Results do not depend on the backend or the batches. Workers
hold one batch at a time; a user takes 16 T + 85 bytes or so beside her sequences, where the result is. With a folder, a
worker keeps each finished batch there, named by what it was computed from, and a run that was cut off, or that met a
user without a matrix, goes on from them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.files import write_whole
from tplrepro.leakage.temporal import temporal_privacy_leakage
from tplrepro.markov.sequences import Sequences, as_sequences, count_transitions
from tplrepro.markov.shrinkage import matrices_of_few, own_matrix, pooled_matrix
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.progress import progress_bar
from tplrepro.validation import FrozenArrays, as_numbers, check_budgets, check_horizon, check_smoothing

__all__ = ["PopulationLeakage", "population_leakage"]

SIDES = ("backward", "forward")


@dataclass(frozen=True)
class PopulationLeakage(FrozenArrays):
    """Leakages of the same releases about each of U users, in nats: `epsilons` (T,), `bpl` and `fpl` (U, T).

    `transitions` (U,) is the number of steps that each user's matrix was estimated from.
    """

    users: tuple
    transitions: np.ndarray
    epsilons: np.ndarray
    bpl: np.ndarray
    fpl: np.ndarray

    @property
    def tpl(self) -> np.ndarray:
        """Temporal privacy leakage of each user at each time, (U, T)."""
        return self.bpl + self.fpl - self.epsilons

    @property
    def maximum(self) -> np.ndarray:
        """The TPL of the mechanism, (T,): the largest over users (Eq. (3) of [1])."""
        return self.tpl.max(axis=0)

    @property
    def largest(self) -> np.ndarray:
        """Each user's largest TPL over time, (U,)."""
        return self.tpl.max(axis=1)

    @property
    def worst_user(self) -> Any:
        """The user with the largest TPL."""
        return self.users[int(np.argmax(self.largest))]

    def quantile(self, q: ArrayLike) -> np.ndarray:
        """Quantiles over users of the TPL at each time: (T,) for one q in [0, 1], (len(q), T) for several."""
        return np.quantile(self.tpl, as_numbers(q, "quantiles must be numbers", "give shares of the users"), axis=0)


def population_leakage(
    sequences_by_user: Any,
    epsilons: ArrayLike,
    *,
    n_states: int | None = None,
    smoothing: float = 1.0,
    prior_weight: float | None = 1.0,
    sides: tuple[str, ...] = SIDES,
    visited_only: bool = False,
    n_jobs: int | None = None,
    batch_size: int = 1024,
    folder: str | PathLike | None = None,
    progress: bool = False,
) -> PopulationLeakage:
    """BPL, FPL and TPL of a series of releases for each of many users.

    Parameters
    ----------
    sequences_by_user : dict from user to her sequence or sequences of states, Sequences, DataFrame(user, time, state)
    epsilons : array-like (T,), the budgets in nats, finite and > 0
    n_states : as in `as_sequences`
    smoothing : float >= 0, added to every count of the pooled matrix (without pooling: of each user's)
    prior_weight : the weight > 0 of a pooled row in pseudo-transitions; None: no pooling, each user's counts alone
    sides : which of "backward", "forward" the adversary knows
    visited_only : leave out, for each user, the states where she never was: the adversary knows her places
    n_jobs, batch_size : how many joblib workers, and how many users make a task
    folder : where to keep finished batches, Parquet files with the columns user, time, bpl and fpl, and to find them
    progress : show a progress bar

    ValueError for no users, budgets or options outside their ranges, and, with the user's name, for a user without any
    state or without a matrix, and as `as_sequences`.

    Examples
    --------
    >>> walks = {"ann": [0, 0, 0, 1, 1, 0, 0], "bob": [0, 1, 0, 1, 0, 1], "new": [1]}
    >>> result = population_leakage(walks, [0.5] * 3)
    >>> result.tpl.round(3).tolist()
    [[0.579, 0.637, 0.577], [1.171, 1.273, 1.187], [0.637, 0.723, 0.636]]
    >>> result.worst_user, result.transitions.tolist()
    ('bob', [6, 5, 0])
    """
    from joblib import Parallel, delayed

    budgets, smoothing = check_budgets(epsilons), check_smoothing(smoothing)
    batch_size = check_horizon(batch_size, "batch_size")
    if prior_weight is not None and not (prior_weight := check_smoothing(prior_weight, "prior_weight")):
        raise ValueError("prior_weight must be finite and above 0, found 0; pass None for no pooling")
    if not sides or any(side not in SIDES for side in sides):
        raise ValueError(f"sides must name 'backward', 'forward' or both, found {sides!r}; give a tuple of them")
    users, first, data = _by_user(_of_users(sequences_by_user, n_states))
    observed = np.diff(data.offsets[first])
    if not observed.all():
        user = users[int(np.argmin(observed))]
        raise ValueError(f"each user needs an observed state, found none for user {user!r}; leave her out")
    pooled: dict[str, TransitionMatrix | None] = dict.fromkeys(sides)
    if prior_weight is not None:
        counts, _ = count_transitions(data)
        pooled = {side: pooled_matrix(counts.T if side == "backward" else counts, smoothing) for side in sides}
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    options = data.n_states, budgets, pooled, smoothing, prior_weight, visited_only
    bpl, fpl = (np.empty((len(users), budgets.size)) for _ in SIDES)
    starts = range(0, len(users), batch_size)
    tasks = (delayed(_leakages_of_batch)(_batch(data, first, k, k + batch_size), folder, options) for k in starts)
    failed = []
    with progress_bar(len(starts), progress, "population", "batch") as bar:
        for k, found in zip(starts, Parallel(n_jobs=n_jobs, return_as="generator")(tasks), strict=True):
            if isinstance(found, str):
                failed.append(found)
            else:
                bpl[k : k + batch_size], fpl[k : k + batch_size] = found
            bar.update()
    if failed:
        raise ValueError(f"{failed[0]}; leave her out ({len(failed)} of {len(starts)} batches met such a user)")
    transitions = np.add.reduceat(np.maximum(data.lengths - 1, 0), first[:-1])
    for leakages in (bpl, fpl):
        leakages.setflags(write=False)  # kept as they are, not copied
    return PopulationLeakage(tuple(users), transitions, budgets, bpl, fpl)


def _of_users(data: Any, n_states: int | None) -> Sequences:
    if not (isinstance(data, (Mapping, Sequences)) or hasattr(data, "columns")):
        found = type(data).__name__
        raise ValueError(f"sequences_by_user must map each user to her sequences, found {found}; give a dict")
    if not len(data):
        raise ValueError("a population needs at least one user, found none; give a dict from user to sequences")
    allowed = None if n_states is None else range(check_horizon(n_states, "n_states"))
    try:
        return as_sequences(data, n_states)
    except ValueError:
        for user in data if isinstance(data, Mapping) else ():
            _about(user, as_sequences, {user: data[user]}, None, allowed)
        raise


def _about(user: Any, function: Callable, *arguments) -> Any:
    """What the function returns; a ValueError of it names the user."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise ValueError(f"user {user!r}: {error}") from None


def _by_user(data: Sequences) -> tuple[list, np.ndarray, Sequences]:
    """The U users in order of first appearance, where each one's sequences begin (U + 1,), and these user by user."""
    import pandas as pd

    codes, _ = pd.factorize(data.users, use_na_sentinel=False)
    if (np.diff(codes) < 0).any():
        order = np.argsort(codes, kind="stable")
        codes, data = codes[order], data.select(order)
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    return data.users[first].tolist(), np.append(first, codes.size), data


def _batch(data: Sequences, first: np.ndarray, start: int, stop: int) -> tuple:
    """Users start, ..., stop - 1: their names, where their sequences begin, where these begin, and their values.

    A tuple travels with its task, so that it is there again if a worker dies.
    """
    own = first[start : stop + 1]
    offsets = data.offsets[own[0] : own[-1] + 1]
    return data.users[own[:-1]].tolist(), own - own[0], offsets - offsets[0], data.values[offsets[0] : offsets[-1]]


def _leakages_of_batch(batch: tuple, folder, options: tuple) -> np.ndarray | str:
    """BPL and FPL of some users, (2, B, T), kept in the folder; or what is wrong with one of them."""
    import joblib
    import pandas as pd

    done = None if folder is None else Path(folder) / f"{joblib.hash((batch, options))}.parquet"
    shape = 2, len(batch[0]), options[1].size
    if done is not None and done.is_file():
        return pd.read_parquet(done)[["bpl", "fpl"]].to_numpy().T.reshape(shape)
    try:
        leakages = _leakages_of_users(batch, *options)
    except ValueError as error:
        return str(error)
    if done is not None:
        names = np.repeat([str(user) for user in batch[0]], shape[2])
        times = np.tile(np.arange(shape[2]), shape[1])
        bpl, fpl = leakages.reshape(2, -1)
        write_whole(done, pd.DataFrame({"user": names, "time": times, "bpl": bpl, "fpl": fpl}).to_parquet())
    return leakages


def _leakages_of_users(
    batch: tuple, n: int, budgets: np.ndarray, pooled: dict, smoothing: float, weight: float | None, visited_only: bool
) -> np.ndarray:
    """`_leakages_of_user` of each user of a batch, (2, B, T), for most of them many at a time."""
    from tplrepro.leakage.envelope import SMALL, leakages_of_small  # Numba loads on first use

    users, first, offsets, values = batch
    sequences = Sequences(values, offsets, np.arange(n), np.arange(offsets.size - 1))
    leakages = np.full((2, len(users), budgets.size), np.nan)
    for members, matrices in matrices_of_few(first, sequences, pooled, smoothing, weight, visited_only, SMALL):
        for found, side in zip(leakages, SIDES, strict=True):
            order = slice(None, None, 1 if side == "backward" else -1)
            along = leakages_of_small(matrices[side], budgets[order])[:, order] if side in pooled else budgets
            found[members] = along
    # Those with many states, without a matrix, or with numbers out of range.
    for u in np.flatnonzero(np.isnan(leakages[:, :, 0]).any(axis=0)).tolist():
        own = sequences.select(np.arange(first[u], first[u + 1]))
        options = budgets, pooled, smoothing, weight, visited_only
        leakages[:, u] = _about(users[u], _leakages_of_user, own, *options)
    return leakages


def _leakages_of_user(
    own: Sequences, budgets: np.ndarray, pooled: dict, smoothing: float, weight: float | None, visited_only: bool
) -> tuple[np.ndarray, np.ndarray]:
    """BPL and FPL of one user, step by step."""
    if visited_only:
        visited, codes = np.unique(own.values, return_inverse=True)
        own = Sequences(codes, own.offsets, visited, own.users)
    known = {side: own_matrix(own, side, prior, smoothing, weight) for side, prior in pooled.items()}
    leakage = temporal_privacy_leakage(budgets, **known)
    return leakage.bpl, leakage.fpl
