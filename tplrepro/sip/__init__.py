"""Sequence information privacy (SIP): leakages, mechanisms as published and exact, baselines (paper [3]).

>>> from tplrepro import sip
>>> belief = [0.05, 0.95]
>>> round(sip.ConditionalRandomizedResponse(1.0).response(belief).leakage, 3)  # published: exceeds its budget of 1
2.566
>>> exact = sip.OptimalResponse(1.0).response(belief)
>>> exact.leakage <= 1.0, round(exact.cost(), 4)
(True, 0.05)

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "instantaneous_leakage": "leakage",
    "batched_leakage": "leakage",
    "local_differential_privacy": "leakage",
    "mutual_information": "leakage",
    "expected_distance": "leakage",
    "hamming_distance": "leakage",
    "SequenceLeakage": "sequence",
    "sequence_leakage": "sequence",
    "markov_sequences": "sequence",
    "compose": "composition",
    "advanced_composition": "composition",
    "split_budget": "composition",
    "Belief": "belief",
    "SymbolChain": "belief",
    "chain_from_sequences": "belief",
    "second_order": "belief",
    "ZeroProbabilityError": "belief",
    "Response": "response",
    "DenseResponse": "response",
    "ConditionalResponse": "response",
    "MixtureResponse": "response",
    "Mechanism": "response",
    "ConditionalRandomizedResponse": "response",
    "OptimalResponse": "optimal",
    "BatchResponse": "batch",
    "batch_belief": "batch",
    "batch_distance": "batch",
    "batch_chain": "batch",
    "encode_batches": "batch",
    "decode_batch": "batch",
    "RandomizedResponse": "baselines",
    "TemporalRandomizedResponse": "baselines",
    "release": "online",
    "Release": "online",
    "release_tops": "tops",
    "MarkovClassifier": "identification",
    "identification_rate": "identification",
    "RecurrentClassifier": "recurrent",
    "two_step_noise": "noise",
    "TwoStepNoise": "noise",
    "least_leakage": "noise",
    "evaluate": "evaluation",
    "Recordings": "recordings",
    "kosarak_sessions": "recordings",
    "gaze_cells": "recordings",
    "merge_rare": "recordings",
    "halves": "recordings",
    "expected_release": "evaluation",
    "grid_distance": "evaluation",
}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
