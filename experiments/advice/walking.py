"""Paths of many users at once."""

import numpy as np


def walk(
    habits: np.ndarray,
    laws: np.ndarray,
    of_user: np.ndarray,
    length: int,
    *,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw a path of each user.

    Parameters
    ----------
    habits : array (k, p, n, n)
        The matrices of the steps of each of k habits, which begin again after p steps.
    laws : array (k, n)
        The law of the first state of each habit.
    of_user : array (users,)
        Which habit each user has.
    length : int
        The number of states of a path.
    rng : numpy.random.Generator

    Returns
    -------
    array (users, length) of states
    """
    upto = np.cumsum(habits, axis=3)
    last = habits.shape[3] - 1
    paths = np.empty((of_user.size, length), dtype=np.int64)
    paths[:, 0] = _drawn(np.cumsum(laws, axis=1)[of_user], last, rng)
    for time in range(length - 1):
        rows = upto[of_user, time % habits.shape[1], paths[:, time]]
        paths[:, time + 1] = _drawn(rows, last, rng)
    return paths


def _drawn(upto: np.ndarray, last: int, rng: np.random.Generator) -> np.ndarray:
    """A state (m,) from each of the distributions `upto` (m, n), which are cumulated."""
    reached = (rng.random((len(upto), 1)) > upto).sum(axis=1)
    return np.minimum(reached, last)
