"""One comparison of all notions: the same data, the same adversary, the same task, at equal measured leakage.

One room for each concept: `setting` (who is where), `adversary` (what T releases leak in truth), `central`, `local`,
`policy` and `sequence` (the mechanisms), `utility` (the error of released counts), `catalogue` (what each notion
promises), `calibration` (mechanisms at equal measured leakage). It is built on the rest of the package; nothing imports
it.

Submodules are imported on first use.
"""

from tplrepro.lazy import lazy_names as _lazy_names

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

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
