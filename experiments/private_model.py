"""Floors of chains that are learned privately, against those of exact counts and of the true chain.

Users walk along one chain from its habit. Counts of their steps are drawn as sums over all users,
whose law is that of the single walks. The noise here is NumPy's, of the law that OpenDP's has:
thousands of draws of made-up data need no protection.
"""

from dataclasses import asdict, dataclass
from functools import cache
from math import expm1
from typing import Any

import numpy as np
import pandas as pd

import tplrepro as tpl
from tplfrontier import loss_from_counts
from tplreport.learning.floor import SENSITIVITY, Budget, Levels, Scores, levels_of, qualities_of
from tplreport.learning.model import floor_beside_model
from tplreport.learning.noisy_counts import largest_noise
from tplreport.learning.worst_shares import announce_pairs

ALPHA = 1.0
CONFIDENCE = 0.95
STEPS = 20
FAILURE = (1.0 - CONFIDENCE) / 2.0
#: Of each side.
OF_SIDE = 1.0 - (1.0 - CONFIDENCE) / 4.0
OF_TRUE = "of the true chain's"
OF_EXACT = "of exact counts'"
TOO_HIGH = "too high"
#: Medians of floors of so many states are over so many data sets.
RUNS_OF_SIZE = {20: 3}
#: A data set is made once for so many draws of one number.
DRAWS_OF_DATA = 100
MATRIX = "noisy counts"
FLOOR = "one number"
EXACT = "exact counts"


@dataclass(frozen=True)
class Cell:
    """How many users walk between how many states, and the budget of the model."""

    states: int
    users: int
    epsilon: float
    differ: bool = False  # half of the users move along another chain

    @property
    def name(self) -> str:
        """A row of a table."""
        words = f"{self.states} states, {self.users:,} users, ε = {self.epsilon:g}"
        if self.differ:
            words += ", users differ"
        return words


#: Where the floor is to be 10 % below that of exact counts, and where it is not worth it.
CELLS = (
    Cell(2, 10_000, 0.24),
    Cell(5, 10_000, 0.75),
    Cell(20, 100_000, 0.47),
    Cell(2, 1000, 0.5),
    Cell(5, 1000, 0.5),
    Cell(20, 10_000, 0.5),
    Cell(2, 10_000, 0.5, differ=True),
)


@dataclass(frozen=True)
class World:
    """The chains of equal parts of the users."""

    chains: list[tpl.TransitionMatrix]

    @classmethod
    def of(cls, cell: Cell, rng: np.random.Generator) -> "World":
        """Chains of which a state predicts the next one somewhat; of two states those of the
        guide."""
        if cell.states == 2:
            chains = [tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])]
            if cell.differ:
                chains.append(tpl.TransitionMatrix([[0.95, 0.05], [0.03, 0.97]]))
            return cls(chains)
        n = cell.states
        rows = 0.35 * np.eye(n) + 0.65 * rng.dirichlet(np.full(n, 10.0), n)
        return cls([tpl.TransitionMatrix(rows)])

    def counts(self, users: int, rng: np.random.Generator) -> np.ndarray:
        """Steps (n, n) of all users, `STEPS` of each."""
        of_each = [counts_of_walks(chain, users // len(self.chains), rng) for chain in self.chains]
        return np.sum(of_each, axis=0)

    def floor(self, epsilon: float) -> float:
        """The floor that keeps the level for every user, after a model with this budget."""
        floors = [floor_of_chain(chain, epsilon) for chain in self.chains]
        return min(floors)


def counts_of_walks(
    chain: tpl.TransitionMatrix, users: int, rng: np.random.Generator
) -> np.ndarray:
    """The counts (n, n) of the steps of users who start in the habit, from state to state."""
    rows = chain.toarray()
    people = rng.multinomial(users, chain.stationary())
    counts = np.zeros(rows.shape, dtype=np.int64)
    for _ in range(STEPS):
        moves = rng.multinomial(people, rows)
        counts += moves
        people = moves.sum(axis=0)
    return counts


def floor_of_chain(chain: tpl.TransitionMatrix, epsilon: float) -> float:
    """The floor of the true chain."""
    backward = tpl.PrivacyLossFunction(chain.reverse())
    return floor_beside_model(ALPHA, backward, tpl.PrivacyLossFunction(chain), epsilon)


def floor_of_counts(counts: np.ndarray, epsilon: float, noise: int = 0) -> float:
    """The floor of all matrices that counts leave, or noisy ones with so much noise in a row."""
    backward = loss_from_counts(counts.T, OF_SIDE, noise=noise)
    return floor_beside_model(
        ALPHA, backward, loss_from_counts(counts, OF_SIDE, noise=noise), epsilon
    )


def with_noise(
    counts: np.ndarray, epsilon: float, rng: np.random.Generator
) -> tuple[np.ndarray, int]:
    """Counts with noise, and how much of it may be in a row."""
    scale = 2 * STEPS / epsilon
    stop = -expm1(-1.0 / scale)
    added = rng.geometric(stop, counts.shape) - rng.geometric(stop, counts.shape)
    return np.maximum(counts + added, 0), noise_bound(len(counts), scale)


@cache
def noise_bound(n: int, scale: float) -> int:
    """How much noise of this scale may be in a row or column of n counts."""
    return largest_noise(n, scale, FAILURE)


def noisy_floor(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> float:
    """The floor of a model of noisy counts."""
    noisy, noise = with_noise(counts, epsilon, rng)
    return floor_of_counts(noisy, epsilon, noise)


def drawn_floors(
    counts: np.ndarray, users: int, epsilon: float, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Floors (draws,) of models of one number; 0 is "refuse"."""
    levels = levels_of(len(counts), users, epsilon, ALPHA, FAILURE)
    budget = Budget(ALPHA, epsilon, OF_SIDE)
    qualities = qualities_of(Scores(counts, levels, budget, STEPS).compute(), levels)
    # permute-and-flip, as the largest of scores with exponential noise
    scale = 2.0 * SENSITIVITY / epsilon
    noisy = qualities + rng.exponential(scale, (draws, qualities.size))
    return np.append(levels.candidates, 0.0)[noisy.argmax(axis=1)]


def is_kept(counts: np.ndarray, noise: int, floor: float, epsilon: float) -> bool:
    """Whether counts, of which so much in a row may be noise, leave a floor; this takes no
    tangents, so that it is true at least where `floor_of_counts` is as large."""
    levels = Levels(np.array([floor]), aim=0, refusal=0)
    scores = Scores(counts, levels, Budget(ALPHA, epsilon, OF_SIDE), STEPS)
    return scores.is_kept(floor, float(noise))


def count_too_high(
    world: World, cell: Cell, truth: float, runs: int, rng: np.random.Generator
) -> dict[str, int]:
    """How often the floor of exact counts, and of noisy ones, is above that of the true chain."""
    above = truth * (1.0 + 1e-9)
    too_high = {EXACT: 0, MATRIX: 0}
    announce_pairs(cell.states, runs)
    for _ in range(runs):
        counts = world.counts(cell.users, rng)
        noisy, noise = with_noise(counts, cell.epsilon, rng)
        too_high[EXACT] += is_kept(counts, 0, above, cell.epsilon)
        too_high[MATRIX] += is_kept(noisy, noise, above, cell.epsilon)
    return too_high


def judge_cell(cell: Cell, runs: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """A row for each method: the median floor, how many of the runs were above that of the true
    chain, and the share that were 0."""
    world = World.of(cell, rng)
    truth = world.floor(cell.epsilon)
    too_high = count_too_high(world, cell, truth, runs, rng)
    found: dict[str, list[float]] = {EXACT: [], MATRIX: [], FLOOR: []}
    for _ in range(min(runs, RUNS_OF_SIZE.get(cell.states, 20))):
        counts = world.counts(cell.users, rng)
        found[EXACT].append(floor_of_counts(counts, cell.epsilon))
        found[MATRIX].append(noisy_floor(counts, cell.epsilon, rng))
    for _ in range(max(runs // DRAWS_OF_DATA, 1)):
        counts = world.counts(cell.users, rng)
        drawn = drawn_floors(counts, cell.users, cell.epsilon, DRAWS_OF_DATA, rng)
        found[FLOOR] += drawn.tolist()
    too_high[FLOOR] = int(np.sum(np.array(found[FLOOR]) > truth))
    rows = []
    for method, floors in found.items():
        median = float(np.median(floors))
        rows.append(
            {
                **asdict(cell),
                "cell": cell.name,
                "method": method,
                "floor": median,
                OF_TRUE: median / truth,
                OF_EXACT: median / float(np.median(found[EXACT])),
                "runs": runs if method != FLOOR else len(floors),
                TOO_HIGH: too_high[method],
                "zero": float(np.mean(np.array(floors) == 0.0)),
            }
        )
    return rows


def judge(cells: tuple[Cell, ...], runs: int, *, rng: np.random.Generator) -> pd.DataFrame:
    """All cells: a row for each method."""
    rows: list[dict[str, Any]] = []
    for cell in cells:
        rows += judge_cell(cell, runs, rng)
    return pd.DataFrame(rows)


def cells_of(sizes: list[int]) -> tuple[Cell, ...]:
    """The cells with these numbers of states."""
    return tuple(cell for cell in CELLS if cell.states in sizes)


def shares_by_users(
    sizes: list[int], users: list[int], epsilon: float, *, rng: np.random.Generator
) -> pd.DataFrame:
    """Median floors of both methods over those of exact counts, by users times epsilon."""
    rows = []
    for n in sizes:
        for count in users:
            cell = Cell(n, count, epsilon)
            world = World.of(cell, rng)
            counts = world.counts(count, rng)
            exact = floor_of_counts(counts, epsilon)
            found = {
                MATRIX: noisy_floor(counts, epsilon, rng),
                FLOOR: np.median(drawn_floors(counts, count, epsilon, DRAWS_OF_DATA, rng)),
            }
            for method, floor in found.items():
                share = float(floor / exact) if exact else np.nan
                rows.append(
                    {
                        "states": n,
                        "users times epsilon": count * epsilon,
                        "method": method,
                        "share": share,
                    }
                )
    return pd.DataFrame(rows)
