"""What each call of the package refuses, and what the message says."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from tests.tplrepro.eventlog.logs import log_of
from tplrepro.eventlog import (
    PublishedLoss,
    TransitionSystem,
    loss_matrix,
    quantify_releases,
    releases,
)

AB = log_of("ab")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "positive|> 0|greater"),
        ({"epsilon": []}, r"at least one budget, found shape \(0,\)"),
        (
            {"epsilon": [[0.1], [0.1, 0.2]]},
            "epsilon must be a finite privacy budget in nats.*found list",
        ),
        ({"epsilon": [0.1, 0.2]}, "found 2 for 3 releases; give 3"),
        ({"rule": "best"}, "rule must be one of 'exact', 'published', found 'best'"),
        ({"smoothing": -1.0}, "smoothing must be .*-1"),
        ({"direction": "back"}, "direction must be one of 'prefix', 'suffix', found 'back'"),
        ({"abstraction": "bag"}, "abstraction must be one of"),
        ({"counting": "events"}, "counting must be one of 'cases', 'occurrences', found 'events'"),
        (
            {"backward_from": "both"},
            "backward_from must be one of 'bayes', 'uniform', found 'both'",
        ),
        ({"start": True}, r"start must be a share in \(0, 1\] or a time, found True"),
        (
            {"start": {"share": 0.5}},
            r"start must be a share in \(0, 1\] or a time, found {'share': 0.5}",
        ),
        ({"start": "soon"}, r"start must be a share in \(0, 1\] or a time, found soon"),
        ({"start": "1999-01-01"}, "the log begins at 2022-01-01 00:00:00; give a later start"),
        ({"max_releases": 0}, "max_releases must be"),
        ({"certain": "no"}, "certain must be one of True, False, found 'no'"),
        ({"certain": False, "rng": -1}, "rng must be .*numpy.random.Generator or None, found -1"),
        ({"log": log_of("ab").drop(columns="time:timestamp")}, "found no time:timestamp"),
    ],
)
def test_each_wrong_option_of_releases_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        quantify_releases(**({"log": log_of("ab", "b"), "epsilon": 0.1} | options))


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        # before the first step of the generator
        (lambda log: releases(log, 0), AB, "window must be"),
        (lambda rows: PublishedLoss(rows).at(-1.0), np.eye(2), "alpha"),
        (lambda rows: PublishedLoss(rows).at([1.0, 2.0]), np.eye(2), "alpha must be one number"),
        (
            lambda rows: loss_matrix(rows, "a"),
            csr_array(np.eye(2)),
            "smoothing must be .* found str",
        ),
        (PublishedLoss, [[0.5, 0.4], [0, 1]], "rows must sum to 1"),
        (
            TransitionSystem.from_log,
            AB.drop(columns="concept:name"),
            "found no concept:name; rename the columns",
        ),
        (
            TransitionSystem.from_log,
            AB.iloc[:, [0, 1, 1]],
            "once, found 2 concept:name; rename the columns",
        ),
        (TransitionSystem.from_log, AB.iloc[:0], "at least one event, found none"),
        (
            TransitionSystem.from_log,
            AB.assign(**{"concept:name": ["a", None]}),
            "a concept:name, found none in row 1",
        ),
        (
            TransitionSystem.from_log,
            AB.assign(**{"concept:name": ["a", "■"]}),
            "must not be activities of the log",
        ),
        (
            TransitionSystem.from_log,
            AB.assign(**{"time:timestamp": ["x", "y"]}),
            "time:timestamp must hold times",
        ),
        (
            TransitionSystem.from_log,
            AB.assign(**{"case:complete": [True, False]}),
            "must be the same in all rows",
        ),
        (
            TransitionSystem.from_log,
            AB.assign(**{"case:complete": "False"}),
            "True or False in every row, .* 'False'",
        ),
        (TransitionSystem.from_log, AB.to_numpy(), "must be a DataFrame, found ndarray"),
    ],
)
def test_each_wrong_argument_is_named(call, given, message):
    with pytest.raises(ValueError, match=message):
        call(given)
