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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
class StepFactors:
    """A step of the contexts: the matrix, transposed, as a constant of each row and what exceeds
    it."""

    transposed_excess: Any  # (c, c), perhaps sparse
    constants: np.ndarray  # (c,)
    smallest: float  # no positive product of factors of one step is smaller


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
            object.__setattr__(self, "widths", np.ones(self.n_symbols, dtype=int))
        super().__post_init__()

    @classmethod
    def first_order(cls, initial: ArrayLike, transition: MatrixLike) -> Self:
        """A chain of order 1.

        Parameters
        ----------
        initial : array-like (n,)
            The distribution of the first symbol.
        transition : TransitionMatrix or array-like (n, n)
            Pr(X_k | X_{k-1}), whose states the symbols stand for.

        Returns
        -------
        SymbolChain

        Raises
        ------
        ValueError
            If something is no distribution over n symbols.
        """
        matrix = as_transition_matrix(transition)
        n = matrix.n_states
        labels = None
        if not isinstance(matrix.states, range):
            labels = np.fromiter(matrix.states, object, n)
        return cls(
            initial=check_distribution(initial, matrix.states, "a belief"),
            transition=matrix,
            symbols=np.arange(n),
            restart=np.zeros(n),
            labels=labels,
        )

    @property
    def states(self) -> Sequence:
        """The labels of the symbols 0..n-1, or the numbers themselves."""
        if self.labels is None:
            return range(self.n_symbols)
        return self.labels.tolist()

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
        staying = (1 - self.restart)[:, None] * self.transition.toarray()
        return staying + self.restart[:, None] * self.start

    @cached_property
    def factors(self) -> StepFactors:
        """The factors of a step, in the form in which `predict` multiplies by them."""
        matrix = self.transition
        if matrix.is_sparse:
            excess = matrix.excess
            stored = excess.data
            constants = matrix.background
        else:
            excess = stored = matrix.probabilities
            constants = np.zeros(matrix.n_states)
        move = min(map(_least_positive, (stored, constants, self.initial)))
        choice = min(_least_positive(self.restart), _least_positive(1.0 - self.restart))
        return StepFactors(excess.T, constants, move * choice)

    def predict(self, weights: np.ndarray) -> np.ndarray:
        """The distribution of the contexts (c,) one step after `weights` (c,)."""
        # By einsum: threads of a BLAS cost more than they save at this size.
        renewed = np.einsum("i,i", self.restart, weights)
        staying = weights * (1.0 - self.restart)
        moved = self.factors.transposed_excess @ staying
        moved = moved + np.einsum("i,i", self.factors.constants, staying)
        return moved + renewed * self.start

    def log_predict(self, log_weights: np.ndarray) -> np.ndarray:
        """`predict` in logarithms, for weights that would underflow."""
        staying = log_product(log_weights + log_probabilities(1.0 - self.restart), self.transition)
        renewed = np.logaddexp.reduce(log_weights + log_probabilities(self.restart))
        return np.logaddexp(staying, renewed + log_probabilities(self.start))


def _least_positive(values: Any) -> float:
    """The minimum if it is not 0, else the least positive value, 1 if there is none above 0: a
    factor of a bound on what may underflow."""
    minimum = np.min(values)
    if minimum == 0:
        minimum = np.min(values, where=values > 0, initial=1.0)
    return float(minimum)


@dataclass(frozen=True, eq=False)
class Belief(FrozenArrays):
    """A distribution over the contexts of a chain, (c,); immutable: `observe` returns the next one.

    >>> from tplrepro.sip import ConditionalRandomizedResponse
    >>> belief = Belief.start(SymbolChain.first_order([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]]))
    >>> response = ConditionalRandomizedResponse(1.0).response(belief.current)
    >>> belief.observe(1, response).current.round(4).tolist()
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
        if self.chain.order_1:
            return self.weights
        return frozen(np.bincount(self.chain.symbols, self.weights))

    def observe(self, y: int, response: Response) -> Belief:
        """The belief in the next symbol after an output, Eq. (13) of [3].

        Parameters
        ----------
        y : int
            The output.
        response : Response
            The response from which it was drawn.

        Returns
        -------
        Belief

        Raises
        ------
        ImpossibleOutputError
            If y is impossible under this belief.
        """
        return self.given(response.column(y))

    def among(self, possible: np.ndarray) -> Belief:
        """The belief given that the next symbol is in a mask (n,)."""
        log_likelihood = log_probabilities(possible[self.chain.symbols])
        log_posterior, _ = condition_on_output(self._logs(), log_likelihood)
        return self._of_logs(log_posterior)

    def given(self, likelihood: np.ndarray) -> Belief:
        """The belief in the next symbol after an output with this likelihood given each symbol,
        (n,)."""
        if likelihood.shape != self.chain.initial.shape:
            raise ValueError(
                f"a likelihood must have shape ({self.chain.n_symbols},), "
                f"found {likelihood.shape}; give one for each symbol"
            )
        likelihood = likelihood[self.chain.symbols]
        posterior = self.weights * likelihood
        smallest = (
            _least_positive(self.weights)
            * _least_positive(likelihood)
            * self.chain.factors.smallest
        )
        if self.log_weights is None and smallest > LOWEST and posterior.any():
            weights = self.chain.predict(posterior)
            return Belief(self.chain, weights / weights.sum())
        log_posterior, _ = condition_on_output(self._logs(), log_probabilities(likelihood))
        return self._of_logs(self.chain.log_predict(log_posterior))

    def _logs(self) -> np.ndarray:
        if self.log_weights is None:
            return log_probabilities(self.weights)
        return self.log_weights

    def _of_logs(self, logs: np.ndarray) -> Belief:
        """The belief with these logarithms, which are kept where weights would underflow."""
        weights = np.exp(logs)
        is_possible = logs > -np.inf
        underflows = (weights[is_possible] < LOWEST).any()
        distribution = weights / weights.sum()
        if underflows:
            return Belief(self.chain, distribution, logs)
        return Belief(self.chain, distribution)


def chain_from_sequences(
    sequences: Any,
    n_symbols: int | None = None,
    order: int = 1,
    restart: float = 0.01,
    initial: ArrayLike | None = None,
) -> SymbolChain:
    """The maximum-likelihood chain of order 1 or 2, sparse.

    At order 2, after a pair that was never seen the chain goes on as from the pair's last symbol
    alone. A context without a known successor restarts with probability 1.

    Parameters
    ----------
    sequences : Sequences, DataFrame, mapping, or iterable of sequences
        A DataFrame has the columns user, time and state; a mapping leads from each user to her
        sequence or sequences; a sequence holds whole numbers or labels.
    n_symbols : int, optional
        The symbols are 0..n-1, instead of the values seen.
    order : int
        1 or 2.
    restart : float
        The probability that the next symbol is drawn from `initial`.
    initial : array-like (n,), optional
        The distribution of the first symbol, by default the frequencies of all symbols, with one
        added to each count.

    Returns
    -------
    SymbolChain

    Raises
    ------
    ValueError
        If the sequences are malformed, or a parameter out of range.

    Examples
    --------
    >>> chain = chain_from_sequences([[7, 30, 7, 30, 30]], order=2, restart=0.0)
    >>> chain.labels.tolist(), chain.symbols.tolist()
    ([7, 30], [0, 1, 1, 0, 1])
    """
    from scipy.sparse import coo_array

    check_choice(order, "order", (1, 2))
    coded = as_sequences(sequences, n_symbols)
    n = coded.n_states
    counts = np.bincount(coded.values, minlength=n) + 1.0
    start = counts / counts.sum()
    if initial is not None:
        start = check_distribution(initial, coded.labels.tolist(), "initial")
    steps = _steps_of_symbols(coded)
    if order == 2:
        steps = _steps_of_pairs(coded, steps)
    c = steps.symbols.size
    dead_ends = np.setdiff1d(np.arange(c), steps.origin)  # they stay, and restart
    origin = np.append(steps.origin, dead_ends)
    target = np.append(steps.target, dead_ends)
    matrix = coo_array((np.ones(origin.size), (origin, target)), shape=(c, c)).tocsr()
    restarts = np.full(c, check_probability(restart, "restart"))
    restarts[dead_ends] = 1.0
    return SymbolChain(
        initial=start,
        transition=TransitionMatrix(matrix, normalize=True),
        symbols=steps.symbols,
        restart=restarts,
        labels=coded.labels,
        widths=getattr(coded, "widths", None),
    )


@dataclass(frozen=True, eq=False)
class _ContextSteps:
    """The steps between contexts that were seen, once for each time, and the symbol of each
    context."""

    origin: np.ndarray  # (m,)
    target: np.ndarray  # (m,)
    symbols: np.ndarray  # (c,)


def _steps_of_symbols(coded: Sequences) -> _ContextSteps:
    origin, target = coded.transitions()
    return _ContextSteps(origin, target, np.arange(coded.n_states))


def _steps_of_pairs(coded: Sequences, steps: _ContextSteps) -> _ContextSteps:
    """Steps to the pairs of symbols, which are numbered from n on."""
    n = coded.n_states
    codes_of_pairs = steps.origin.astype(np.int64) * n + steps.target
    pairs, codes = np.unique(codes_of_pairs, return_inverse=True)
    ends = np.cumsum(np.maximum(coded.lengths - 1, 0))
    earlier, later = Sequences(codes, np.append(0, ends), pairs, coded.users).transitions()
    # From a lone symbol (the first, or after an unseen pair) and from a pair the chain goes to the
    # pair it makes.
    return _ContextSteps(
        origin=np.append(steps.origin, n + earlier),
        target=np.append(n + codes, n + later),
        symbols=np.append(steps.symbols, pairs % n),
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
    """Release a sequence of symbols online (Algorithm 1 of [3]).

    Parameters
    ----------
    sequence : array-like (T,) of int
        Symbols 0..n-1.
    mechanism : BeliefMechanism, or a mapping from each width to one
        A mapping is for batches that occur (`observed_batches`).
    chain : SymbolChain
        Known to the adversary.
    rng : int, numpy.random.Generator or None
        A seed, a generator, or None for draws that nobody can repeat.

    Returns
    -------
    iterator of ReleasedSymbol

    Raises
    ------
    ValueError
        If a symbol is unknown, or no mechanism is for its width; during the release, for a symbol
        that is impossible under the chain.

    Examples
    --------
    >>> from tplrepro.sip import ConditionalRandomizedResponse
    >>> chain = SymbolChain.first_order([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> crr = ConditionalRandomizedResponse(1.0)
    >>> [(s.output, round(s.leakage, 3)) for s in release([0, 0, 1], crr, chain, rng=3)]
    [(0, 1.0), (0, 1.073), (1, 1.393)]
    """
    if not isinstance(chain, SymbolChain):
        raise ValueError(
            f"chain must be a SymbolChain, found {type(chain).__name__}; "
            "use SymbolChain.first_order"
        )
    mechanisms = [mechanism]
    if isinstance(mechanism, Mapping):
        mechanisms = [*mechanism.values()]
    for one in mechanisms:
        _check_mechanism(one, chain)
    symbols = check_symbols(sequence, chain.n_symbols)
    if isinstance(mechanism, Mapping):
        missing = {*chain.widths[symbols].tolist()} - {*mechanism}
        if missing:
            raise ValueError(
                "mechanism must have one for each width of a batch, "
                f"found none for {min(missing)}; add it"
            )
    return _release_symbols(mechanism, symbols, chain, as_generator(rng))


def _check_mechanism(mechanism: Any, chain: SymbolChain) -> None:
    if not isinstance(mechanism, BeliefMechanism):
        raise ValueError(
            f"mechanism must be one such as OptimalResponse(1.0), found {mechanism!r}; make one"
        )
    if isinstance(mechanism, TemporalRandomizedResponse):
        common_states([mechanism.transition.states, chain.states], "mechanism and chain")


def _release_symbols(
    mechanism: Any, symbols: np.ndarray, chain: SymbolChain, rng: np.random.Generator
) -> Iterator[ReleasedSymbol]:
    """Release each symbol of a sequence in turn by Algorithm 1 of [3]: respond under the belief
    about it, then update the belief by what was output."""
    belief = Belief.start(chain)
    widths = chain.widths
    has_several_widths = np.ptp(widths) > 0
    previous: dict[str, int] = {}
    is_bounded = True
    for symbol in symbols.tolist():
        if has_several_widths:
            belief = belief.among(widths == widths[symbol])
        current = mechanism
        if isinstance(mechanism, Mapping):
            current = mechanism[int(widths[symbol])]
        response = current.response(belief.current, **previous)
        output = response.sample(symbol, rng=rng)
        likelihood = response.column(output)
        leakage = np.inf
        if is_bounded:
            leakage = float(response.leakage)
        yield ReleasedSymbol(symbol, output, leakage, likelihood)
        if current.uses_previous:
            previous = {"previous": symbol}
            is_bounded = current.same_supports
            # There is no single matrix, so the adversary follows the chain alone.
            if not is_bounded:
                likelihood = np.ones(chain.n_symbols)
        belief = belief.given(likelihood)


@dataclass(frozen=True)
class ReleasedSequences:
    """The outputs for several sequences, and what they leaked."""

    outputs: list[np.ndarray]  # one a sequence
    #: If asked for, of each output: a(y|.) (n,), or Pr(y | previous symbol, symbol) (n, n) if the
    #: mechanism uses that.
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
    """Release several sequences (Algorithm 1 of [3]), each from the start of the chain.

    Parameters
    ----------
    sequences : iterable of array-like (T,) of int
        Symbols 0..n-1.
    mechanism : BeliefMechanism, or a mapping from each width to one
        A mapping is for batches that occur (`observed_batches`).
    chain : SymbolChain
        Known to the adversary.
    rng : int, numpy.random.Generator or None
        A seed, a generator, or None for draws that nobody can repeat.
    keep_likelihoods : bool
        Whether the result holds the likelihood of each output.

    Returns
    -------
    ReleasedSequences

    Raises
    ------
    ValueError
        If there is no sequence, a symbol is unknown or impossible under the chain, or no mechanism
        is for its width.
    """
    if isinstance(sequences, Sequences):
        common_states([chain.states, sequences.labels.tolist()], "chain and sequences")
    rng = as_generator(rng)
    likelihoods_of = _Likelihoods(mechanism)
    outputs = []
    likelihoods = []
    leakages: list[float] = []
    for sequence in with_progress(sequences, "releases", "sequence"):
        steps = list(release(sequence, mechanism, chain, rng=rng))
        outputs.append(np.array([step.output for step in steps]))
        leakages.extend(step.leakage for step in steps)
        if keep_likelihoods:
            likelihoods.append(likelihoods_of(steps))
    if not outputs:
        raise ValueError(
            "sequences must hold at least one sequence, found none; check how they were selected"
        )
    return ReleasedSequences(
        outputs=outputs,
        likelihoods=likelihoods,
        mean_leakage=float(np.mean(leakages)),
        largest_leakage=max(leakages),
    )


class _Likelihoods:
    """The likelihoods of the outputs of a mechanism, as `ReleasedSequences` keeps them."""

    def __init__(self, mechanism: Any):
        self._of_pairs: Callable[[int], np.ndarray] | None = None
        if isinstance(mechanism, TemporalRandomizedResponse):
            self._of_pairs = cache(mechanism.likelihood)

    def __call__(self, steps: list[ReleasedSymbol]) -> list[np.ndarray]:
        """The likelihood of each output of one sequence."""
        likelihoods = [step.likelihood for step in steps]
        if self._of_pairs is not None:
            likelihoods[1:] = [self._of_pairs(step.output) for step in steps[1:]]
        return likelihoods
