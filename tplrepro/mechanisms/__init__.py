"""Mechanisms of a single release: their noise, its density, and their privacy.

`laplace` and `k_norm` are noise in R^d (`sample`, `log_density`, `mean_square`). `linear` has the budgets of
mechanisms that publish sums over time. `counts` and `gaussian` are public as ``tplrepro.release_counts`` and
``tplrepro.gaussian_...``.
"""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "LaplaceNoise": "laplace",
    "event_level_budgets": "linear",
    "gaussian_event_level_budgets": "linear",
    "KNormNoise": "k_norm",
    "uniform_points": "k_norm",
}
_MODULES = ("counts", "gaussian", "k_norm", "laplace", "linear")

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS, _MODULES)
