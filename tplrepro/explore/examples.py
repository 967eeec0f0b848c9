"""Matrices to begin with: those of the papers' figures, the limits, and two that tell a story; and generated ones."""

from __future__ import annotations

from tplrepro.explore.inputs import MAX_STATES
from tplrepro.markov.generators import random_matrix, smoothed, strongest
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import check_horizon

__all__ = ["EXAMPLES", "KINDS", "example", "generate"]

#: Name -> (forward rows, backward rows or None for Bayes' reversal of the forward ones, states or None for 0..n-1).
EXAMPLES = {
    "home and office": ([[0.8, 0.2], [0.1, 0.9]], None, ["home", "office"]),
    "four places of a weekday": (
        [[0.70, 0.20, 0.06, 0.04], [0.25, 0.60, 0.08, 0.07], [0.70, 0.05, 0.20, 0.05], [0.80, 0.01, 0.01, 0.18]],
        None,
        ["home", "office", "gym", "bar"],
    ),
    "Fig. 8 of TKDE 2019": ([[0.8, 0.2], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]], None),
    "Fig. 3 of TKDE 2019, moderate": ([[0.8, 0.2], [0.0, 1.0]], [[0.8, 0.2], [0.0, 1.0]], None),
    "Example 4 of TKDE 2019": ([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]],) * 2 + (None,),
    "strongest correlation": ([[1.0, 0.0], [0.0, 1.0]],) * 2 + (None,),
    "no correlation": ([[0.5, 0.5], [0.5, 0.5]],) * 2 + (None,),
}

STRONGEST = "strongest, smoothed"
RANDOM = "random"
KINDS = (STRONGEST, RANDOM)


def example(name: str) -> tuple[TransitionMatrix, TransitionMatrix]:
    """The backward and the forward matrix of an example.

    >>> backward, forward = example("home and office")
    >>> backward.states, backward.probabilities.round(4).tolist()
    (['home', 'office'], [[0.8, 0.2], [0.1, 0.9]])
    """
    if name not in EXAMPLES:
        raise ValueError(f"an example must be one of {', '.join(EXAMPLES)}; found {name!r}")
    forward_rows, backward_rows, states = EXAMPLES[name]
    forward = TransitionMatrix(forward_rows, states=states)
    return forward.reverse() if backward_rows is None else TransitionMatrix(backward_rows, states=states), forward


def generate(kind: str, n: int, s: float, seed: int) -> TransitionMatrix:
    """A matrix over n states: the strongest correlation smoothed by s (Eq. (28) of [1]), or a random one.

    Parameters
    ----------
    kind : one of `KINDS`
    n : int, 1 to `MAX_STATES`
    s : float >= 0, added to each probability before rows are divided by their sums; random matrices are smoothed too
    seed : int, of the random entries

    Raises
    ------
    ValueError
        For an unknown kind, n out of range, or s negative or not finite.

    Examples
    --------
    >>> generate("strongest, smoothed", 2, 0.5, seed=0).probabilities.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    if check_horizon(n, "n") > MAX_STATES:
        raise ValueError(f"n must be at most {MAX_STATES} states here, found {n}; use tplrepro directly for more")
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, found {kind!r}; choose one of them")
    return smoothed(strongest(n) if kind == STRONGEST else random_matrix(n, seed), s)
