"""Mechanisms of one release, once each: how it draws, and what a released value says about the secret.

`laplace` and `k_norm` are noise in R^d (`sample`, `log_density`, `mean_square`), `randomized_response` perturbs states,
`counts` releases series of counts, `gaussian` says what a normal shift tells. The rooms above fit these mechanisms to
chains and policies.
"""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "LaplaceNoise": "laplace",
    "KNormNoise": "k_norm",
    "uniform_points": "k_norm",
    "KaryRandomizedResponse": "randomized_response",
    "UnaryEncoding": "randomized_response",
    "release_counts": "counts",
    "gaussian_delta": "gaussian",
    "gaussian_epsilon": "gaussian",
    "gaussian_mu": "gaussian",
}
_MODULES = ("counts", "gaussian", "k_norm", "laplace", "randomized_response")

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS, _MODULES)
