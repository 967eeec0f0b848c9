"""Re-identification: whose sequence is it? (Fig. 8 of [3])

The paper trains recurrent networks on half of each user's stream. The default here is smaller and needs no
training loop: a Markov chain a user, estimated on that half with additive smoothing, and the user whose chain
gives a released sequence the largest likelihood. `tplrepro.sip.recurrent` holds the network (PyTorch, an
optional extra).

An adversary who knows the mechanism weighs each chain by what the mechanism does: with `channel` (or `likelihoods`) the
likelihood is that of a hidden Markov model whose emissions are the mechanism's response, the "data pattern"
adversary of the paper.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

import numpy as np

from tplrepro.sip.leakage import check_response_matrix
from tplrepro.validation import check_horizon

__all__ = ["MarkovClassifier", "identification_rate"]


class MarkovClassifier:
    """One smoothed Markov chain a user, and the maximum-likelihood user of a sequence.

    Parameters
    ----------
    n_symbols : int
    smoothing : float > 0, added to every count

    Examples
    --------
    >>> classifier = MarkovClassifier(2).fit({"a": [[0, 0, 0, 0]], "b": [[0, 1, 0, 1]]})
    >>> classifier.predict([1, 0, 1, 0]), classifier.predict([0, 0, 0])
    ('b', 'a')
    """

    def __init__(self, n_symbols: int, smoothing: float = 0.1):
        if not smoothing > 0:
            raise ValueError(f"smoothing must be positive, found {smoothing}; give the number added to each count")
        self.n_symbols, self.smoothing = check_horizon(n_symbols, "n_symbols"), smoothing
        self.users: list = []

    def fit(self, sequences: dict) -> MarkovClassifier:
        """Estimate from a dict user -> list of sequences of symbols; returns itself."""
        n = self.n_symbols
        self.users = list(sequences)
        if len(self.users) < 2:
            raise ValueError(f"identification needs at least two users, found {len(self.users)}; give more")
        self.initial = np.empty((len(self.users), n))
        self.steps = np.empty((len(self.users), n, n))
        for i, user in enumerate(self.users):
            first, pairs = np.full(n, self.smoothing), np.full((n, n), self.smoothing)
            for sequence in sequences[user]:
                symbols = np.asarray(sequence)
                np.add.at(first, symbols, 1.0)
                np.add.at(pairs, (symbols[:-1], symbols[1:]), 1.0)
            self.initial[i] = first / first.sum()
            self.steps[i] = pairs / pairs.sum(axis=1, keepdims=True)
        return self

    def log_likelihood(self, sequence, channel=None, likelihoods=None) -> np.ndarray:
        """Log-likelihood of an output sequence for each user, (users,).

        Parameters
        ----------
        sequence : array-like (T,)
        channel : array-like (n, n), optional; rows of a mechanism that is the same at all times
        likelihoods : sequence of T arrays (n,), optional; a(y_k|.) of a mechanism that changes, in place of a
            channel; from the second on they may be (n, n): Pr(y_k | previous symbol, symbol)
        """
        if not self.users:
            raise ValueError("the classifier has not been fitted, found no users; call fit first")
        symbols = np.asarray(sequence)
        if symbols.ndim != 1 or symbols.size == 0:
            raise ValueError(
                f"a sequence must hold at least one symbol, found shape {symbols.shape}; leave empty ones out"
            )
        if channel is None and likelihoods is None:
            steps = np.log(self.steps[:, symbols[:-1], symbols[1:]]).sum(axis=1)
            return np.log(self.initial[:, symbols[0]]) + steps
        if likelihoods is None:
            likelihoods = check_response_matrix(channel, self.n_symbols)[:, symbols].T
        forward = self.initial * likelihoods[0]
        total = np.zeros(len(self.users))
        for k in range(symbols.size):
            if k:
                told = np.asarray(likelihoods[k])
                if told.ndim == 1:
                    forward = np.einsum("ui,uij->uj", forward, self.steps) * told
                else:
                    forward = np.einsum("ui,uij,ij->uj", forward, self.steps, told)
            scale = forward.sum(axis=1, keepdims=True)
            with np.errstate(divide="ignore"):
                total += np.log(scale[:, 0])
            forward = forward / np.where(scale > 0, scale, 1.0)
        return total

    def predict(self, sequence, channel=None, likelihoods=None):
        """The most likely user; arguments as for `log_likelihood`."""
        return self.users[int(np.argmax(self.log_likelihood(sequence, channel, likelihoods)))]


def identification_rate(classifier, sequences: dict, channel=None) -> float:
    """Share of sequences (dict user -> list) whose user is found.

    `classifier` has `predict(sequence)`, or `predict(sequence, channel)` where a channel is given.
    """
    pairs = [(user, sequence) for user, own in sequences.items() for sequence in own]
    if not pairs:
        raise ValueError("a rate needs at least one sequence, found none; give the sequences of each user")
    options = () if channel is None else (channel,)
    return float(np.mean([classifier.predict(sequence, *options) == user for user, sequence in pairs]))
