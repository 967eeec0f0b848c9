"""Two plans that keep (epsilon, delta) each, and the choice between them, which does not."""

import numpy as np
import pytest

import tplfrontier as tf
from experiments import adaptive

BACKWARD, FORWARD = np.array([[0.8, 0.2], [0.2, 0.8]]), np.array([[0.8, 0.2], [0.1, 0.9]])


def test_each_fixed_plan_keeps_delta_and_choosing_between_two_nearly_doubles_it():
    two = adaptive.plans(1.0, 1e-5, BACKWARD, FORWARD, second=0.9)
    for second in (two.response, two.reveal):
        fixed = adaptive.largest_delta(1.0, two.first, [second] * 3, BACKWARD, FORWARD)
        assert fixed == pytest.approx(1e-5, rel=1e-9)
    chosen = adaptive.largest_delta(
        1.0, two.first, [two.response, two.response, two.reveal], BACKWARD, FORWARD
    )
    assert 1.7e-5 < chosen <= 2e-5


def test_the_delta_of_a_fixed_plan_is_near_the_bound_of_profiles():
    """An upper bound by profiles, whose releases are those of the plan."""
    two = adaptive.plans(1.0, 1e-5, BACKWARD, FORWARD, second=0.9)
    losses = 0.004 * np.arange(500)
    first = np.array([np.maximum(two.first[0] - np.exp(x) * two.first[1], 0).sum() for x in losses])
    events = [tf.PrivacyProfile(first + 1e-16, 0.004), 0.9]
    profiles = tf.temporal_privacy_profile(events, BACKWARD, FORWARD, grid=0.004, pairs=True)
    assert 1e-5 <= profiles.delta(1.0).max() <= 1.01e-5
