"""Mechanisms of a single release: their noise, its density, and their privacy.

`laplace` and `k_norm` are noise in R^d (`sample`, `log_density`, `mean_square`), `counts` releases series of
counts, and `gaussian` is the (epsilon, delta) of a normal shift.
"""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "LaplaceNoise": "laplace",
    "KNormNoise": "k_norm",
    "uniform_points": "k_norm",
    "release_counts": "counts",
    "gaussian_delta": "gaussian",
    "gaussian_epsilon": "gaussian",
    "gaussian_mu": "gaussian",
}
_MODULES = ("counts", "gaussian", "k_norm", "laplace")

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS, _MODULES)
