"""Uncertainty of an estimated chain: posterior or bootstrap draws, and intervals of leakage.

A row of counts with a Dirichlet prior of pseudo-count s has the posterior Dirichlet(count + s),
whose mean is the estimate with Laplacian smoothing s. The bootstrap redraws sequences (or users)
with replacement. Leakage is a maximum, so noise in the matrix raises it: an interval need not
contain the leakage of the estimate.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tplrepro.markov.phases import PhaseGroups
from tplrepro.markov.sequences import Sequences, as_sequences
from tplrepro.markov.transition import TransitionMatrix, checked_counts
from tplrepro.progress import Bar
from tplrepro.validation import (
    FrozenArrays,
    RngLike,
    as_generator,
    check_horizon,
    check_probability,
    check_smoothing,
)

#: Posterior draws of more states (one number for each pair of them) are refused: 3.2 GB.
LARGEST_DENSE = 20_000
#: How often users were drawn, times draws, that are held at once in the bootstrap.
TIMES_AT_ONCE = 1 << 24


def posterior_draws(
    counts: Any, smoothing: float, draws: int, *, rng: RngLike
) -> Iterator[TransitionMatrix]:
    """Matrices from the posterior of independent Dirichlet rows.

    Parameters
    ----------
    counts : array (n, n), sparse or not, or DataFrame of counts of steps
        Those of `TransitionMatrix.from_counts`; transposed for backward matrices.
    smoothing : float >= 0, the prior pseudo-count of each state
        1: uniform prior; 0.5: Jeffreys'; 0: the improper prior under which steps never seen stay
        impossible.
    draws : int >= 1, the number of matrices
    rng : numpy Generator or seed

    Returns
    -------
    iterator of TransitionMatrix

    Raises
    ------
    ValueError
        For counts that `TransitionMatrix.from_counts` refuses, and for more states than fit in
        memory.

    Examples
    --------
    >>> draws = posterior_draws([[8, 2], [1, 9]], smoothing=1.0, draws=1000, rng=0)
    >>> stays = np.mean([P.probabilities[0, 0] for P in draws])
    >>> bool(abs(stays - (8 + 1) / (10 + 2)) < 0.02)
    True
    """
    draws = check_horizon(draws, "draws")
    smoothing = check_smoothing(smoothing)
    table, states = checked_counts(counts)
    # counts without an estimate have no posterior
    TransitionMatrix.from_counts(table, smoothing, states)
    if table.shape[0] > LARGEST_DENSE:
        raise ValueError(
            f"a draw must have at most {LARGEST_DENSE} states, found {table.shape[0]}; use "
            "bootstrap_draws"
        )
    shape = table.toarray() + smoothing
    rng = as_generator(rng)
    return (_posterior_draw(shape, rng, states) for _ in range(draws))


def _posterior_draw(
    shape: np.ndarray, rng: np.random.Generator, states: Sequence
) -> TransitionMatrix:
    """Normalised gamma variates in logarithms: for small shapes the variates themselves
    underflow."""
    positive = shape[shape > 0]
    variates = np.log(rng.standard_gamma(positive + 1.0))
    log = np.full(shape.shape, -np.inf)
    log[shape > 0] = variates + np.log1p(-rng.random(positive.shape)) / positive
    return TransitionMatrix(np.exp(log - log.max(axis=1, keepdims=True)), states, normalize=True)


def bootstrap_draws(
    sequences: Any,
    draws: int,
    *,
    rng: RngLike,
    estimate: Callable[[Sequences], Any],
    groups: Iterable[Hashable] | None = None,
) -> Iterator:
    """Estimates from sequences that are redrawn with replacement.

    Parameters
    ----------
    sequences : Sequences, or what `tplrepro.markov.as_sequences` takes
    draws : int >= 1, the number of estimates
    rng : numpy Generator or seed
    estimate : function of the `Sequences` drawn, whose states are those of the whole sample
    groups : the group of each sequence, such as its user; groups are drawn together

    Returns
    -------
    iterator of what `estimate` returns

    Raises
    ------
    ValueError
        For sequences that `as_sequences` refuses, and for another number of groups.

    Examples
    --------
    >>> smooth = lambda sample: TransitionMatrix.from_sequences(sample, smoothing=0.5)
    >>> draws = bootstrap_draws([[0, 1, 1], [1, 0, 1]], draws=3, rng=1, estimate=smooth)
    >>> [P.probabilities[1].round(3).tolist() for P in draws]
    [[0.5, 0.5], [0.833, 0.167], [0.167, 0.833]]
    """
    draws = check_horizon(draws, "draws")
    coded = as_sequences(sequences)
    members: dict = {}  # the sequences of each group, groups by first appearance
    names: list[Hashable] = list(range(len(coded)))
    if groups is not None:
        names = list(groups)
    if len(names) != len(coded):
        raise ValueError(
            f"groups must name the group of each of {len(coded)} sequences, found {len(names)}; "
            "give the user of each sequence"
        )
    for sequence, name in enumerate(names):
        members.setdefault(name, []).append(sequence)
    blocks = list(members.values())
    rng = as_generator(rng)

    def redraw() -> Sequences:
        chosen = rng.integers(len(blocks), size=len(blocks))
        return coded.select(np.concatenate([blocks[block] for block in chosen]))

    return (estimate(redraw()) for _ in range(draws))


def bootstrap_counts(
    sequences: Any,
    draws: int,
    *,
    rng: RngLike,
    groups: PhaseGroups | None = None,
    progress: bool = True,
) -> Iterator[Any]:
    """Counts of steps of users who are redrawn with replacement.

    Parameters
    ----------
    sequences : Sequences, or what `tplrepro.markov.as_sequences` takes
    draws : int >= 1
    rng : numpy Generator or seed
    groups : PhaseGroups, optional; the phases whose steps are counted apart
    progress : bool; show a bar

    Returns
    -------
    iterator of csr_array (n, n), or (g n, n) with the counts of one group of phases below those of
    another

    Raises
    ------
    ValueError
        For sequences that `as_sequences` refuses.

    Examples
    --------
    >>> draws = bootstrap_counts({"ann": [0, 1, 1], "bob": [1, 0, 1]}, 2, rng=1)
    >>> [counts.toarray().tolist() for counts in draws]
    [[[0.0, 2.0], [1.0, 1.0]], [[0.0, 2.0], [2.0, 0.0]]]
    """
    import pandas as pd

    draws = check_horizon(draws, "draws")
    coded = as_sequences(sequences)
    users, names = pd.factorize(coded.users, use_na_sentinel=False)
    counting = _StepNumbers(coded.n_states, groups)
    return _redraw_counts(
        replace(coded, users=users), counting, len(names), draws, as_generator(rng), progress
    )


@dataclass(frozen=True)
class _StepNumbers:
    """Steps from state to state as places in a table of counts."""

    n_states: int
    groups: PhaseGroups | None

    @property
    def shape(self) -> tuple[int, int]:
        rows = self.n_states
        if self.groups is not None:
            rows *= self.groups.n_groups
        return rows, self.n_states

    def of_block(self, block: Sequences) -> np.ndarray:
        """The place of each step of a block, counted along the rows."""
        earlier, later = block.transitions()
        rows = earlier.astype(np.int64)
        if self.groups is not None:
            places = block.places_of_later_values()
            rows += self.groups.of_values(block)[places - 1] * self.n_states
        return np.ravel_multi_index((rows, later), self.shape)


def _redraw_counts(
    coded: Sequences,
    counting: _StepNumbers,
    n_users: int,
    draws: int,
    rng: np.random.Generator,
    progress: bool,
) -> Iterator[Any]:
    """Counts, as `counting` places them, of each of `draws` samples of users with replacement;
    users in `coded` are numbers below `n_users`.

    Several draws are computed at once.
    """
    from scipy.sparse import coo_array

    from tplreport.people.workers import run_tasks

    taken = run_tasks(_distinct_steps, ((counting, block) for block in coded.blocks()))
    steps = np.unique(np.concatenate(list(taken)))
    places = np.unravel_index(steps, counting.shape)
    at_once = max(1, TIMES_AT_ONCE // n_users)
    with Bar(draws, "bootstrap", "draw", progress) as bar:
        for start in range(0, draws, at_once):
            times = _redraw_users(n_users, min(at_once, draws - start), rng)
            tasks = ((times[:, block.users], block, steps, counting) for block in coded.blocks())
            for total in sum(run_tasks(_steps_drawn, tasks)):
                yield coo_array((total, places), shape=counting.shape).tocsr()
                bar.update()


def _redraw_users(n_users: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """How often each user is in each draw, (draws, n_users)."""
    chosen = (rng.integers(n_users, size=n_users) for _ in range(draws))
    return np.array([np.bincount(users, minlength=n_users).astype(np.int32) for users in chosen])


def _distinct_steps(counting: _StepNumbers, block: Sequences) -> np.ndarray:
    """The places of the steps that occur in a block."""
    import pandas as pd

    return pd.unique(counting.of_block(block))


def _steps_drawn(
    times: np.ndarray, block: Sequences, steps: np.ndarray, counting: _StepNumbers
) -> np.ndarray:
    """How often each draw has each step of a block, (draws, k).

    `times` (draws, s) says how often it has each sequence; `steps` (k,) are the places, ascending,
    of all steps that occur, as `counting` counts them.
    """
    import pandas as pd
    from scipy.sparse import csr_array

    step = pd.Index(steps).get_indexer(counting.of_block(block))
    n_steps = np.maximum(block.lengths - 1, 0)
    begins = np.concatenate([[0], np.cumsum(n_steps)])
    of_sequences = csr_array((np.ones(step.size), step, begins), shape=(len(block), steps.size))
    return times @ of_sequences


@dataclass(frozen=True)
class LeakageInterval(FrozenArrays):
    """An equal-tailed percentile interval of a leakage (Efron, Tibshirani, 1993, chapter 13)."""

    lower: float | np.ndarray  # of the shape and unit that the function returns
    median: float | np.ndarray
    upper: float | np.ndarray
    confidence: float  # the probability between the ends
    values: np.ndarray  # (draws, ...), the function of each draw


def leakage_interval(
    draws: Iterable, function: Callable, confidence: float = 0.9
) -> LeakageInterval:
    """The interval of a number or array that is computed from each draw.

    The ends are values of draws, rounded outwards.

    Parameters
    ----------
    draws : iterable, such as of `posterior_draws` or `bootstrap_draws`
    function : function of a draw; its numbers may be infinite
    confidence : float in (0, 1), the probability between the ends

    Returns
    -------
    LeakageInterval, of the shape and unit that the function returns

    Raises
    ------
    ValueError
        For fewer than 2 / (1 - confidence) draws, or NaN.

    Examples
    --------
    >>> from tplrepro import PrivacyLossFunction
    >>> draws = posterior_draws([[80, 20], [10, 90]], 1.0, draws=200, rng=np.random.default_rng(3))
    >>> interval = leakage_interval(draws, lambda P: PrivacyLossFunction(P).supremum(0.1))
    >>> round(float(interval.lower), 2), round(float(interval.upper), 2)  # 0.34 for the estimate
    (0.25, 0.43)
    """
    confidence = check_probability(confidence, "confidence", zero=False, one=False)
    values = np.array([function(draw) for draw in draws], dtype=float)
    needed = int(np.ceil(2.0 / (1.0 - confidence) * (1.0 - 1e-12)))
    if len(values) < needed:
        raise ValueError(
            f"draws must be at least {needed} for confidence {confidence:g}, found {len(values)}; "
            "draw more"
        )
    if np.isnan(values).any():
        draw = np.argwhere(np.isnan(values))[0, 0]
        raise ValueError(f"the function must return numbers, found NaN in draw {draw}; correct it")
    tail = 0.5 * (1.0 - confidence)
    return LeakageInterval(
        lower=np.quantile(values, tail, axis=0, method="lower"),
        median=np.quantile(values, 0.5, axis=0, method="inverted_cdf"),
        upper=np.quantile(values, 1.0 - tail, axis=0, method="higher"),
        confidence=confidence,
        values=values,
    )
