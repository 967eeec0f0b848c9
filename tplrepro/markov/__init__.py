"""Markov chains: transition matrices, how to estimate them (with their uncertainty) and how to generate them.

Public names are imported on first use (PEP 562).
"""

from importlib import import_module as _import_module

# public name -> module of this folder that defines it
_EXPORTS = {
    "TransitionMatrix": "transition",
    "count_transitions": "estimation",
    "estimate_transitions": "estimation",
    "transitions_from_counts": "estimation",
    "drop_dead_ends": "dead_ends",
    "augment_sequences": "higher_order",
    "estimate_higher_order": "higher_order",
    "every_kth": "higher_order",
    "HiddenChain": "hidden",
    "fit_hidden_chain": "hidden",
    "LeakageInterval": "uncertainty",
    "bootstrap_draws": "uncertainty",
    "leakage_interval": "uncertainty",
    "posterior_draws": "uncertainty",
    "random_matrix": "generators",
    "smoothed": "generators",
    "strongest": "generators",
    "stationary_distribution": "stationary",
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
