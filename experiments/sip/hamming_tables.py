"""Exact responses under Hamming distance to many beliefs at once: 8 to 17 times as fast for 20 to 40 symbols."""

import numpy as np

from tplrepro.sip.hamming import NEGLIGIBLE, constant_response, hamming_response, usable_budget


def hamming_tables(beliefs: np.ndarray, epsilon: float) -> np.ndarray:
    """The matrices of `hamming_response` for many beliefs (m, n) over few symbols, (m, n, n).

    The same steps for all beliefs at once, because one after the other nearly all time goes into handling
    small arrays; beliefs for which they do not suffice are answered one by one.

    >>> hamming_tables(np.array([[0.2, 0.3, 0.5]]), 1.0)[0].round(4).tolist()
    [[0.7311, 0.085, 0.1839], [0.2442, 0.5719, 0.1839], [0.0989, 0.085, 0.8161]]
    """
    (m, n), runs = beliefs.shape, np.arange(len(beliefs))
    if usable_budget(epsilon) <= 0:
        return np.array([constant_response(belief, int(np.argmax(belief))).matrix() for belief in beliefs])
    odds = float(np.exp(usable_budget(epsilon)))
    cap, order = odds + 1.0, np.argsort(-beliefs, axis=1, kind="stable")
    b = np.take_along_axis(beliefs, order, axis=1)
    tails = np.zeros((m, n + 2))
    tails[:, :n] = np.cumsum(b[:, ::-1], axis=1)[:, ::-1]
    # As in `allocate`.
    common, worth = (b >= 1.0 / cap).sum(axis=1), (b > b[:, :1] / odds**2).sum(axis=1)
    left = cap * tails[runs, common]
    served, part = common + np.floor(left).astype(int), left % 1.0
    part[part < 1e-12] = 0.0
    enough = served >= np.maximum(worth, common)
    served, part = np.where(enough, np.maximum(worth, common), served), np.where(enough, 0.0, part)
    full = np.arange(n) < served[:, None]
    q = np.where(full, np.maximum(b, 1.0 / cap), 0.0)
    q[:, 0] += np.where(part == 0.0, 1.0 - q.sum(axis=1), 0.0)
    next_one = np.minimum(served, n - 1)
    slight = (part > 0.0) & (b[runs, next_one] < NEGLIGIBLE)
    q[:, 0] += np.where(slight, part / cap, 0.0)
    part[slight] = 0.0
    attained = (part == 0.0) | (cap * tails[runs, served] >= 1.0)
    # As in `_fill`: the share of z, and of the spare columns, in each symbol's row.
    spare = np.where(full, np.maximum(q - b, 0.0), 0.0)
    spare[spare.sum(axis=1) == 0.0, 0] = 1.0
    shares, rarer = spare / spare.sum(axis=1, keepdims=True), np.arange(n) > served[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        into = part * (1.0 / cap - b[runs, next_one]) / tails[runs, served + 1]
    of_z = np.where(rarer & (part > 0.0)[:, None], into[:, None], 0.0)
    of_z[runs, next_one] = np.where(part > 0.0, part, of_z[runs, next_one])
    w = (1.0 - of_z)[:, :, None] * shares[:, None, :]
    w[runs, :, next_one] += of_z
    w[full] = np.broadcast_to(np.eye(n), w.shape)[full]
    # As in `mix`.
    marginal = np.einsum("mx,mxy->my", b, w)
    largest = np.where(b[:, :, None] > 0.0, w, 0.0).max(axis=1)
    ratio = np.divide(largest, marginal, out=np.zeros_like(b), where=marginal > 0.0).max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.maximum(1.0 / odds, np.where(ratio > 1.0, (ratio - odds) / (ratio - 1.0), 0.0))[:, None, None]
        mixed = share * marginal[:, None, :] + (1.0 - share) * w
        output = np.einsum("mx,mxy->my", b, mixed)[:, None, :]
        leaked = np.where(output > 0.0, np.abs(np.log(mixed) - np.log(output)), 0.0).max(axis=(1, 2))
    tables, back = np.empty_like(w), np.argsort(order, axis=1)
    tables[...] = mixed[runs[:, None, None], back[:, :, None], back[:, None, :]]
    for run in np.flatnonzero(~attained | (leaked > epsilon) | (b[:, -1] == 0.0)).tolist():
        tables[run] = hamming_response(beliefs[run], epsilon).matrix()
    return tables
