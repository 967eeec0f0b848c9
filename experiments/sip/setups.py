"""The experiments of [3]: two correlated bits (Figs. 3, 4), and sequences to release (Figs. 6 to
9).

Two bits (Example 1): X_1 is 1 with probability P_1; X_2 differs from X_1 with probability phi. The
noise N_k is 1 if Y_k differs from X_k. Everything is summed exactly over the sixteen outcomes. The
recordings of [3] are not published; here gaze is that of GazeGraph, or of any folder in that
layout, or a synthetic stand-in.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from experiments import figures
from experiments.datasets.preparation import Prepared, prepare
from tplrepro.markov.sequences import Sequences
from tplrepro.search import largest_within
from tplrepro.sip.leakage import joint_information
from tplrepro.sip.response import BeliefMechanism
from tplrepro.sip.sequence_release import Belief, SymbolChain
from tplrepro.validation import check_horizon

#: Budgets that `least_leakage` tries, in nats.
SMALLEST_BUDGET = 1e-6
LARGEST_BUDGET = 64.0
#: Place of each mechanism in the order of line styles; those that share a place are never in one
#: figure.
STYLES = {
    "RR-LDP, ε": 0,
    "temporal LDP, ε": 0,
    "RR-LDP, 2ε": 1,
    "temporal LDP, 2ε": 1,
    "CRR as published": 2,
    "exact, w = 1": 3,
    "exact, w = 2": 4,
    "exact, w = 4": 5,
    "exact, w = 5": 5,
    "gradient, w = 2": 6,
    "exact, w = 8": 7,
    "exact, w = 10": 7,
    "ToPS, ε": 8,
}


def mechanism_styles(names: Iterable[str]) -> dict[str, dict]:
    """Line styles by name, the same for a mechanism in all figures of [3]; other names share the
    last style."""
    places = range(max(STYLES.values()) + 1)
    styles = list(figures.line_styles(map(str, places)).values())
    return {name: styles[STYLES.get(name, -1)] for name in names}


def gaze_cells(columns: int, rows: int, stride: int = 1, **stand_in: Any) -> Prepared:
    """Gaze as cells of a grid over the screen, seen or not, every `stride`-th sample; one sequence
    per recording.

    Samples off the screen or lost are left out. `stand_in` are arguments of
    `experiments.datasets.gaze.synthetic`.
    """
    step = check_horizon(stride, "stride")
    stand_in = {"seconds": 60.0, "rate": 30.0, "n_recordings": 2} | stand_in
    prepared = prepare("gaze", columns=columns, rows=rows, stand_in=stand_in)
    cells = prepared.observations["area"].to_numpy()
    recordings = prepared.observations.groupby(["user", "recording"], observed=True).indices
    kept = []
    for index in recordings.values():
        seen = cells[index]
        kept.append(seen[seen >= 0][::step])
    sequences = Sequences(
        np.concatenate(kept),
        np.cumsum([0, *map(len, kept)]),
        labels=np.arange(columns * rows),
        users=np.array([user for user, _ in recordings]),
    )
    names = [f"area r{row}c{column}" for row in range(rows) for column in range(columns)]
    return replace(prepared, sequences=sequences, state_names=names)


def cell_distance(x: ArrayLike, y: ArrayLike, columns: int) -> np.ndarray:
    """Euclidean distance between cells of a grid, numbered along the lines, for arrays that
    broadcast; unit: one cell.

    >>> float(cell_distance(0, 10_099, 100))
    140.71602609511115
    """
    down, across = np.divmod(x, columns)
    other_down, other_across = np.divmod(y, columns)
    return np.hypot(across - other_across, down - other_down)


def halves(sequences: Sequences, length: int, most: int | None = None) -> tuple[dict, dict]:
    """First half of each sequence for training; the second half cut into pieces of `length`, at
    most `most` a user.

    >>> walk = Sequences(np.arange(8), [0, 8], np.arange(8), np.array(["a"]))
    >>> halves(walk, 2)[1]["a"][1].tolist()
    [6, 7]
    """
    check_horizon(length, "length")
    training: dict = {}
    test: dict = {}
    for user, own in sequences.by_user().items():
        training[user] = [sequence[: sequence.size // 2] for sequence in own if sequence.size >= 2]
        pieces = [piece for sequence in own for piece in _pieces_of_second_half(sequence, length)]
        count = len(pieces)
        if most is not None:
            count = min(count, most)
        chosen = np.linspace(0, len(pieces) - 1, count).astype(int)
        test[user] = [pieces[i] for i in chosen]
    return training, test


def _pieces_of_second_half(sequence: np.ndarray, length: int) -> list[np.ndarray]:
    starts = range(sequence.size // 2, sequence.size - length + 1, length)
    return [sequence[start : start + length] for start in starts]


class TwoStepNoise(NamedTuple):
    """Noise of two releases."""

    data_correlation: float  # rho(X_1, X_2) (Eq. (16) of [3]); nan if a bit is constant
    noise_correlation: float  # rho(N_1, N_2); nan if a release has no noise or only noise
    mutual_information: float  # I(N_1; N_2), nats
    first: float  # Pr(N_1 = 1)
    second: float  # Pr(N_2 = 1)
    leakages: tuple[float, float]  # the largest true IIL of each release, nats


def _chain(p1: float, phi: float) -> SymbolChain:
    """The chain of two bits with p1 = Pr(X_1 = 1) and phi = Pr(X_2 != X_1)."""
    return SymbolChain.first_order([1 - p1, p1], [[1 - phi, phi], [phi, 1 - phi]])


def second_beliefs(p1: float, phi: float, first: BeliefMechanism) -> tuple[np.ndarray, np.ndarray]:
    """Pr(Y_1 = y) of the outputs y that are possible, and the belief about X_2 after each (Appendix
    D of [3]); p1 = Pr(X_1 = 1) and phi = Pr(X_2 != X_1)."""
    start = Belief.start(_chain(p1, phi))
    response = first.response(start.current)
    possible = np.flatnonzero(response.marginal > 0)
    beliefs = np.array([start.observe(int(y), response).current for y in possible])
    return response.marginal[possible], beliefs


def two_step_noise(
    first: BeliefMechanism, second: BeliefMechanism, p1: float, phi: float
) -> TwoStepNoise:
    """Noise of the two releases of Example 1, with p1 = Pr(X_1 = 1) and phi = Pr(X_2 != X_1)."""
    chain = _chain(p1, phi)
    start = Belief.start(chain)
    response = first.response(start.current)
    data = chain.initial[:, None] * chain.toarray()
    noise = np.zeros((2, 2))
    largest = 0.0
    for y1 in np.flatnonzero(response.marginal > 0).tolist():
        after = second.response(start.observe(y1, response).current)
        largest = max(largest, after.leakage)
        for x1, x2, y2 in np.ndindex(2, 2, 2):
            probability = data[x1, x2] * response.row(x1)[y1] * after.row(x2)[y2]
            noise[int(x1 != y1), int(x2 != y2)] += probability
    return TwoStepNoise(
        _correlation(data),
        _correlation(noise),
        joint_information(noise),
        first=float(noise[1].sum()),
        second=float(noise[:, 1].sum()),
        leakages=(response.leakage, largest),
    )


def least_leakage(
    mechanism: Callable[[float], BeliefMechanism],
    beliefs: ArrayLike,
    weights: ArrayLike,
    noise: float,
) -> tuple[float, float]:
    """The smallest budget with which `mechanism(budget)` has expected noise <= `noise`, and its
    true leakage; nats.

    `noise` in (0, 1) bounds Pr(N = 1) over `beliefs` (m, n) of positive probabilities `weights`
    (m,).
    """
    pairs = list(zip(np.asarray(weights), np.asarray(beliefs), strict=True))

    def suffices(negative_budget: float) -> bool:
        tried = mechanism(-negative_budget)
        return sum(weight * tried.response(belief).cost() for weight, belief in pairs) <= noise

    if not suffices(-LARGEST_BUDGET):
        raise ValueError(
            f"no budget up to 64 nats brings the noise down to {noise}; allow more noise"
        )
    budget = -largest_within(suffices, -LARGEST_BUDGET, -SMALLEST_BUDGET, tolerance=1e-12)
    if budget <= SMALLEST_BUDGET:
        return 0.0, 0.0
    leakage = max(mechanism(budget).leakage(belief) for _, belief in pairs)
    return budget, leakage


def _correlation(joint: np.ndarray) -> float:
    """The correlation of two bits of this joint distribution (2, 2); nan if one is constant."""
    first = joint[1].sum()
    second = joint[:, 1].sum()
    variance = first * (1 - first) * second * (1 - second)
    if variance <= 1e-300:
        return float("nan")
    return float((joint[1, 1] - first * second) / np.sqrt(variance))
