"""Sequence information privacy (SIP): leakages, mechanisms as published and exact, baselines ([3]).

>>> from tplrepro import sip
>>> belief = [0.05, 0.95]
>>> round(sip.ConditionalRandomizedResponse(1.0).response(belief).leakage, 3)  # published: exceeds its budget of 1
2.566
>>> exact = sip.OptimalResponse(1.0).response(belief)
>>> exact.leakage <= 1.0, round(exact.cost(), 4)
(True, 0.05)
"""

from tplrepro.lazy import lazy_names as _lazy_names

_NAMES = {
    "batches": ("BatchResponse", "batch_belief", "batch_chain", "batch_distance", "observed_batches"),
    "leakage": (
        "compose",
        "instantaneous_leakage",
        "local_differential_privacy",
        "markov_sequences",
        "mutual_information",
        "sequence_leakage",
    ),
    "optimal": ("OptimalResponse",),
    "published": ("ConditionalRandomizedResponse", "RandomizedResponse", "TemporalRandomizedResponse"),
    "sequence_release": (
        "Belief",
        "SymbolChain",
        "chain_from_sequences",
        "release",
        "release_sequences",
    ),
}
_EXPORTS = {name: module for module, names in _NAMES.items() for name in names}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
