"""Released gaze: the distance between true and released cells (Figs. 7 and 9 of [3])."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.claims.intervals import mean_with_interval
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
    """Release recordings `true`, arrays of cells, sample by sample; `distance` of two arrays of
    cells measures the loss."""
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
    """Release sequences of batches that occur by the exact response.

    `chosen` are arrays of numbers of batches. A batch of w samples gets w times `epsilon` nats;
    `distance` of two arrays of cells measures the loss.
    """
    between = batches.distance(distance)
    width = batches.symbols.shape[1]
    spent = {
        w: sip.OptimalResponse(w * epsilon, between) for w in np.unique(batches.widths).tolist()
    }
    found = sip.release_sequences(chosen, spent, chain, rng=rng)
    true = [batches.symbols[own].ravel() for own in chosen if own.size]
    released = [batches.symbols[own].ravel() for own in found.outputs if own.size]
    return _measured(true, released, found, width, distance)


def _measured(true, released, found, width, distance):
    """What released cells lose and leak, by sample.

    `true` and `released` are lists of arrays of cells, of equal lengths; `found` holds the leakages
    of releases that have `width` samples each.
    """
    distances, changed = [], []
    for cells, own in zip(released, true, strict=True):
        distances.append(distance(cells, own).mean())
        changed.append(np.mean(cells != own))
    return ReleasedGaze(
        released,
        np.array(distances),
        float(np.mean(changed)),
        found.mean_leakage / width,
        found.largest_leakage / width,
    )


def half_width(samples: np.ndarray) -> float:
    """Half of the interval of 95 % of a mean of independent samples."""
    interval = mean_with_interval(samples)
    return interval["high"] - interval["value"]


def nearest_elsewhere(batches: Batches, recording: int, length: int, columns: int) -> float:
    """Mean distance of the first `length` samples of a recording to the nearest batches of the
    other recordings; `columns` is the number of cells across the screen.

    No response that answers by batches of the other recordings alone is nearer.
    """
    width = batches.symbols.shape[1]
    own = batches[recording][: length // width]
    others = np.unique(np.concatenate([batches[k] for k in range(len(batches)) if k != recording]))
    whole = batches.symbols[others[batches.widths[others] == width]]
    # Cells are positions in the alphabet, which holds all cells of the grid or those that occur.
    cells = np.asarray(batches.alphabet)
    nearest = []
    for batch in own:
        distances = cell_distance(cells[whole], cells[batches.symbols[batch]], columns)
        nearest.append(distances.mean(axis=1).min())
    return float(np.mean(nearest))


def chosen_recordings(recordings: Sequences, count: int) -> list[int]:
    """Numbers of `count` recordings at equal steps, so that all users are among them; of all if
    there are fewer."""
    chosen = min(count, len(recordings))
    return np.linspace(0, len(recordings) - 1, chosen).astype(int).tolist()
