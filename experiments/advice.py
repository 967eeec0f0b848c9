"""Does the plan that a report recommends keep its promise against an adversary who knows the truth?

Each simulated data set has a known truth, which gives the exact TPL of budgets, the largest over
users. At order 2 two chains alternate, so that every other release depends on a place; where a
chain drifts, the releases span the same time as the data. Sparse tails are many places, most of
which are hardly ever visited. The data are a table that is recorded in one of `RECORDINGS`, and
read by what `tr.read_sequences` offers.
"""

import warnings
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pandas as pd

import tplreport as tr
import tplrepro as tpl
from tplreport.reporting.plans import WORST_USER, recommended
from tplreport.schemes import COMPOSED
from tplrepro.markov.sequences import Sequences

KINDS = (
    "order 0",
    "order 1",
    "order 2",
    "mixture of users",
    "drift",
    "many states",
    "sparse tails",
)
#: The last one has three times of observation a step, of which some are missing and at most one counts.
RECORDINGS = ("rows in order", "shuffled rows", "times of no usual name", "steps that drop rows")
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
    recording: str
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


def simulated(kind: str, recording: str, *, rng: np.random.Generator) -> Outcome:
    """The outcome of one data set of this kind, of random size, strength of correlation, level and
    horizon."""
    n = int(rng.integers(*{"many states": (15, 121), "sparse tails": (6, 21)}.get(kind, (2, 7))))
    users, length = int(rng.choice([1, 5, 20, 60])), int(rng.choice([30, 100, 300]))
    alpha, horizon = float(rng.choice([0.5, 1.0, 2.0])), int(rng.choice([5, 10, 20]))
    popularity = (
        np.arange(1.0, n + 1.0) ** -rng.uniform(1.0, 3.0) if kind == "sparse tails" else np.ones(n)
    )
    matrices = [_chain(popularity, rng) for _ in range(2)]
    if kind == "order 0":
        matrices[0] = np.tile(matrices[0][0], (n, 1))
    kinds = rng.random(users) < 0.5 if kind == "mixture of users" else np.zeros(users, dtype=bool)
    parts = 3 if recording == RECORDINGS[3] else 1
    walks = [_user(kind, matrices, int(second), parts * length, rng) for second in kinds]
    if len({place for walk in walks for place in walk}) == 1:
        return simulated(kind, recording, rng=rng)  # there is nothing to report on
    advice = tr.report(_read(walks, recording, rng), alpha, horizon, draws=0)

    def true_tpl(plan) -> float:
        both = [[matrices[int(one)], matrices[1]] for one in set(kinds.tolist())]
        return max(_true_tpl(kind, pair, plan.budgets, parts) for pair in both)

    model = recommended(advice.plans, alpha, True)
    personal = recommended(advice.plans, alpha, True, WORST_USER) if users > 1 else None
    return Outcome(
        kind,
        recording,
        alpha,
        doubted=advice.withheld or any(check.verdict == "doubtful" for check in advice.checks[:3]),
        withheld=advice.withheld,
        composed=model.scheme == COMPOSED,
        true_tpl=0.0 if advice.withheld else true_tpl(advice.recommendation),
        model_tpl=true_tpl(model),
        saved=advice.plans[0].error / model.error,
        users_tpl=np.nan if personal is None else true_tpl(personal),
    )


def _user(
    kind: str, matrices: list, second: int, length: int, rng: np.random.Generator
) -> list[int]:
    """The places of one user."""
    if kind == "drift":
        return _walk(_drifting(matrices, length - 1), rng)
    if kind == "order 2":
        both = [_walk([matrices[0]] * (length // 2 - 1), rng) for _ in range(2)]
        return [place for pair in zip(*both, strict=True) for place in pair]
    return _walk([matrices[second]] * (length - 1), rng)


def _read(walks: list[list[int]], recording: str, rng: np.random.Generator) -> Sequences:
    """The walks as a table, recorded every 20 minutes, and read as the reader's errors say."""
    rows = [
        (f"user {k}", time, place)
        for k, walk in enumerate(walks)
        for time, place in enumerate(walk)
    ]
    table = pd.DataFrame(rows, columns=["user", "time", "place"])
    table["time"] = pd.Timestamp("2024-01-01") + table["time"] * pd.Timedelta("20min")
    if recording == RECORDINGS[3]:
        table = table[rng.random(len(table)) < rng.choice([0.4, 0.7, 1.0])]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about rows between two steps, on purpose
            return tr.read_sequences(table, step="1h")
    if recording != RECORDINGS[0]:
        table = table.sample(frac=1.0, random_state=rng)
    if recording != RECORDINGS[2]:
        return tr.read_sequences(table)
    table = table.rename(columns={"time": "moment"})
    try:
        return tr.read_sequences(table)
    except tr.DataFormatError as error:
        return tr.read_sequences(table, time=str(error).partition("; '")[2].partition("'")[0])


def _true_tpl(kind: str, matrices: list, budgets: np.ndarray, parts: int = 1) -> float:
    """The largest TPL to an adversary who knows the chain of the data, of which a release has
    `parts` steps."""
    if kind == "drift":
        backward, forward, now = [], [], np.full(len(matrices[0]), 1.0 / len(matrices[0]))
        steps = iter(_drifting(matrices, parts * (budgets.size - 1)))
        for several in zip(*[steps] * parts, strict=True):
            step = reduce(np.matmul, several)
            forward.append(step)
            backward.append(tpl.TransitionMatrix(step).reverse(now))
            now = now @ step
        return float(tpl.temporal_privacy_leakage(budgets, backward, forward).tpl.max())
    chain = tpl.TransitionMatrix(np.linalg.matrix_power(matrices[0], parts))
    series = [budgets[0::2], budgets[1::2]] if kind == "order 2" else [budgets]
    pair = chain.reverse(), chain
    return max(
        float(tpl.temporal_privacy_leakage(part, *pair).tpl.max()) for part in series if part.size
    )


def _chain(popularity: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random matrix that stays with a random probability; no entry is below 0.02 / n."""
    n, stay = popularity.size, rng.random() * 0.95
    spread = n * popularity / popularity.sum() * rng.choice([0.3, 1.0, 3.0])
    rows = stay * np.eye(n) + (1.0 - stay) * rng.dirichlet(spread, n)
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
