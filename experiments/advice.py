"""Does the plan that a report recommends keep its promise against an adversary who knows the truth?

Each simulated data set has a known truth: one chain, a mixture of two kinds of users, a chain that drifts
over
the releases, or two chains that alternate (order 2: a place depends on the place before the last one). The
truth gives the exact TPL of the recommended budgets, the largest over users. Where chains alternate, every
other
release depends on a place; where a chain drifts, the releases span the same time as the data.
"""

from dataclasses import dataclass

import numpy as np

import tplrepro as tpl

KINDS = ("one chain", "mixture of users", "drift", "order 2")


@dataclass(frozen=True)
class Outcome:
    """What the report on one simulated data set said, and what is true; nats."""

    kind: str
    states: int
    steps: int
    alpha: float
    warned: bool  # a check is not fine, or the recommendation is withheld
    composed: bool  # α/T is recommended
    true_tpl: float  # of the recommended plan; NaN where it is withheld
    error: float  # of the recommended plan over that of α/T

    @property
    def is_broken(self) -> bool:
        return self.true_tpl > self.alpha


def simulated(kind: str, alpha: float, horizon: int, rng: np.random.Generator) -> Outcome:
    """The outcome of one data set of this kind, of random size and strength of correlation."""
    n, users, length = int(rng.integers(2, 7)), int(rng.choice([1, 5, 20, 60])), int(rng.choice([30, 100, 300]))
    matrices = [_chain(n, rng) for _ in range(2)]
    share = rng.random(users) < 0.5
    if kind == "one chain":
        sequences = [_walk([matrices[0]] * (length - 1), rng) for _ in range(users)]
    elif kind == "mixture of users":
        sequences = [_walk([matrices[int(one)]] * (length - 1), rng) for one in share]
    elif kind == "drift":
        sequences = [_walk(_drifting(matrices, length - 1), rng) for _ in range(users)]
    else:
        sequences = []
        for _ in range(users):
            pair = [_walk([matrices[0]] * (length // 2 - 1), rng) for _ in range(2)]
            sequences.append([place for both in zip(*pair, strict=True) for place in both])
    if len({place for walk in sequences for place in walk}) == 1:
        return simulated(kind, alpha, horizon, rng)  # there is nothing to report on
    advice = tpl.report(dict(enumerate(sequences)), alpha, horizon, draws=0)
    warned = advice.withheld or any(check.verdict != "fine" for check in advice.checks[:3])
    plan = advice.recommendation
    steps = advice.size["steps"]
    if plan is None:
        return Outcome(kind, n, steps, alpha, True, False, np.nan, np.nan)
    kinds = {int(one) for one in share} if kind == "mixture of users" else {0}
    true = max(_true_tpl(kind, [matrices[one], matrices[1]], plan.budgets) for one in kinds)
    composed = plan.scheme == tpl.allocation.schemes.COMPOSED
    return Outcome(kind, n, steps, alpha, warned, composed, true, plan.error / advice.plans[0].error)


def _true_tpl(kind: str, matrices: list, budgets: np.ndarray) -> float:
    """The largest TPL to an adversary who knows the chain of the data."""
    if kind == "drift":
        backward, forward, now = [], [], np.full(len(matrices[0]), 1.0 / len(matrices[0]))
        for step in _drifting(matrices, budgets.size - 1):
            forward.append(step)
            backward.append(tpl.TransitionMatrix(step).reverse(now))
            now = now @ step
        return float(tpl.temporal_privacy_leakage(budgets, backward, forward).tpl.max())
    chain = tpl.TransitionMatrix(matrices[0])
    parts = [budgets[0::2], budgets[1::2]] if kind == "order 2" else [budgets]
    pair = chain.reverse(), chain
    return max(float(tpl.temporal_privacy_leakage(part, *pair).tpl.max()) for part in parts if part.size)


def _chain(n: int, rng: np.random.Generator) -> np.ndarray:
    """A random matrix that stays with a random probability; no entry is below 0.02 / n."""
    stay = rng.random() * 0.95
    rows = stay * np.eye(n) + (1.0 - stay) * rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 3.0])), n)
    return 0.98 * rows + 0.02 / n


def _drifting(matrices: list[np.ndarray], steps: int) -> list[np.ndarray]:
    """The matrices of `steps` steps, from the first of two to the last in equal parts."""
    first, last = matrices
    return [(1.0 - share) * first + share * last for share in np.linspace(0.0, 1.0, steps)]


def _walk(steps: list[np.ndarray], rng: np.random.Generator) -> list[int]:
    """A path from a uniform start, a matrix for each step."""
    place = int(rng.integers(len(steps[0])))
    path = [place]
    for rows, draw in zip(steps, rng.random(len(steps)), strict=True):
        place = min(int(np.searchsorted(np.cumsum(rows[place]), draw)), len(rows) - 1)
        path.append(place)
    return path
