"""Independent solutions for the tests, from the definitions: the programme of problem (15), leakages and costs."""

import numpy as np
from scipy.optimize import linprog


def least_cost(belief, distance, epsilon):
    """min sum beta(x) a(y|x) D(x, y) with e^-eps p(y) <= a(y|x) <= e^eps p(y): dense, in the paper's variables."""
    beta, distance = np.asarray(belief, dtype=float), np.asarray(distance, dtype=float)
    n = beta.size
    odds = np.exp(epsilon)
    bounds = np.vstack([np.eye(n) - odds * beta, beta / odds - np.eye(n)])  # a row for each x, for every y alike
    solved = linprog(
        (beta[:, None] * distance).ravel(),
        A_ub=np.kron(bounds, np.eye(n)),
        b_ub=np.zeros(2 * n * n),
        A_eq=np.kron(np.eye(n), np.ones(n)),
        b_eq=np.ones(n),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solved.status == 0
    return solved.fun


def leakage_by_loops(matrix, belief):
    """Definition 2 by Bayes' rule, one posterior at a time."""
    worst = 0.0
    for y in range(len(matrix[0])):
        total = sum(b * row[y] for b, row in zip(belief, matrix, strict=True))
        if total == 0:
            continue
        for b, row in zip(belief, matrix, strict=True):
            if b > 0:
                posterior = b * row[y] / total
                worst = max(worst, abs(np.log(posterior / b)) if posterior > 0 else np.inf)
    return worst


def changed(matrix, belief):
    """Probability that a symbol is output as another one."""
    return sum(b * (1 - row[x]) for x, (b, row) in enumerate(zip(belief, matrix, strict=True)))


def second_order_sequences(initial, first, tensor, horizon):
    """Joint distribution of T symbols of a chain of order 2, (n,) * T: Pr(X_2 | X_1), then Pr(X_k+1 | X_k-1, X_k)."""
    joint = np.asarray(initial)
    for k in range(1, horizon):
        joint = joint[..., None] * (first if k == 1 else tensor)
    return joint
