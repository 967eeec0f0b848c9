"""Releasing sequences symbol by symbol (Algorithm 1 of [3], with any mechanism), and the
adversary's belief.

The belief is the distribution of the next symbol given the outputs so far (Eqs. (3) and (13) of
[3]): output y multiplies it by a(y|x) / p(y), then it takes one step of the chain. A chain of order
1 or 2 is kept as a first-order chain over *contexts*, each of which ends in a symbol: at order 1
the symbols themselves, at order 2 the pairs, and the symbols as contexts of the second symbol.

With probability `restart` the next symbol is drawn from the initial distribution, whatever the
context. So steps that were never seen are possible, and a chain estimated from data stays sparse.
"""

from __future__ import annotations
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.filtering import LOWEST, condition_on_output, log_probabilities, log_product
from tplrepro.markov.sequences import Sequences, as_sequences
from tplrepro.markov.transition import MatrixLike, TransitionMatrix, as_transition_matrix
from tplrepro.progress import with_progress
from tplrepro.sip.published import TemporalRandomizedResponse
from tplrepro.sip.response import BeliefMechanism, Response, check_symbols
from tplrepro.validation import (
    FrozenArrays,
    RngLike,
    as_generator,
    check_choice,
    check_distribution,
    check_probability,
    common_states,
    frozen,
)


@dataclass(frozen=True, eq=False)
class SymbolChain(FrozenArrays):
    """A chain over contexts, and the symbol in which each ends."""

    # (n,), distribution of the first symbol; context x < n stands for "first symbol x"
    initial: np.ndarray
    transition: TransitionMatrix  # over c >= n contexts
    symbols: np.ndarray  # (c,), last symbol of each context; the first n contexts are the symbols
    restart: np.ndarray  # (c,), probability of drawing the next symbol from `initial`
    labels: np.ndarray | None = None  # (n,), what each symbol stands for
    widths: Any = None  # (n,), how many symbols each batch holds, which is public; by default 1

    def __post_init__(self) -> None:
        if self.widths is None:
            vars(self)["widths"] = np.ones(self.n_symbols, dtype=int)
        super().__post_init__()

    @classmethod
    def first_order(cls, initial: ArrayLike, transition: MatrixLike) -> Self:
        """A chain of order 1 from an initial distribution (n,) and a transition matrix (n, n), with
        its states."""
        matrix = as_transition_matrix(transition)
        n, states = matrix.n_states, matrix.states
        labels = None if isinstance(states, range) else np.fromiter(states, object, n)
        return cls(
            check_distribution(initial, states, "a belief"),
            matrix,
            np.arange(n),
            np.zeros(n),
            labels,
        )

    @property
    def states(self) -> Sequence:
        """What the symbols 0..n-1 stand for."""
        return range(self.n_symbols) if self.labels is None else self.labels.tolist()

    @property
    def n_symbols(self) -> int:
        return self.initial.size

    @property
    def order_1(self) -> bool:
        """Whether the contexts are the symbols."""
        return self.symbols.size == self.initial.size

    @cached_property
    def start(self) -> np.ndarray:
        """Distribution of the first context, (c,)."""
        return np.append(self.initial, np.zeros(self.symbols.size - self.initial.size))

    def toarray(self) -> np.ndarray:
        """Pr(next context | context), restarts included, dense (c, c)."""
        return (1 - self.restart)[:, None] * self.transition.toarray() + self.restart[
            :, None
        ] * self.start

    @cached_property
    def steps(self) -> tuple[Any, np.ndarray, float]:
        """The factors in `predict`: the transposed matrix minus a constant of each row, the
        constants, the smallest."""
        matrix = self.transition
        beyond = matrix.excess if matrix.is_sparse else matrix.probabilities
        constants = matrix.background if matrix.is_sparse else np.zeros(matrix.n_states)
        stored = beyond.data if matrix.is_sparse else beyond
        moves = min(map(_smallest, (stored, constants, self.initial)))
        return (
            beyond.T,
            constants,
            moves * min(_smallest(self.restart), _smallest(1.0 - self.restart)),
        )

    def predict(self, weights: np.ndarray) -> np.ndarray:
        """The distribution of the contexts (c,) one step after `weights` (c,)."""
        beyond, constants, _ = self.steps
        # By einsum: threads of a BLAS cost more than they save at this size.
        staying, renewed = weights * (1.0 - self.restart), np.einsum("i,i", self.restart, weights)
        return beyond @ staying + np.einsum("i,i", constants, staying) + renewed * self.start

    def log_predict(self, log_weights: np.ndarray) -> np.ndarray:
        """`predict` in logarithms, for weights that would underflow."""
        staying = log_product(log_weights + log_probabilities(1.0 - self.restart), self.transition)
        renewed = np.logaddexp.reduce(log_weights + log_probabilities(self.restart))
        return np.logaddexp(staying, renewed + log_probabilities(self.start))


def _smallest(values: Any) -> float:
    """The minimum if it is not 0, else the least positive value, at most 1: no product of such
    factors is smaller."""
    return float(np.min(values) or np.min(values, where=values > 0, initial=1.0))


@dataclass(frozen=True, eq=False)
class Belief(FrozenArrays):
    """A distribution over the contexts of a chain, (c,); immutable: `observe` returns the next one.

    >>> from tplrepro.sip import ConditionalRandomizedResponse
    >>> belief = Belief.start(SymbolChain.first_order([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]]))
    >>> belief.observe(1, ConditionalRandomizedResponse(1.0).response(belief.current)).current.round(4).tolist()
    [0.2472, 0.7528]
    """

    chain: SymbolChain
    weights: np.ndarray
    log_weights: np.ndarray | None = None  # if some weights would underflow

    @classmethod
    def start(cls, chain: SymbolChain) -> Self:
        """The belief before the first output."""
        return cls(chain, chain.start)

    @cached_property
    def current(self) -> np.ndarray:
        """Pr(X_k = x | y_1 .. y_{k-1}), (n,): the belief that a mechanism takes."""
        chain = self.chain
        return self.weights if chain.order_1 else frozen(np.bincount(chain.symbols, self.weights))

    def observe(self, y: int, response: Response) -> Belief:
        """The belief in the next symbol after output y, Eq. (13) of [3]; ImpossibleOutputError if y
        is impossible."""
        return self.given(response.column(y))

    def among(self, possible: np.ndarray) -> Belief:
        """The belief given that the next symbol is in a mask (n,)."""
        return self._of_logs(
            condition_on_output(self._logs(), log_probabilities(possible[self.chain.symbols]))[0]
        )

    def given(self, likelihood: np.ndarray) -> Belief:
        """The belief in the next symbol after an output with this likelihood given each symbol,
        (n,)."""
        if likelihood.shape != self.chain.initial.shape:
            n, found = self.chain.n_symbols, likelihood.shape
            raise ValueError(
                f"a likelihood must have shape ({n},), found {found}; give one for each symbol"
            )
        likelihood = likelihood[self.chain.symbols]
        posterior = self.weights * likelihood
        smallest = _smallest(self.weights) * _smallest(likelihood) * self.chain.steps[2]
        if self.log_weights is None and smallest > LOWEST and posterior.any():
            weights = self.chain.predict(posterior)
            return Belief(self.chain, weights / weights.sum())
        logs = condition_on_output(self._logs(), log_probabilities(likelihood))[0]
        return self._of_logs(self.chain.log_predict(logs))

    def _logs(self) -> np.ndarray:
        return log_probabilities(self.weights) if self.log_weights is None else self.log_weights

    def _of_logs(self, logs: np.ndarray) -> Belief:
        weights = np.exp(logs)
        return Belief(
            self.chain,
            weights / weights.sum(),
            logs if (weights[logs > -np.inf] < LOWEST).any() else None,
        )


def chain_from_sequences(
    sequences: Any,
    n_symbols: int | None = None,
    order: int = 1,
    restart: float = 0.01,
    initial: ArrayLike | None = None,
) -> SymbolChain:
    """The maximum-likelihood chain of order 1 or 2, sparse.

    `sequences` and `n_symbols` are as in `as_sequences`. At order 2, after a pair that was never
    seen the chain goes on as from the pair's last symbol alone. A context without a known successor
    restarts with probability 1. `initial` (n,) is by default the frequencies of all symbols, with
    one added to each count.

    >>> chain = chain_from_sequences([[7, 30, 7, 30, 30]], order=2, restart=0.0)
    >>> chain.labels.tolist(), chain.symbols.tolist()
    ([7, 30], [0, 1, 1, 0, 1])
    """
    from scipy.sparse import coo_array

    check_choice(order, "order", (1, 2))
    coded = as_sequences(sequences, n_symbols)
    n, (origin, target) = coded.n_states, coded.transitions()
    counts = np.bincount(coded.values, minlength=n) + 1.0
    start = (
        counts / counts.sum()
        if initial is None
        else check_distribution(initial, coded.labels.tolist(), "initial")
    )
    symbols = np.arange(n)
    if order == 2:
        pairs, codes = np.unique(origin.astype(np.int64) * n + target, return_inverse=True)
        ends = np.cumsum(np.maximum(coded.lengths - 1, 0))
        earlier, later = Sequences(codes, np.append(0, ends), pairs, coded.users).transitions()
        # From a lone symbol (the first, or after an unseen pair) and from a pair the chain goes to
        # the pair it makes.
        origin, target = np.append(origin, n + earlier), np.append(n + codes, n + later)
        symbols = np.append(symbols, pairs % n)
    dead = np.setdiff1d(np.arange(symbols.size), origin)
    steps = np.append(origin, dead), np.append(target, dead)
    matrix = coo_array((np.ones(steps[0].size), steps), shape=(symbols.size, symbols.size)).tocsr()
    again = np.full(symbols.size, check_probability(restart, "restart"))
    again[dead] = 1.0
    widths = getattr(coded, "widths", None)
    return SymbolChain(
        start, TransitionMatrix(matrix, normalize=True), symbols, again, coded.labels, widths
    )


@dataclass(frozen=True)
class ReleasedSymbol:
    """One release."""

    symbol: int  # the true one; a batch's number, for batches
    output: int
    # true IIL, nats; infinite if a mechanism that uses the previous symbol rules out earlier ones
    leakage: float
    # (n,), a(output | .), given the true previous symbol if that is used
    likelihood: np.ndarray = field(repr=False)


def release(
    sequence: ArrayLike,
    mechanism: BeliefMechanism | Mapping[int, BeliefMechanism],
    chain: SymbolChain,
    *,
    rng: RngLike,
) -> Iterator[ReleasedSymbol]:
    """Release a sequence (T,) of symbols 0..n-1 online (Algorithm 1 of [3]); the adversary knows
    the `chain`.

    For batches that occur (`observed_batches`), `mechanism` may be a dict from each width to the
    mechanism for its batches.

    >>> from tplrepro.sip import ConditionalRandomizedResponse
    >>> chain = SymbolChain.first_order([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> crr = ConditionalRandomizedResponse(1.0)
    >>> [(s.output, round(s.leakage, 3)) for s in release([0, 0, 1], crr, chain, rng=3)]
    [(0, 1.0), (0, 1.073), (1, 1.393)]
    """
    if not isinstance(chain, SymbolChain):
        raise ValueError(
            f"chain must be a SymbolChain, found {type(chain).__name__}; use SymbolChain.first_order"
        )
    for used in mechanism.values() if isinstance(mechanism, Mapping) else [mechanism]:
        if not isinstance(used, BeliefMechanism):
            raise ValueError(
                f"mechanism must be one such as OptimalResponse(1.0), found {used!r}; make one"
            )
        if isinstance(used, TemporalRandomizedResponse):
            common_states([used.transition.states, chain.states], "mechanism and chain")
    symbols = check_symbols(sequence, chain.n_symbols)
    if isinstance(mechanism, Mapping) and (
        missing := {*chain.widths[symbols].tolist()} - {*mechanism}
    ):
        raise ValueError(
            f"mechanism must have one for each width of a batch, found none for {min(missing)}; add it"
        )
    return _releases(mechanism, symbols, chain, as_generator(rng))


def _releases(
    mechanism: Any, symbols: np.ndarray, chain: SymbolChain, rng: np.random.Generator
) -> Iterator[ReleasedSymbol]:
    belief, widths = Belief.start(chain), chain.widths
    has_several_widths = np.ptp(widths) > 0
    previous: dict[str, int] = {}
    is_bounded = True
    for symbol in symbols.tolist():
        if has_several_widths:
            belief = belief.among(widths == widths[symbol])
        used = mechanism[int(widths[symbol])] if isinstance(mechanism, Mapping) else mechanism
        response = used.response(belief.current, **previous)
        output = response.sample(symbol, rng=rng)
        likelihood = response.column(output)
        leakage = response.leakage if is_bounded else np.inf
        yield ReleasedSymbol(symbol, output, float(leakage), likelihood)
        if used.uses_previous:
            previous, is_bounded = {"previous": symbol}, used.same_supports
            # there is no single matrix, so the adversary follows the chain alone
            if not is_bounded:
                likelihood = np.ones(chain.n_symbols)
        belief = belief.given(likelihood)


@dataclass(frozen=True)
class ReleasedSequences:
    """The outputs for several sequences, and what they leaked."""

    outputs: list[np.ndarray]  # one a sequence
    #: If asked for, of each output: a(y|.) (n,), or Pr(y | previous symbol, symbol) (n, n) if the mechanism uses that.
    likelihoods: list[list[np.ndarray]]
    mean_leakage: float  # of the true leakages of all releases, nats
    largest_leakage: float


def release_sequences(
    sequences: Iterable[ArrayLike],
    mechanism: BeliefMechanism | Mapping[int, BeliefMechanism],
    chain: SymbolChain,
    *,
    rng: RngLike,
    keep_likelihoods: bool = False,
) -> ReleasedSequences:
    """Release several sequences (Algorithm 1 of [3]), each from the start of the chain; arguments
    as in `release`."""
    if isinstance(sequences, Sequences):
        common_states([chain.states, sequences.labels.tolist()], "chain and sequences")
    of_pairs = (
        cache(mechanism.likelihood) if isinstance(mechanism, TemporalRandomizedResponse) else None
    )
    outputs, likelihoods, rng = [], [], as_generator(rng)
    leakages: list[float] = []
    for sequence in with_progress(sequences, "releases", "sequence"):
        steps = list(release(sequence, mechanism, chain, rng=rng))
        outputs.append(np.array([step.output for step in steps]))
        if keep_likelihoods:
            later = [of_pairs(step.output) if of_pairs else step.likelihood for step in steps[1:]]
            likelihoods.append([steps[0].likelihood, *later])
        leakages.extend(step.leakage for step in steps)
    if not outputs:
        raise ValueError(
            "sequences must hold at least one sequence, found none; check how they were selected"
        )
    return ReleasedSequences(outputs, likelihoods, float(np.mean(leakages)), max(leakages))
