"""One comparison of all notions: the same data, the same adversary, the same task, at equal measured leakage.

`setting` says who is where, `adversary` what T releases leak in truth, `central` and `local` hold the mechanisms with a
trusted server and without (`simulated_release` is what they give), `utility` the error of counts, `catalogue` what each
notion promises, `calibration` brings mechanisms to equal measured leakage. Nothing imports this room.
"""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "Setting": "setting",
    "setting_from_sequences": "setting",
    "Adversary": "adversary",
    "measured_leakage": "adversary",
    "SimulatedRelease": "simulated_release",
    "release_laplace": "central",
    "release_by_absorption": "central",
    "release_reports": "local",
    "release_by_policy": "local",
    "release_conditional_response": "local",
    "release_optimal_response": "local",
    "infer_counts": "utility",
    "mean_absolute_error": "utility",
    "CountMechanism": "catalogue",
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
