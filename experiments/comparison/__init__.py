"""One comparison of all notions: the same data, the same adversary, the same task, at equal measured leakage.

`setting` holds the true locations and what the adversary knows; `central` and `local` hold the mechanisms
with and without a trusted server; `catalogue` says what each notion promises; `calibration` measures what
releases leak and finds the parameters at which mechanisms leak equally.
"""

from experiments.comparison.calibration import (
    at_equal_leakage,
    at_guarantee,
    infer_counts,
    realised_leakage,
    simulate,
    sweep,
)
from experiments.comparison.catalogue import mechanisms, notions
from experiments.comparison.central import release_by_window, release_gaussian, release_laplace
from experiments.comparison.local import (
    release_by_policy,
    release_conditional_response,
    release_optimal_response,
    release_reports,
    release_reports_by_window,
)
from experiments.comparison.markov_quilt import quilt_budget, quilt_level
from experiments.comparison.setting import Adversary, Setting, setting_from_sequences
from experiments.comparison.window import by_absorption, by_distribution

__all__ = [
    "Adversary",
    "Setting",
    "at_equal_leakage",
    "at_guarantee",
    "by_absorption",
    "by_distribution",
    "infer_counts",
    "mechanisms",
    "notions",
    "quilt_budget",
    "quilt_level",
    "realised_leakage",
    "release_by_policy",
    "release_by_window",
    "release_conditional_response",
    "release_gaussian",
    "release_laplace",
    "release_optimal_response",
    "release_reports",
    "release_reports_by_window",
    "setting_from_sequences",
    "simulate",
    "sweep",
]
