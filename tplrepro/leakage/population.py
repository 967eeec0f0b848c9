"""Leakages of many users, one transition matrix each (section 3.5 of [1]: leakage is personal; the worst user counts).

A user with little data says little about her own correlation, so each user's matrix is shrunk towards the pooled one:
row i is (c_i + w p_i) / (|c_i| + w) for her counts c_i, the pooled row p_i and a weight w in pseudo-transitions (the
posterior mean under a Dirichlet prior w p_i).

Users are independent, so batches of them run through joblib, with any of its backends: processes by default,
``joblib.parallel_config(backend="dask")`` for a cluster. Results do not depend on the backend or the batches.

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tplrepro.leakage.temporal import temporal_privacy_leakage
from tplrepro.markov.sequences import Sequences, as_sequences, count_transitions
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.progress import progress_bar
from tplrepro.validation import check_budgets, check_horizon

__all__ = ["PopulationLeakage", "population_leakage"]

SIDES = ("backward", "forward")


@dataclass(frozen=True)
class PopulationLeakage:
    """Leakages of the same releases about each of U users, in nats.

    Attributes
    ----------
    users : list of U user names
    transitions : int array (U,), the number of steps that each user's matrix was estimated from
    epsilons : ndarray (T,)
    bpl, fpl : ndarray (U, T), backward and forward privacy leakage
    """

    users: list
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
    def worst_user(self):
        """The user with the largest TPL."""
        return self.users[int(np.argmax(self.largest))]

    def quantile(self, q) -> np.ndarray:
        """Quantiles over users of the TPL at each time: (T,) for one q in [0, 1], (len(q), T) for several."""
        return np.quantile(self.tpl, q, axis=0)


def population_leakage(
    sequences_by_user,
    epsilons,
    n_states: int | None = None,
    smoothing: float = 1.0,
    prior_weight: float | None = 1.0,
    sides: tuple[str, ...] = SIDES,
    states: str = "all",
    n_jobs: int | None = None,
    batch_size: int = 256,
    progress: bool = False,
) -> PopulationLeakage:
    """BPL, FPL and TPL of a series of releases for each of many users.

    Parameters
    ----------
    sequences_by_user : mapping from user to a sequence, or a list of sequences, of states; or Sequences
    epsilons : array-like (T,), the budgets in nats, finite and > 0
    n_states : int, optional; by default the states are the values seen
    smoothing : float >= 0
        Added to every count of the pooled matrix (without pooling: of each user's).
    prior_weight : float > 0 or None
        The weight of a pooled row in pseudo-transitions. None: no pooling, each user's counts alone.
    sides : which of "backward", "forward" the adversary knows
    states : "all" or "visited"
        "visited" leaves out, for each user, the states where she never was: the adversary knows her places. Matrices
        are then small whatever n is.
    n_jobs, batch_size : how many joblib workers, and how many users make a task
    progress : show a bar over users

    Returns
    -------
    PopulationLeakage

    Raises
    ------
    ValueError
        For no users, a user without any state, budgets or options outside their ranges, and as `count_transitions`.

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

    budgets = check_budgets(epsilons)
    _check_options(smoothing, prior_weight, sides, states)
    batch_size = check_horizon(batch_size, "batch_size")
    coded = _coded(sequences_by_user, n_states)
    users, sequences = zip(*coded.by_user().items(), strict=True)
    pooled_counts, _ = count_transitions(coded)
    n = pooled_counts.shape[0]
    pooled = {side: None for side in sides}
    if prior_weight is not None:
        for side in sides:
            counts = pooled_counts if side == "forward" else pooled_counts.T.tocsr()
            pooled[side] = _pooled(counts, smoothing)
    batches = [slice(k, k + batch_size) for k in range(0, len(users), batch_size)]
    work = delayed(_leakages_of_batch)
    results = Parallel(n_jobs=n_jobs, return_as="generator")(
        work(sequences[batch], n, budgets, pooled, smoothing, prior_weight, states) for batch in batches
    )
    bpl, fpl = np.empty((len(users), budgets.size)), np.empty((len(users), budgets.size))
    with progress_bar(len(users), progress, "leakage", "user") as bar:
        for batch, (backward, forward) in zip(batches, results, strict=True):
            bpl[batch], fpl[batch] = backward, forward
            bar.update(len(backward))
    transitions = np.array([sum(max(len(s) - 1, 0) for s in own) for own in sequences])
    return PopulationLeakage(list(users), transitions, budgets, bpl, fpl)


def _leakages_of_batch(sequences, n, budgets, pooled, smoothing, prior_weight, states):
    """(bpl, fpl) of some users, (B, T) each."""
    bpl, fpl = np.empty((len(sequences), budgets.size)), np.empty((len(sequences), budgets.size))
    for row, own in enumerate(sequences):
        if states == "visited":
            visited = np.unique(np.concatenate(own))
            own = [np.searchsorted(visited, s) for s in own]
        else:
            visited = None
        counts, _ = count_transitions(own, n if visited is None else visited.size)
        known = {}
        for side, prior in pooled.items():
            known[side] = _shrunk(
                counts if side == "forward" else counts.T.tocsr(), prior, smoothing, prior_weight, visited
            )
        leakage = temporal_privacy_leakage(budgets, known.get("backward"), known.get("forward"))
        bpl[row], fpl[row] = leakage.bpl, leakage.fpl
    return bpl, fpl


def _pooled(counts, smoothing: float) -> TransitionMatrix:
    if smoothing == 0.0:
        # A state that nobody leaves has no row; any will do, as no user's row depends on more than its weight.
        empty = np.flatnonzero(np.asarray(counts.sum(axis=1)).ravel() == 0)
        if empty.size:
            counts = counts.tolil()
            counts[empty, empty] = 1.0
            counts = counts.tocsr()
    return TransitionMatrix.from_counts(counts, smoothing)


def _shrunk(
    counts, prior: TransitionMatrix | None, smoothing: float, weight: float | None, visited
) -> TransitionMatrix:
    """One user's matrix: her counts and `weight` pseudo-transitions along each pooled row."""
    if prior is None:
        return TransitionMatrix.from_counts(counts, smoothing)
    totals = np.asarray(counts.sum(axis=1)).ravel() + weight
    if visited is not None:
        rows = np.vstack([prior.row(i)[visited] for i in visited.tolist()])
        mass = rows.sum(axis=1, keepdims=True)
        # A pooled row that never leads to one of her places gives no hint: all of them alike.
        rows = np.where(mass > 0, rows / np.where(mass > 0, mass, 1.0), 1.0 / visited.size)
    elif not prior.is_sparse:
        rows = prior.probabilities
    else:
        import scipy.sparse

        joint = scipy.sparse.csr_array(counts + weight * prior.excess)
        background = weight * prior.background / totals
        joint.data = joint.data / np.repeat(totals, np.diff(joint.indptr)) + np.repeat(
            background, np.diff(joint.indptr)
        )
        return TransitionMatrix(joint, background=background, normalize=True)
    return TransitionMatrix((counts.toarray() + weight * rows) / totals[:, None], normalize=True)


def _coded(sequences_by_user, n_states: int | None) -> Sequences:
    if not isinstance(sequences_by_user, (Mapping, Sequences)):
        raise ValueError(
            f"sequences_by_user must map each user to her sequences, found {type(sequences_by_user).__name__}; "
            "give a dict, or Sequences"
        )
    if not len(sequences_by_user):
        raise ValueError("a population needs at least one user, found none; give a dict from user to sequences")
    coded = as_sequences(sequences_by_user, n_states)
    for user, own in coded.by_user().items():
        if not any(s.size for s in own):
            raise ValueError(
                f"each user needs at least one observed state, found none for user {user!r}; leave her out"
            )
    return coded


def _check_options(smoothing, prior_weight, sides, states) -> None:
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise ValueError(f"smoothing must be finite and at least 0, found {smoothing}; give the s added to each count")
    if prior_weight is not None and not (np.isfinite(prior_weight) and prior_weight > 0):
        raise ValueError(
            f"prior_weight must be finite and greater than 0, found {prior_weight}; pass None to do without pooling"
        )
    if not sides or any(side not in SIDES for side in sides):
        raise ValueError(f"sides must name 'backward', 'forward' or both, found {sides!r}; give a tuple of them")
    if states not in ("all", "visited"):
        raise ValueError(f"states must be 'all' or 'visited', found {states!r}; choose one of them")
