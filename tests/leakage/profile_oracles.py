"""What Gaussian releases about a Markov chain of any number of states really leak, by simulation."""

import numpy as np


def simulated_profile(backward, forward, t, noise, horizon, x, draws, rng, chunk=50_000):
    """delta(e^x) at time t of T releases `unit vector of the state + noise N(0, I)` and its standard error, (2, k).

    Of all ordered pairs of states the largest mean of (1 - e^(x - loss))+, from `draws` series for each state.
    """
    x, found = np.asarray(x, dtype=float), []
    for state in range(len(backward)):
        sums = np.zeros((2, len(backward), x.size))
        for size in np.diff(np.append(np.arange(0, draws, chunk), draws)):
            given = np.full(size, state)
            told = _told(given, len(backward), noise, rng)
            for matrix, steps in ((backward, t), (forward, horizon - 1 - t)):
                told += _message(np.asarray(matrix, dtype=float), given, steps, noise, rng)
            losses = told[:, [state]] - told
            for k, level in enumerate(x):
                excess = -np.expm1(np.minimum(level - losses, 0.0))
                sums[:, :, k] += excess.sum(axis=0), np.square(excess).sum(axis=0)
        mean, square = sums / draws
        found.append([mean, np.sqrt((square - mean**2) / draws)])
    means, errors = np.concatenate(found, axis=1)
    worst = means.argmax(axis=0), np.arange(x.size)
    return np.array([means[worst], errors[worst]])


def _told(states, n, noise, rng):
    """log p(output | each state) up to a constant, (draws, n), of one release about `states`."""
    return (np.eye(n)[states] + noise * rng.standard_normal((states.size, n))) / noise**2


def _message(matrix, states, steps, noise, rng):
    """log p(outputs of the `steps` times before or after | each state) up to a constant, drawn given `states`."""
    path, cumulative = [], matrix.cumsum(axis=1)[:, :-1]
    for _ in range(steps):
        states = (rng.random((states.size, 1)) > cumulative[states]).sum(axis=1)
        path.append(states)
    message = np.zeros((states.size, len(matrix)))
    for states in reversed(path):
        message += _told(states, len(matrix), noise, rng)
        top = message.max(axis=1, keepdims=True)
        message = top + np.log(np.exp(message - top) @ matrix.T)
    return message
