import dataclasses

import numpy as np
import pytest

from experiments import comparison
from experiments.comparison import local
from experiments.comparison.setting import Adversary
from tplrepro import TransitionMatrix


def test_notions_promise_their_level_and_those_that_know_the_correlation_keep_it(
    setting, mechanisms
):
    known = {notion.name: notion for notion in comparison.notions(2)}
    assert {notion.mechanism for notion in known.values()} == set(mechanisms)
    for name, notion in known.items():
        assert 1.3 * (1 - 1e-6) < notion.level(setting, notion.parameter(setting, 1.3)) <= 1.3, name
    levels = [
        known[name].level(setting, 0.1)
        for name in ("event-level DP", "w-event, uniform", "group DP")
    ]
    assert levels == pytest.approx([0.1, 0.2, 0.5])
    # Endless releases leak more than five.
    assert known["DP_T, Algorithm 7"].level(setting, 0.1) >= setting.adversary.bound(
        np.full(5, 0.1)
    )
    for name in ("group DP", "DP_T, Algorithm 7", "DP_T, Algorithm 8", "DP_T, optimal"):
        mechanism = mechanisms[known[name].mechanism]
        assert mechanism.bound(setting, known[name].parameter(setting, 1.0)) <= 1.0 + 1e-9
    assert (
        comparison.simulate(mechanisms["equal budgets"], 1.0, setting, 200, 0, 0.95).leakage > 1.5
    )


def test_mechanisms_release_and_bound_and_are_given_the_parameter_of_a_guarantee(
    setting, mechanisms
):
    for name, mechanism in mechanisms.items():
        release = mechanism.release(setting, 0.8, rng=np.random.default_rng(0))
        assert release.log_likelihoods.shape == (40, 5, 6), name
        assert mechanism.trusts_server == (release.variances is not None)
        parameter = comparison.at_guarantee(mechanism, setting, 0.8)
        if name == "SIP, published":
            assert np.isnan(parameter)
        else:
            assert 0.8 * (1 - 1e-6) < mechanism.bound(setting, parameter) <= 0.8
    # Three windows cover five times.
    assert mechanisms["budget absorption"].bound(setting, 0.5) == pytest.approx(3 * 0.5)


RNG = np.random.default_rng(0)
LEAVING = Adversary(TransitionMatrix([[0.5, 0.5], [0.0, 1.0]]))
OF_CELL_0 = {"adversary": LEAVING, "paths": np.zeros((1, 1), dtype=int), "positions": np.eye(2)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda s, m: comparison.setting_from_sequences(
                [np.array([0, 1])], np.eye(2), 3, 1.0, 1.0
            ),
            "smaller horizon",
        ),
        (lambda s, m: dataclasses.replace(s, **OF_CELL_0), "cell 0 of stationary probability 0"),
        (
            lambda s, m: local.release_conditional_response(s, 0.0, rng=RNG),
            "epsilon must be a finite level",
        ),
        (
            lambda s, m: comparison.sweep(
                m["equal budgets"], s, 10, [0], low=1e-9, high=1.0, points=5
            ),
            "choose a range that the mechan",
        ),
    ],
)
def test_each_wrong_argument_is_named(setting, mechanisms, call, message):
    with pytest.raises(ValueError, match=message):
        call(setting, mechanisms)
