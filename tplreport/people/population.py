"""Leakages of many users, one transition matrix each (section 3.5 of [1]: leakage is personal; the
worst user counts).

Each user's matrix is shrunk towards that of all users (`shrinkage`). Users with few states
are computed many at a time. With 20 states this takes 0.15 ms per user; 0.39 ms with a loss
function object for each user, and 1.27 ms with objects for the matrices, too.

Batches of users run through joblib, with any of its backends: processes by default,
``joblib.parallel_config(backend="dask")`` for a cluster. Results do not depend on the backend or
the batches. Each worker holds one batch at a time; the result takes about 16 T + 85 bytes per user
beside her sequences. With a folder, workers keep each finished batch there, named by a hash of its
input, so that a run continues after an interruption.
"""

from __future__ import annotations
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tplreport.files import write_whole
from tplreport.people.shrinkage import pooled_matrices, sparse_user_matrix, user_matrices
from tplrepro.display import count_noun, frame_as_html, plot_over_time
from tplrepro.leakage.accumulation import accumulate_leakages
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.prior_free import PriorFreeLoss
from tplrepro.leakage.temporal import temporal_privacy_leakage
from tplrepro.markov.sequences import BLOCK, Sequences, as_sequences
from tplrepro.markov.transition import SPARSE_FROM, TransitionMatrix
from tplrepro.progress import Bar
from tplrepro.validation import FrozenArrays, check_budgets, check_horizon, check_smoothing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

SIDES = ("backward", "forward")
#: Users in each task.
BATCH = 1024


@dataclass(frozen=True)
class PopulationLeakage(FrozenArrays):
    """Leakages of the same releases about each of U users, in nats: `epsilons` (T,), `bpl` and
    `fpl` (U, T).

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
        """The TPL of the mechanism, (T,): the largest over users (Eq. (3) of [1] and of [2])."""
        return self.tpl.max(axis=0)

    @property
    def largest(self) -> np.ndarray:
        """Each user's largest TPL over time, (U,)."""
        return self.tpl.max(axis=1)

    @property
    def worst_user(self) -> Any:
        """The user with the largest TPL."""
        return self.users[int(np.argmax(self.largest))]

    def to_frame(self) -> DataFrame:
        """A DataFrame with the columns bpl, fpl and tpl, and a row for each user and time (from 0);
        nats."""
        from pandas import DataFrame, MultiIndex

        index = MultiIndex.from_product(
            [self.users, range(self.epsilons.size)], names=["user", "time"]
        )
        return DataFrame(
            {name: getattr(self, name).ravel() for name in ("bpl", "fpl", "tpl")}, index=index
        )

    def _repr_html_(self) -> str:
        from pandas import DataFrame, Index

        users = Index(self.users, name="user", tupleize_cols=False)
        of_users = count_noun(len(users), "user", ",")
        by_releases = count_noun(self.epsilons.size, "release")
        heading = f"leakages of {of_users} by {by_releases}, nats"
        return frame_as_html(
            heading, DataFrame({"steps": self.transitions, "largest TPL": self.largest}, users)
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the largest and the median TPL of users over time with Matplotlib, on `ax` or new
        axes."""
        from pandas import DataFrame, RangeIndex

        tpl = {"largest": self.maximum, "median": np.median(self.tpl, axis=0)}
        frame = DataFrame(tpl, RangeIndex(self.epsilons.size, name="time"))
        return plot_over_time(frame, ax, ylabel="TPL of users (nats)")


def population_leakage(
    sequences_by_user: Any,
    epsilons: ArrayLike,
    *,
    horizon: int | None = None,
    n_states: int | None = None,
    smoothing: float = 1.0,
    prior_weight: float | None = 1.0,
    prior_free: bool = False,
    n_jobs: int | None = None,
    batch_size: int = BATCH,
    folder: str | PathLike | None = None,
    progress: bool = True,
) -> PopulationLeakage:
    """BPL, FPL and TPL of a series of releases for each of many users.

    Parameters
    ----------
    sequences_by_user : dict from user to sequence or sequences of states, or Sequences
        Or a DataFrame with the columns user, time and state.
    epsilons : array-like (T,) or float, budgets in nats
    horizon : int, the number of releases T, for a budget that is a number
    n_states : int; states are then 0, ..., n_states - 1; by default those that occur
    smoothing : float >= 0, added to every count of the pooled matrix
        Without pooling, of each user's matrix.
    prior_weight : the weight > 0 of a pooled row in pseudo-transitions; None: no pooling
    prior_free : bool; against any prior and any evidence about other times, by `PriorFreeLoss`
    n_jobs : int, the number of joblib workers
    batch_size : int, the number of users in each task
    folder : where to keep and find finished batches
        Parquet files with the columns user, time, bpl and fpl.
    progress : bool; show a progress bar

    Returns
    -------
    PopulationLeakage, leakages (users, T) in nats

    Raises
    ------
    ValueError
        For no users, budgets or options outside their ranges, what `as_sequences` refuses, and,
        with the user's name, for a user without any state or without a matrix.

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

    budgets = check_budgets(epsilons, horizon=horizon)
    smoothing = check_smoothing(smoothing)
    batch_size = check_horizon(batch_size, "batch_size")
    prior_weight = _checked_prior_weight(prior_weight)
    _check_jobs(n_jobs)
    users, first, data = _by_user(_sequences_of_users(sequences_by_user, n_states))
    _check_each_is_observed(users, first, data)
    pooled = dict.fromkeys(SIDES)
    if prior_weight is not None:
        pooled = pooled_matrices(data, smoothing)
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    loss: type[PrivacyLossFunction] | type[PriorFreeLoss] = PrivacyLossFunction
    if prior_free:
        loss = PriorFreeLoss
    options = data.n_states, budgets, pooled, smoothing, prior_weight, loss
    bpl = np.empty((len(users), budgets.size))
    fpl = np.empty((len(users), budgets.size))
    starts = range(0, len(users), batch_size)
    tasks = (
        delayed(_leakages_of_batch)(_batch(data, first, k, k + batch_size), folder, options)
        for k in starts
    )
    failed = []
    with Bar(len(starts), "population", "batch", progress) as bar:
        for k, result in zip(
            starts, Parallel(n_jobs=n_jobs, return_as="generator")(tasks), strict=True
        ):
            if isinstance(result, str):
                failed.append(result)
            else:
                bpl[k : k + batch_size], fpl[k : k + batch_size] = result
            bar.update()
    if failed:
        raise ValueError(
            f"{failed[0]}; leave her out ({len(failed)} of {len(starts)} batches met such a user)"
        )
    transitions = np.add.reduceat(np.maximum(data.lengths - 1, 0), first[:-1])
    for leakages in (bpl, fpl):
        leakages.setflags(write=False)  # so that the result holds them without a copy
    return PopulationLeakage(tuple(users), transitions, budgets, bpl, fpl)


def _check_each_is_observed(users: list, first: np.ndarray, data: Sequences) -> None:
    """ValueError for a user without any state; the sequences of user u are those from first[u] to
    first[u + 1] of `data`."""
    observed = np.diff(data.offsets[first])
    if not observed.all():
        user = users[int(np.argmin(observed))]
        raise ValueError(
            f"each user needs an observed state, found none for user {user!r}; leave her out"
        )


def _checked_prior_weight(weight: float | None) -> float | None:
    """The weight in pseudo-transitions; None, for no pooling, stays None."""
    if weight is None:
        return None
    weight = check_smoothing(weight, "prior_weight")
    if weight == 0.0:
        raise ValueError(
            "prior_weight must be finite and above 0, found 0; pass None for no pooling"
        )
    return weight


def _check_jobs(n_jobs: int | None) -> None:
    if n_jobs is None:
        return
    if not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be a whole number but 0, found {n_jobs!r}; give 1, or -1 for all "
            "processors"
        )


def loss_of_all_users(
    sequences_by_user: Any,
    *,
    smoothing: float = 1.0,
    prior_weight: float = 1.0,
    pooled: dict[str, Any] | None = None,
) -> tuple[PrivacyLossFunction, PrivacyLossFunction]:
    """Backward and forward loss function of all users: at each alpha the largest of the users' own.

    Leakages with them are never below those of `population_leakage`, so that budgets for them keep
    alpha for each user. `matrix` holds the pooled matrix. With `pooled`, such as those of one hour,
    users are shrunk towards these matrices of the two sides, which count as a user themselves: one
    of whom nothing was seen.

    Parameters
    ----------
    sequences_by_user, smoothing, prior_weight : as in `population_leakage`
    pooled : dict, optional
        The "backward" and the "forward" matrix of all users, by default estimated.

    Returns
    -------
    tuple of the backward and the forward loss function

    Raises
    ------
    ValueError
        As `population_leakage` says.

    Examples
    --------
    >>> walks = {"ann": [0, 0, 0, 1, 1, 0, 0], "bob": [0, 1, 0, 1, 0, 1], "new": [1]}
    >>> functions = loss_of_all_users(walks)
    >>> temporal_privacy_leakage([0.5] * 3, *functions).tpl.round(3).tolist()
    [1.171, 1.273, 1.187]
    """
    from tplrepro.leakage.envelope import hull_of_points, hull_of_several

    _, first, data = _by_user(_sequences_of_users(sequences_by_user, None))
    hulls: dict[str, list] = {side: [] for side in SIDES}
    shared: dict[str, Any] = pooled or pooled_matrices(data, smoothing)
    if pooled is not None:
        for side in SIDES:
            hulls[side].append(hull_of_several(pooled[side].toarray()[None]))
    before = data.offsets[first]  # values of earlier users
    stop = 0
    while stop < first.size - 1:  # in batches, which limits the memory
        start = stop
        most = int(np.searchsorted(before, before[start] + BLOCK, "right")) - 1
        stop = min(start + BATCH, max(most, start + 1), first.size - 1)
        _, of_user, offsets, values = _batch(data, first, start, stop)
        part = Sequences(values, offsets, np.arange(data.n_states), np.arange(offsets.size - 1))
        for _, matrices in user_matrices(of_user, part, shared, smoothing, prior_weight):
            for side, rows in matrices.items():
                hulls[side].append(hull_of_several(rows))
    backward, forward = (
        PrivacyLossFunction.of_hull(shared[side], hull_of_points(np.vstack(hulls[side])))
        for side in SIDES
    )
    return backward, forward


def _sequences_of_users(data: Any, n_states: int | None) -> Sequences:
    """The sequences of all users, whose states are below `n_states` if that is given; a ValueError
    names the user whose sequences are wrong."""
    _check_has_users(data)
    allowed = None
    if n_states is not None:
        allowed = range(check_horizon(n_states, "n_states"))
    try:
        return as_sequences(data, n_states)
    except ValueError:
        if isinstance(data, Mapping):
            for user in data:
                _call_about(user, as_sequences, {user: data[user]}, None, allowed)
        raise


def _check_has_users(data: Any) -> None:
    """ValueError for what tells no users apart, or has none."""
    if not (isinstance(data, (Mapping, Sequences)) or hasattr(data, "columns")):
        kind = type(data).__name__
        raise ValueError(
            f"sequences_by_user must map each user to her sequences, found {kind}; give a dict, or "
            "read a file with tplreport.read_sequences"
        )
    if not len(data):
        raise ValueError(
            "a population needs at least one user, found none; give a dict from user to sequences"
        )


def _call_about(user: Any, function: Callable, *arguments) -> Any:
    """The function's result; its ValueError names the user."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise ValueError(f"user {user!r}: {error}") from None


def _by_user(data: Sequences) -> tuple[list, np.ndarray, Sequences]:
    """The U users in order of first appearance, where the sequences of each begin (U + 1,), and
    these, user by user."""
    import pandas as pd

    codes, _ = pd.factorize(data.users, use_na_sentinel=False)
    if (np.diff(codes) < 0).any():
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
        data = data.select(order)
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    return data.users[first].tolist(), np.append(first, codes.size), data


def _batch(data: Sequences, first: np.ndarray, start: int, stop: int) -> tuple:
    """Users start, ..., stop - 1 as a tuple: their names, their first sequences, the offsets of
    these, and their values.

    User u has the sequences from first[u] to first[u + 1] of `data`. A tuple is sent with its task,
    so that another worker can repeat it.
    """
    begin = first[start : stop + 1]
    offsets = data.offsets[begin[0] : begin[-1] + 1]
    values = data.values[offsets[0] : offsets[-1]]
    return data.users[begin[:-1]].tolist(), begin - begin[0], offsets - offsets[0], values


def _leakages_of_batch(batch: tuple, folder, options: tuple) -> np.ndarray | str:
    """BPL and FPL of the B users of a batch, (2, B, T); or the error message about one of them.

    `options` are the further arguments of `_leakages_of_users`. Results are kept in the folder, and
    taken from there if they have been computed before; None keeps nothing.
    """
    import joblib
    import pandas as pd

    done = None
    if folder is not None:
        done = Path(folder) / f"{joblib.hash((batch, options))}.parquet"
    shape = 2, len(batch[0]), options[1].size
    if done is not None and done.is_file():
        with suppress(ValueError, OSError):  # a damaged file is made again
            return pd.read_parquet(done)[["bpl", "fpl"]].to_numpy().T.reshape(shape)
    try:
        leakages = _leakages_of_users(batch, *options)
    except ValueError as error:
        return str(error)
    if done is not None:
        index = pd.MultiIndex.from_product(
            [map(str, batch[0]), range(shape[2])], names=["user", "time"]
        )
        frame = pd.DataFrame(
            dict(zip(("bpl", "fpl"), leakages.reshape(2, -1), strict=True)), index=index
        )
        write_whole(done, frame.reset_index().to_parquet())
    return leakages


def _leakages_of_users(  # noqa: PLR0917 - what a task of another process gets, in order
    batch: tuple,
    n: int,
    budgets: np.ndarray,
    pooled: dict,
    smoothing: float,
    weight: float | None,
    loss: type[PrivacyLossFunction],
) -> np.ndarray:
    """BPL and FPL of each of the B users of a batch from `_batch`, (2, B, T), nats.

    There are n states. `pooled` maps each side to the matrix of all users, towards which rows are
    shrunk by `weight` pseudo-transitions; without pooling both are None, and `smoothing` is added
    to each count. `loss` makes a loss function of a matrix.
    """
    users, first, offsets, values = batch
    sequences = Sequences(values, offsets, np.arange(n), np.arange(offsets.size - 1))
    leakages = np.tile(budgets, (2, len(users), 1))
    if n >= SPARSE_FROM:
        for u, user in enumerate(users):
            of_user = sequences.select(np.arange(first[u], first[u + 1]))
            both = (
                _call_about(
                    user, sparse_user_matrix, of_user, side, pooled[side], smoothing, weight
                )
                for side in SIDES
            )
            result = temporal_privacy_leakage(budgets, *map(loss, both))
            leakages[:, u] = result.bpl, result.fpl
        return leakages
    for members, matrices in user_matrices(first, sequences, pooled, smoothing, weight):
        for side, rows in matrices.items():
            _check_each_state_is_left(rows, users, members)
            if side == "backward":
                leakages[0, members] = _leakages_along(rows, budgets, loss)
            else:
                leakages[1, members] = _leakages_along(rows, budgets[::-1], loss)[:, ::-1]
    return leakages


def _check_each_state_is_left(matrices: np.ndarray, users: list, members: np.ndarray) -> None:
    """ValueError for NaN in one of the matrices (M, n, n), which are those of users[members[k]]."""
    missing = np.isnan(matrices).any(axis=(1, 2))
    if missing.any():
        raise ValueError(
            f"user {users[members[np.argmax(missing)]]!r}: every state must be left at "
            "least once, found one without a step from it; give smoothing > 0 or a "
            "prior_weight"
        )


def _leakages_along(
    matrices: np.ndarray, budgets: np.ndarray, loss: type[PrivacyLossFunction]
) -> np.ndarray:
    """Leakages (M, T) of the recursion along budgets (T,) with the loss of each of M matrices (M,
    n, n)."""
    from tplrepro.leakage.envelope import SMALL, leakages_of_small  # Numba loads on first use

    leakages = np.full((len(matrices), budgets.size), np.nan)
    if matrices.shape[1] <= SMALL and loss is PrivacyLossFunction:
        leakages = leakages_of_small(matrices, budgets)  # NaN where numbers are out of its range
    for k in np.flatnonzero(np.isnan(leakages[:, 0])):
        steps = [loss(TransitionMatrix(matrices[k]))] * (budgets.size - 1)
        leakages[k] = accumulate_leakages(steps, budgets)
    return leakages
