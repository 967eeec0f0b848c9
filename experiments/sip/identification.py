"""Identify the user behind a released sequence (Fig. 8 of [3]); attackers train on the first half
of each recording.

[3] trains recurrent networks on half of each user's stream. They read the outputs alone ("data
only"), or with "the data correlation estimated from frequency (for the whole data stream)". Here
the second adversary knows the chain and the mechanism, and reads the probability of each symbol at
each time given all outputs (`smoothed_symbols`). The network is compared with one Markov chain for
each user; with likelihoods, the mechanism gives the emissions of a hidden Markov model.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.lazy import optional_import
from tplrepro.markov.filtering import forward_backward, log_probabilities
from tplrepro.markov.sequences import as_sequences
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.sip.response import check_symbols
from tplrepro.sip.sequence_release import SymbolChain

#: Added to every count of a user's chain.
SMOOTHING = 0.1
#: Recurrent units of the network.
UNITS = 32
#: Sequences in one training step.
BATCH_SIZE = 64
#: Step length of the optimiser.
STEP = 3e-3
#: Passes over all sequences.
EPOCHS = 15

OfUsers = Mapping[Any, Sequence[ArrayLike]]  # the sequences of each user


class MarkovClassifier:
    """One smoothed Markov chain for each user; predicts the most likely user."""

    def __init__(self, n_symbols: int):
        self.n_symbols = n_symbols

    def fit(self, sequences: OfUsers) -> Self:
        """Estimate from sequences of symbols; returns itself."""
        self.users = np.array(list(sequences))
        coded = [as_sequences(own, self.n_symbols) for own in sequences.values()]
        occurrences = [np.bincount(each.values, minlength=self.n_symbols) for each in coded]
        counts = np.array(occurrences) + SMOOTHING
        self.initial = counts / counts.sum(axis=1, keepdims=True)
        self.steps = np.array(
            [TransitionMatrix.from_sequences(each, smoothing=SMOOTHING) for each in coded]
        )
        return self

    def log_likelihoods(
        self,
        sequences: Sequence[ArrayLike],
        likelihoods: Sequence[Sequence[np.ndarray]] | None = None,
        symbols: ArrayLike | None = None,
    ) -> np.ndarray:
        """Log-likelihood of each output sequence (T,) for each user, (m, users).

        The `likelihoods` of a sequence are T arrays (n,), a(y_k|.) of a mechanism; from the second
        on they may be (n, n), Pr(y_k | previous symbol, symbol). Without them the sequences are
        taken as the true ones. For likelihoods of batches, `symbols` (batches, w) are the symbols
        of each batch.
        """
        if likelihoods is None:
            return self._of_true_sequences(sequences)
        digits = _digits(symbols, self.n_symbols)
        inside = self.steps[:, digits[:, :-1], digits[:, 1:]].prod(axis=2)
        # Probabilities of batches at the start (users, m) and after a symbol (users, n, m), and
        # their last symbols.
        first = self.initial[:, digits[:, 0]] * inside
        later = self.steps[:, :, digits[:, 0]] * inside[:, None]
        ends = np.eye(self.n_symbols)[digits[:, -1]]
        return np.array([_forward_log_likelihood(each, first, later, ends) for each in likelihoods])

    def _of_true_sequences(self, sequences: Sequence[ArrayLike]) -> np.ndarray:
        """The log-likelihood of each true sequence for each user, (m, users)."""
        log_initial = np.log(self.initial)
        log_steps = np.log(self.steps)
        found = []
        for sequence in sequences:
            code = check_symbols(sequence, self.n_symbols)
            of_steps = log_steps[:, code[:-1], code[1:]].sum(axis=1)
            found.append(log_initial[:, code[0]] + of_steps)
        return np.array(found)

    def predict(self, sequences: Sequence[ArrayLike], *given) -> np.ndarray:
        """The most likely user of each sequence, (m,); arguments as for `log_likelihoods`."""
        return self.users[np.argmax(self.log_likelihoods(sequences, *given), axis=1)]


def _digits(symbols: ArrayLike | None, n_symbols: int) -> np.ndarray:
    """The symbols of each batch, (batches, w); without batches each symbol is one."""
    if symbols is None:
        return np.arange(n_symbols)[:, None]
    return np.asarray(symbols)


def _forward_log_likelihood(
    likelihoods: Sequence[np.ndarray], first: np.ndarray, later: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """The log-likelihood of one sequence of outputs for each user, (users,), by the forward
    recursion.

    `likelihoods` are those of its outputs, for each of m batches. `first` (users, m) holds the
    probabilities of a batch at the start, `later` (users, n, m) those after each symbol; ends[b, x]
    is 1 if x is the last symbol of batch b.
    """
    with np.errstate(divide="ignore"):
        logs = np.log((first * likelihoods[0]) @ ends)
        for likelihood in likelihoods[1:]:
            # Smoothed steps have no zeros, so what underflows beside a user's largest weight does
            # not matter.
            top = np.maximum(logs.max(axis=1, keepdims=True), np.finfo(float).min)
            weights = np.exp(logs - top)[:, None, :]
            if likelihood.ndim == 1:
                carried = (weights @ later)[:, 0] * likelihood
            else:
                carried = (weights @ (later * likelihood))[:, 0]
            logs = top + np.log(carried @ ends)
    return np.logaddexp.reduce(logs, axis=1)


class RecurrentClassifier:
    """A recurrent network that predicts the user of a sequence: gated recurrent units and a softmax
    over the users.

    Needs the extra "attack" (Keras, by default on JAX). The same `rng` gives the same network on
    the same machine. A sequence is (T,) symbols, or (T, n) probabilities of them, as from
    `smoothed_symbols`; all have one length.
    """

    def __init__(self, n_symbols: int):
        self.n_symbols = n_symbols

    def fit(self, sequences: OfUsers, *, rng: np.random.Generator) -> Self:
        """Learn from the sequences; returns itself."""
        os.environ.setdefault("KERAS_BACKEND", "jax")
        with optional_import():
            import keras
        self.users = np.array(list(sequences))
        seeds = iter(rng.integers(2**31, size=3).tolist())
        recurrent = keras.layers.GRU(
            UNITS,
            kernel_initializer=keras.initializers.GlorotUniform(next(seeds)),
            recurrent_initializer=keras.initializers.Orthogonal(seed=next(seeds)),
        )
        softmax = keras.layers.Dense(
            len(self.users),
            activation="softmax",
            kernel_initializer=keras.initializers.GlorotUniform(next(seeds)),
        )
        self.network = keras.Sequential(
            [keras.layers.Input((None, self.n_symbols)), recurrent, softmax]
        )
        self.network.compile(keras.optimizers.Adam(STEP), "sparse_categorical_crossentropy")
        inputs = self._inputs([sequence for own in sequences.values() for sequence in own])
        sequences_per_user = [len(own) for own in sequences.values()]
        targets = np.repeat(np.arange(len(sequences)), sequences_per_user)
        for _ in range(EPOCHS):
            order = rng.permutation(len(inputs))
            self.network.fit(
                inputs[order], targets[order], batch_size=BATCH_SIZE, shuffle=False, verbose=0
            )
        return self

    def predict(self, sequences: Sequence[ArrayLike]) -> np.ndarray:
        """The user that the network holds most likely for each sequence, (m,)."""
        inputs = self._inputs(sequences)
        scores = self.network.predict(inputs, batch_size=4 * BATCH_SIZE, verbose=0)
        return self.users[scores.argmax(axis=1)]

    def _inputs(self, sequences):
        """Probabilities of the symbols, (m, T, n), in the precision of the network."""
        unit = np.eye(self.n_symbols, dtype=np.float32)
        inputs = []
        for sequence in sequences:
            if np.ndim(sequence) == 1:
                inputs.append(unit[check_symbols(sequence, self.n_symbols)])
            else:
                inputs.append(sequence)
        return np.array(inputs, unit.dtype)


def identification_rate(
    classifier: MarkovClassifier | RecurrentClassifier, sequences: OfUsers
) -> float:
    """Share of sequences whose user is identified."""
    hits = [classifier.predict(own) == user for user, own in sequences.items() if len(own)]
    return float(np.concatenate(hits).mean())


def smoothed_symbols(
    chain: SymbolChain,
    likelihoods: Sequence[Sequence[np.ndarray]],
    symbols: ArrayLike | None = None,
) -> np.ndarray:
    """Pr(X_k = x | all outputs) by a chain and the mechanism, (m, T, n), for m sequences of T
    outputs.

    `likelihoods` are those of `release_sequences`. For batches, `symbols` (batches, w) are the
    symbols of each, and the result is (m, T w, n).
    """
    if all(likelihood.ndim == 1 for of_sequence in likelihoods for likelihood in of_sequence):
        contexts = _smoothed_contexts(chain, np.array(likelihoods)[..., chain.symbols])
    else:
        smoother = PairSmoother(chain)
        contexts = np.array([smoother.smoothed_contexts(each) for each in likelihoods])
    digits = _digits(symbols, chain.n_symbols)
    unit = np.eye(digits.max() + 1)
    by_place = [contexts @ unit[digit[chain.symbols]] for digit in digits.T]
    return np.stack(by_place, axis=2).reshape(len(contexts), -1, len(unit))


def _smoothed_contexts(chain: SymbolChain, likelihoods: np.ndarray) -> np.ndarray:
    """Pr(context | all outputs), (m, T, c), of m sequences, by forward-backward; `likelihoods`
    (m, T, c) are those of each output given the context."""
    excess_into = chain.factors.transposed_excess
    constants = chain.factors.constants
    smoothed = np.empty_like(likelihoods)
    weights = np.broadcast_to(chain.start, likelihoods[:, 0].shape)
    for k in range(likelihoods.shape[1]):
        smoothed[:, k] = _normalised_rows(weights * likelihoods[:, k])
        staying = smoothed[:, k] * (1.0 - chain.restart)
        renewed = (smoothed[:, k] @ chain.restart)[:, None]
        moved = (excess_into @ staying.T).T + (staying @ constants)[:, None]
        weights = moved + renewed * chain.start
    likelihood_of_later = np.ones_like(likelihoods[:, 0])
    for k in reversed(range(likelihoods.shape[1] - 1)):
        likelihood_of_later = _normalised_rows(likelihood_of_later * likelihoods[:, k + 1])
        by_excess = (excess_into.T @ likelihood_of_later.T).T
        without_restart = by_excess + likelihood_of_later.sum(axis=1, keepdims=True) * constants
        with_restart = (likelihood_of_later @ chain.start)[:, None]
        likelihood_of_later = without_restart * (1.0 - chain.restart) + with_restart * chain.restart
        smoothed[:, k] = _normalised_rows(smoothed[:, k] * likelihood_of_later)
    return smoothed


def _normalised_rows(weights: np.ndarray) -> np.ndarray:
    return weights / weights.sum(axis=1, keepdims=True)


class PairSmoother:
    """Smoothed contexts where likelihoods may depend on the previous symbol as well."""

    def __init__(self, chain: SymbolChain):
        self.chain = chain
        self.plain = TransitionMatrix(chain.toarray(), normalize=True)
        self._steps: dict[bytes, tuple[TransitionMatrix, np.ndarray]] = {}

    def smoothed_contexts(self, likelihoods: Sequence[np.ndarray]) -> np.ndarray:
        """The smoothed contexts of one sequence, (T, c)."""
        logs = np.zeros((len(likelihoods), self.chain.symbols.size))
        steps = []
        for k, likelihood in enumerate(likelihoods):
            if likelihood.ndim == 1:
                logs[k] += log_probabilities(likelihood)[self.chain.symbols]
                steps.append(self.plain)
            else:
                step, log_total = self._conditioned_step(likelihood)
                logs[k - 1] += log_total
                steps.append(step)
        return forward_backward(logs, steps[1:], self.chain.start).smoothed

    def _conditioned_step(self, likelihood: np.ndarray) -> tuple[TransitionMatrix, np.ndarray]:
        """The step given an output of this likelihood (n, n), and the log probability of the output
        after each context; few outputs occur again and again."""
        key = likelihood.tobytes()
        if key not in self._steps:
            plain = self.plain.toarray()
            joint = plain * likelihood[np.ix_(self.chain.symbols, self.chain.symbols)]
            total = joint.sum(axis=1)
            rows = np.where(total[:, None] > 0, joint, plain)
            step = TransitionMatrix(rows, normalize=True)
            self._steps[key] = (step, log_probabilities(total))
        return self._steps[key]
