"""Batches of symbols that occur in data, not all n^w that might: the frequency table of section VI of [3].

Sequences are cut into consecutive batches of w symbols, the last one of a sequence into what is left. Each
batch that occurs is a symbol of its own, and from there on everything is as for single symbols:
`chain_from_sequences` counts which batch follows which, `OptimalResponse` answers one batch by another,
`release_sequences` follows the belief.

    batches = observed_batches(sequences, 5)
    chain = chain_from_sequences(batches, restart=0.05)
    mechanisms = {w: OptimalResponse(w * epsilon, batches.distance()) for w in batches.widths}
    released = release_sequences(batches, mechanisms, chain, rng=rng)
    symbols = [np.concatenate(batches.labels[output]) for output in released.outputs]

What such an estimate promises: under the chain estimated, no output changes the belief in any batch, or in
any sequence of batches, by more than its budget. How many symbols a sequence has is taken as known, as it is
without batches: the width of its last batch is, too. What it does not promise:

- A batch that the table does not hold cannot be released: fix the table beforehand, and answer such a batch
  as one that it holds, by a rule that anybody may know. The leakage about what was answered bounds that about
  the batch.
- Outputs are batches that somebody's data held. The table itself is not protected; who must not learn it
  needs a table from public data, or one that is published with a guarantee of its own.
- With few observations of each batch the table knows by heart what it was estimated from. The belief is then
  nearly certain, an output adds little, and the leakage, which is measured against that belief, says nothing
  about an adversary who has not seen the table. `restart` is what keeps it from certainty; report results for
  several.
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
    """Sequences of batches: their states are the batches that occur, each labelled by the tuple of its symbols."""

    symbols: np.ndarray  # (n, w), codes of the symbols of each batch; -1 beyond the end of a shorter one
    alphabet: np.ndarray  # (m,), the symbol of each code; some may occur in no batch

    @cached_property
    def widths(self) -> np.ndarray:
        """Symbols in each batch, (n,)."""
        return np.count_nonzero(self.symbols >= 0, axis=1)

    def distance(self, between: Distance = "hamming") -> "BatchDistance":
        """Distance between batches, summed over their symbols; infinite between batches of different widths.

        That between symbols is as in `OptimalResponse`: an array has a row for each symbol of the `alphabet`.
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
    """Cut sequences into consecutive batches of `width` symbols; the last of each sequence may be shorter.

    `sequences` and `n_symbols` are as in `as_sequences`.

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
