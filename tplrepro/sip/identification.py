"""Re-identification: whose sequence is it? (Fig. 8 of [3])

The paper trains recurrent networks on half of each user's stream. Here the model is smaller and needs no training loop:
a Markov chain a user, estimated on that half with additive smoothing, and the user whose chain gives a released
sequence the largest likelihood.

An adversary who knows the mechanism weighs each chain by what the mechanism does: with `likelihoods` the likelihood is
that of a hidden Markov model whose emissions are the mechanism's response, the "data pattern" adversary of the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import block_diag

from tplrepro.markov.filtering import log_product
from tplrepro.markov.sequences import as_sequences
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.sip.checks import check_symbols
from tplrepro.validation import check_horizon, check_smoothing

__all__ = ["MarkovClassifier", "identification_rate"]


class MarkovClassifier:
    """One smoothed Markov chain a user, and the maximum-likelihood user of a sequence.

    `smoothing` > 0 is added to every count.

    >>> classifier = MarkovClassifier(2).fit({"a": [[0, 0, 0, 0]], "b": [[0, 1, 0, 1]]})
    >>> classifier.predict([1, 0, 1, 0]), classifier.predict([0, 0, 0])
    ('b', 'a')
    """

    def __init__(self, n_symbols: int, smoothing: float = 0.1):
        if check_smoothing(smoothing) == 0:
            raise ValueError("smoothing must be positive, found 0; give the number added to each count")
        self.n_symbols, self.smoothing = check_horizon(n_symbols, "n_symbols"), smoothing
        self.users: list = []

    def fit(self, sequences: Mapping[object, Sequence[ArrayLike]]) -> MarkovClassifier:
        """Estimate from a dict user -> list of sequences of symbols; returns itself."""
        if len(sequences) < 2:
            raise ValueError(f"identification needs at least two users, found {len(sequences)}; give more")
        own = [as_sequences(sequences[user], self.n_symbols) for user in sequences]
        counts = [np.bincount(coded.values, minlength=self.n_symbols) + self.smoothing for coded in own]
        self.users = list(sequences)
        self.initial = np.array([count / count.sum() for count in counts])
        estimates = [TransitionMatrix.from_sequences(coded, smoothing=self.smoothing) for coded in own]
        self.steps = np.array([estimate.toarray() for estimate in estimates])
        self._pairs = block_diag(self.steps, format="csr")  # hidden are a user, who stays the same, and her symbol
        return self

    def log_likelihood(self, sequence: ArrayLike, likelihoods: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """Log-likelihood of an output sequence (T,) for each user, (users,).

        `likelihoods` are T arrays (n,), a(y_k|.) of a mechanism; from the second on they may be (n, n):
        Pr(y_k | previous symbol, symbol). Without them, the sequence is taken as it stands.
        """
        if not self.users:
            raise ValueError("the classifier has not been fitted, found no users; call fit first")
        symbols, k = check_symbols(sequence, self.n_symbols), len(self.users)
        with np.errstate(divide="ignore"):
            if likelihoods is None:
                steps = np.log(self.steps[:, symbols[:-1], symbols[1:]]).sum(axis=1)
                return np.log(self.initial[:, symbols[0]]) + steps
            logs, weighted = np.log(self.initial * likelihoods[0]).ravel(), self._pairs.copy()
            for told in likelihoods[1:]:
                if told.ndim == 1:
                    logs = log_product(logs, self._pairs) + np.tile(np.log(told), k)
                else:
                    weighted.data = (self.steps * told).ravel()  # smoothed blocks have no zeros
                    logs = log_product(logs, weighted)
        return np.logaddexp.reduce(logs.reshape(k, -1), axis=1)

    def predict(self, sequence: ArrayLike, likelihoods: Sequence[np.ndarray] | None = None):
        """The most likely user; arguments as for `log_likelihood`."""
        return self.users[int(np.argmax(self.log_likelihood(sequence, likelihoods)))]


def identification_rate(classifier: MarkovClassifier, sequences: Mapping[object, Sequence[ArrayLike]]) -> float:
    """Share of sequences (dict user -> list) whose user is found."""
    found = [classifier.predict(sequence) == user for user, own in sequences.items() for sequence in own]
    if not found:
        raise ValueError("a rate needs at least one sequence, found none; give the sequences of each user")
    return float(np.mean(found))
