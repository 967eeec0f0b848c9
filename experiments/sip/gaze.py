"""Released gaze: the distance between true and released cells (Figs. 7 and 9 of [3])."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from experiments.claims import mean_with_interval
from experiments.sip.setups import cell_distance
from tplrepro import sip
from tplrepro.markov.sequences import Sequences
from tplrepro.sip.batches import Batches
from tplrepro.sip.response import BeliefMechanism
from tplrepro.sip.sequence_release import SymbolChain


@dataclass(frozen=True, eq=False)
class ReleasedGaze:
    """Released cells of several recordings or pieces."""

    cells: list[np.ndarray]
    distance: np.ndarray  # (m,), mean distance of each one's samples
    changed: float  # share of changed samples
    mean_leakage: float  # of a sample, nats
    largest_leakage: float


def released_samples(
    true: Sequence[np.ndarray],
    mechanism: BeliefMechanism,
    chain: SymbolChain,
    distance: Callable[..., np.ndarray],
    *,
    rng: np.random.Generator,
) -> ReleasedGaze:
    """Release sample by sample."""
    found = sip.release_sequences(true, mechanism, chain, rng=rng)
    return _measured(true, found.outputs, found, 1, distance)


def released_batches(
    batches: Batches,
    chosen: Sequence[np.ndarray],
    epsilon: float,
    chain: SymbolChain,
    distance: Callable[..., np.ndarray],
    *,
    rng: np.random.Generator,
) -> ReleasedGaze:
    """Release sequences of batches that occur by the exact response; w samples together get w times
    the budget."""
    between, width = batches.distance(distance), batches.symbols.shape[1]
    spent = {
        w: sip.OptimalResponse(w * epsilon, between) for w in np.unique(batches.widths).tolist()
    }
    found = sip.release_sequences(chosen, spent, chain, rng=rng)
    true, released = (
        [batches.symbols[own].ravel() for own in sequences if own.size]
        for sequences in (chosen, found.outputs)
    )
    return _measured(true, released, found, width, distance)


def _measured(true, released, found, width, distance):
    pairs = list(zip(released, true, strict=True))
    return ReleasedGaze(
        released,
        np.array([distance(cells, own).mean() for cells, own in pairs]),
        float(np.mean([np.mean(cells != own) for cells, own in pairs])),
        found.mean_leakage / width,
        found.largest_leakage / width,
    )


def half_width(samples: np.ndarray) -> float:
    """Half of the interval of 95 % of a mean of independent samples."""
    interval = mean_with_interval(samples)
    return interval["high"] - interval["value"]


def nearest_elsewhere(batches: Batches, recording: int, length: int, columns: int) -> float:
    """Mean distance of the first samples of a recording to the nearest batches of the other
    recordings.

    No response that answers by batches of the other recordings alone is nearer.
    """
    own, width = batches[recording][: length // batches.symbols.shape[1]], batches.symbols.shape[1]
    others = np.unique(np.concatenate([batches[k] for k in range(len(batches)) if k != recording]))
    whole = batches.symbols[others[batches.widths[others] == width]]
    between = partial(cell_distance, columns=columns)
    # Cells are positions in the alphabet, which holds all cells of the grid or those that occur.
    cells = np.asarray(batches.alphabet)
    return float(
        np.mean(
            [between(cells[whole], cells[batches.symbols[each]]).mean(axis=1).min() for each in own]
        )
    )


def chosen_recordings(recordings: Sequences, count: int) -> list[int]:
    """Recordings at equal steps, so that all users are among them."""
    return np.linspace(0, len(recordings) - 1, min(count, len(recordings))).astype(int).tolist()
