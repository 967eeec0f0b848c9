"""Messages of the folder's errors: one case a constraint."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from tplrepro import TransitionMatrix, markov
from tplrepro.markov.filtering import condition_on_output, forward_backward

EYE, SPARSE, HALVES = np.eye(2), scipy.sparse.eye_array(2), [0.5, 0.5]
RNG = np.random.default_rng(0)


def arrays(values, offsets, labels, users):
    return markov.Sequences(np.array(values), np.array(offsets), np.array(labels), np.array(users))


HIGHER, COUNTS = tf.estimate_higher_order, np.array([[1, 1], [0, 0]])
# the third state leads anywhere
ABSORBING = scipy.sparse.csr_array(np.eye(3)[:, :2] @ np.eye(2, 3))
# all of them are stored
ZEROS = scipy.sparse.csr_array((np.eye(2).ravel(), np.indices((2, 2)).reshape(2, 4)))
# so many states are iterated, which would end where it starts
TINY = scipy.sparse.lil_array((1001, 1001))
TINY[:, 0] = 1.0
TINY[1, :2] = [3e-15, 1.0]
TINY[0, 1] = 1e-15
SEVERAL = (
    TransitionMatrix(ABSORBING, background=[0, 0, 1 / 3]),
    *map(TransitionMatrix, (EYE, SPARSE, ZEROS, scipy.sparse.csr_array(TINY))),
)
TRANSIENT = TransitionMatrix([[0.8, 0.2], [0.0, 1.0]])
MATRICES = [
    ([HALVES, [1.0]], {"normalize": True}, "rectangular array of numbers"),
    ([[0.0, 0.0], [1.0, 0.0]], {"normalize": True}, "positive, finite sum.*0 in row 0"),
    ([[1.0, -1.0], [1.0, 0.0]], {"normalize": True}, "found -1 in row 0, column 1"),
    ([[1.0, np.nan], [1.0, 0.0]], {"normalize": True}, "found nan in row 0"),
    ([[0.9, 0.5], [0.1, 0.5]], {}, "found 0.6 in row 1; columns do: pass the transposed matrix"),
    ([[0.5, 0.5 + 2e-9], HALVES], {}, r"1e-09, found 1\.000000002 in row 0; pass normalize=True"),
    (EYE, {"background": 0.1}, "background needs a scipy.sparse matrix"),
    (EYE, {"states": ["a"]}, "states must be 2 labels, found 1; give"),
    (EYE, {"states": ["a", "a"]}, "distinct, found 'a' more than once"),
    (EYE, {"states": {"a", "b"}}, "states must be labels, found .* no order"),
    (
        pd.DataFrame(EYE, columns=["a", "b"]),
        {},
        r"states \[0, 1\] as labels once each, found \['a', ",
    ),
    *(
        (pd.DataFrame(EYE, [*rows]), {"states": ["b", "a"]}, "as labels once each, found")
        for rows in ("ab", "xy")
    ),
    (SPARSE * 0.5, {}, "rows must sum to 1 .* found 0.5 in row 0"),
    (SPARSE * -1.0, {}, "not be negative, found -1"),
    (SPARSE, {"background": -0.1}, "background.*found -0.1"),
]
CALLS = [
    *(
        (partial(TransitionMatrix(EYE).__getitem__, place), r"\[0, 2\), found")
        for place in ((0, -1), (0, 2))
    ),
    (lambda: TransitionMatrix(EYE)[0, 1, 1], r"a row and a column, found \(0, 1, 1\)"),
    (
        lambda: TransitionMatrix(EYE).index("x"),
        "unknown state 'x'; the matrix has 2 states, such as 0",
    ),
    *((matrix.stationary, "unique, found 2 closed classes") for matrix in SEVERAL),
    (TRANSIENT.reverse, "state 0 has probability 0 after one step"),
    (
        lambda: markov.drop_dead_ends(np.ones((2, 3))),
        r"counts must be square, found shape \(2, 3\)",
    ),
    (
        lambda: TransitionMatrix.random(3, rng=RNG, zeros=1),
        r"zeros must be a probability in \[0, 1\), found 1;",
    ),
    (lambda: forward_backward([[0, 0, 0]] * 2, EYE, HALVES), "each of 2 states, found 3"),
    (lambda: forward_backward([0, 0], EYE, HALVES), r"\(..., T, n\) with T >= 1, found \(2,\)"),
    (
        lambda: forward_backward([[0, 0]] * 3, [EYE], HALVES),
        "3 outputs need 2 .* matrices, found 1",
    ),
    (
        lambda: forward_backward([[0, -np.inf], [-np.inf, 0]], EYE, HALVES),
        "the output of time 1 has none",
    ),
    (
        lambda: condition_on_output(np.log(HALVES), np.zeros(3)),
        r"one value for each state, found shape \(3,\)",
    ),
    *(
        (partial(condition_on_output, np.zeros(2), np.array([0, bad])), "found NaN or")
        for bad in (np.nan, np.inf)
    ),
    (lambda: HIGHER([[], [0]]), "found at most 1"),
    (lambda: HIGHER([[0, 1, 2]], labels=["a", "b"]), r"unknown state 2 .* allowed are \[0, 1\]"),
    (lambda: HIGHER([[0, 1]], tuples="few"), "'all' or a list of tuples, found 'few'"),
    (lambda: HIGHER([range(1200)], tuples="all"), "found 1440000 of 1200 places"),
    (lambda: HIGHER([[0, 1]], tuples=[(0, 0)]), r"unknown state \(0, 1\) in the sequences"),
    (lambda: tf.every_kth(tpl.smoothed(SPARSE, 1.0), 2), "must have background 0, found 0.333"),
    (lambda: tr.posterior_draws(COUNTS, 0.0, 1, rng=RNG), "no step starts at state 1"),
    (
        lambda: tr.posterior_draws(scipy.sparse.eye_array(20_001), 1.0, 1, rng=RNG),
        "20000 states, found 20001",
    ),
    (
        lambda: tr.bootstrap_draws([[0], [1]], 1, rng=RNG, estimate=len, groups=[1]),
        "each of 2 sequences, found 1",
    ),
    (lambda: tr.leakage_interval([1.0] * 19, float), "at least 20 for confidence 0.9, found 19"),
    (lambda: tr.leakage_interval([1.0] * 19 + [np.nan], float), "found NaN in draw 19"),
    (lambda: arrays([0, 1], [0, 2], [1, 1], [1]), "distinct, found 1 more than once"),
    (lambda: arrays([0.5], [0, 1], [1], [1]), "values must be a flat array of integer codes"),
    (lambda: arrays([0], [0, 1], [1], [1, 2]), "the user of each of 1 sequences, found 2"),
    *(
        (partial(arrays, [0, 0], bad, [1], [1, 1, 1]), "offsets must rise")
        for bad in ([0, 2, 1, 2], [], [1, 1, 2])
    ),
    *(
        (partial(arrays, [bad], [0, 1], [1], [1]), f"values must be among 0..0, found {bad}; drop")
        for bad in (-1, 1)
    ),
]
SEQUENCES = [
    ([], {}, "at least one observed state, found none"),
    *(
        ([[0, 1], [0, bad]], {}, f"not missing, found {bad} in sequence 1; drop it")
        for bad in (None, np.nan, 1.5)
    ),
    ([[0, 1], [0, 1j]], {}, "found 1j in sequence 1"),
    ([["a"], ["b", pd.NA]], {}, "not missing, found <NA> in sequence 1"),
    ([np.array([1, 2], dtype="m8[s]")], {}, "whole numbers or labels"),
    ([np.ma.array([0, 1], mask=[False, True])], {}, "found nan in sequence 0"),
    ([[0, 1], [[0, 1], [1]]], {}, r"one-dimensional, found nested ones \(.*\'list\'\)"),
    *((bad, {}, f"found {bad[0]!r} at position 0; wrap") for bad in ([0, 1], [b"ab"], [{1, 2}])),
    ({"ann": "abc"}, {}, "found 'abc' at position 0; wrap"),
    (None, {}, "found None at position 0"),
    *(
        (file, {}, rf"a list of sequences, .* found {file!r}; read a file with tplreport\.read_seq")
        for file in ("my.csv", b"my.csv")
    ),
    (Path("my.csv"), {}, r"a list of sequences, .* found PosixPath\('my\.csv'\); read a file"),
    (
        [[0, 1], [1, 7]],
        {"n_states": 3},
        r"unknown state 7 in the sequences; the states allowed are \[0, 1, 2\]",
    ),
    (
        [["a", "b"], ["c"]],
        {"states": ["a", "b"]},
        "unknown state 'c'.*add it to states, or drop it",
    ),
    ([["a", "b"]], {"n_states": 3}, "3 labels, found 2; give"),
    ([["a", 1]], {}, "labels must be of one kind"),
    (
        pd.DataFrame({"user": 1, "time": ["9", "10"], "state": [1, 2]}),
        {},
        "time must hold .*; use pandas.to_datetime",
    ),
    (pd.DataFrame({"state": [1]}), {}, r"columns user, time and state, found \['state'\]; rename"),
    (
        pd.DataFrame({"user": [1], "time": [np.nan], "state": [1]}),
        {},
        "found 1 in column time of 1 rows; read them by .*missing=",
    ),
    ([[0, 1]], {}, r"no step starts at state 1 \(1 such states\); give smoothing > 0"),
    ([[0, 1]], {"direction": "sideways"}, "'forward', 'backward', found 'sideways'"),
]
CALLS += [
    (partial(TransitionMatrix, given, **options), words) for given, options, words in MATRICES
]
CALLS += [
    (partial(TransitionMatrix.from_sequences, given, **options), words)
    for given, options, words in SEQUENCES
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_each_wrong_argument_is_named(call, message):
    with pytest.raises((ValueError, IndexError), match=message):
        call()
