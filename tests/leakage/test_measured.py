"""What given outputs leak, against the sum over all paths of a chain and Bayes' rule."""

from itertools import pairwise, product

import numpy as np

import tplrepro as tpl


def test_sum_over_all_paths():
    """Pr(o | l_t) from the joint distribution of states and outputs; the backward matrix is the chain's own."""
    rng = np.random.default_rng(6)
    n, T = 3, 5
    initial = rng.dirichlet(np.ones(n))
    forward = tpl.TransitionMatrix(rng.dirichlet(np.ones(n), size=n), normalize=True)
    powers = [np.linalg.matrix_power(forward.probabilities, k) for k in range(T - 1)]
    backward = [forward.reverse(initial @ power) for power in powers]
    x = rng.uniform(0.1, 1.0, (T, n))
    joint = np.zeros((3, T, n))  # Pr(o, l_t) for the outputs up to t, from t on, and all
    marginal = np.zeros((T, n))
    for path in product(range(n), repeat=T):
        p = initial[path[0]] * np.prod([forward.probabilities[a, b] for a, b in pairwise(path)])
        seen = x[np.arange(T), list(path)]
        for t, state in enumerate(path):
            marginal[t, state] += p
            joint[:, t, state] += p * np.array([seen[: t + 1].prod(), seen[t:].prod(), seen.prod()])
    told = np.ptp(np.log(joint / marginal), axis=-1)
    r = tpl.measured_leakage(np.log(x), backward, forward)
    for value, expected in zip((r.bpl, r.fpl, r.tpl), told, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-12)


def test_runs_are_leading_axes_and_a_summand_at_each_time_changes_nothing():
    rng = np.random.default_rng(1)
    logs = rng.normal(size=(4, 5, 6, 3))
    P = rng.dirichlet(np.ones(3), size=3)
    r = tpl.measured_leakage(logs, P, P)
    assert r.tpl.shape == (4, 5, 6)
    np.testing.assert_allclose(r.tpl[2, 3], tpl.measured_leakage(logs[2, 3], P, P).tpl, rtol=1e-13)
    shifted = logs + rng.normal(size=(4, 5, 6, 1)) * 100
    np.testing.assert_allclose(tpl.measured_leakage(shifted, P, P).tpl, r.tpl, rtol=1e-10)
