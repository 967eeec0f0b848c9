"""One comparison of all notions: the same data, the same adversary, the same task, at equal measured leakage.

One room for each concept: `setting` (who is where), `adversary` (what T releases leak in truth), `central`, `local`,
`policy` and `sequence` (the mechanisms), `utility` (the error of released counts), `catalogue` (what each notion
promises), `calibration` (mechanisms at equal measured leakage). It is built on the rest of the package; nothing imports
it.

Submodules are imported on first use.
"""

from importlib import import_module as _import_module

_EXPORTS = {
    "Setting": "setting",
    "setting_from_sequences": "setting",
    "Adversary": "adversary",
    "log_evidence": "adversary",
    "measured_leakage": "adversary",
    "smoothed_posteriors": "adversary",
    "Release": "release",
    "release_laplace": "central",
    "release_by_absorption": "central",
    "release_randomized_response": "local",
    "release_unary_encoding": "local",
    "release_by_policy": "policy",
    "release_conditional_response": "sequence",
    "release_optimal_response": "sequence",
    "infer_counts": "utility",
    "mean_absolute_error": "utility",
    "Mechanism": "catalogue",
    "Notion": "catalogue",
    "mechanisms": "catalogue",
    "notions": "catalogue",
    "Sweep": "calibration",
    "Outcome": "calibration",
    "Calibrated": "calibration",
    "simulate": "calibration",
    "sweep": "calibration",
    "at_equal_leakage": "calibration",
    "at_guarantee": "calibration",
}

__all__ = list(_EXPORTS)


def __getattr__(name):
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
