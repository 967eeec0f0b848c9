"""Less error for the same privacy: noisy counts, smoothed by what is public.

Whatever is computed from released counts and a public chain costs no privacy. A chain that was
counted from private data does: the estimates would then reveal it.
"""

from __future__ import annotations
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from tplreport.smoothing.chain_over_time import chain_over_time
from tplreport.smoothing.filtering import Estimates
from tplreport.smoothing.methods import RIVALS, WALK, Method, method_of_chain, surprise_of_chain
from tplreport.smoothing.model import CountModel
from tplreport.smoothing.noise import variances_of_noise
from tplreport.smoothing.possible import possible_counts
from tplreport.smoothing.smoothed import CHAIN, SmoothedCounts
from tplreport.smoothing.starts import chain_model, walk_model
from tplreport.smoothing.tuning import FEW, Choice
from tplrepro.leakage.temporal import REQUIRED
from tplrepro.validation import as_numbers, check_probability, rows_as_frame, warn_caller

#: Nats by which the likelihood of a rival exceeds that of the chain where it is warned of.
CLEAR = 2.0


def smooth_counts(
    noisy: Any,
    *,
    chain: Any = REQUIRED,
    epsilons: ArrayLike | None = None,
    sensitivity: float | None = None,
    noise_multipliers: ArrayLike | None = None,
    total: float | None = None,
    initial: ArrayLike | None = None,
    online: bool = False,
    whole: bool = False,
    level: float = 0.9,
) -> SmoothedCounts:
    """Estimates of true counts from noisy ones and a public chain, with their errors.

    A Kalman filter and smoother with the covariance of people who move by the chain, independently
    of each other. Where the chain is not theirs, extra noise, chosen by the likelihood of the noisy
    counts, says so. The result costs no privacy if the chain is public, or was learned privately:
    never give one that was counted from the private data, such as that in a publisher's file.

    Parameters
    ----------
    noisy : DataFrame or array-like (T, n), or Series or array-like (T,)
        Noisy counts, NaN where none was published. Dates must be one step of the chain apart.
    chain : TransitionMatrix, array-like, sequence of T - 1 of them, Cycle or None
        Forward matrices, Pr(next state | state), which must be public. States are found by the
        labels of the columns; one without a column, such as "away", is hidden. Dates say the phase
        of a Cycle of a day or week, and otherwise the first time has phase 0. None: each count
        walks at random.
    epsilons : array-like (T,) or float, optional
        The budgets that the counts were released with, nats (Laplace noise).
    sensitivity : float > 0
        By how much one user may change the counts of a time, as it was when they were released.
    noise_multipliers : array-like (T,) or float, optional
        In place of budgets: those of Gaussian noise.
    total : float, optional
        The number of all people in all states, the same at all times, if that is known exactly.
        Leave it out if in doubt: a wrong total is worse than no smoothing.
    initial : array-like (n,), optional
        The law of the first state, by default that of the chain's habit.
    online : bool
        Whether each estimate uses what was published up to its time alone, so that it is never
        revised; otherwise all times say something about each.
    whole : bool
        Round the estimates to whole numbers, with a total so that they add up.
    level : float
        The share of true counts that the bands hold.

    Returns
    -------
    SmoothedCounts

    Raises
    ------
    ValueError
        Without `chain`, for columns that are no states, times that are not one step apart, missing
        budgets, or a total that the noisy counts contradict.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(3)
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> true = np.array([[200, 100]])
    >>> for _ in range(167):
    ...     moved = rng.binomial(true[-1], [0.1, 0.2])
    ...     true = np.vstack([true, true[-1] - moved + moved[::-1]])
    >>> noisy = np.round(true + rng.laplace(scale=20.0, size=(168, 2)))
    >>> smoothed = smooth_counts(noisy, chain=P, epsilons=0.1, sensitivity=2)
    >>> error = np.abs(smoothed.estimate - true).to_numpy().mean()
    >>> round(float(np.abs(noisy - true).mean()), 1), round(float(error), 1)
    (20.7, 5.9)
    >>> inside = (smoothed.lower <= true) & (true <= smoothed.upper)
    >>> round(float(inside.to_numpy().mean()), 2)
    0.88
    """
    if chain is REQUIRED:
        raise ValueError(
            "chain must be given: the publisher's own matrices may come from private counts, found "
            "none; pass chain= one that is public, or None for no chain"
        )
    if chain is None and (total is not None or initial is not None):
        raise ValueError("total= and initial= belong to a chain, found chain=None; leave them out")
    level = check_probability(level, "level", zero=False, one=False)
    frame = _as_frame(noisy)
    values = frame.to_numpy()
    seen = np.isfinite(values)
    of_time = variances_of_noise(
        len(values),
        sensitivity,
        epsilons=epsilons,
        noise_multipliers=noise_multipliers,
        is_published=seen.any(axis=1),
        is_whole=bool((values[seen] == np.round(values[seen])).all()),
    )
    variances = np.where(seen, of_time[:, None], np.inf)
    released = np.where(seen, values, 0.0)
    walk = walk_model(released, variances)
    subject = Subject(WALK, walk, [*range(len(frame.columns))])
    if chain is not None:
        over_time = chain_over_time(chain, frame.columns, frame.index, initial)
        model = chain_model(released, variances, over_time, total)
        subject = Subject(method_of_chain(model), model, over_time.places)
    choice = subject.method.choose(subject.model)
    if online:
        estimates = subject.method.filtered(subject.model)
    else:
        estimates = subject.method.smoothed(subject.model, choice.settings)
    places = subject.places
    counts = possible_counts(estimates.means, total, whole)
    result = SmoothedCounts(
        noisy=values,
        variances=variances,
        means=estimates.means[:, places],
        errors=np.sqrt(np.maximum(estimates.variances, 0.0))[:, places],
        counts=counts[:, places],
        covariances=_covariances_of(estimates, places),
        level=level,
        online=online,
        spread=float(choice.settings.spread[0]),
        turnover=float(choice.settings.turnover[0]),
        surprise=surprise_of_chain(subject.method, subject.model),
        log_likelihoods=_log_likelihoods(subject, choice, walk),
        columns=frame.columns,
        index=frame.index,
    )
    _warn_of_doubts(result, int(walk.predicted_values.sum()))
    return result


@dataclass(frozen=True)
class Subject:
    """What is estimated, how, and the places of the columns among its states."""

    method: Method
    model: CountModel
    places: list[int]


def _as_frame(noisy: Any) -> pd.DataFrame:
    """Noisy counts as floats (T, n), with the labels that they have."""
    noisy = rows_as_frame(noisy)
    must = "noisy must be a table of counts"
    remedy = "give a row for each time, NaN where nothing was published"
    if isinstance(noisy, Mapping):
        noisy = pd.DataFrame(noisy)
    if hasattr(noisy, "iloc"):
        frame = pd.DataFrame(noisy)
        values = np.array(frame, dtype=object)
        values[frame.isna().to_numpy()] = np.nan  # pd.NA and None, too
        frame = pd.DataFrame(as_numbers(values, must, remedy), frame.index, frame.columns)
    else:
        values = as_numbers(noisy, must, remedy)
        if values.ndim not in (1, 2):
            raise ValueError(
                f"noisy must have shape (T,) or (T, n), found {values.shape}; {remedy}"
            )
        frame = pd.DataFrame(values)
    if frame.size == 0:
        raise ValueError(f"{must}, found shape {frame.shape}; {remedy}")
    if np.isinf(frame.to_numpy()).any():
        raise ValueError(f"noisy counts must be finite, found inf; {remedy}")
    return frame


def _covariances_of(estimates: Estimates, places: list[int]) -> np.ndarray | None:
    """Those of the columns, if there are some."""
    if estimates.spreads.ndim == 2:
        return None
    return estimates.spreads[:, places][:, :, places]


def _log_likelihoods(subject: Subject, choice: Choice, walk: CountModel) -> dict[str, float]:
    """The mean log likelihoods of a noisy count by model, NaN where nothing was predicted."""
    of_all = {name: rival.choose(walk).log_likelihood for name, rival in RIVALS.items()}
    if subject.method is not WALK:
        of_all = {CHAIN: choice.log_likelihood, **of_all}
    values = int(walk.predicted_values.sum())
    if values == 0:
        return dict.fromkeys(of_all, float("nan"))
    return {name: log_likelihood / values for name, log_likelihood in of_all.items()}


def _warn_of_doubts(result: SmoothedCounts, values: int) -> None:
    """Warn where settings could not be chosen, or a rival clearly predicts better than the chain;
    `values` were predicted."""
    seen = int((result.variances < np.inf).any(axis=1).sum())
    if seen < FEW:
        warn_caller(
            f"settings need {FEW} published times, found {seen}: the estimates lean on the model "
            "as it is, with some turnover; publish more times before you rely on them"
        )
        return
    if CHAIN not in result.log_likelihoods:
        return
    better = result.against[result.preferred] - result.against[CHAIN]
    if better * values > CLEAR:
        warn_caller(
            f"the chain does not help: {result.preferred} predicts these counts better, by "
            f"{better:.2g} nats a value; chain=None takes that model"
        )
