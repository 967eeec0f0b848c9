"""What each call of the package refuses, and what the message says."""

from functools import partial

import numpy as np
import pytest

from tplrepro import sip
from tplrepro.markov.sequences import as_sequences
from tplrepro.sip.response import check_symbols

RNG = np.random.default_rng(0)
CRR, RR = sip.ConditionalRandomizedResponse, sip.RandomizedResponse
CHAIN = sip.SymbolChain.first_order([0.4, 0.6], np.eye(2))
NEVER_0 = sip.SymbolChain.first_order([0.0, 1.0], np.eye(2))
TEMPORAL = sip.TemporalRandomizedResponse(1.0, np.eye(2))
LABELLED = sip.chain_from_sequences([["a", "b"]])
RESPONSE = RR(0.7).response([0.5, 0.5])
MECHANISMS = (CRR, sip.OptimalResponse, RR)
DISTANCES = [
    (
        lambda x, y: np.where(x != y, np.nan, 0.0),
        "at least 0, found shape .* and minimum nan; mend",
    ),
    (lambda x, y: -1.0 * (x != y), "at least 0, found shape .* and minimum -1; mend"),
    (lambda x, y: np.where(x != y, "far", "near"), "distances must be numbers, found ndarray"),
    (lambda x, y: np.zeros(3), r"must have shape \(\d+, \d+\) and .*, found shape \(3,\)"),
    (
        lambda x, y: np.where(x != y, np.inf, 0.0),
        "distances between possible symbols must be finite numbers, found inf",
    ),
]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: sip.instantaneous_leakage(np.empty((2, 0)), [0.5, 0.5]),
            r"over 2 symbols must have a row a\(.\|x\) for each, found shape \(2, 0\); give rows",
        ),
        (lambda: sip.local_differential_privacy(np.ones((2, 2))), r"row a\(.\|0\) must"),
        (
            lambda: sip.BatchResponse(1.0, width=1000, n_symbols=41_270),
            r"of 1000 make 10\^4615.6 batches and a response of 10\^9223.2 GB, .* shorten",
        ),
        (
            lambda: sip.chain_from_sequences([[0, 1]], 2, restart=1.5),
            r"restart must be .* in \[0, 1\], found 1.5",
        ),
        (
            lambda: sip.SymbolChain.first_order([0.2, 0.3, 0.5], np.eye(2)),
            r"shape \(2,\), found \(3,\)",
        ),
        (
            lambda: sip.mutual_information([[1, 0], [0.5, 0.4]], [0.5, 0.5]),
            r"row a\(.\|1\) must .* found sum 0.9",
        ),
        (
            lambda: sip.instantaneous_leakage(np.eye(3), [0.5, 0.5]),
            r"over 2 symbols must .* found shape \(3, 3\)",
        ),
        (lambda: sip.compose([0.1], 1.0), r"delta must be a probability in \[0, 1\), found 1"),
        (lambda: sip.sequence_leakage(RR(1.0), np.ones((2, 3)) / 6), "the prior must have shape"),
        (
            lambda: sip.sequence_leakage(RR(1.0), np.full((2,) * 20, 2.0**-20)),
            r"1,048,576\^2 pairs .* \(8796.1 GB\)",
        ),
        (
            lambda: sip.OptimalResponse(1.0, [[0, -1], [1, 0]]),
            "distances must not be negative, found -1 in row 0",
        ),
        (lambda: sip.OptimalResponse(1.0, []), r"shape \(1, 1\), found \(0,\)"),
        (
            lambda: check_symbols([[0], [1, 1]], 2),
            "symbols must be whole numbers .* of object; code them",
        ),
        (
            lambda: check_symbols(np.ma.masked_less([0, 1], 1), 2),
            "symbols must be whole numbers .* found MaskedArray",
        ),
        (
            lambda: sip.OptimalResponse(1.0, "euclid"),
            "distance, if it is not .* must be one of 'hamming'",
        ),
        (
            lambda: CRR(1.0).matrix(np.full(20_000, 1 / 20_000)),
            "limited to 10000 symbols, found 20000 symbols .3.2 GB",
        ),
        (
            lambda: sip.Belief.start(NEVER_0).observe(0, CRR(1.0).response([0.0, 1.0])),
            "the output has none",
        ),
        *[
            (partial(kind(1.0).sample, 0, [0.0, 1.0], rng=RNG), "found probability 0 of symbol 0")
            for kind in MECHANISMS
        ],
        (lambda: RESPONSE.sample(4, rng=RNG), "a symbol must be one of 0..1, found 4"),
        (lambda: RESPONSE.column(2), "a symbol must be one of 0..1, found 2"),
        (
            lambda: TEMPORAL.response([0.5, 0.5], previous=-1),
            "symbols must be among 0..1, found -1",
        ),
        (
            lambda: sip.release(["0", "1"], RR(1.0), CHAIN, rng=RNG),
            "whole numbers.* of <U1; code them",
        ),
        (
            lambda: sip.release_sequences(as_sequences([["a"]]), RR(1.0), LABELLED, rng=RNG),
            "have the same states",
        ),
        (
            lambda: sip.release([0, 1], RR(1.0), CHAIN, rng="3"),
            "rng must be .*Generator or None, found '3'",
        ),
        (
            lambda: sip.release([0, 1], 1.0, CHAIN, rng=RNG),
            "mechanism must be .*, found 1.0; make one",
        ),
        (
            lambda: sip.release([0, 1], RR(1.0), np.eye(2), rng=RNG),
            "must be a SymbolChain, found ndarray; use",
        ),
        (
            lambda: sip.release([0, 1], {2: RR(1.0)}, CHAIN, rng=RNG),
            "for each width .*, found none for 1; add it",
        ),
        (
            lambda: sip.release_sequences([], RR(1.0), CHAIN, rng=RNG),
            "at least one sequence, found none",
        ),
        *[
            (partial(kind(1.0).sample, 0, [0.5, 0.5], rng=0.5), "rng must be .* found 0.5")
            for kind in MECHANISMS
        ],
        (
            lambda: sip.Belief.start(CHAIN).observe(0, RR(1.0).response(np.ones(3) / 3)),
            r"\(2,\), found \(3,\)",
        ),
        (
            lambda: sip.markov_sequences([0.5, 0.5], np.eye(2), 26),
            r"50,000,000 sequences .*, found 2\^26 sequences",
        ),
        (
            lambda: sip.markov_sequences([1.0], [[1.0]], 65),
            r"64 symbols each, found 1\^65 sequences",
        ),
        (
            lambda: sip.release([], RR(1.0), CHAIN, rng=RNG),
            r"one symbol or more, found shape \(0,\)",
        ),
        (
            lambda: sip.release([0, 2], RR(1.0), CHAIN, rng=RNG),
            "symbols must be among 0..1, found 2; drop it",
        ),
        *[
            (partial(kind(1.0).response, [0.5, 0.6]), "a belief must be .* found sum 1.1")
            for kind in MECHANISMS
        ],
        *[
            (partial(kind, 0.0), "epsilon must be a finite level in nats, greater than 0")
            for kind in MECHANISMS
        ],
    ],
)
def test_each_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("n", [2, 300])  # answered exactly, and by generation
@pytest.mark.parametrize(("distance", "message"), DISTANCES)
def test_what_a_distance_function_returns_is_checked(distance, message, n):
    with pytest.raises(ValueError, match=message):
        sip.OptimalResponse(1.0, distance).response(np.full(n, 1 / n))
    if "finite" not in message:
        with pytest.raises(ValueError, match=message.replace(r"(\d+, \d+", r"(\d+,")):
            RR(1.0).response(np.full(n, 1 / n)).cost(distance)
