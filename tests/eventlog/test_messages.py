"""What each call of the package refuses, and what the message says."""

import numpy as np
import pandas as pd
import pytest

from tests.eventlog.logs import event, log_of, trace, write
from tplrepro.eventlog import (
    DataFormatError,
    PublishedLoss,
    TransitionSystem,
    quantify_releases,
    read_csv,
    read_xes,
    releases,
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "positive|> 0|greater"),
        ({"epsilon": [0.1, 0.2]}, "found 2 for 3 releases; give 3"),
        ({"rule": "best"}, "rule must be one of 'exact', 'published', found 'best'"),
        ({"smoothing": -1.0}, "smoothing must be .*-1"),
        ({"direction": "back"}, "direction must be one of 'prefix', 'suffix', found 'back'"),
        ({"abstraction": "bag"}, "abstraction must be one of"),
        ({"state_window": 0}, "window must be"),
        ({"backward_from": "both"}, "backward_from must be one of 'bayes', 'uniform', found 'both'"),
        ({"start": 0.0}, r"start must be a share in \(0, 1\] or a time, found 0.0"),
        ({"start": "soon"}, r"start must be a share in \(0, 1\] or a time, found soon"),
        ({"start": "1999-01-01"}, "the log begins at 2022-01-01 00:00:00; give a later start"),
        ({"max_releases": 0}, "max_releases must be"),
        ({"certain": False}, "uncertain releases need rng=, a numpy.random.Generator, found None"),
        ({"log": log_of("ab").drop(columns="time:timestamp")}, "found no time:timestamp"),
    ],
)
def test_options_of_releases(options, message):
    with pytest.raises(ValueError, match=message):
        quantify_releases(**({"log": log_of("ab", "b"), "epsilon": 0.1} | options))


AB = log_of("ab")
HEAD = "case,activity,timestamp\n"
NAME = '<string key="concept:name" value="b"/>'


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (lambda log: releases(log, 0), AB, "window must be"),  # before the first step of the generator
        (lambda rows: PublishedLoss(rows).at(-1.0), np.eye(2), "alpha"),
        (PublishedLoss, [[0.5, 0.4], [0, 1]], "rows must sum to 1"),
        (TransitionSystem.from_log, AB.drop(columns="concept:name"), "found no concept:name; rename the columns"),
        (TransitionSystem.from_log, AB.iloc[:0], "at least one event, found none"),
        (TransitionSystem.from_log, AB.assign(**{"concept:name": ["a", None]}), "a concept:name, found none in row 1"),
        (TransitionSystem.from_log, AB.assign(**{"concept:name": ["a", "■"]}), "must not be activities of the log"),
        (TransitionSystem.from_log, AB.assign(**{"time:timestamp": ["x", "y"]}), "time:timestamp must hold times"),
        (TransitionSystem.from_log, AB.assign(**{"time:timestamp": pd.NaT}), "must have a time:timestamp"),
        (TransitionSystem.from_log, AB.assign(**{"case:complete": [True, False]}), "must be the same in all rows"),
        (TransitionSystem.from_log, AB.assign(**{"case:complete": "False"}), "True or False in every row, .* 'False'"),
        (TransitionSystem.from_log, AB.to_numpy(), "must be a DataFrame, found ndarray"),
    ],
)
def test_what_is_no_argument(call, given, message):
    with pytest.raises(ValueError, match=message):
        call(given)


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_csv, "", "found an empty file"),
        (read_csv, HEAD, "an activity and a readable time .no rows.; check the file"),
        (read_csv, f"{HEAD}1,a,soon\n", "1 times row with an unreadable time:timestamp"),
        (read_csv, f"{HEAD}1,a,2022-01-01\n1,a,2022,3,4\n", "line 3: expected a table with ',' between"),
        (read_csv, f"{HEAD}register,1,ann,2022-01-01\n", "line 2: expected a table .*found: 4 fields for 3 columns"),
        (read_csv, f"{HEAD}1{',a' * 10_000},2022-01-01\n", "found: 10002 fields for 3 columns"),
        (read_csv, f'{HEAD}7",a,2022-01-01\n', "line 2: .*found: a quote in a field without quotes around it"),
        (read_csv, f'{HEAD}"7,a,2022-01-01\n', "found: unexpected end of data"),
        (read_csv, "case,Case,activity,time\n1,2,a,2022-01-01\n", "expected one column 'case:concept:name'"),
        (read_xes, '<?xml version="1.0" encoding="bogus"?><log/>', "line 1: .*unknown encoding: bogus"),
        (read_xes, '<?xml version="1.0" encoding="gb2312"?><log/>', "multi-byte encodings are not supported"),
        (read_xes, f"<log>{trace(trace())}</log>", "found <trace> in <trace>"),
        (read_xes, f"<log>{event()}</log>", "line 1: expected an XES event log, .*found <event> in <log>"),
        (read_xes, f"<log>{trace(event(more=NAME))}</log>", "line 2: <event> must have one concept:name, found two"),
        (read_xes, "<log/>", "no events.; check that the export of the traces took"),
        (read_xes, f"<log>{trace()}</log>", "no events.; check"),
        (read_xes, f"<log>{trace(event(time=None) * 2)}</log>", "2 times event without time:timestamp"),
        (read_xes, f"<log>{trace(event(None))}</log>", "1 times event without concept:name"),
        (read_xes, "<html><body/></html>", "outermost element <log>, found <html>"),
        (read_xes, "case,activity,time\n1,a,2022", "expected an XES event log, found a comma-separated file"),
        (read_xes, f"<log>{trace(event())}", "the file ends early"),
        (read_xes, f"<log>{trace(event())}</trace></log>", "found XML with mismatched tag"),
        (read_xes, "<log>&unknown;</log>", "found XML with undefined entity"),
        (read_xes, "<log>" + "<list>" * 10_001, "nested more than 10000 deep"),
    ],
)
def test_what_is_no_log(tmp_path, read, text, message):
    path = write(tmp_path, text)
    with pytest.raises(DataFormatError, match=f"{path}.*{message}"):
        read(path)
