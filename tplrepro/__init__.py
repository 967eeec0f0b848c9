"""Differential privacy under temporal correlations: quantify the leakage, bound it, reproduce five papers.

Every public name is imported on first use (PEP 562), so that ``import tplrepro`` loads neither Numba nor pandas.

>>> import tplrepro as tpl
>>> tpl.__version__
'0.1.0'
"""

from importlib import import_module as _import_module

__version__ = "0.1.0"

# public name -> module that defines it
_EXPORTS = {
    "TransitionMatrix": "tplrepro.markov.transition",
    "strongest": "tplrepro.markov.generators",
    "smoothed": "tplrepro.markov.generators",
    "random_matrix": "tplrepro.markov.generators",
    "PrivacyLossFunction": "tplrepro.leakage.loss_function",
    "privacy_loss": "tplrepro.leakage.loss_function",
    "temporal_privacy_leakage": "tplrepro.leakage.quantification",
    "worst_case_leakage": "tplrepro.leakage.quantification",
    "leakage_at_all_times": "tplrepro.leakage.gaps",
    "population_leakage": "tplrepro.leakage.population",
    "exact_leakage": "tplrepro.leakage.exact",
    "worst_outputs": "tplrepro.leakage.exact",
    "mechanism_leakage": "tplrepro.leakage.mechanism",
    "realised_leakage": "tplrepro.leakage.realised",
    "TemporalAccountant": "tplrepro.leakage.accountant",
    "NoFiniteSupremumError": "tplrepro.allocation.safety",
    "allocate_by_upper_bound": "tplrepro.allocation.published",
    "allocate_by_quantification": "tplrepro.allocation.published",
    "allocate_by_exact_leakage": "tplrepro.allocation.exact",
    "allocate_optimally": "tplrepro.allocation.optimal",
    "allocate_with_stopping": "tplrepro.allocation.stopping",
    "release_counts": "tplrepro.release",
}

# public submodules, reached as attributes
_MODULES = {
    "allocation": "tplrepro.allocation",
    "comparison": "tplrepro.comparison",
    "datasets": "tplrepro.datasets",
    "dphmm": "tplrepro.dphmm",
    "eventlog": "tplrepro.eventlog",
    "explore": "tplrepro.explore",
    "figures": "tplrepro.figures",
    "leakage": "tplrepro.leakage",
    "linear_program": "tplrepro.leakage.linear_program",
    "markov": "tplrepro.markov",
    "published": "tplrepro.leakage.published",
    "release": "tplrepro.release",
    "sip": "tplrepro.sip",
}

__all__ = ["__version__", *_EXPORTS, *_MODULES]


def __getattr__(name):
    if name in _EXPORTS:
        value = getattr(_import_module(_EXPORTS[name]), name)
    elif name in _MODULES:
        value = _import_module(_MODULES[name])
    else:
        raise AttributeError(f"module 'tplrepro' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
