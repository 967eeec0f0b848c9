"""Independent solutions for the tests, from the definitions, and the beliefs and distances that
they are drawn on."""

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.optimize import linprog


def least_cost(belief, distance, epsilon):
    """min sum beta(x) a(y|x) D(x, y) with e^-eps p(y) <= a(y|x) <= e^eps p(y): dense, in the
    paper's variables."""
    n, odds = belief.size, np.exp(epsilon)
    cost, sums = (belief[:, None] * distance).ravel(), np.kron(np.eye(n), np.ones(n))
    # a row for each x, for every y alike
    bounds = np.vstack([np.eye(n) - odds * belief, belief / odds - np.eye(n)])
    bounds, within = np.kron(bounds, np.eye(n)), np.zeros(2 * n * n)
    tolerances = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solved = linprog(cost, bounds, within, sums, np.ones(n), method="highs-ds", options=tolerances)
    assert solved.status == 0
    return solved.fun


def leakage_by_loops(matrix, belief):
    """Definition 2 by Bayes' rule, one posterior at a time."""
    worst = 0.0
    for y, total in enumerate(belief @ np.array(matrix)):
        for b, row in zip(belief, matrix, strict=True):
            if b > 0 and total > 0:
                posterior = b * row[y] / total
                worst = max(worst, abs(np.log(posterior / b)) if posterior > 0 else np.inf)
    return worst


def checked_rows(response, belief):
    """The rows of a response, after all that it says about them was checked by loops and sums."""
    rows = response.matrix()
    assert rows.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert belief @ rows == pytest.approx(response.marginal, rel=1e-9, abs=1e-12)
    assert rows.T == pytest.approx(
        np.array([response.column(y) for y in range(belief.size)]), rel=1e-12
    )
    assert 1 - np.diagonal(rows) == pytest.approx(response.changed(), rel=1e-9, abs=1e-12)
    assert response.leakage == pytest.approx(leakage_by_loops(rows, belief), rel=1e-6, abs=1e-9)
    changed = sum(b * (1 - row[x]) for x, (b, row) in enumerate(zip(belief, rows, strict=True)))
    assert response.cost() == pytest.approx(changed, rel=1e-9, abs=1e-12)
    return rows


def second_order_sequences(initial, first, tensor, horizon):
    """Joint distribution of T symbols of a chain of order 2, (n,) * T: Pr(X_2 | X_1), then Pr(X_k+1
    | X_k-1, X_k)."""
    joint = np.asarray(initial)
    for k in range(1, horizon):
        joint = joint[..., None] * (first if k == 1 else tensor)
    return joint


def distances_in_a_square(rng, n):
    points = rng.random((n, 2))
    return np.linalg.norm(points[:, None] - points, axis=-1)


def beliefs(smallest=2, largest=8):
    """From even ones to values down to 1e-12, and 0."""
    powers = st.floats(-12.0, 0.0).map(lambda exponent: 10.0**exponent)
    weights = st.lists(
        st.one_of(powers, powers, powers, st.just(0.0)), min_size=smallest, max_size=largest
    )
    return weights.filter(any).map(lambda values: np.array(values) / sum(values))


budgets = st.one_of(st.floats(0.05, 5.0), st.floats(1e-6, 0.05), st.floats(5.0, 30.0))
