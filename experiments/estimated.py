"""Budgets that different methods choose from counts of steps, for the notebook
explore/estimated."""

from functools import partial

import numpy as np

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl


def budget(level: float, backward, forward) -> float:
    """The budget of Algorithm 7, 0 if there is none."""
    try:
        return tpl.allocate_by_upper_bound(level, backward, forward)
    except tpl.NoFiniteSupremumError:
        return 0.0


def budgets_by_method(
    level: float, counts: np.ndarray, confidence: float, draws: int, *, rng
) -> dict[str, float]:
    """The budget of each method from counts of steps (n, n) whose rows have equal sums."""

    def of_counts(table, smoothing):
        return budget(
            level, *(tpl.TransitionMatrix.from_counts(side, smoothing) for side in (table.T, table))
        )

    def of_posterior(prior):
        sides = (tr.posterior_draws(table, prior, draws, rng=rng) for table in (counts.T, counts))
        return tf.allocate_for_several(partial(budget, level), zip(*sides, strict=True))

    redrawn = (
        [rng.multinomial(row.sum(), row / row.sum()) for row in counts] for _ in range(draws)
    )
    one_side = 1 - (1 - confidence) / 2
    return {
        "shares": of_counts(counts, 1e-9),
        "smoothing 1": of_counts(counts, 1.0),
        "bootstrap": min(of_counts(np.array(table), 1e-9) for table in redrawn),
        "posterior, uniform": of_posterior(1.0),
        "posterior, Jeffreys": of_posterior(0.5),
        "confidence set": budget(
            level, *(tf.loss_from_counts(table, one_side) for table in (counts.T, counts))
        ),
    }
