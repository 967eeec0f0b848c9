from itertools import product

import numpy as np
import pytest
import scipy.sparse

import tplrepro as tpl
from tplrepro.dphmm import ImpossibleReleaseError, forward_backward, posterior
from tplrepro.dphmm.inference import next_prior


def _all_paths(likelihood, P, initial):
    """Probabilities of all N^T sequences given the releases, and of the releases."""
    T, n = likelihood.shape
    weights = {}
    for path in product(range(n), repeat=T):
        weight = initial[path[0]] * likelihood[0, path[0]]
        for t in range(1, T):
            weight *= P[path[t - 1], path[t]] * likelihood[t, path[t]]
        weights[path] = weight
    return weights


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["dense", "sparse", "background"])
def test_forward_backward_sums_over_all_paths(seed, kind):
    rng = np.random.default_rng(seed)
    T, n = 4, 3
    P = tpl.random_matrix(n, seed=seed, zeros=0.3)
    if kind != "dense":
        background = 0.1 if kind == "background" else None
        P = tpl.TransitionMatrix(scipy.sparse.csr_array(np.asarray(P)), background=background, normalize=True)
    likelihood = rng.random((T, n)) * (rng.random((T, n)) > 0.15)
    initial = rng.dirichlet(np.ones(n))
    weights = _all_paths(likelihood, np.asarray(P), initial)
    total = sum(weights.values())
    if total == 0:
        pytest.skip("impossible releases")
    with np.errstate(divide="ignore"):
        result = forward_backward(np.log(likelihood), P, initial)
    smoothed = np.zeros((T, n))
    for path, weight in weights.items():
        smoothed[np.arange(T), path] += weight / total
    assert result.smoothed == pytest.approx(smoothed)
    assert result.log_evidence == pytest.approx(np.log(total))
    assert result.posteriors[-1] == pytest.approx(smoothed[-1])
    for t in range(1, T):
        filtered = np.zeros(n)
        for path, weight in _all_paths(likelihood[:t], np.asarray(P), initial).items():
            filtered[path[-1]] += weight
        assert result.posteriors[t - 1] == pytest.approx(filtered / filtered.sum())
        assert result.priors[t] == pytest.approx(filtered / filtered.sum() @ np.asarray(P))


def test_long_series_do_not_underflow():
    rng = np.random.default_rng(0)
    P = tpl.random_matrix(5, seed=0)
    result = forward_backward(-1000 * rng.random((300, 5)), P, np.full(5, 0.2))
    assert np.isfinite(result.log_evidence)
    assert result.smoothed.sum(axis=1) == pytest.approx(np.ones(300))


def test_tails_decide_by_the_product_of_prior_and_density():
    # The prior of the likelier state is so small that neither factor alone would decide.
    p = np.array([1 - 1e-290, 1e-290, 0])
    assert posterior(p, [-2000.0, -1000.0, 0.0]).round(9).tolist() == [0, 1, 0]
    assert posterior(p, [-1000.0, -1000.0, 0.0]).round(9).tolist() == [1, 0, 0]


def test_impossible_states_stay_impossible():
    assert next_prior([0.5, 0.5, 0], [[0, 1, 0], [0.5, 0.5, 0], [0, 0, 1]]).tolist() == [0.25, 0.75, 0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: posterior([0.5, 0.5, 0], [-np.inf, -np.inf, 0]),
            ImpossibleReleaseError,
            "positive density under some possible state, found zero under all 2",
        ),
        (
            lambda: forward_backward([[0, 0], [-np.inf, -np.inf]], np.eye(2), [0.5, 0.5]),
            ImpossibleReleaseError,
            "the value of time 1 was not released",
        ),
        (lambda: posterior([0.5, 0.6], [0, 0]), ValueError, "sum to 1"),
        (lambda: posterior([0.5, 0.5], [0, 0, 0]), ValueError, "one value a state"),
        (lambda: posterior([0.5, 0.5], [0, np.nan]), ValueError, "NaN"),
        (lambda: forward_backward([[0, 0, 0]], np.eye(2), [0.5, 0.5]), ValueError, r"shape \(T, 2\)"),
        (lambda: forward_backward([[0, 0]], np.eye(2), [0.5, 0.4]), ValueError, "initial must be .* sum 0.9"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
