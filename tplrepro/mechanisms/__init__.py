"""Mechanisms of a single release: noise (`laplace`, `k_norm`), privacy (`gaussian`), sums (`linear`)."""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "LaplaceNoise": "laplace",
    "event_level_budgets": "linear",
    "gaussian_event_level_budgets": "linear",
}
_MODULES = ("counts", "gaussian", "k_norm", "laplace", "linear")

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS, _MODULES)
