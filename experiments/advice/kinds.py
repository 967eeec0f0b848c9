"""Random users of each kind of law."""

import numpy as np

from experiments.advice import recordings
from experiments.advice.truths import Chains, ChainsInTurn, Drift, ShownChain, Truth

INDEPENDENT = "order 0"
ONE_CHAIN = "order 1"
MANY_STATES = "many states"
SPARSE = "sparse tails"
UNNAMED_USERS = "users of no usual name"
THINNED = "a quarter of the hours"
CHANGES = "rows at changes"
IN_TURN = "two chains in turn"
SECOND_ORDER = "order 2"
STAYS = "lengths of stay"
DRIFT = "drift"
TWO_KINDS = "two kinds of users"
ALL_DIFFER = "all users differ"
GROUP = "2 to 10 % stay"
ODD_ONES = "one or two stay"
#: One chain for all users, at all times, is true of these.
CLEAN = (INDEPENDENT, ONE_CHAIN, MANY_STATES, SPARSE, UNNAMED_USERS, THINNED, CHANGES)
KINDS = (*CLEAN, IN_TURN, SECOND_ORDER, STAYS, DRIFT, TWO_KINDS, ALL_DIFFER, GROUP, ODD_ONES)
#: Kinds with one way to record them.
RECORDING_OF = {
    UNNAMED_USERS: recordings.UNUSUAL_USER,
    THINNED: recordings.THINNED,
    CHANGES: recordings.CHANGES,
}
#: Numbers of states of a data set, from and below; FEW for all other kinds.
STATES = {MANY_STATES: (15, 121), SPARSE: (6, 21), SECOND_ORDER: (2, 4), STAYS: (2, 4)}
FEW = (2, 7)
#: Numbers of users and of steps of each, of which one is drawn; USERS and STEPS for other kinds.
USERS_OF = {
    THINNED: (20, 60, 120),
    CHANGES: (20, 60, 120),
    UNNAMED_USERS: (5, 20, 60),
    ALL_DIFFER: (20, 60, 100),
    GROUP: (50, 100, 200),
    ODD_ONES: (50, 100),
}
USERS = (1, 5, 20, 60)
STEPS_OF = {THINNED: (200, 400, 800), CHANGES: (100, 200, 400)}
STEPS = (30, 100, 300)
#: Numbers of releases; joint laws are of few.
HORIZONS = (5, 10, 20)
HORIZONS_OF = {SECOND_ORDER: (5, 7), STAYS: (5, 7)}
#: With which probability those stay who differ from all others.
ODD_STAY = 0.97
#: How near the rows of users are to shared ones, where all differ: pseudo-steps.
CONCENTRATIONS = (3.0, 10.0, 30.0, 100.0)
#: The longest stay whose length is told apart.
LONGEST_STAY = 12


def random_truth(kind: str, users: int, *, rng: np.random.Generator) -> Truth:
    """Users of one of `KINDS`, with random laws."""
    n = int(rng.integers(*STATES.get(kind, FEW)))
    everyone = np.zeros(users, dtype=np.int64)
    shared = random_chain(n, rng, kind)
    if kind == DRIFT:
        return Drift(shared, random_chain(n, rng), users)
    if kind == IN_TURN:
        return ChainsInTurn(shared, users)
    if kind == SECOND_ORDER:
        return _of_second_order(shared, users, rng)
    if kind == STAYS:
        return _with_lengths_of_stay(n, users, rng)
    if kind == INDEPENDENT:
        shared = np.tile(shared[0], (n, 1))
    if kind == TWO_KINDS:
        of_user = (rng.random(users) < 0.5).astype(np.int64)
        return Chains(np.array([shared, random_chain(n, rng)]), of_user)
    if kind == ALL_DIFFER:
        return Chains(_own_matrices(shared, users, rng), np.arange(users))
    if kind in (GROUP, ODD_ONES):
        return _with_odd_users(n, _number_of_odd_users(kind, users, rng), users, rng)
    return Chains(shared[None], everyone)


def random_chain(n: int, rng: np.random.Generator, kind: str = ONE_CHAIN) -> np.ndarray:
    """A random matrix (n, n) that stays with a random probability and else goes to states about by
    their popularity, which is alike but for sparse tails; no entry is below 0.02 / n."""
    popularity = np.ones(n)
    if kind == SPARSE:
        popularity = np.arange(1.0, n + 1.0) ** -rng.uniform(1.0, 3.0)
    stay = rng.random() * 0.95
    spread = n * popularity / popularity.sum() * rng.choice([0.3, 1.0, 3.0])
    rows = stay * np.eye(n) + (1.0 - stay) * rng.dirichlet(spread, n)
    return _without_zeros(rows)


def _without_zeros(rows: np.ndarray) -> np.ndarray:
    return 0.98 * rows + 0.02 / rows.shape[-1]


def _own_matrices(shared: np.ndarray, users: int, rng: np.random.Generator) -> np.ndarray:
    """A matrix (users, n, n) for each user, the rows of which vary about those of the shared one as
    Dirichlet's law says."""
    concentration = rng.choice(CONCENTRATIONS)
    rows = np.array([[rng.dirichlet(concentration * row) for row in shared] for _ in range(users)])
    return _without_zeros(rows)


def _number_of_odd_users(kind: str, users: int, rng: np.random.Generator) -> int:
    if kind == ODD_ONES:
        return int(rng.integers(1, 3))
    return max(1, round(rng.uniform(0.02, 0.1) * users))


def _with_odd_users(n: int, odd: int, users: int, rng: np.random.Generator) -> Chains:
    """Users who mix, and `odd` of them who stay and else go where the others go."""
    mixing = _without_zeros(rng.dirichlet(np.full(n, 3.0), n))
    staying = ODD_STAY * np.eye(n) + (1.0 - ODD_STAY) * mixing
    of_user = np.zeros(users, dtype=np.int64)
    of_user[:odd] = 1
    return Chains(np.array([mixing, staying]), rng.permutation(of_user))


def _of_second_order(shared: np.ndarray, users: int, rng: np.random.Generator) -> ShownChain:
    """The next place depends on the last one by one matrix, and on the one before by another, with
    random weights; a hidden state is a pair of places."""
    n = len(shared)
    earlier = random_chain(n, rng)
    weight = rng.uniform(0.2, 0.8)
    matrix = np.zeros((n, n, n, n))
    for before in range(n):
        for place in range(n):
            row = (1.0 - weight) * shared[place] + weight * earlier[before]
            matrix[before, place, place] = row
    return ShownChain(matrix.reshape(n**2, n**2), np.tile(np.arange(n), n), users)


def _with_lengths_of_stay(n: int, users: int, rng: np.random.Generator) -> ShownChain:
    """Whether a user leaves depends on how long she has stayed: more often after a usual stay, or
    less the longer she stays; a hidden state is a place and how long she has been there."""
    ages = np.arange(1, LONGEST_STAY + 1)
    usual = rng.integers(2, 9)
    leaves = np.where(ages < usual, 0.05, rng.uniform(0.4, 0.9))
    if rng.random() < 0.5:
        leaves = rng.uniform(0.4, 0.9) / ages
    goes = rng.dirichlet(np.full(n, 3.0), n) * (1.0 - np.eye(n))
    goes /= goes.sum(axis=1, keepdims=True)
    matrix = np.zeros((n, LONGEST_STAY, n, LONGEST_STAY))
    for place in range(n):
        for age, leaving in enumerate(leaves):
            matrix[place, age, :, 0] = leaving * goes[place]
            matrix[place, age, place, min(age + 1, LONGEST_STAY - 1)] += 1.0 - leaving
    size = n * LONGEST_STAY
    return ShownChain(matrix.reshape(size, size), np.repeat(np.arange(n), LONGEST_STAY), users)
