"""Does the plan that a report recommends keep its promise against an adversary who knows the truth?

Each simulated data set has a known truth, which gives the exact TPL of budgets, the largest over users. At
order 2 two chains alternate, so that every other release depends on a place; where a chain drifts, the
releases span the same time as the data.
"""

from dataclasses import dataclass

import numpy as np

import tplreport as tr
import tplrepro as tpl
from tplreport.reporting.plans import WORST_USER, recommended
from tplreport.schemes import COMPOSED

KINDS = ("order 0", "order 1", "order 2", "mixture of users", "drift", "many states")
#: What a report did, in the order of the figure; see `Outcome.verdict`.
VERDICTS = (
    "α/T is as good",
    "cheaper plan, kept",
    "doubted, would keep",
    "doubted, would break",
    "cheaper plan, broken",
)


@dataclass(frozen=True)
class Outcome:
    """What the report on one simulated data set said, and what is true; nats.

    The model's plan is the one that would be recommended if no check doubted the model.
    """

    kind: str
    alpha: float
    doubted: bool  # a check doubts or refuses the model
    withheld: bool
    composed: bool  # the model's plan is α/T
    true_tpl: float  # of the recommended plan; 0 where it is withheld
    model_tpl: float  # of the model's plan
    saved: float  # error of α/T over that of the model's plan
    users_tpl: float  # of the plan against the worst user's habits, NaN for a single user

    @property
    def is_broken(self) -> bool:
        """Whether the recommended plan breaks its promise."""
        return self.true_tpl > self.alpha

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        if self.is_broken:
            return VERDICTS[4]
        if self.composed:
            return VERDICTS[0]
        if not self.doubted:
            return VERDICTS[1]
        return VERDICTS[3] if self.model_tpl > self.alpha else VERDICTS[2]


def simulated(kind: str, *, rng: np.random.Generator) -> Outcome:
    """The outcome of one data set of this kind, of random size, strength of correlation, level and horizon."""
    n = int(rng.integers(15, 121)) if kind == "many states" else int(rng.integers(2, 7))
    users, length = int(rng.choice([1, 5, 20, 60])), int(rng.choice([30, 100, 300]))
    alpha, horizon = float(rng.choice([0.5, 1.0, 2.0])), int(rng.choice([5, 10, 20]))
    matrices = [_chain(n, rng) for _ in range(2)]
    if kind == "order 0":
        matrices[0] = np.tile(matrices[0][0], (n, 1))
    kinds = rng.random(users) < 0.5 if kind == "mixture of users" else np.zeros(users, dtype=bool)
    sequences = {user: _user(kind, matrices, int(second), length, rng) for user, second in enumerate(kinds)}
    if len({place for walk in sequences.values() for place in walk}) == 1:
        return simulated(kind, rng=rng)  # there is nothing to report on
    advice = tr.report(sequences, alpha, horizon, draws=0)

    def true_tpl(plan) -> float:
        return max(_true_tpl(kind, [matrices[int(one)], matrices[1]], plan.budgets) for one in set(kinds.tolist()))

    model = recommended(advice.plans, alpha, True)
    personal = recommended(advice.plans, alpha, True, WORST_USER) if users > 1 else None
    return Outcome(
        kind,
        alpha,
        doubted=advice.withheld or any(check.verdict == "doubtful" for check in advice.checks[:3]),
        withheld=advice.withheld,
        composed=model.scheme == COMPOSED,
        true_tpl=0.0 if advice.withheld else true_tpl(advice.recommendation),
        model_tpl=true_tpl(model),
        saved=advice.plans[0].error / model.error,
        users_tpl=np.nan if personal is None else true_tpl(personal),
    )


def _user(kind: str, matrices: list, second: int, length: int, rng: np.random.Generator) -> list[int]:
    """The places of one user."""
    if kind == "drift":
        return _walk(_drifting(matrices, length - 1), rng)
    if kind == "order 2":
        both = [_walk([matrices[0]] * (length // 2 - 1), rng) for _ in range(2)]
        return [place for pair in zip(*both, strict=True) for place in pair]
    return _walk([matrices[second]] * (length - 1), rng)


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
