"""One comparison of all notions: the same data, the same adversary, the same task, at equal measured leakage.

`setting` says who is where, what the adversary knows and what a mechanism releases; `central` and `local` hold the
mechanisms with a trusted server and without, `catalogue` what each notion promises, `calibration` measures what
releases leak and brings mechanisms to equal leakage. Nothing imports this folder.
"""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "Setting": "setting",
    "setting_from_sequences": "setting",
    "Adversary": "setting",
    "measured_leakage": "calibration",
    "SimulatedRelease": "setting",
    "release_laplace": "central",
    "release_gaussian": "central",
    "release_by_window": "central",
    "by_absorption": "window",
    "by_distribution": "window",
    "quilt_budget": "markov_quilt",
    "quilt_level": "markov_quilt",
    "release_reports": "local",
    "release_reports_by_window": "local",
    "release_by_policy": "local",
    "release_conditional_response": "local",
    "release_optimal_response": "local",
    "infer_counts": "calibration",
    "CountMechanism": "catalogue",
    "Notion": "catalogue",
    "mechanisms": "catalogue",
    "notions": "catalogue",
    "Outcome": "calibration",
    "Calibrated": "calibration",
    "simulate": "calibration",
    "sweep": "calibration",
    "at_equal_leakage": "calibration",
    "at_guarantee": "calibration",
}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
