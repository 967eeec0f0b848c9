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
    "SequenceLeakage": "enumeration",
    "sequence_leakage": "enumeration",
    "markov_sequences": "enumeration",
    "compose": "composition",
    "Belief": "belief",
    "SymbolChain": "belief",
    "chain_from_sequences": "belief",
    "Response": "response",
    "BeliefMechanism": "response",
    "ConditionalRandomizedResponse": "conditional_response",
    "OptimalResponse": "optimal",
    "BatchResponse": "batch",
    "batch_belief": "batch",
    "batch_distance": "batch",
    "batch_chain": "batch",
    "encode_batches": "batch",
    "decode_batch": "batch",
    "RandomizedResponse": "baselines",
    "TemporalRandomizedResponse": "baselines",
    "release_tops": "baselines",
    "ReleasedSymbol": "online_release",
    "release_sequence": "online_release",
    "ReleasedSequences": "evaluation",
    "release_sequences": "evaluation",
    "expected_release": "evaluation",
    "grid_distance": "evaluation",
    "MarkovClassifier": "identification",
    "identification_rate": "identification",
    "TwoStepNoise": "two_bits",
    "two_step_noise": "two_bits",
    "second_beliefs": "two_bits",
    "least_leakage": "two_bits",
    "gaze_cells": "recordings",
    "merge_rare": "recordings",
    "halves": "recordings",
}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
