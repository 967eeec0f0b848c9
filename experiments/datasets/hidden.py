"""Chains behind series of numbers: Baum-Welch for Gaussian hidden Markov models, by hmmlearn.

A hidden state z_t, such as an area behind raw coordinates, moves by a transition matrix and emits
the observation. Baum-Welch (section III.C of Rabiner: A Tutorial on Hidden Markov Models, 1989)
finds a local maximum of the likelihood; the best of several starts is kept. Leakages of its matrix
are about z_t.
"""

from dataclasses import dataclass

import numpy as np
from hmmlearn.hmm import GaussianHMM
from threadpoolctl import threadpool_limits

from tplrepro import TransitionMatrix
from tplrepro.validation import warn_caller

#: A start ends when its log-likelihood grows by less, in nats, or after so many iterations.
TOLERANCE = 1e-4
MOST_ITERATIONS = 500


@dataclass(frozen=True)
class HiddenChain:
    """A fitted hidden Markov model; its n states are ordered by their means, first coordinate
    first."""

    matrix: TransitionMatrix  # Pr(z_t | z_{t-1})
    means: np.ndarray  # (n, d), of what the states emit
    converged: bool  # the kept start ended by the tolerance, not by the cap on iterations


def fit_hidden_chain(
    series: list[np.ndarray], n_states: int, *, rng: np.random.Generator, restarts: int
) -> HiddenChain:
    """The likeliest of several starts; rows of its matrix are not smoothed.

    Parameters
    ----------
    series : list of arrays (T, d)
        Of any lengths T.
    n_states : int
    rng : numpy.random.Generator
    restarts : int
        The number of starts.

    Returns
    -------
    HiddenChain

    Raises
    ------
    ValueError
        If no start ends with a finite likelihood.

    Notes
    -----
    Half of the starts take their means from k-means, the others from random observations. Units do
    not matter; a prior scatter of a thousandth of one observation's keeps covariances positive.
    """
    flat = np.concatenate(series)
    lengths = [len(one) for one in series]
    centre = flat.mean(axis=0)
    scale = flat.std(axis=0)
    standardised = (flat - centre) / scale
    models = [_start_model(n_states, standardised, start, rng) for start in range(restarts)]
    with threadpool_limits(1):  # the matrices are small: threads cost more than they save
        likelihoods = [_fit_model(model, standardised, lengths) for model in models]
    model = models[int(np.nanargmax(likelihoods))]
    converged = _has_converged(model)
    if not converged:
        warn_caller(f"Baum-Welch stopped after {MOST_ITERATIONS} iterations before it converged")
    order = np.lexsort(model.means_.T[::-1])
    return HiddenChain(
        matrix=TransitionMatrix(model.transmat_[np.ix_(order, order)], normalize=True),
        means=model.means_[order] * scale + centre,
        converged=converged,
    )


def _start_model(
    n_states: int, flat: np.ndarray, start: int, rng: np.random.Generator
) -> GaussianHMM:
    """The model before the first iteration for observations `flat` (m, d); start number `start`
    takes means from k-means if it is even, from observations if odd."""
    draws_means = start % 2 == 1
    initialised_by_hmmlearn = "c" if draws_means else "mc"  # covariances, and means by k-means
    # Only the prior scatter acts on the covariances: a weight of 1 adds no pseudo-observations.
    model = GaussianHMM(
        n_states,
        covariance_type="full",
        covars_prior=1e-3,
        covars_weight=1.0,
        random_state=int(rng.integers(2**31 - 1)),
        n_iter=MOST_ITERATIONS,
        tol=TOLERANCE,
        init_params=initialised_by_hmmlearn,
    )
    if draws_means:
        model.means_ = rng.choice(np.unique(flat, axis=0), n_states, replace=False)
    # hmmlearn itself starts at nearly deterministic rows, which Baum-Welch seldom leaves.
    model.startprob_ = np.full(n_states, 1.0 / n_states)
    model.transmat_ = rng.dirichlet(np.full(n_states, 2.0), size=n_states)
    return model


def _fit_model(model: GaussianHMM, flat: np.ndarray, lengths: list[int]) -> float:
    """Fit a model in place to sequences of these lengths, one after the other in `flat` (m, d); the
    log-likelihood at the end, NaN if the fit fails."""
    try:
        model.fit(flat, lengths)
        if _is_stochastic(model.transmat_):
            return float(model.score(flat, lengths))
    # a state without observations, or a singular covariance
    except (ValueError, np.linalg.LinAlgError):
        pass
    return np.nan


def _is_stochastic(matrix: np.ndarray) -> bool:
    """Whether all entries are finite and each row sums to 1."""
    return bool(np.isfinite(matrix).all() and np.allclose(matrix.sum(axis=1), 1.0))


def _has_converged(model: GaussianHMM) -> bool:
    """Whether the last iteration gained less than the tolerance; hmmlearn also says "converged"
    when it runs out of iterations."""
    history = list(model.monitor_.history)
    return len(history) >= 2 and history[-1] - history[-2] < TOLERANCE
