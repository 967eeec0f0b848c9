"""Adversaries who identify the user of a sequence (Fig. 8 of [3]), trained on the first half of each recording.

[3] trains recurrent networks on half of each user's stream, and lets them read the outputs as they stand
("data only"), or with "the data correlation estimated from frequency (for the whole data stream)". Of the
latter the paper says no more. Here that adversary knows the chain and the mechanism, and reads what they make
of the outputs: the probability of each symbol at each time given all outputs (`smoothed_symbols`).

Beside the network stands a Markov chain for each user, and the user whose chain gives a released sequence the
largest likelihood. With `likelihoods`, what the mechanism does are the emissions of a hidden Markov model.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.lazy import extra
from tplrepro.markov.filtering import forward_backward, log_probabilities
from tplrepro.markov.sequences import as_sequences
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.sip.response import check_symbols
from tplrepro.sip.sequence_release import SymbolChain
from tplrepro.validation import check_horizon, check_smoothing

#: Sequences for one step of the network's training, and the length of a step.
TOGETHER, STEP = 64, 3e-3


class Classifier(Protocol):
    """Predicts the user of each sequence, (m,)."""

    def predict(self, sequences: Sequence[ArrayLike]) -> np.ndarray: ...


class MarkovClassifier:
    """One Markov chain per user, with `smoothing` > 0 added to every count; predicts the most likely user.

    >>> classifier = MarkovClassifier(2).fit({"a": [[0, 0, 0, 0]], "b": [[0, 1, 0, 1]]})
    >>> classifier.predict([[1, 0, 1, 0], [0, 0, 0]]).tolist()
    ['b', 'a']
    """

    def __init__(self, n_symbols: int, smoothing: float = 0.1):
        if check_smoothing(smoothing) == 0:
            raise ValueError("smoothing must be positive, found 0; give the number added to each count")
        self.n_symbols, self.smoothing = check_horizon(n_symbols, "n_symbols"), smoothing
        self.users: list = []

    def fit(self, sequences: Mapping[object, Sequence[ArrayLike]]) -> Self:
        """Estimate from a dict user -> list of sequences of symbols; returns itself."""
        _check_users(sequences)
        own = [as_sequences(sequences[user], self.n_symbols) for user in sequences]
        counts = np.array([np.bincount(coded.values, minlength=self.n_symbols) for coded in own]) + self.smoothing
        self.users = list(sequences)
        self.initial = counts / counts.sum(axis=1, keepdims=True)
        self.steps = np.array([TransitionMatrix.from_sequences(coded, smoothing=self.smoothing) for coded in own])
        return self

    def log_likelihood(
        self,
        sequence: ArrayLike,
        likelihoods: Sequence[np.ndarray] | None = None,
        symbols: ArrayLike | None = None,
    ) -> np.ndarray:
        """Log-likelihood of an output sequence (T,) for each user, (users,).

        `likelihoods` are T arrays (n,), a(y_k|.) of a mechanism; from the second on they may be (n, n):
        Pr(y_k | previous symbol, symbol). Without them, the outputs are taken as the true symbols. They may be
        those of batches; then give the batches' `symbols`, (batches, w).
        """
        _check_fitted(self.users)
        if likelihoods is not None:
            return self._hidden(likelihoods, *self._batches(symbols))
        own = check_symbols(sequence, self.n_symbols)
        with np.errstate(divide="ignore"):
            return np.log(self.initial[:, own[0]]) + np.log(self.steps[:, own[:-1], own[1:]]).sum(axis=1)

    def _batches(self, symbols):
        """Probability of each batch at the start (users, m) and after a symbol (users, n, m), and its last symbol."""
        digits = np.arange(self.n_symbols)[:, None] if symbols is None else np.asarray(symbols)
        inside = self.steps[:, digits[:, :-1], digits[:, 1:]].prod(axis=2)
        ends = np.eye(self.n_symbols)[digits[:, -1]]
        return self.initial[:, digits[:, 0]] * inside, self.steps[:, :, digits[:, 0]] * inside[:, None], ends

    def _hidden(self, likelihoods, first, steps, ends):
        with np.errstate(divide="ignore"):
            logs = np.log((first * likelihoods[0]) @ ends)
            for likelihood in likelihoods[1:]:
                # Smoothed steps have no zeros, so weights that underflow next to a user's largest one do not matter.
                top = np.maximum(logs.max(axis=1, keepdims=True), np.finfo(float).min)
                carried = np.exp(logs - top)[:, None, :] @ (steps if likelihood.ndim == 1 else steps * likelihood)
                logs = top + np.log((carried[:, 0] * (likelihood if likelihood.ndim == 1 else 1.0)) @ ends)
        return np.logaddexp.reduce(logs, axis=1)

    def predict(
        self,
        sequences: Sequence[ArrayLike],
        likelihoods: Sequence[Sequence[np.ndarray]] | None = None,
        symbols: ArrayLike | None = None,
    ) -> np.ndarray:
        """The most likely user of each sequence, (m,); for each, arguments as for `log_likelihood`."""
        _check_fitted(self.users)
        if likelihoods is None:
            scores = [self.log_likelihood(sequence) for sequence in sequences]
        else:
            batches = self._batches(symbols)
            scores = [self._hidden(of_sequence, *batches) for of_sequence in likelihoods]
        return np.array(self.users)[np.argmax(scores, axis=1)]


class RecurrentClassifier:
    """A recurrent network that predicts the user of a sequence: gated recurrent units and a softmax over the users.

    Needs the extra "attack" (Keras, by default on JAX). It starts from random weights, passes `epochs` times
    over what it learns from in random order, and minimises the cross-entropy by Adam. The same `rng` gives
    the same network on the same machine.
    """

    def __init__(self, n_symbols: int, *, units: int = 32, epochs: int = 15):
        self.n_symbols, self.units = check_horizon(n_symbols, "n_symbols"), check_horizon(units, "units")
        self.epochs = check_horizon(epochs, "epochs")
        self.users: list = []

    def fit(self, sequences: Mapping[object, Sequence[ArrayLike]], *, rng: np.random.Generator) -> Self:
        """Learn from a dict user -> list of sequences of one length; returns itself.

        A sequence is (T,) symbols, or (T, n) probabilities of them, as from `smoothed_symbols`.
        """
        _check_users(sequences)
        os.environ.setdefault("KERAS_BACKEND", "jax")
        with extra():
            import keras
        seeds = iter(rng.integers(2**31, size=3).tolist())
        recurrent = keras.layers.GRU(
            self.units,
            kernel_initializer=keras.initializers.GlorotUniform(next(seeds)),
            recurrent_initializer=keras.initializers.Orthogonal(seed=next(seeds)),
        )
        user = keras.layers.Dense(
            len(sequences), activation="softmax", kernel_initializer=keras.initializers.GlorotUniform(next(seeds))
        )
        self.network = keras.Sequential([keras.layers.Input((None, self.n_symbols)), recurrent, user])
        self.network.compile(keras.optimizers.Adam(STEP), "sparse_categorical_crossentropy")
        inputs = self._inputs([sequence for own in sequences.values() for sequence in own])
        targets = np.repeat(np.arange(len(sequences)), list(map(len, sequences.values())))
        for _ in range(self.epochs):
            order = rng.permutation(len(inputs))
            self.network.fit(inputs[order], targets[order], batch_size=TOGETHER, shuffle=False, verbose=0)
        self.users = list(sequences)
        return self

    def predict(self, sequences: Sequence[ArrayLike]) -> np.ndarray:
        """The user that the network holds most likely for each sequence, (m,); sequences as for `fit`."""
        _check_fitted(self.users)
        found = self.network.predict(self._inputs(sequences), batch_size=4 * TOGETHER, verbose=0)
        return np.array(self.users)[found.argmax(axis=1)]

    def _inputs(self, sequences):
        """Probabilities of the symbols, (m, T, n), in the precision of the network."""
        first = np.asarray(sequences[0])
        if any(np.shape(sequence)[:1] != first.shape[:1] for sequence in sequences):
            raise ValueError(
                f"the network reads sequences of one length, found {sorted({len(s) for s in sequences})[:5]}; cut them"
            )
        one = np.eye(self.n_symbols, dtype=np.float32)
        return np.array([one[check_symbols(s, self.n_symbols)] if np.ndim(s) == 1 else s for s in sequences], one.dtype)


def identification_rate(classifier: Classifier, sequences: Mapping[object, Sequence[ArrayLike]]) -> float:
    """Share of sequences (dict user -> list) whose user is found."""
    found = [classifier.predict(own) == user for user, own in sequences.items() if len(own)]
    if not found:
        raise ValueError("a rate needs at least one sequence, found none; give the sequences of each user")
    return float(np.concatenate(found).mean())


def smoothed_symbols(
    chain: SymbolChain, likelihoods: Sequence[Sequence[np.ndarray]], symbols: ArrayLike | None = None
) -> np.ndarray:
    """Pr(X_k = x | all outputs) by a chain and the mechanism, (m, T, n), for m sequences of T outputs.

    `likelihoods` are those of `release_sequences`. For batches, `symbols` (batches, w) are the symbols of
    each, and the result is (m, T w, n).

    >>> chain = SymbolChain.first_order([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> smoothed_symbols(chain, [[np.array([0.8, 0.2]), np.array([0.5, 0.5])]]).round(2).tolist()
    [[[0.8, 0.2], [0.74, 0.26]]]
    """
    plain = TransitionMatrix(chain.toarray(), normalize=True)
    given_previous: dict[int, tuple[TransitionMatrix, np.ndarray]] = {}

    def of_previous(likelihood):
        """Steps of the chain given an output that depends on both symbols, and its likelihood given the first one."""
        if id(likelihood) not in given_previous:
            joint = plain.toarray() * likelihood[np.ix_(chain.symbols, chain.symbols)]
            total = joint.sum(axis=1)
            rows = np.where(total[:, None] > 0, joint, plain.toarray())
            given_previous[id(likelihood)] = TransitionMatrix(rows, normalize=True), log_probabilities(total)
        return given_previous[id(likelihood)]

    def smoothed(of_sequence):
        logs, steps = np.zeros((len(of_sequence), chain.symbols.size)), []
        for k, likelihood in enumerate(of_sequence):
            if likelihood.ndim == 1:
                logs[k] += log_probabilities(likelihood)[chain.symbols]
                steps.append(plain)
            else:
                step, total = of_previous(likelihood)
                logs[k - 1] += total
                steps.append(step)
        return forward_backward(logs, steps[1:], chain.start).smoothed

    if all(likelihood.ndim == 1 for of_sequence in likelihoods for likelihood in of_sequence):
        logs = log_probabilities(np.array(likelihoods))[..., chain.symbols]
        found = forward_backward(logs, plain, chain.start).smoothed
    else:
        found = np.array([smoothed(of_sequence) for of_sequence in likelihoods])
    last = np.eye(chain.n_symbols)[chain.symbols]
    if symbols is None:
        return found @ last
    digits = np.asarray(symbols)
    each = [found @ np.eye(digits.max() + 1)[digit] for digit in digits.T]
    return np.stack(each, axis=2).reshape(len(found), -1, digits.max() + 1)


def _check_users(sequences):
    if len(sequences) < 2:
        raise ValueError(f"identification needs at least two users, found {len(sequences)}; give more")


def _check_fitted(users):
    if not users:
        raise ValueError("the classifier has not been fitted, found no users; call fit first")
