"""Messages of the folder's errors: one case a constraint."""

import numpy as np
import pytest

from experiments.dphmm.running_example import TRANSITIONS
from tests.tplrepro.dphmm.policies import START, F, categorical, running_example
from tplrepro import TransitionMatrix, dphmm
from tplrepro.dphmm import KNormMechanism, PolicyGraph, SensitivityHull
from tplrepro.dphmm.constraint import as_answers

EDGELESS = categorical().constrain([0, 1, 4])
LABELLED = TransitionMatrix(TRANSITIONS, states=[0, 1, 2, 3, 5, 4])
NOISE = KNormMechanism(categorical(), F, 1.0)

CASES = [
    (
        lambda: dphmm.delta_location_set([1.0], 1.0),
        r"excluded_probability must be a probability in \[0, 1\)",
    ),
    (
        lambda: as_answers([[1, 2, 3], [4, 5, 6]], 3),
        r"shape \(3, d\), found \(2, 3\); transpose it",
    ),
    (
        lambda: as_answers([1, 2], 3),
        r"shape \(3, d\), found \(2,\); give one row of d numbers a state",
    ),
    (lambda: as_answers([0, np.nan], 2), r"finite, found \[nan\] for state 1"),
    (
        lambda: PolicyGraph.from_edges(3, [(0, 3)]),
        "states of edges must be among 0..2, found 3; drop it",
    ),
    (
        lambda: PolicyGraph.from_edges(3, [(0, 1, 2)]),
        r"pairs of states, shape \(m, 2\), found shape \(1, 3\)",
    ),
    (lambda: PolicyGraph.from_edges(0, []), "n_states must be at least 1, found 0"),
    (lambda: PolicyGraph.categorical([[0, 1], [1, 2]]), "disjoint, found state 1 twice"),
    (lambda: PolicyGraph.utility(F, -1), "radius must be finite and at least 0, found -1"),
    # Whatever states are called elsewhere, here they are 0..N-1.
    (
        lambda: PolicyGraph.categorical([[0, 1], [10**9]]),
        "found 1000000000; drop it, or number them from 0 on",
    ),
    (
        lambda: PolicyGraph.transition(LABELLED),
        "numbered 0..5, found 5 in row 4 of the transitions",
    ),
    (
        lambda: next(running_example([1.0])),
        "true state must be whole numbers in 0..5, found ndarray of float64",
    ),
    (lambda: categorical().constrain([]), "at least one possible state"),
    (
        lambda: categorical().constrain([1, 2]).connect([(1, 4)]),
        "must join possible states, found 4",
    ),
    (lambda: SensitivityHull([1.0, 2.0]), r"shape \(m, d\), .* found shape \(2,\)"),
    *(
        (lambda x=x: SensitivityHull([[x, 1]]), "finite vectors, .* size")
        for x in (np.inf, np.nan, 1e200)
    ),
    (
        lambda: KNormMechanism(categorical(), F * 1e-200, 1.0).error,
        "0 or of a size from 1e-50 .* size 4e-200",
    ),
    (
        lambda: SensitivityHull([[1, 1]]).norm([1, 2, 3]),
        r"2 finite numbers each, found shape \(3,\)",
    ),
    (
        lambda: KNormMechanism(categorical(), F, 0),
        "epsilon must be .* in nats, greater than 0, found 0",
    ),
    (
        lambda: dphmm.exposed_states(categorical(), F, dphmm.cross_polytope(3, 1.0)),
        "3 finite numbers each",
    ),
    (
        lambda: dphmm.PlanarIsotropicMechanism(categorical(), F[:, 0], 1.0),
        "in the plane, found d = 1",
    ),
    *(
        (lambda rng=rng: NOISE.sample(F[0], rng=rng), f"Generator or None, found {rng}")
        for rng in (-1, 0.5)
    ),
    (lambda: NOISE.sample(F[:2], rng=0), "one true answer"),
    (
        lambda: NOISE.sample(F[0], -3, rng=np.random.default_rng(0)),
        "size must be at least 1, found -3",
    ),
    (
        lambda: KNormMechanism(categorical(), F, 1.0, dphmm.cross_polytope(3, 1.0)),
        "hull .* in 2 dimensions, found 3",
    ),
    (lambda: KNormMechanism(EDGELESS, F, 1.0), "connects some of its 3 possible states"),
    (lambda: dphmm.protectable_graph(categorical(), F, "best"), "must be .* found 'best'"),
    (
        lambda: dphmm.protectable_graph(categorical().constrain([4]), F),
        "two possible states, found only state 4",
    ),
    # The arguments of a release are checked at once, the states as they are read.
    (
        lambda: running_example([1], initial=START * 0.9),
        "initial must be .* sum to 1 within 1e-09, found sum 0.9",
    ),
    (lambda: running_example([1], answers={}), "one query or more, found an empty mapping"),
    (
        lambda: running_example([1], answers={"a": F}),
        r"each of the queries \['a'\], found \[None\]; give both",
    ),
    (
        lambda: list(running_example([1] * 3, transitions=[np.eye(6)])),
        "each two timestamps, found 1; give one for all",
    ),
    (
        lambda: running_example([1], insisted=PolicyGraph.complete(5)),
        "graph over the policy's 6 states, found 5",
    ),
    (
        lambda: next(running_example([0])),
        "possible under the model, found state 0 with prior 0 at time 0",
    ),
    (
        lambda: list(running_example([1, 1], epsilon=[1.0])),
        "one budget a timestamp, found 1 for a longer series",
    ),
    *(
        (
            lambda position=position: list(running_example([position])),
            r"number of a state, 0\.\.5, found 2 numbers; give the row of the position in answers",
        )
        for position in ([2, 1], (2.0, 1.0), np.array([2, 1]))
    ),
]


@pytest.mark.parametrize(("call", "message"), CASES)
def test_each_wrong_argument_is_named(call, message):
    no_privacy = "connects some" in message or "found only state" in message
    with pytest.raises(dphmm.NoPrivacyError if no_privacy else ValueError, match=message):
        call()


def test_a_mechanism_cannot_be_changed():
    """Noise is drawn for the budget that it was made with."""
    with pytest.raises(
        AttributeError, match="KNormMechanism cannot be changed, found a new epsilon"
    ):
        NOISE.epsilon = 0.1
    with pytest.raises(ValueError, match="read-only"):
        NOISE.answers[0] = 0
