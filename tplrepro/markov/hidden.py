"""Chains behind series of numbers: Baum-Welch for Gaussian hidden Markov models, by hmmlearn.

A hidden state z_t, such as an area behind raw coordinates, moves by a transition matrix and emits the
observation. Baum-Welch (section III.C of Rabiner: A Tutorial on Hidden Markov Models, 1989) finds a local
maximum of the likelihood; the best of several starts is kept. Leakages of its matrix are about z_t.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.lazy import extra
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import FrozenArrays, as_numbers, check_horizon, warn_caller

#: A start ends when its log-likelihood grows by less, in nats.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class HiddenChain(FrozenArrays):
    """A fitted hidden Markov model; its n states are ordered by their means, first coordinate first."""

    matrix: TransitionMatrix  # Pr(z_t | z_{t-1})
    initial: np.ndarray  # (n,), the distribution of z_1
    means: np.ndarray  # (n, d), of what the states emit
    covariances: np.ndarray  # (n, d, d)
    log_likelihood: float  # of all series together, nats
    converged: bool  # the kept start ended by the tolerance, not by the cap on iterations


def fit_hidden_chain(
    series: Iterable[ArrayLike],
    n_states: int,
    *,
    rng: np.random.Generator,
    restarts: int = 10,
    max_iterations: int = 500,
) -> HiddenChain:
    """Fit a hidden Markov model by Baum-Welch, several times, and keep the likeliest.

    `series` is a list of arrays (T,) or (T, d) of any lengths T. Half of the starts take their means from
    k-means, the others from random observations; `max_iterations` limits each. Units do not matter; a prior
    scatter of a thousandth of one observation's keeps covariances positive. Rows are not smoothed: see
    `tplrepro.smoothed`. ValueError for missing values, a coordinate that does not vary, too few observations,
    or if every start fails.

    >>> rng = np.random.default_rng(0)
    >>> states = np.repeat(rng.integers(0, 2, 40), 10)  # stays of ten steps or more
    >>> observed = [5.0 * states + rng.normal(size=400)]
    >>> chain = fit_hidden_chain(observed, n_states=2, rng=np.random.default_rng(1), restarts=2)
    >>> chain.means.round(1).ravel().tolist(), bool(chain.matrix.probabilities.diagonal().min() > 0.9)
    ([-0.1, 5.0], True)
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn, which hmmlearn needs

    n_states, restarts = check_horizon(n_states, "n_states"), check_horizon(restarts, "restarts")
    max_iterations = check_horizon(max_iterations, "max_iterations")
    flat, lengths = _flat(series)
    _check_enough(flat, n_states)
    centre, scale = flat.mean(axis=0), flat.std(axis=0)
    standardised = (flat - centre) / scale
    models = [_start(n_states, standardised, start, rng, max_iterations) for start in range(restarts)]
    with threadpool_limits(1):  # the matrices are small: threads cost more than they save
        ends = [_run(model, standardised, lengths) for model in models]
    if np.isnan(ends).all():
        raise ValueError(
            f"Baum-Welch must end with a valid chain, found none in {restarts} starts; give fewer states or more data"
        )
    model = models[int(np.nanargmax(ends))]
    history = list(model.monitor_.history)  # hmmlearn also says "converged" when it runs out of iterations
    converged = len(history) >= 2 and history[-1] - history[-2] < TOLERANCE
    if not converged:
        warn_caller(f"Baum-Welch stopped after {max_iterations} iterations before it converged; raise max_iterations")
    order = np.lexsort(model.means_.T[::-1])
    return HiddenChain(
        matrix=TransitionMatrix(model.transmat_[np.ix_(order, order)], normalize=True),
        initial=model.startprob_[order] / model.startprob_.sum(),
        means=model.means_[order] * scale + centre,
        covariances=model.covars_[order] * np.outer(scale, scale),
        log_likelihood=float(np.nanmax(ends) - len(flat) * np.log(scale).sum()),
        converged=converged,
    )


def _flat(series: Iterable[ArrayLike]) -> tuple[np.ndarray, list[int]]:
    """All observations, (m, d), and the length of each series."""
    arrays = [as_numbers(one, "series must be numbers", "split them at missing values") for one in series]
    arrays = [array for array in arrays if array.size]
    if not arrays:
        raise ValueError("fitting needs at least one observation, found none; give non-empty series")
    if len({array.shape[1:] for array in arrays}) > 1 or arrays[0].ndim not in (1, 2):
        raise ValueError(
            f"each series must have shape (T,) or (T, d) with one d, found {arrays[0].shape} and others; "
            "give one d, and wrap a single series in a list"
        )
    flat = np.concatenate([array.reshape(len(array), -1) for array in arrays])
    if not np.isfinite(flat).all():
        raise ValueError(
            f"observations must be finite, found {flat[~np.isfinite(flat)][0]}; split series at missing values"
        )
    return flat, [len(array) for array in arrays]


def _check_enough(flat: np.ndarray, n_states: int) -> None:
    width = flat.shape[1]
    parameters = n_states * n_states - 1 + n_states * (width + width * (width + 1) // 2)
    for kind, number, needed in (
        ("distinct observations as states", len(np.unique(flat, axis=0)), n_states),
        ("observations as free parameters", len(flat), parameters),
    ):
        if number < needed:
            raise ValueError(
                f"there must be as many {kind}, found {number} for {needed}; give fewer states or more data"
            )
    constant = flat.std(axis=0) <= 1e-12 * np.maximum(np.abs(flat.mean(axis=0)), 1e-290)
    if constant.any():
        which = int(np.argmax(constant))
        raise ValueError(
            f"each coordinate must vary, found coordinate {which} constant at {flat[0, which]:g}; leave it out"
        )


def _start(n_states: int, flat: np.ndarray, start: int, rng: np.random.Generator, max_iterations: int):
    with extra():
        from hmmlearn.hmm import GaussianHMM

    # Only the prior scatter acts on the covariances: a weight of 1 adds no pseudo-observations.
    model = GaussianHMM(
        n_states,
        covariance_type="full",
        covars_prior=1e-3,
        covars_weight=1.0,
        random_state=int(rng.integers(2**31 - 1)),
        n_iter=max_iterations,
        tol=TOLERANCE,
        init_params="c" if start % 2 else "mc",
    )
    if start % 2:
        model.means_ = rng.choice(np.unique(flat, axis=0), n_states, replace=False)
    # hmmlearn itself starts at nearly deterministic rows, which Baum-Welch seldom leaves.
    model.startprob_ = np.full(n_states, 1.0 / n_states)
    model.transmat_ = rng.dirichlet(np.full(n_states, 2.0), size=n_states)
    return model


def _run(model, flat: np.ndarray, lengths: list[int]) -> float:
    """The log-likelihood at the end of one start, NaN if it fails."""
    try:
        model.fit(flat, lengths)
        valid = np.allclose(model.transmat_.sum(axis=1), 1.0) and np.isfinite(model.transmat_).all()
        return float(model.score(flat, lengths)) if valid else np.nan
    except (ValueError, np.linalg.LinAlgError):  # a state without observations, or a singular covariance
        return np.nan
