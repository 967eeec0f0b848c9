"""Series of releases against Bayes' rule with norms in fractions, in the plane."""

from fractions import Fraction
from itertools import combinations

import mpmath
import numpy as np
import pytest

from tplrepro import dphmm


def norm(edges, x):
    """The least total weight of at most two edges (pairs of fractions) that make up a vector; None
    where none do."""
    if not any(x):
        return Fraction(0)
    totals = []
    for a in edges:
        if a[0] * x[1] == a[1] * x[0]:
            axis = 0 if a[0] else 1
            totals.append(abs(x[axis] / a[axis]))
    for a, b in combinations(edges, 2):
        area = a[0] * b[1] - a[1] * b[0]
        if area:
            first = abs((x[0] * b[1] - x[1] * b[0]) / area)
            second = abs((a[0] * x[1] - a[1] * x[0]) / area)
            totals.append(first + second)
    return min(totals, default=None)


def difference(first, second):
    return tuple(a - b for a, b in zip(first, second, strict=True))


def as_point(values):
    """Numbers as a point of the plane."""
    numbers = [Fraction(float(value)) for value in values]
    return tuple([*numbers, Fraction(0)][:2])


def random_series(rng):
    """Answers, and the releases about a walk over 3 to 5 states, of which some steps may be
    impossible."""
    n = int(rng.integers(3, 6))
    answers = rng.normal(size=(n, int(rng.integers(1, 3)))) * 10.0 ** rng.uniform(-2, 2)
    if rng.random() < 0.5:
        answers = np.round(2.0 * answers / np.abs(answers).max())  # many ties
    pairs = np.column_stack(np.triu_indices(n, 1))
    policy = dphmm.PolicyGraph.from_edges(n, pairs[rng.random(len(pairs)) < 0.4])
    moves = rng.dirichlet(np.ones(n), n)
    if rng.random() < 0.5:
        moves *= rng.random((n, n)) < 0.7
        moves[:, 0] += 1e-3
        moves /= moves.sum(axis=1, keepdims=True)
    initial = rng.dirichlet(np.ones(n))
    states = [int(rng.choice(n, p=initial))]
    for _ in range(2):
        states.append(int(rng.choice(n, p=moves[states[-1]])))
    budgets = rng.uniform(0.05, 3.0, 3)
    method = str(rng.choice(["greedy", "stepwise", "optimal"]))
    steps = dphmm.release(
        states, policy, answers, budgets, moves, initial, rng=rng, method=method, skip=True
    )
    return answers, moves, initial, list(steps)


def check_step(step, points, prior):
    """All possible states are protected and lose no more than is said, and the posterior, which is
    returned, is that of Bayes' rule; None where rounding has moved the output off a line."""
    budget = Fraction(step.mechanism.epsilon)
    edges = {difference(points[i], points[j]) for i, j in step.policy.edge_array.tolist()}
    edges = [edge for edge in edges if any(edge)]
    possible = [state for state, weight in enumerate(prior) if weight > 0]
    hidden = set()
    for i, j in combinations(possible, 2):
        apart = norm(edges, difference(points[i], points[j]))
        if apart is None:
            assert step.constrained_epsilon == np.inf
            continue
        assert float(budget * apart) <= step.constrained_epsilon * (1.0 + 1e-12)
        if apart <= 1 + Fraction(1, 10**9):
            hidden |= {i, j}
    assert hidden == set(possible)
    z = as_point(step.z)
    norms = [norm(edges, difference(z, point)) for point in points]
    if any(norms[state] is None for state in possible):
        return None
    weights = [mpmath.mpf(0)] * len(points)
    for state in possible:
        loss = budget * norms[state]
        weights[state] = prior[state] * mpmath.exp(-mpmath.mpf(loss.numerator) / loss.denominator)
    total = mpmath.fsum(weights)
    posterior = [weight / total for weight in weights]
    np.testing.assert_allclose(step.posterior, list(map(float, posterior)), rtol=0, atol=1e-9)
    return posterior


@mpmath.workdps(30)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))]
)
def test_each_release_protects_all_possible_states_and_tells_what_bayes_rule_says(seed):
    rng = np.random.default_rng([64, seed])
    for _ in range(15):
        answers, moves, initial, steps = random_series(rng)
        points = [as_point(answer) for answer in answers]
        prior = [mpmath.mpf(weight) for weight in initial.tolist()]
        for time, step in enumerate(steps):
            if time:
                prior = [mpmath.fdot(prior, column) for column in moves.T.tolist()]
            if step is not None:
                posterior = check_step(step, points, prior)
                prior = posterior or list(map(mpmath.mpf, step.posterior.tolist()))
