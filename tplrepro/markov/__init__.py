"""Markov chains: transition matrices, how to estimate them, with their uncertainty, and filter by them."""

from tplrepro.lazy import lazy_names as _lazy_names

# public name -> module of this folder that defines it
_EXPORTS = {
    "Sequences": "sequences",
    "as_sequences": "sequences",
    "count_transitions": "sequences",
    "drop_dead_ends": "transition",
    "ImpossibleOutputError": "filtering",
    "forward_backward": "filtering",
    "estimate_higher_order": "higher_order",
    "every_kth": "higher_order",
    "bootstrap_draws": "uncertainty",
    "leakage_interval": "uncertainty",
    "posterior_draws": "uncertainty",
}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
