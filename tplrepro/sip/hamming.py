"""The exact response: problem (15) of [3] in one-sided form, and its solution under Hamming
distance for any alphabet.

Every response within a budget eps can be written a(y|x) = q(y) / E + (1 - 1/E) w(y|x), with E =
e^eps and w a response of the same marginal q with w(y|x) <= K q(y), K = E + 1. Conversely, let a
response w have marginal q and largest ratio R = max w/q. Mixed with a share t of q, its ratios lie
between t and t + (1 - t) R, so t = max(1/E, (R - E) / (R - 1)) keeps the budget. `mix` takes R from
the solver's numbers, so the guarantee depends on no solver's tolerance.

Under Hamming distance (proofs in docs/errata/sip2023.md) the truth is kept with probability

    sum_y beta(y) q(y) / E + (1 - 1/E) sum_y beta(y) w(y|y),      w(y|y) <= min(1, q(y) / beta(y), K q(y)).

Its maximum over q is a knapsack: common symbols, beta(y) >= 1/K, keep their marginal; then rare
ones, in falling order of belief, get 1/K each while E^2 beta(y) > max beta, the last one, z,
perhaps a part; the most probable symbol gets the rest. The bound is attained if there is no such z,
or if K tau >= 1 with tau the belief in z and all rarer symbols. Otherwise a linear programme over a
window around z and the most probable symbol, with all rarer symbols merged, gives a response, and
its dual a bound for all symbols. The window doubles until response and bound agree.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from tplrepro.sip.response import Response

#: Larger budgets get the response of this one, whose cost is within 3e-9 of the distance.
LARGEST_BUDGET = 20.0
#: Response and bound agree when they differ by less than this share of the probability of keeping the truth.
AGREEMENT = 1e-9
#: A partly served symbol of smaller belief is left out: it would lower the cost by less than this.
NEGLIGIBLE = 1e-8
#: Outputs of smaller probability are left out of a solver's answer, where its errors are large ratios.
SLIGHT_OUTPUT = 1e-9
#: Symbols that the linear programme may free at once.
LARGEST_WINDOW = 200


def usable_budget(epsilon: float) -> float:
    """`epsilon` minus a margin for rounding errors, at most LARGEST_BUDGET; not positive: outputs
    must be constant."""
    return min(epsilon, LARGEST_BUDGET) - max(1e-10 * epsilon, 4e-12)


def mix(response: Response, epsilon: float) -> Response:
    """The response mixed with the least share of its marginal that keeps the budget
    `usable_budget(epsilon)`."""
    seen = response.w_marginal > 0
    ratio = float((response.w_range[1][seen] / response.w_marginal[seen]).max())
    odds = np.exp(usable_budget(epsilon))
    share = max(1.0 / odds, (ratio - odds) / (ratio - 1.0) if ratio > 1.0 else 0.0)
    mixed = replace(response, share=share, base=response.w_marginal)
    if mixed.leakage > epsilon:  # where hardly any of w is kept, 1 - share has lost its digits
        kept = np.expm1(usable_budget(epsilon)) / (ratio - 1.0)
        mixed = replace(mixed, share=min(float(np.nextafter(1.0 - kept, 2.0)), 1.0))
    if mixed.leakage > epsilon:  # a guard that should never be needed
        raise ArithmeticError(
            f"rounding: the response leaks {mixed.leakage!r} > {epsilon!r}; report this belief"
        )
    return mixed


def mix_dense(belief: np.ndarray, table: np.ndarray, epsilon: float, cost: np.ndarray) -> Response:
    """`mix` for a table w (n, n) that is only nearly feasible: the cheapest, by `cost` (n, n), of
    several repairs.

    Each drops the outputs whose marginal is below some cut, which can cost less than mixing in more
    of the marginal.
    """
    possible, everyone = belief > 0, np.arange(belief.size)
    candidates = []
    for cut in (1e-300, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4):
        w = np.maximum(table, 0.0)
        w[:, belief @ w <= cut] = 0.0
        sums = w.sum(axis=1, keepdims=True)
        if (sums[possible] <= 0).any():
            break
        w = np.divide(w, sums, out=np.zeros_like(w), where=sums > 0)
        w[~possible] = belief @ w  # impossible symbols get the marginal, which reveals nothing
        candidates.append(mix(Response(belief, everyone, 0.0, belief @ w, w, everyone), epsilon))
    constant = constant_response(belief, int(np.argmin(belief @ cost)))
    return min([*candidates, constant], key=lambda response: response.cost(cost))


def constant_response(belief: np.ndarray, label: int, bound: float = -np.inf) -> Response:
    """Always the same output. Its leakage is 0."""
    always = np.ones((1, 1))
    return Response(
        belief,
        np.array([label]),
        1.0,
        always[0],
        always,
        np.zeros(belief.size, dtype=np.intp),
        bound,
    )


def _solve_window(
    mass: np.ndarray, w_cost: np.ndarray, q_cost: np.ndarray, odds: float, elsewhere: float
) -> tuple[np.ndarray, np.ndarray]:
    """The w (n, m) that minimises sum w_cost w + sum q_cost q, q = mass @ w, w <= (odds + 1) q;
    dual values (n,).

    With elsewhere > 0, w has one more column: an output of this probability, without cost or limit.
    """
    from scipy.optimize import linprog
    from scipy.sparse import block_array, eye_array, hstack, kron

    n, m = w_cost.shape
    outputs, cap = m + (elsewhere > 0), odds + 1.0
    # Variables: w, row by row, then cap * q.
    below = kron(np.ones((n, 1)), -eye_array(m))
    rows, marginals = (
        kron(eye_array(n), np.ones((1, outputs))),
        kron(cap * mass[None], eye_array(outputs)),
    )
    solved = linprog(
        np.concatenate([np.hstack([w_cost, np.zeros((n, outputs - m))]).ravel(), q_cost / cap]),
        hstack([kron(eye_array(n), eye_array(m, outputs)), below]).tocsr(),
        np.zeros(n * m),
        block_array([[rows, None], [marginals, -eye_array(outputs, m)]]).tocsr(),
        np.concatenate([np.ones(n), np.zeros(m), np.full(outputs - m, cap * elsewhere)]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solved.status != 0:
        raise ArithmeticError(
            f"HiGHS found no optimum of the exact response ({solved.message}); report the belief"
        )
    return solved.x[: n * outputs].reshape(n, outputs), solved.eqlin.marginals[:n] / mass


def hamming_response(belief: np.ndarray, epsilon: float) -> Response:
    """The response of least expected Hamming distance with leakage at most `epsilon`; `bound` is
    its proven cost."""
    odds = float(np.exp(usable_budget(epsilon)))
    order = _falling(belief, np.logical_or(*_common_and_worth(belief, odds)))
    allocation = allocate(belief[order], odds)
    if not allocation.attained:
        order = _falling(belief, belief > 0.0)
        allocation = allocate(belief[order], odds)
    b = belief[order]
    solve = _fill if allocation.attained else _by_window
    response, utility = solve(b, odds, allocation)
    bound = 1.0 - utility if epsilon <= LARGEST_BUDGET else 0.0
    return mix(replace(response.extended(belief, order), bound=bound), epsilon)


def _falling(belief, first):
    """The possible symbols: those in the mask `first` (n,) in falling order of belief, then the
    others."""
    chosen = np.flatnonzero(first)
    return np.append(
        chosen[np.argsort(-belief[chosen], kind="stable")], np.flatnonzero((belief > 0.0) & ~first)
    )


@dataclass(frozen=True)
class Allocation:
    """The optimum of the knapsack in this module's docstring."""

    bound: float  # of the probability of keeping the truth
    q: np.ndarray  # (m,), the marginal of the m most probable symbols, which are served in full
    part: float  # in [0, 1), the share of 1/K of the next symbol, z
    attained: bool  # whether a response attains the bound


def allocate(b: np.ndarray, odds: float) -> Allocation:
    """Solve the knapsack for beliefs in falling order, as far as they are worth serving."""
    cap = odds + 1.0
    n_common, worth = (int(np.count_nonzero(chosen)) for chosen in _common_and_worth(b, odds))
    left = b[n_common:].sum()
    n_full = int(np.floor(cap * left))
    part = cap * left - n_full if cap * left - n_full >= 1e-12 else 0.0
    if n_common + n_full >= max(worth, n_common):
        n_full, part = max(worth - n_common, 0), 0.0
    n_served = n_common + n_full
    q = np.maximum(b[:n_served], 1.0 / cap)
    if part == 0.0:
        q[0] += 1.0 - q.sum()
    bound = float(b[:n_served] @ q / odds + (1 - 1 / odds) * b[:n_served].sum())
    if part:
        bound += odds * b[n_served] * part / cap
        if b[n_served] < NEGLIGIBLE:
            q[0], part = q[0] + part / cap, 0.0  # z would add at most its belief; the bound stands
    return Allocation(bound, q, part, bool(part == 0.0 or cap * b[n_served:].sum() >= 1.0))


def _common_and_worth(b, odds):
    """Masks of the common symbols, b >= 1/K, and of those worth serving, E^2 b > max b."""
    return b >= 1.0 / (odds + 1.0), b > b.max() / odds**2


def _fill(b, odds, allocation) -> tuple[Response, float]:
    """The response that attains the allocation's bound, and that bound."""
    n_served, part = allocation.q.size, allocation.part
    row_class = np.where(np.arange(b.size) < n_served, -1, 0)
    spare = np.maximum(allocation.q - b[:n_served], 0.0)  # room in the columns of served symbols
    # By rounding there may be no room for a tail of no weight, which then goes to the first symbol.
    shares = spare / spare.sum() if spare.sum() > 0 else np.eye(1, n_served)[0]
    table = [shares]
    if part > 0:
        row_class[n_served + 1 :] = 1
        into_z = part * (1 / (odds + 1) - b[n_served]) / b[n_served + 1 :].sum()
        table = [np.append((1 - share) * shares, share) for share in (part, into_z)]
    return Response(
        b, np.arange(len(table[0])), 0.0, table[0], np.array(table), row_class
    ), allocation.bound


def _by_window(b, odds, allocation):
    """A response by programmes over a growing window, and an upper bound of the probability of
    keeping the truth."""
    # Start from the response without z, in case the programme finds none that is better.
    without, n_served, upper = allocation.q.copy(), allocation.q.size, allocation.bound
    without[0] += 1.0 - without.sum()
    lower = float(b[:n_served] @ (without / odds + 1 - 1 / odds))
    best, utility = _fill(b, odds, Allocation(lower, without, 0.0, True))
    for reach in 3 * 2 ** np.arange(9):
        active = np.union1d([0], np.arange(max(0, n_served - reach), min(b.size, n_served + reach)))
        with suppress(ArithmeticError):  # HiGHS gave up: a larger window may do
            found, found_utility, dual = _window_response(b, odds, active, allocation.q)
            upper = min(upper, utility_bound(b, odds, dual))
            if found_utility > utility:
                best, utility = found, found_utility
        if (
            upper - utility <= AGREEMENT * upper
            or active.size == b.size
            or active.size > LARGEST_WINDOW
        ):
            break
    return best, upper


def _window_response(b, odds, active, q):
    """The best response in which only `active` symbols may differ from the allocation q, with its
    probability of keeping the truth and dual values for all symbols.
    """
    gain, m = 1 - 1 / odds, active.size
    frozen = np.setdiff1d(np.arange(q.size), active)
    row_class = np.full(b.size, m)  # all rarer symbols are one
    row_class[active] = np.arange(m)
    row_class[frozen] = -1
    mass = np.bincount(row_class[row_class >= 0], b[row_class >= 0])
    own = np.eye(mass.size, m) * b[active]
    spare = np.maximum(q[frozen] - b[frozen], 0.0)  # room in the columns of frozen symbols
    w, dual = _solve_window(mass, -gain * own, -b[active] / odds, odds, spare.sum())
    shares = spare / spare.sum() if spare.sum() > 0 else spare
    table = np.maximum(np.hstack([w[:, :m], w[:, m:].sum(axis=1, keepdims=True) * shares]), 0.0)
    output = mass @ table + np.append(np.zeros(m), b[frozen])
    table[:, output <= SLIGHT_OUTPUT] = 0.0
    table[:, np.argmax(output)] += np.finfo(float).tiny  # so that no row is empty
    table /= table.sum(axis=1, keepdims=True)
    response = Response(b, np.append(active, frozen), 0.0, output, table, row_class)
    kept_truth = np.append(np.diagonal(table)[:m], np.ones(frozen.size))
    utility = float(b[response.labels] @ (response.w_marginal / odds + gain * kept_truth))
    nu = -np.append(dual, dual[-1])[row_class]
    # The values that make the terms of frozen symbols in U(nu) tight.
    cap, belief = odds + 1.0, b[frozen]
    rare = (odds * belief - (1 - cap * belief) * -dual[-1]) / (cap * belief)
    nu[frozen] = np.where(belief >= 1 / cap, belief / odds + gain, rare)
    return response, utility, nu


def utility_bound(b: np.ndarray, odds: float, nu: np.ndarray) -> float:
    """An upper bound of the probability of keeping the truth within the budget, from any dual
    values nu (n,).

        U(nu) = sum_x b(x) nu(x) + max_y max { b(y)/E + (1 - 1/E) b(y) w(y) - sum_x b(x) nu(x) w(x)
        :
                                               0 <= w <= K, sum_x b(x) w(x) = 1 }

    (weak duality). Each inner maximum fills the mass 1/K in rising order of nu(x) - (1 - 1/E) [x =
    y].
    """
    cap, gain = odds + 1.0, 1 - 1 / odds
    order = np.argsort(nu, kind="stable")
    mass = np.concatenate([[0.0], np.cumsum(b[order])])
    price = np.concatenate([[0.0], np.cumsum(b[order] * nu[order])])
    before = mass[np.argsort(order)]  # mass of symbols cheaper than each
    # than the symbol as its own output
    cheaper = mass[np.searchsorted(nu[order], nu - gain, side="left")]
    own = np.minimum(b, 1 / cap - np.minimum(cheaper, 1 / cap))
    amount = 1 / cap - own  # taken from the other symbols, cheapest first
    beyond = amount > before
    others = np.interp(np.where(beyond, amount + b, amount), mass, price) - np.where(
        beyond, b * nu, 0.0
    )
    rounding = 8 * np.finfo(float).eps * cap
    return (
        float((b * nu).sum() + (b / odds + cap * (gain * own - own * nu - others)).max()) + rounding
    )
