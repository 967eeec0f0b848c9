"""Chains behind unlabelled series: Baum-Welch for hidden Markov models, through hmmlearn.

Where places are not labelled (raw coordinates, noisy symbols), the chain of the places is hidden: state z_t moves by a
transition matrix and emits what is observed. Baum-Welch finds a local maximum of the likelihood, so that it is started
several times and the best end is kept. What an adversary knows about the hidden chain is its matrix: leakages of it are
about the hidden state at a time, not about the observation.

References
----------
L. R. Rabiner, "A Tutorial on Hidden Markov Models", Proceedings of the IEEE 77(2), 1989, section III.C.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import check_horizon

__all__ = ["HiddenChain", "fit_hidden_chain"]


@dataclass(frozen=True)
class HiddenChain:
    """A fitted hidden Markov model.

    Attributes
    ----------
    matrix : TransitionMatrix (n states), Pr(z_t | z_{t-1}); states 0..n-1 ordered by what they emit
    initial : ndarray (n,), the distribution of z_1
    emissions : "gaussian" or "categorical"
    means, covariances : ndarray (n, d) and (n, d, d) of Gaussian emissions, else None
    symbol_probabilities : ndarray (n, m) of categorical emissions, else None
    log_likelihood : float, of all series together, nats
    converged : bool, whether the kept start ended by the tolerance rather than by the cap on iterations
    iterations : int, of the kept start
    restarts : ndarray (restarts,), log-likelihood at the end of each start, NaN where it broke down
    """

    matrix: TransitionMatrix
    initial: np.ndarray
    emissions: str
    means: np.ndarray | None
    covariances: np.ndarray | None
    symbol_probabilities: np.ndarray | None
    log_likelihood: float
    converged: bool
    iterations: int
    restarts: np.ndarray
    _model: object = field(repr=False, compare=False)
    _prepare: object = field(repr=False, compare=False)

    def most_likely_states(self, series) -> list[np.ndarray]:
        """The most likely sequence of hidden states (Viterbi) behind each series: list of int arrays (T,)."""
        flat, lengths = self._prepare(series)
        states = self._model.predict(flat, lengths)
        return np.split(states, np.cumsum(lengths)[:-1])

    def score(self, series) -> float:
        """Log-likelihood of other series, nats."""
        _, log_likelihood = _scored(self._model, self._prepare, series)
        return log_likelihood


def fit_hidden_chain(
    series,
    n_states: int,
    emissions: str = "gaussian",
    rng=None,
    restarts: int = 10,
    max_iterations: int = 500,
    tolerance: float = 1e-4,
    covariance: str = "full",
    n_symbols: int | None = None,
) -> HiddenChain:
    """Fit a hidden Markov model by Baum-Welch, several times, and keep the likeliest.

    Parameters
    ----------
    series : list of arrays (T,) or (T, d), of any lengths T
        Numbers for Gaussian emissions, whole numbers 0..m-1 for categorical ones (T,).
    n_states : int >= 1
    emissions : "gaussian" or "categorical"
    rng : numpy.random.Generator or int seed, optional
    restarts : int >= 1
        Gaussian: half of the starts take their means from k-means, the others from random observations.
    max_iterations : int >= 1, of each start
    tolerance : float > 0, a start ends when the log-likelihood grows by less; nats
    covariance : "full" or "diag", of Gaussian emissions
    n_symbols : int, optional; default the largest symbol plus one

    Returns
    -------
    HiddenChain

    Raises
    ------
    ValueError
        For no or ragged observations, missing values, an unknown option, symbols that are not whole numbers, fewer
        distinct observations than states, fewer observations than parameters, or if no start ends with a valid chain.

    Warns
    -----
    UserWarning
        If the kept start was stopped by `max_iterations`.

    Notes
    -----
    Gaussian series are standardised for the fit, so that units do not matter; a prior scatter of a thousandth of one
    observation's keeps covariances positive. Rows are maximum likelihood: smooth them with `tplrepro.smoothed`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> states = np.repeat(rng.integers(0, 2, 40), 10)  # stays of ten steps or more
    >>> chain = fit_hidden_chain([5.0 * states + rng.normal(size=400)], n_states=2, rng=1, restarts=2)
    >>> chain.means.round(1).ravel().tolist(), bool(chain.matrix.probabilities.diagonal().min() > 0.9)
    ([-0.1, 5.0], True)
    """
    n_states = check_horizon(n_states, "n_states")
    restarts = check_horizon(restarts, "restarts")
    max_iterations = check_horizon(max_iterations, "max_iterations")
    if not (np.isfinite(tolerance) and tolerance > 0):
        raise ValueError(f"tolerance must be finite and greater than 0, found {tolerance}; give nats such as 1e-4")
    for name, value, allowed in (
        ("emissions", emissions, ("gaussian", "categorical")),
        ("covariance", covariance, ("full", "diag")),
    ):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {allowed}, found {value!r}; choose one of them")
    prepare = _Numbers(series) if emissions == "gaussian" else _Symbols(series, n_symbols)
    flat, lengths = prepare(series)
    _check_enough(flat, n_states, emissions, covariance, prepare)
    rng = np.random.default_rng(rng)
    from threadpoolctl import threadpool_limits  # comes with scikit-learn, which hmmlearn needs

    results = []
    with threadpool_limits(1):  # the matrices are small: threads cost ten times what they save on busy cores
        for start in range(restarts):
            model = _start(emissions, n_states, covariance, prepare, flat, start, rng, max_iterations, tolerance)
            results.append((model, _run(model, flat, lengths)))
    ends = np.array([log_likelihood for _, log_likelihood in results])
    if np.isnan(ends).all():
        raise ValueError(
            f"Baum-Welch must end with a valid chain, found none in {restarts} starts with {n_states} states; "
            "give fewer states or more data"
        )
    model, _ = results[int(np.nanargmax(ends))]
    if not model.monitor_.converged:
        warnings.warn(
            f"Baum-Welch was stopped after {max_iterations} iterations before it converged; raise max_iterations",
            stacklevel=2,
        )
    _order_states(model, emissions)
    gaussian = emissions == "gaussian"
    return HiddenChain(
        matrix=TransitionMatrix(model.transmat_, normalize=True),
        initial=model.startprob_ / model.startprob_.sum(),
        emissions=emissions,
        means=model.means_ * prepare.scale + prepare.centre if gaussian else None,
        covariances=model.covars_ * np.outer(prepare.scale, prepare.scale) if gaussian else None,
        symbol_probabilities=None if gaussian else model.emissionprob_.copy(),
        log_likelihood=_scored(model, prepare, series)[1],
        converged=bool(model.monitor_.converged),
        iterations=int(model.monitor_.iter),
        restarts=ends + prepare.log_density_shift(flat.shape[0]),
        _model=model,
        _prepare=prepare,
    )


class _Numbers:
    """Series of vectors, standardised by the mean and the deviation of those that were fitted."""

    def __init__(self, series):
        flat, _ = self._flat(series)
        self.centre, self.scale = flat.mean(axis=0), flat.std(axis=0)
        if (self.scale <= 1e-12 * np.maximum(np.abs(self.centre), 1e-290)).any():
            raise ValueError(
                f"each coordinate must vary, found coordinate {int(np.argmin(self.scale))} constant at "
                f"{self.centre[int(np.argmin(self.scale))]:g}; leave it out"
            )
        self.width = flat.shape[1]

    def __call__(self, series):
        flat, lengths = self._flat(series)
        if flat.shape[1] != self.width:
            raise ValueError(f"observations must have {self.width} coordinates, found {flat.shape[1]}; give the same")
        return (flat - self.centre) / self.scale, lengths

    def log_density_shift(self, size: int) -> float:
        """What standardising takes from the log-density of `size` observations."""
        return -size * float(np.log(self.scale).sum())

    @staticmethod
    def _flat(series):
        arrays = [np.asarray(one, dtype=float) for one in _listed(series)]
        shapes = {array.shape[1:] for array in arrays}
        if len(shapes) > 1 or any(array.ndim not in (1, 2) for array in arrays):
            raise ValueError(
                f"each series must have shape (T,) or (T, d) with one d, found {sorted({a.shape for a in arrays})[:3]};"
                " give the same coordinates in each"
            )
        flat = np.concatenate([array.reshape(len(array), -1) for array in arrays])
        if not np.isfinite(flat).all():
            raise ValueError(
                f"observations must be finite numbers, found {flat[~np.isfinite(flat)][0]}; "
                "split the series at missing values"
            )
        return flat, [len(array) for array in arrays]


class _Symbols:
    """Series of whole numbers."""

    def __init__(self, series, n_symbols: int | None):
        flat, _ = self._flat(series)
        self.n_symbols = int(flat.max()) + 1 if n_symbols is None else check_horizon(n_symbols, "n_symbols")

    def __call__(self, series):
        flat, lengths = self._flat(series)
        if flat.max() >= self.n_symbols:
            raise ValueError(
                f"symbols must be 0..{self.n_symbols - 1}, found {flat.max()}; raise n_symbols or recode them"
            )
        return flat, lengths

    def log_density_shift(self, size: int) -> float:
        return 0.0

    @staticmethod
    def _flat(series):
        arrays = [np.asarray(one) for one in _listed(series)]
        if any(array.ndim != 1 for array in arrays):
            raise ValueError("each series of symbols must be one-dimensional, found more; give shape (T,)")
        flat = np.concatenate(arrays)
        if not np.issubdtype(flat.dtype, np.integer) or flat.min() < 0:
            found = flat.dtype if not np.issubdtype(flat.dtype, np.integer) else flat.min()
            raise ValueError(f"symbols must be whole numbers from 0 on, found {found}; number the symbols first")
        return flat.astype(np.int64).reshape(-1, 1), [len(array) for array in arrays]


def _listed(series) -> list:
    arrays = [one for one in series if np.ndim(one) == 0 or len(one)]
    if not arrays:
        raise ValueError("fitting needs at least one observation, found none; give non-empty series")
    if np.ndim(arrays[0]) == 0:
        raise ValueError("series must be a list of series, found a list of numbers; wrap a single series in a list")
    return arrays


def _check_enough(flat, n_states, emissions, covariance, prepare) -> None:
    distinct = len(np.unique(flat, axis=0))
    if emissions == "gaussian":
        width = flat.shape[1]
        each = width + (width * (width + 1) // 2 if covariance == "full" else width)
        if distinct < n_states:
            raise ValueError(
                f"there must be at least as many distinct observations as states, found {distinct} for {n_states}; "
                "give fewer states"
            )
    else:
        each = prepare.n_symbols - 1
    parameters = n_states * n_states - 1 + n_states * each
    if len(flat) < parameters:
        raise ValueError(
            f"there must be at least as many observations as free parameters, found {len(flat)} for {parameters}; "
            "give more data or fewer states"
        )


def _start(emissions, n_states, covariance, prepare, flat, start, rng, max_iterations, tolerance):
    from hmmlearn import hmm

    options = {
        "n_components": n_states,
        "random_state": int(rng.integers(2**31 - 1)),
        "n_iter": max_iterations,
        "tol": tolerance,
        "implementation": "scaling" if emissions == "categorical" else "log",
    }
    if emissions == "categorical":
        model = hmm.CategoricalHMM(n_features=prepare.n_symbols, init_params="e", **options)
    else:
        # Only the prior scatter acts on the covariances: a weight of 1 adds no pseudo-observations.
        model = hmm.GaussianHMM(covariance_type=covariance, covars_prior=1e-3, covars_weight=1.0, **options)
        model.init_params = "c" if start % 2 else "mc"
        if start % 2:
            distinct = np.unique(flat, axis=0)
            model.means_ = distinct[rng.choice(len(distinct), n_states, replace=False)]
    # hmmlearn's own starts draw nearly deterministic rows, from which Baum-Welch seldom gets away.
    model.startprob_ = np.full(n_states, 1.0 / n_states)
    model.transmat_ = rng.dirichlet(np.full(n_states, 2.0), size=n_states)
    model.monitor_ = _monitor(tolerance, max_iterations)
    return model


def _monitor(tolerance: float, max_iterations: int):
    """hmmlearn's monitor without its messages; running out of iterations does not count as convergence."""
    from hmmlearn.base import ConvergenceMonitor

    class Monitor(ConvergenceMonitor):
        def report(self, log_prob):
            self.history.append(log_prob)
            self.iter += 1

        @property
        def converged(self):
            return len(self.history) >= 2 and self.history[-1] - self.history[-2] < self.tol

    return Monitor(tolerance, max_iterations, False)


def _run(model, flat, lengths) -> float:
    """Log-likelihood at the end of one start, NaN if it breaks down."""
    try:
        model.fit(flat, lengths)
        valid = np.allclose(model.transmat_.sum(axis=1), 1.0) and np.isfinite(model.transmat_).all()
        return float(model.score(flat, lengths)) if valid else np.nan
    except (ValueError, np.linalg.LinAlgError):  # a state without observations, or a singular covariance
        return np.nan


def _scored(model, prepare, series):
    flat, lengths = prepare(series)
    return flat, float(model.score(flat, lengths)) + prepare.log_density_shift(len(flat))


def _order_states(model, emissions: str) -> None:
    """States by their mean (first coordinate first), or by the symbols that they emit; in place."""
    if emissions == "gaussian":
        order = np.lexsort(model.means_.T[::-1])
        covariances = model._covars_[order]
        model.means_ = model.means_[order]
        model._covars_ = covariances
    else:
        order = np.argsort(model.emissionprob_ @ np.arange(model.n_features), kind="stable")
        model.emissionprob_ = model.emissionprob_[order]
    model.startprob_ = model.startprob_[order]
    model.transmat_ = model.transmat_[np.ix_(order, order)]
