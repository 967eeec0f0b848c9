"""Budgets over time that keep the temporal privacy leakage within alpha: the published schemes and better ones.

Public names are imported on first use (PEP 562).
"""

from importlib import import_module as _import_module

# public name -> module of this folder that defines it
_EXPORTS = {
    "NoFiniteSupremumError": "safety",
    "allocate_by_upper_bound": "published",
    "allocate_by_quantification": "published",
    "allocate_by_exact_leakage": "exact",
    "allocate_optimally": "optimal",
    "EndlessBudgets": "stopping",
    "allocate_with_stopping": "stopping",
}

__all__ = list(_EXPORTS)


def __getattr__(name):
    if name in _EXPORTS:
        value = getattr(_import_module(f"{__name__}.{_EXPORTS[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
