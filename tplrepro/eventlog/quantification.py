"""BPL, FPL and TPL of a log released over time ([4], with the recursions of [1], Eqs. (11), (13), (15)).

At each release the transition system is discovered anew, and its matrices are those of the step that led there (how
rows are matched: see `correlations`). BPL runs from the first release to the last, FPL from the last to the first; the
published implementation runs both from the first on, so that its FPL is not that of the release it stands beside.

A pair of states without a common neighbour is told apart for certain: then L(alpha) = alpha, whatever else the log
holds, and each release adds its whole budget. Full traces nearly always hold such a pair.

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
[4] M. Rafiei, G. Elkoumy, W. M. P. van der Aalst: Quantifying Temporal Privacy Leakage in Continuous Event Data
    Publishing. 2022.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pandas as pd

from tplrepro.eventlog.correlations import loss_matrix, release_step
from tplrepro.eventlog.published import PublishedLoss
from tplrepro.eventlog.publishing import releases
from tplrepro.eventlog.transition_system import TransitionSystem
from tplrepro.eventlog.witness import LeakageWitness
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.validation import check_budgets

__all__ = ["quantify_releases"]

COLUMNS = ["release", "epsilon", "bpl", "fpl", "tpl", "states", "seconds"]


def quantify_releases(
    log: pd.DataFrame,
    epsilon,
    window: int = 1,
    *,
    certain: bool = True,
    direction: str = "prefix",
    abstraction: str = "sequence",
    state_window: int | None = None,
    incomplete: str = "keep",
    start=0.5,
    depth: int | None = None,
    backward: str = "bayes",
    smoothing: float = 0.0,
    rule: str = "exact",
    max_releases: int | None = None,
    shared_draw: bool = False,
    rng=None,
    progress: bool = False,
) -> pd.DataFrame:
    """The leakage of each release of a log, about one case, to an adversary who knows the transition systems.

    Parameters
    ----------
    log : DataFrame with columns case:concept:name, concept:name, time:timestamp
    epsilon : float or array-like (T,)
        The budget of each release in nats, finite and > 0: one for all, or one for each of the T releases.
    window, certain, start, max_releases, shared_draw, rng : how the log is released, see `releases`
    direction, abstraction, state_window, incomplete : what a state is; `state_window` is the `window` of
        `TransitionSystem.from_log`
    depth, backward : how the matrices of a step are made, see `release_step`
    smoothing : float >= 0
        The s of Eq. (28) of [1], added to every probability: an adversary who is less sure.
    rule : {"exact", "published"}
        "published" leaves out coordinates with d_j = 0 as the published implementation does, and understates.
    progress : bool, default False
        Show a progress bar.

    Returns
    -------
    DataFrame
        release : int, from 1 to T;
        epsilon, bpl, fpl, tpl : float, nats;
        states : int, the states of the transition system discovered at the release;
        seconds : float, spent on the system, its matrices and their losses.
        ``attrs``: backward_witness and forward_witness, T entries each: a `LeakageWitness` that names the two traces
        behind BPL and FPL in words, or None where nothing is added (and for the published rule).

    Raises
    ------
    ValueError
        If the log is none, an argument is out of its range, or there are not as many budgets as releases.

    Examples
    --------
    >>> log = pd.DataFrame({"case:concept:name": list("112233"), "concept:name": list("abacab"),
    ...     "time:timestamp": pd.date_range("2022-01-01", periods=6)})
    >>> leakage = quantify_releases(log, 0.1, state_window=1, smoothing=0.2)
    >>> leakage[["release", "bpl", "fpl", "tpl", "states"]].round(4).values.tolist()
    [[1.0, 0.1, 0.1907, 0.1907, 4.0], [2.0, 0.1507, 0.177, 0.2277, 5.0], [3.0, 0.177, 0.1507, 0.2277, 5.0],
     [4.0, 0.1907, 0.1, 0.1907, 5.0]]
    """
    if rule not in ("exact", "published"):
        raise ValueError(f"rule must be 'exact' or 'published', found {rule!r}; choose one of them")
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise ValueError(f"smoothing must be finite and at least 0, found {smoothing}; give the s added to each one")
    check_budgets(np.atleast_1d(epsilon))
    rows, losses = [], []
    series = releases(log, window, certain, start, max_releases, shared_draw, rng)
    for release in _bar(series, progress):
        began = perf_counter()
        system = _discover(release, state_window, direction, abstraction, incomplete)
        if release.number > 1:
            step = None if system is None else release_step(system, window, certain, depth, backward)
            losses.append(tuple(_loss(step, side, smoothing, rule) for side in ("backward", "forward")))
        rows.append((release.number, 0 if system is None else system.n_states, perf_counter() - began))
    budgets = _budgets(epsilon, len(rows))
    bpl = _accumulated([backward for backward, _ in losses], budgets)
    fpl = _accumulated([forward for _, forward in reversed(losses)], budgets[::-1])[::-1]
    number, states, seconds = map(np.array, zip(*rows, strict=True))
    columns = [number, budgets, bpl, fpl, bpl + fpl - budgets, states, seconds]
    table = pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))
    table.attrs["backward_witness"] = [None, *(b.witness(a) for (b, _), a in zip(losses, bpl[:-1], strict=True))]
    table.attrs["forward_witness"] = [*(f.witness(a) for (_, f), a in zip(losses, fpl[1:], strict=True)), None]
    return table


def _discover(release, state_window, direction, abstraction, incomplete) -> TransitionSystem | None:
    """The system at a release; None where all its traces are dropped because none is complete yet."""
    paths, activities = release.paths, release.traces.activities
    if incomplete == "drop" and not any(path[-1] == release.traces.end for path in paths):
        return None
    return TransitionSystem.from_paths(paths, activities, state_window, direction, abstraction, incomplete)


class _Loss:
    """L of one step and one side, and its witness; keeps no matrix where L(alpha) = alpha, or none is known."""

    def __init__(self, function=None, system=None, source=None, side=None):
        self.at = (lambda alpha: 0.0) if function is None else function.at
        self._describe = lambda alpha: None
        if isinstance(function, PrivacyLossFunction) and not function.is_zero:
            self._describe = lambda alpha: LeakageWitness.of(function.witness(alpha), system, source, side)
            if function.is_identity:
                found = self._describe(1.0)  # the same pair for every alpha
                self.at = lambda alpha: alpha
                self._describe = lambda alpha: found._replace(alpha=float(alpha), loss=float(alpha))
        elif function is not None and function.is_identity:
            self.at = lambda alpha: alpha

    def witness(self, alpha: float) -> LeakageWitness | None:
        return self._describe(alpha)


def _loss(step, side: str, smoothing: float, rule: str) -> _Loss:
    known = None if step is None else loss_matrix(getattr(step, side), smoothing)
    if known is None:
        return _Loss()
    matrix, source = known
    if rule == "published":
        return _Loss(PublishedLoss(matrix))
    return _Loss(PrivacyLossFunction(matrix), step.system, source, side)


def _accumulated(losses: list[_Loss], budgets: np.ndarray) -> np.ndarray:
    """Leakages along `budgets`, where losses[t - 1] leads from release t - 1 to t."""
    leakages = [float(budgets[0])]
    for loss, epsilon in zip(losses, budgets[1:].tolist(), strict=True):
        leakages.append(loss.at(leakages[-1]) + epsilon)
    return np.array(leakages)


def _budgets(epsilon, horizon: int) -> np.ndarray:
    if np.ndim(epsilon) == 0:
        return np.full(horizon, float(epsilon))
    budgets = check_budgets(epsilon)
    if budgets.size != horizon:
        raise ValueError(
            f"epsilon must be one budget or one for each release, found {budgets.size} for {horizon} releases; "
            f"give {horizon}, or set max_releases"
        )
    return budgets


def _bar(series, progress: bool):
    from tqdm import tqdm

    return tqdm(series, desc="releases", unit="release", disable=not progress)
