"""Budgets over time that keep the temporal privacy leakage within alpha: the published schemes and better
ones.

Public names are imported on first use (PEP 562).
"""

from tplrepro.lazy import lazy_names as _lazy_names

# public name -> module of this folder that defines it
_EXPORTS = {
    "NoFiniteSupremumError": "published",
    "allocate_by_upper_bound": "published",
    "allocate_by_quantification": "published",
    "allocate_by_exact_leakage": "exact",
    "allocate_optimally": "optimal",
    "EndlessBudgets": "stopping",
    "allocate_noise": "noise",
    "allocate_with_stopping": "stopping",
    "allocate_series_noise": "gaussian_series",
    "correlate_series_noise": "gaussian_series",
    "endless_series_noise": "gaussian_series",
}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
