"""Budgets that different methods choose from counts of steps, for the notebook
explore/estimated."""

from functools import partial

import numpy as np

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl


def budget(level: float, backward, forward) -> float:
    """The budget of Algorithm 7 that keeps `level` (both in nats), 0 if there is none."""
    try:
        return tpl.allocate_by_upper_bound(level, backward, forward)
    except tpl.NoFiniteSupremumError:
        return 0.0


def budgets_by_method(
    level: float, counts: np.ndarray, confidence: float, draws: int, *, rng
) -> dict[str, float]:
    """The budget by which each method keeps `level` (both in nats), from `counts` of steps (n, n)
    whose rows have equal sums.

    `confidence` is that of the confidence set, `draws` the number of chains that the posteriors and
    the bootstrap draw.
    """

    def of_counts(table: np.ndarray, smoothing: float) -> float:
        """The budget for the matrices of a table of counts."""
        backward = tpl.TransitionMatrix.from_counts(table.T, smoothing)
        forward = tpl.TransitionMatrix.from_counts(table, smoothing)
        return budget(level, backward, forward)

    def of_posterior(prior: float) -> float:
        """The budget that keeps the level for all drawn chains, with `prior` pseudo-steps at each
        count."""
        backward = tr.posterior_draws(counts.T, prior, draws, rng=rng)
        forward = tr.posterior_draws(counts, prior, draws, rng=rng)
        pairs = zip(backward, forward, strict=True)
        return tf.allocate_for_several(partial(budget, level), pairs)

    def of_bootstrap() -> float:
        """The least budget over redrawn counts."""
        found = []
        for _ in range(draws):
            redrawn = [rng.multinomial(row.sum(), row / row.sum()) for row in counts]
            found.append(of_counts(np.array(redrawn), 1e-9))
        return min(found)

    def of_confidence_set() -> float:
        """The budget that keeps the level for all chains that the counts do not rule out."""
        one_side = 1 - (1 - confidence) / 2
        backward = tf.loss_from_counts(counts.T, one_side)
        forward = tf.loss_from_counts(counts, one_side)
        return budget(level, backward, forward)

    return {
        "shares": of_counts(counts, 1e-9),
        "smoothing 1": of_counts(counts, 1.0),
        "bootstrap": of_bootstrap(),
        "posterior, uniform": of_posterior(1.0),
        "posterior, Jeffreys": of_posterior(0.5),
        "confidence set": of_confidence_set(),
    }
