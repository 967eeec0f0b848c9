"""Re-identification: whose sequence is it? (Fig. 8 of [3])

The paper trains recurrent networks on half of each user's stream; here it is a Markov chain a user, and the user whose
chain gives a released sequence the largest likelihood. The paper's "data pattern" adversary knows the mechanism: with
`likelihoods`, what it does are the emissions of a hidden Markov model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.sequences import as_sequences
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.sip.response import check_symbols
from tplrepro.validation import check_horizon, check_smoothing

__all__ = ["MarkovClassifier", "identification_rate"]


class MarkovClassifier:
    """One Markov chain a user, with `smoothing` > 0 added to every count, and the most likely user of a sequence.

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
        return self

    def log_likelihood(self, sequence: ArrayLike, likelihoods: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """Log-likelihood of an output sequence (T,) for each user, (users,).

        `likelihoods` are T arrays (n,), a(y_k|.) of a mechanism; from the second on they may be (n, n):
        Pr(y_k | previous symbol, symbol). Without them, the sequence is taken as it stands.
        """
        if not self.users:
            raise ValueError("the classifier has not been fitted, found no users; call fit first")
        symbols = check_symbols(sequence, self.n_symbols)
        with np.errstate(divide="ignore"):
            if likelihoods is None:
                steps = np.log(self.steps[:, symbols[:-1], symbols[1:]]).sum(axis=1)
                return np.log(self.initial[:, symbols[0]]) + steps
            logs, log_steps = np.log(self.initial * likelihoods[0]), np.log(self.steps)
            for told in likelihoods[1:]:
                if told.ndim == 1:
                    # Smoothed steps have no zeros: beside each user's largest weight, nothing that is lost matters.
                    top = np.maximum(logs.max(axis=1, keepdims=True), np.finfo(float).min)
                    carried = np.exp(logs - top)[:, None, :] @ self.steps
                    logs = top + np.log(carried[:, 0]) + np.log(told)
                else:
                    logs = np.logaddexp.reduce(logs[:, :, None] + log_steps + np.log(told), axis=1)
        return np.logaddexp.reduce(logs, axis=1)

    def predict(self, sequence: ArrayLike, likelihoods: Sequence[np.ndarray] | None = None):
        """The most likely user; arguments as for `log_likelihood`."""
        return self.users[int(np.argmax(self.log_likelihood(sequence, likelihoods)))]


def identification_rate(classifier: MarkovClassifier, sequences: Mapping[object, Sequence[ArrayLike]]) -> float:
    """Share of sequences (dict user -> list) whose user is found."""
    found = [classifier.predict(sequence) == user for user, own in sequences.items() for sequence in own]
    if not found:
        raise ValueError("a rate needs at least one sequence, found none; give the sequences of each user")
    return float(np.mean(found))
