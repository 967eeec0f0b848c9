"""Does the plan that a report recommends keep its promise against an adversary who knows the truth?

Each simulated data set has a known truth, which gives the exact TPL of budgets, the largest over
users. At order 2, two independent walks of one chain alternate, so that a place depends on the
last but one alone. Where a chain drifts, the releases span the same time as the data. Sparse tails
are many places, most of which are hardly ever visited. The data are a table that is recorded in one
of `RECORDINGS`, and read by what `tr.read_sequences` offers.
"""

import warnings
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

import tplreport as tr
import tplrepro as tpl
from tplreport.reporting.allocation_schemes import COMPOSED
from tplreport.reporting.believable import is_believable
from tplreport.reporting.plans import WORST_USER, recommended
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
IN_ORDER = "rows in order"
SHUFFLED = "shuffled rows"
UNUSUAL_NAME = "times of no usual name"
#: Three times of observation a step, of which some are missing and at most one counts.
DROPPING = "steps that drop rows"
RECORDINGS = (IN_ORDER, SHUFFLED, UNUSUAL_NAME, DROPPING)
AS_GOOD = "α/T is as good"
KEPT = "cheaper plan, kept"
WOULD_KEEP = "doubted, would keep"
WOULD_BREAK = "doubted, would break"
BROKEN = "cheaper plan, broken"
#: What a report did, in the order of the figure; see `Outcome.verdict`.
VERDICTS = (AS_GOOD, KEPT, WOULD_KEEP, WOULD_BREAK, BROKEN)
#: Numbers of states of a data set, from and below; (2, 7) for all other kinds.
STATES = {"many states": (15, 121), "sparse tails": (6, 21)}


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
            return BROKEN
        if self.composed:
            return AS_GOOD
        if not self.doubted:
            return KEPT
        if self.model_tpl > self.alpha:
            return WOULD_BREAK
        return WOULD_KEEP


@dataclass(frozen=True)
class Truth:
    """The chains of a simulated data set; `steps_per_release` steps of a chain lie between two
    releases."""

    kind: str
    matrices: list[np.ndarray]  # two (n, n)
    of_user: np.ndarray  # (users,), by which of the two each user moves
    steps_per_release: int

    def walk(self, user: int, length: int, rng: np.random.Generator) -> list[int]:
        """`length` successive places of one user; at order 2, `length` less one if it is odd."""
        if self.kind == "drift":
            return _walk(_drifting(self.matrices, length - 1), rng)
        if self.kind == "order 2":
            both = [_walk([self.matrices[0]] * (length // 2 - 1), rng) for _ in range(2)]
            return [place for pair in zip(*both, strict=True) for place in pair]
        return _walk([self.matrices[self.of_user[user]]] * (length - 1), rng)

    def tpl(self, budgets: Any) -> float:
        """The largest TPL (nats) about any user, if the adversary knows the chain of the data;
        `budgets` (T,) in nats."""
        spent = np.asarray(budgets, dtype=float)
        if self.kind == "drift":
            return self._tpl_of_drift(spent)
        chains = {int(which) for which in self.of_user}
        return max(self._tpl_of_chain(self.matrices[which], spent) for which in chains)

    def _tpl_of_drift(self, budgets: np.ndarray) -> float:
        """The largest TPL where each release follows by another matrix than the last one; the law
        of the place is uniform at first."""
        n = len(self.matrices[0])
        law = np.full(n, 1.0 / n)
        steps = _drifting(self.matrices, self.steps_per_release * (budgets.size - 1))
        backward, forward = [], []
        for first in range(0, len(steps), self.steps_per_release):
            step = reduce(np.matmul, steps[first : first + self.steps_per_release])
            forward.append(step)
            backward.append(tpl.TransitionMatrix(step).reverse(law))
            law = law @ step
        return float(tpl.temporal_privacy_leakage(budgets, backward, forward).tpl.max())

    def _tpl_of_chain(self, matrix: np.ndarray, budgets: np.ndarray) -> float:
        """The largest TPL where all steps are by one `matrix`; at order 2, over the two walks."""
        forward = tpl.TransitionMatrix(np.linalg.matrix_power(matrix, self.steps_per_release))
        backward = forward.reverse()
        series = [budgets]
        if self.kind == "order 2":  # every other release depends on a place
            series = [budgets[0::2], budgets[1::2]]
        leakages = [
            tpl.temporal_privacy_leakage(part, backward, forward).tpl.max()
            for part in series
            if part.size
        ]
        return float(max(leakages))


def simulated(kind: str, recording: str, *, rng: np.random.Generator) -> Outcome:
    """Simulate a data set, report on it, and compare the report with the truth.

    `kind` is one of `KINDS`, `recording` one of `RECORDINGS`. Numbers of users, states and steps,
    the strength of the correlation, alpha and the horizon are random.
    """
    n = int(rng.integers(*STATES.get(kind, (2, 7))))
    users = int(rng.choice([1, 5, 20, 60]))
    length = int(rng.choice([30, 100, 300]))
    alpha = float(rng.choice([0.5, 1.0, 2.0]))
    horizon = int(rng.choice([5, 10, 20]))
    steps_per_release = 1
    if recording == DROPPING:
        steps_per_release = 3
    truth = _random_truth(kind, n, users, steps_per_release, rng=rng)
    walks = [truth.walk(user, truth.steps_per_release * length, rng) for user in range(users)]
    if len(set(chain.from_iterable(walks))) == 1:
        return simulated(kind, recording, rng=rng)  # there is nothing to report on
    advice = tr.report(_read(walks, recording, rng), alpha, horizon, draws=0)
    model = recommended(advice.plans, alpha, True)
    true_tpl = 0.0
    if advice.recommendation is not None:
        true_tpl = truth.tpl(advice.recommendation.budgets)
    users_tpl = np.nan
    if users > 1:
        personal = recommended(advice.plans, alpha, True, WORST_USER)
        users_tpl = truth.tpl(personal.budgets)
    return Outcome(
        kind,
        recording,
        alpha,
        doubted=advice.withheld or not is_believable(advice.checks),
        withheld=advice.withheld,
        composed=model.scheme == COMPOSED,
        true_tpl=true_tpl,
        model_tpl=truth.tpl(model.budgets),
        saved=advice.plans[0].error / model.error,
        users_tpl=users_tpl,
    )


def _random_truth(
    kind: str, n: int, users: int, steps_per_release: int, *, rng: np.random.Generator
) -> Truth:
    """Two random chains with `n` states for data of this kind, and by which of them each user
    moves; `steps_per_release` of them lie between two releases."""
    popularity = np.ones(n)
    if kind == "sparse tails":
        popularity = np.arange(1.0, n + 1.0) ** -rng.uniform(1.0, 3.0)
    matrices = [_chain(popularity, rng) for _ in range(2)]
    if kind == "order 0":
        matrices[0] = np.tile(matrices[0][0], (n, 1))
    of_user = np.zeros(users, dtype=int)
    if kind == "mixture of users":
        of_user = (rng.random(users) < 0.5).astype(int)
    return Truth(kind, matrices, of_user, steps_per_release)


def _read(walks: list[list[int]], recording: str, rng: np.random.Generator) -> Sequences:
    """The sequences that are read from a table of the users' `walks`.

    The table has a row every 20 minutes. If its column of times has an unusual name, the name is
    taken from the remedy in the reader's error.
    """
    rows = []
    for user, walk in enumerate(walks):
        rows += [(f"user {user}", time, place) for time, place in enumerate(walk)]
    table = pd.DataFrame(rows, columns=["user", "time", "place"])
    table["time"] = pd.Timestamp("2024-01-01") + table["time"] * pd.Timedelta("20min")
    if recording == DROPPING:
        table = table[rng.random(len(table)) < rng.choice([0.4, 0.7, 1.0])]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about rows between two steps, on purpose
            return tr.read_sequences(table, step="1h")
    if recording != IN_ORDER:
        table = table.sample(frac=1.0, random_state=rng)
    if recording != UNUSUAL_NAME:
        return tr.read_sequences(table)
    table = table.rename(columns={"time": "moment"})
    try:
        return tr.read_sequences(table)
    except tr.DataFormatError as error:
        named = str(error).partition("; '")[2].partition("'")[0]
        return tr.read_sequences(table, time=named)


def _chain(popularity: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random matrix (n, n) that stays with a random probability and else goes to states about by
    their `popularity` (n,); no entry is below 0.02 / n."""
    n = popularity.size
    stay = rng.random() * 0.95
    spread = n * popularity / popularity.sum() * rng.choice([0.3, 1.0, 3.0])
    rows = stay * np.eye(n) + (1.0 - stay) * rng.dirichlet(spread, n)
    return 0.98 * rows + 0.02 / n


def _drifting(matrices: list[np.ndarray], steps: int) -> list[np.ndarray]:
    """A matrix for each of `steps` steps, which goes evenly from the first of two to the last."""
    first, last = matrices
    return [(1.0 - share) * first + share * last for share in np.linspace(0.0, 1.0, steps)]


def _walk(steps: list[np.ndarray], rng: np.random.Generator) -> list[int]:
    """The places of a path from a uniform start; `steps` holds the matrix of each step."""
    place = int(rng.integers(len(steps[0])))
    path = [place]
    for rows, draw in zip(steps, rng.random(len(steps)), strict=True):
        place = min(int(np.searchsorted(np.cumsum(rows[place]), draw)), len(rows) - 1)
        path.append(place)
    return path
