"""Leakages of many users, one transition matrix each (section 3.5 of [1]: leakage is personal; the worst user counts).

A user with little data says little about her own correlation, so each user's matrix is shrunk towards the pooled one:
row i is (c_i + w p_i) / (|c_i| + w) for her counts c_i, the pooled row p_i and a weight w in pseudo-transitions (the
posterior mean under a Dirichlet prior w p_i).

Batches of users run through joblib, with any of its backends: processes by default,
``joblib.parallel_config(backend="dask")`` for a cluster. Results do not depend on the backend or the batches. With a
folder, a worker keeps each finished batch there, named by what it was computed from, and a run that was cut off, or
that met a user without a matrix, goes on from them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.temporal import temporal_privacy_leakage
from tplrepro.markov.sequences import Sequences, as_sequences, count_transitions
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.progress import progress_bar
from tplrepro.provenance import write_whole
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
    batch_size: int = 256,
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
    data = _of_users(sequences_by_user, n_states)
    by_user = data.by_user()
    for user, own in by_user.items():
        if not any(map(len, own)):
            raise ValueError(f"each user needs an observed state, found none for user {user!r}; leave her out")
    pooled: dict[str, TransitionMatrix | None] = dict.fromkeys(sides)
    if prior_weight is not None:
        pooled = {side: _pooled(count_transitions(data, direction=side)[0], smoothing) for side in sides}
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    options = data.n_states, budgets, pooled, smoothing, prior_weight, visited_only
    users = list(by_user)
    batches = [{user: by_user[user] for user in users[k : k + batch_size]} for k in range(0, len(users), batch_size)]
    tasks = (delayed(_leakages_of_batch)(batch, folder, options) for batch in batches)
    leakages = []
    with progress_bar(len(batches), progress, "population", "batch") as bar:
        for found in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
            leakages.append(found)
            bar.update()
    failed = [found for found in leakages if isinstance(found, str)]
    if failed:
        raise ValueError(f"{failed[0]}; leave her out ({len(failed)} of {len(batches)} batches met such a user)")
    transitions = np.array([sum(max(len(s) - 1, 0) for s in own) for own in by_user.values()])
    return PopulationLeakage(tuple(users), transitions, budgets, *np.concatenate(leakages, axis=1))


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


def _leakages_of_batch(batch: dict[Any, list[np.ndarray]], folder, options: tuple) -> np.ndarray | str:
    """BPL and FPL of some users, (2, B, T), kept in the folder; or what is wrong with one of them."""
    import joblib
    import pandas as pd

    done = None if folder is None else Path(folder) / f"{joblib.hash((batch, options))}.parquet"
    shape = 2, len(batch), options[1].size
    if done is not None and done.is_file():
        return pd.read_parquet(done)[["bpl", "fpl"]].to_numpy().T.reshape(shape)
    try:
        leakages = np.stack([_about(user, _leakages_of_user, own, *options) for user, own in batch.items()], axis=1)
    except ValueError as error:
        return str(error)
    if done is not None:
        names, times = np.repeat([str(user) for user in batch], shape[2]), np.tile(np.arange(shape[2]), shape[1])
        bpl, fpl = leakages.reshape(2, -1)
        write_whole(done, pd.DataFrame({"user": names, "time": times, "bpl": bpl, "fpl": fpl}).to_parquet())
    return leakages


def _leakages_of_user(
    sequences, n: int, budgets, pooled: dict, smoothing: float, prior_weight, visited_only: bool
) -> tuple[np.ndarray, np.ndarray]:
    flat, offsets = np.concatenate(sequences), np.cumsum([0, *map(len, sequences)])
    visited, flat = np.unique(flat, return_inverse=True) if visited_only else (np.arange(n), flat)
    forward, _ = count_transitions(Sequences(flat, offsets, visited, np.arange(len(sequences))))
    known = {}
    for side, prior in pooled.items():
        counts = forward if side == "forward" else forward.T.tocsr()
        if prior is None:
            known[side] = TransitionMatrix.from_counts(counts, smoothing)
        else:
            known[side] = _shrunk(counts, prior, prior_weight, visited)
    leakage = temporal_privacy_leakage(budgets, **known)
    return leakage.bpl, leakage.fpl


def _pooled(counts, smoothing: float) -> TransitionMatrix:
    if smoothing == 0.0:
        # A state that nobody leaves has no row; any will do, as no user's row depends on more than its weight.
        empty = np.flatnonzero(np.asarray(counts.sum(axis=1)).ravel() == 0)
        counts = counts.tolil()
        counts[empty, empty] = 1.0
    return TransitionMatrix.from_counts(counts, smoothing)


def _shrunk(counts, prior: TransitionMatrix, weight: float, visited: np.ndarray) -> TransitionMatrix:
    """One user's matrix: her counts and `weight` pseudo-transitions along each pooled row."""
    totals = np.asarray(counts.sum(axis=1)).ravel() + weight
    if visited.size < prior.n_states:
        rows = np.vstack([prior.row(i)[visited] for i in visited.tolist()])
        mass = rows.sum(axis=1, keepdims=True)
        # A pooled row that never leads to one of her places gives no hint: all of them alike.
        rows = np.where(mass > 0, rows / np.where(mass > 0, mass, 1.0), 1.0 / visited.size)
    elif not prior.is_sparse:
        rows = prior.probabilities
    else:
        joint = (counts + weight * prior.excess).tocsr()
        background, stored = weight * prior.background / totals, np.diff(joint.indptr)
        joint.data = joint.data / np.repeat(totals, stored) + np.repeat(background, stored)
        return TransitionMatrix(joint, background=background, normalize=True)
    return TransitionMatrix((counts.toarray() + weight * rows) / totals[:, None], normalize=True)
