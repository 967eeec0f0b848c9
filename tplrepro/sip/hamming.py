"""The exact response under Hamming distance, for alphabets of any size.

Write E = e^eps and K = E + 1. A response within the budget is a = q/E + (1 - 1/E) w with w(y|x) <= K q(y) and
q the marginal of both (`tplrepro.sip.mixing`), and keeps the truth with probability

    sum_y beta(y) q(y) / E + (1 - 1/E) sum_y beta(y) w(y|y),      w(y|y) <= min(1, q(y) / beta(y), K q(y)).      (1)

**Bound.** The right side is concave in each q(y): for beta(y) >= 1/K the steepest slope up to q(y) = beta(y);
for rarer symbols slope E beta(y) up to q(y) = 1/K; beyond that beta(y)/E for all. Maximising over q is a
knapsack: common symbols keep their marginal; then the rare ones, in falling order of belief, get 1/K each
while E^2 beta(y) > max beta, the last one, z, perhaps a part; what is left goes to the most probable symbol.

**What the diagonal exclusion adds.** Let tau be the belief in z and in all symbols less probable than z. The
bound is attained if there is no partial z, or if K tau >= 1. (Column z must be filled from rows that have
mass left, which are z itself, up to its cap K q(z) beta(z), and the rarer ones x, up to K q(z) beta(x): a
total of K q(z) tau for a column of q(z). The other columns have caps K q(y) >= 1 that never bind, and
balance. Conversely, where K tau < 1 an optimum of the bound would have a column z that cannot be filled.) The
proof is in docs/errata/sip2023.md.

**Otherwise** only few symbols leave the bound's allocation. All rarer symbols behave as one, because their
caps are proportional to their beliefs, and all other symbols keep the allocation of (1); a linear programme
over the rest, a window around z and the most probable symbol, gives a response, and its dual, extended to all
symbols, an upper bound:

    U(nu) = sum_x beta(x) nu(x) + max_y max { beta(y)/E + (1 - 1/E) beta(y) w(y) - sum_x beta(x) nu(x) w(x) :
                                              0 <= w <= K, sum_x beta(x) w(x) = 1 }                               (2)

bounds (1) for every nu (weak duality: weigh the inner maximum with q(y)). Each inner maximum fills the mass
1/K in rising order of nu(x) - (1 - 1/E) [x = y], so U costs O(n log n). The window doubles until bound and
response agree.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

import numpy as np

from tplrepro.sip.mixing import constant_response, mix, usable_budget
from tplrepro.sip.response import MixtureResponse

__all__ = ["hamming_response", "knapsack_bound", "utility_bound"]

#: Response and bound agree when they differ by less than this share of the probability of keeping the truth.
AGREEMENT = 1e-9
#: A partly served symbol of smaller belief is left out: it could lower the cost by no more than that.
NEGLIGIBLE = 1e-8
#: Symbols that the linear programme may free at once.
LARGEST_WINDOW = 200


def hamming_response(belief: np.ndarray, epsilon: float) -> MixtureResponse:
    """The response of least expected Hamming distance with leakage at most `epsilon`; `bound` is the proven least cost.

    Parameters
    ----------
    belief : ndarray (n,), checked
    epsilon : float, nats
    """
    effective = usable_budget(epsilon)
    positive = np.flatnonzero(belief > 0)
    if effective <= 0 or positive.size == 1:
        return constant_response(belief, bound=1.0 - belief.max() if positive.size == 1 else -np.inf)
    order = positive[np.argsort(-belief[positive], kind="stable")]
    b, odds = belief[order], float(np.exp(effective))
    bound, n_served, q, part = _allocate(b, odds)
    if part > 0.0 and b[n_served] < NEGLIGIBLE:
        q[0], part = q[0] + part / (odds + 1), 0.0  # z would add at most its belief; the bound stands
    if part == 0.0 or (odds + 1) * b[n_served:].sum() >= 1.0:
        labels, table, row_class = _fill(b, odds, n_served, q, part)
        utility = bound
    else:
        labels, table, row_class, utility = _by_window(b, odds, n_served, q, bound)
    everyone = np.full(belief.size, len(table))  # what cannot occur gives nothing away: its row is the marginal
    everyone[order] = row_class
    shared = row_class >= 0
    output = np.bincount(row_class[shared], b[shared], minlength=len(table)) @ table
    output = output + np.where(row_class[labels] < 0, b[labels], 0.0)
    return mix(belief, order[labels], np.vstack([table, output / output.sum()]), everyone, epsilon, 1.0 - utility)


def knapsack_bound(belief, epsilon: float) -> tuple[float, bool]:
    """The bound on the probability of keeping the truth, and whether it is attained.

    >>> [knapsack_bound(b, 1.0)[1] for b in ([0.05, 0.95], [0.3, 0.2, 0.2, 0.2, 0.1], [0.32, 0.29, 0.21, 0.18])]
    [True, True, False]
    """
    b = np.sort(np.asarray(belief, dtype=float))[::-1]
    b = b[b > 0]
    bound, n_served, _, part = _allocate(b, float(np.exp(epsilon)))
    return bound, bool(part == 0.0 or (np.exp(epsilon) + 1) * b[n_served:].sum() >= 1.0)


def _allocate(b: np.ndarray, odds: float) -> tuple[float, int, np.ndarray, float]:
    """The knapsack on beliefs in falling order: bound, number of symbols served in full, their q, and the part of z."""
    cap = odds + 1.0
    n_common = int(np.searchsorted(-b, -1.0 / cap, side="right"))
    left = b[n_common:].sum()
    worth = int(np.searchsorted(-b, -b[0] / odds**2, side="left"))  # those before it have E^2 b > b[0]
    n_full = int(np.floor(cap * left))
    part = cap * left - n_full
    if part < 1e-12:
        part = 0.0
    if n_common + n_full >= max(worth, n_common):
        n_full, part = max(worth - n_common, 0), 0.0
    n_served = n_common + n_full
    q = np.maximum(b[:n_served], 1.0 / cap)
    excess = 1.0 - q.sum() - part / cap
    if part == 0.0 and n_served:
        q[0] += excess
    bound = float(b[:n_served] @ q / odds + (1 - 1 / odds) * b[:n_served].sum())
    if part:
        bound += odds * b[n_served] * part / cap
    return bound, n_served, q, part


def _fill(b, odds, n_served, q, part):
    """The transport that attains the bound: labels, rows of w shared by classes, and the class of each symbol."""
    row_class = np.full(b.size, -1)
    spare = np.maximum(q - b[:n_served], 0.0)  # what the columns of served symbols lack
    # Rounding can leave nothing to fill for a tail of no weight, which then goes to the first symbol.
    shares = spare / spare.sum() if spare.sum() > 0 else np.eye(1, n_served)[0]
    labels = np.arange(n_served + (part > 0))
    if n_served == b.size:
        return labels, np.zeros((0, labels.size)), row_class
    if part == 0.0:
        row_class[n_served:] = 0
        return labels, shares[None, :], row_class
    cap = odds + 1.0
    z, rarer = n_served, b[n_served + 1 :].sum()
    row_class[z], row_class[z + 1 :] = 0, 1
    into_z = part * (1 / cap - b[z]) / rarer
    return (
        labels,
        np.vstack([np.append((1 - part) * shares, part), np.append((1 - into_z) * shares, into_z)]),
        row_class,
    )


def _by_window(b, odds, n_served, q, upper):
    """Free a window of symbols until the dual bound is met: labels, table, classes and the proven bound."""
    # Without z the bound's argument still gives a response; it stands where the programme finds nothing better.
    without = q.copy()
    without[0] += 1.0 - q.sum()
    best = *_fill(b, odds, n_served, without, 0.0), float(b[:n_served] @ (without / odds + 1 - 1 / odds))
    reach = 3
    while True:
        window = np.arange(max(0, n_served - reach), min(b.size, n_served + reach))
        active = np.union1d([0], window)
        frozen = np.setdiff1d(np.arange(n_served), active)
        found = _window_programme(b, odds, active, frozen, q)
        if found is not None:
            upper = min(upper, utility_bound(b, odds, found[4]))
            best = max(best, found[:4], key=lambda candidate: candidate[3])
        if upper - best[3] <= AGREEMENT * upper or active.size == b.size or active.size > LARGEST_WINDOW:
            return *best[:3], upper
        reach *= 2


def _window_programme(b, odds, active, frozen, q):
    """The linear programme in which only `active` symbols leave the allocation q; None if HiGHS gives up."""
    from scipy.optimize import linprog

    cap, gain = odds + 1.0, 1 - 1 / odds
    kept = np.zeros(b.size, dtype=bool)
    kept[active] = kept[frozen] = True
    tail = np.flatnonzero(~kept)
    mass = np.append(b[active], b[tail].sum()) if tail.size else b[active]
    n_rows, n_labels = mass.size, active.size
    spare = np.maximum(q[frozen] - b[frozen], 0.0) if frozen.size else np.zeros(0)
    sink = spare.sum() > 0
    columns = n_labels + sink
    # Variables: w (rows, columns), then K q of the active labels. The last column collects what frozen columns lack.
    n_w = n_rows * columns
    objective = np.zeros(n_w + n_labels)
    own = np.arange(n_labels) * columns + np.arange(n_labels)
    objective[own] = -gain * b[active]
    objective[n_w:] = -b[active] / (odds * cap)
    capped = (np.arange(n_rows)[:, None] * columns + np.arange(n_labels)).ravel()
    upper = np.zeros((capped.size, n_w + n_labels))
    upper[np.arange(capped.size), capped] = 1.0
    upper[np.arange(capped.size), n_w + np.tile(np.arange(n_labels), n_rows)] = -1.0
    equal = np.zeros((n_rows + columns, n_w + n_labels))
    for r in range(n_rows):
        equal[r, r * columns : (r + 1) * columns] = 1.0
    for c in range(columns):
        equal[n_rows + c, c:n_w:columns] = cap * mass
        if c < n_labels:
            equal[n_rows + c, n_w + c] = -1.0
    right = np.concatenate([np.ones(n_rows), np.zeros(n_labels), [cap * spare.sum()] if sink else []])
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solved = linprog(objective, upper, np.zeros(capped.size), equal, right, method="highs", options=tight)
    if solved.status != 0:
        return None
    w = np.maximum(solved.x[:n_w].reshape(n_rows, columns), 0.0)
    w /= w.sum(axis=1, keepdims=True)
    labels = np.concatenate([active, frozen])
    table = np.zeros((n_rows, labels.size))
    table[:, :n_labels] = w[:, :n_labels]
    if sink:
        table[:, n_labels:] = w[:, [n_labels]] * spare / spare.sum()
    row_class = np.full(b.size, n_rows - 1)
    row_class[active] = np.arange(n_labels)
    row_class[frozen] = -1
    table = _drop_slight_outputs(b, table, mass, labels, row_class)
    output = mass @ table + np.where(row_class[labels] < 0, b[labels], 0.0)
    kept_truth = np.where(row_class[labels] < 0, 1.0, table[row_class[labels], np.arange(labels.size)])
    utility = float(b[labels] @ (output / odds + gain * kept_truth))
    dual = _extend_dual(b, odds, active, frozen, tail, -np.asarray(solved.eqlin.marginals[:n_rows]) / mass)
    return labels, table, row_class, utility, dual


def _drop_slight_outputs(b, table, mass, labels, row_class, cut=1e-9):
    """Move what goes to outputs of hardly any probability to each row's other outputs: noise has large ratios there."""
    output = mass @ table + np.where(row_class[labels] < 0, b[labels], 0.0)
    slight = output <= cut
    if not slight.any() or slight.all():
        return table
    table = np.where(slight, 0.0, table)
    sums = table.sum(axis=1, keepdims=True)
    first = np.zeros(labels.size)
    first[np.argmax(output)] = 1.0
    return np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), first)


def _extend_dual(b, odds, active, frozen, tail, values):
    """nu for all symbols: the programme's for active ones and the tail; for frozen ones, what makes them tight."""
    cap = odds + 1.0
    nu = np.empty(b.size)
    nu[active] = values[: active.size]
    rest = values[-1]
    nu[tail] = rest
    belief = b[frozen]
    rare = (odds * belief - (1 - cap * belief) * rest) / (cap * belief)
    nu[frozen] = np.where(belief >= 1 / cap, belief / odds + 1 - 1 / odds, rare)
    return nu


def utility_bound(b: np.ndarray, odds: float, nu: np.ndarray) -> float:
    """U(nu) of Eq. (2) above: no response within the budget keeps the truth with a larger probability.

    Parameters
    ----------
    b : ndarray (n,), positive beliefs
    odds : float, e^epsilon
    nu : ndarray (n,), any dual values
    """
    cap, gain = odds + 1.0, 1 - 1 / odds
    room = 1.0 / cap
    order = np.argsort(nu, kind="stable")
    mass = np.concatenate([[0.0], np.cumsum(b[order])])
    price = np.concatenate([[0.0], np.cumsum(b[order] * nu[order])])
    before = np.empty(b.size)
    before[order] = mass[:-1]  # mass of symbols cheaper than each
    cheaper = mass[np.searchsorted(nu[order], nu - gain, side="left")]  # than the symbol as its own output
    first = np.minimum(cheaper, room)
    own = np.minimum(b, room - first)
    amount = room - own  # taken from the other symbols, cheapest first
    beyond = amount > before
    others = np.interp(np.where(beyond, amount + b, amount), mass, price) - np.where(beyond, b * nu, 0.0)
    inner = b / odds + cap * (gain * own - own * nu - others)
    return float((b * nu).sum() + inner.max())
