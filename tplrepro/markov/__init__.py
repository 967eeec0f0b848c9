"""Markov chains: transition matrices, how to estimate them (with their uncertainty), generate them and filter by them.

Public names are imported on first use (PEP 562).
"""

from tplrepro.lazy import lazy_names as _lazy_names

# public name -> module of this folder that defines it
_EXPORTS = {
    "TransitionMatrix": "transition",
    "drop_dead_ends": "transition",
    "Sequences": "sequences",
    "as_sequences": "sequences",
    "count_transitions": "sequences",
    "FilteredChain": "filtering",
    "ImpossibleOutputError": "filtering",
    "forward_backward": "filtering",
    "output_log_likelihoods": "filtering",
    "estimate_higher_order": "higher_order",
    "every_kth": "higher_order",
    "HiddenChain": "hidden",
    "fit_hidden_chain": "hidden",
    "LinearGaussianSeries": "linear_gaussian",
    "LeakageInterval": "uncertainty",
    "bootstrap_draws": "uncertainty",
    "leakage_interval": "uncertainty",
    "posterior_draws": "uncertainty",
    "random_matrix": "generators",
    "smoothed": "generators",
    "strongest": "generators",
}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
