"""Batches of symbols that occur in data, not all n^w that might: the frequency table of section VI of [3].

Each batch that occurs is a symbol of its own, and from there on everything is as for single symbols:

    batches = observed_batches(sequences, 5)
    chain = chain_from_sequences(batches, restart=0.05)
    mechanisms = {w: OptimalResponse(w * epsilon, batches.distance()) for w in batches.widths}
    released = release_sequences(batches, mechanisms, chain, rng=rng)
    symbols = [np.concatenate(batches.labels[output]) for output in released.outputs]

Under the chain estimated, no output changes the belief in any batch, or in any sequence of batches, by more
than its budget. The length of a sequence is taken as known, and so is the width of its last batch. But:

- A batch that the table does not hold cannot be released: fix the table beforehand, and answer such a batch
  as one that it holds, by a rule that anybody may know.
- Outputs are batches of somebody's data, and the table is not protected; take one from public data, or one
  that is published with a guarantee of its own.
- With few observations of each batch the belief is nearly certain, an output adds little, and the leakage,
  measured against that belief, says nothing about an adversary who has not seen the table. `restart` keeps the
  belief from certainty; report results for several.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.sequences import Sequences, as_sequences
from tplrepro.sip.response import Distance, distance_function
from tplrepro.validation import FrozenArrays, check_horizon


@dataclass(frozen=True, eq=False, repr=False)
class Batches(Sequences):
    """Sequences of the batches that occur, each labelled by the tuple of its symbols."""

    symbols: np.ndarray  # (n, w), codes of the symbols of each batch; -1 beyond the end of a shorter one
    alphabet: np.ndarray  # (m,), the symbol of each code; some may occur in no batch

    @cached_property
    def widths(self) -> np.ndarray:
        """Symbols in each batch, (n,)."""
        return np.count_nonzero(self.symbols >= 0, axis=1)

    def distance(self, between: Distance = "hamming") -> "BatchDistance":
        """Distance between batches, summed over their symbols; infinite between batches of different widths.

        That between symbols is as in `OptimalResponse`, in the order of the `alphabet`.
        """
        return BatchDistance(self.symbols, distance_function(between, self.alphabet.tolist()))


@dataclass(frozen=True, eq=False, repr=False)
class BatchDistance(FrozenArrays):
    """A function of two arrays of batches that broadcast against each other: their distances."""

    symbols: np.ndarray
    between: Callable[..., np.ndarray] = np.not_equal

    def __call__(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        total: Any = 0.0
        for symbols in self.symbols.T:
            own, other = symbols[np.asarray(x)], symbols[np.asarray(y)]
            ended = np.where((own < 0) & (other < 0), 0.0, np.inf)
            total = total + np.where((own < 0) | (other < 0), ended, self.between(own, other))
        return total


def observed_batches(sequences: Any, width: int, n_symbols: int | None = None) -> Batches:
    """Cut sequences, as in `as_sequences`, into consecutive batches; the last of each sequence may be shorter.

    >>> batches = observed_batches([[7, 30, 30, 7, 7], [30, 7, 7, 30]], 2)
    >>> batches.labels.tolist(), [own.tolist() for own in batches]
    ([(7,), (7, 30), (30, 7)], [[1, 2, 0], [2, 1]])
    >>> batches.alphabet.tolist(), batches.widths.tolist(), batches.distance()([1, 1], [2, 0]).tolist()
    ([7, 30], [1, 2, 2], [2.0, inf])
    """
    w, coded = check_horizon(width, "width"), as_sequences(sequences, n_symbols)
    counts = -(-coded.lengths // w)
    offsets = np.append(0, np.cumsum(counts))
    number = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)  # of each batch in its sequence
    first = np.repeat(coded.offsets[:-1], counts) + number * w
    places = first[:, None] + np.arange(w)
    inside = places < np.repeat(coded.offsets[1:], counts)[:, None]
    rows = np.where(inside, coded.values[np.where(inside, places, 0)], -1)
    distinct, codes = np.unique(rows, axis=0, return_inverse=True)
    names: list = coded.labels.tolist()
    labels = np.fromiter((tuple(names[k] for k in row if k >= 0) for row in distinct.tolist()), object, len(distinct))
    return Batches(codes.reshape(-1), offsets, labels, coded.users, distinct, coded.labels)
