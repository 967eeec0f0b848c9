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

_EXPORTS = {
    "instantaneous_leakage": "leakage",
    "local_differential_privacy": "leakage",
    "mutual_information": "leakage",
    "sequence_leakage": "leakage",
    "markov_sequences": "leakage",
    "compose": "leakage",
    "Belief": "belief",
    "SymbolChain": "belief",
    "chain_from_sequences": "belief",
    "Response": "response",
    "BeliefMechanism": "response",
    "ConditionalRandomizedResponse": "published",
    "OptimalResponse": "optimal",
    "BatchResponse": "batch",
    "batch_belief": "batch",
    "batch_distance": "batch",
    "batch_chain": "batch",
    "encode_batches": "batch",
    "decode_batch": "batch",
    "RandomizedResponse": "published",
    "TemporalRandomizedResponse": "published",
    "release_tops": "published",
    "release_sequence": "release",
    "release_sequences": "release",
    "expected_release": "release",
    "grid_distance": "recordings",
    "MarkovClassifier": "identification",
    "identification_rate": "identification",
    "two_step_noise": "two_bits",
    "second_beliefs": "two_bits",
    "least_leakage": "two_bits",
    "gaze_cells": "recordings",
    "merge_rare": "recordings",
    "halves": "recordings",
}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
