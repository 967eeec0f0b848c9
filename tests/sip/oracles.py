"""Independent solutions for the tests: the whole programme of problem (15) at once, in the variables of the paper."""

import numpy as np
from scipy.optimize import linprog


def least_cost(belief, distance, epsilon):
    """min sum beta(x) a(y|x) D(x, y) with e^-eps p(y) <= a(y|x) <= e^eps p(y): dense, no trick."""
    beta, distance = np.asarray(belief, dtype=float), np.asarray(distance, dtype=float)
    n = beta.size
    odds = np.exp(epsilon)
    constraints = []
    for x in range(n):
        for y in range(n):
            above, below = np.zeros((n, n)), np.zeros((n, n))
            above[:, y] -= odds * beta
            above[x, y] += 1.0
            below[:, y] += beta / odds
            below[x, y] -= 1.0
            constraints += [above.ravel(), below.ravel()]
    rows = np.kron(np.eye(n), np.ones(n))
    solved = linprog(
        (beta[:, None] * distance).ravel(),
        A_ub=np.array(constraints),
        b_ub=np.zeros(len(constraints)),
        A_eq=rows,
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
