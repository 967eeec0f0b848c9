"""The exact response: problem (15) of [3] in one-sided form, and its solution under Hamming
distance for any alphabet.

Every response within a budget eps can be written a(y|x) = q(y) / E + (1 - 1/E) w(y|x), with E =
e^eps and w a response of the same marginal q with w(y|x) <= K q(y), K = E + 1. Conversely, let a
response w have marginal q and largest ratio R = max w/q. Mixed with a share t of q, its ratios lie
between t and t + (1 - t) R, so t = max(1/E, (R - E) / (R - 1)) keeps the budget. `mix` takes R from
the solver's numbers, so the guarantee depends on no solver's tolerance.

Under Hamming distance (proofs in docs/errata/sip2023.md) the truth is kept with probability

    sum_y beta(y) q(y) / E + (1 - 1/E) sum_y beta(y) w(y|y),
    where w(y|y) <= min(1, q(y) / beta(y), K q(y)).

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
#: Response and bound agree when they differ by less than this share of the probability of keeping
#: the truth.
AGREEMENT = 1e-9
#: A partly served symbol of smaller belief is left out: it would lower the cost by less than this.
NEGLIGIBLE = 1e-8
#: A part of 1/K that is smaller is rounding.
LEAST_PART = 1e-12
#: Outputs of smaller probability are left out of a solver's answer, where its errors are large
#: ratios.
SLIGHT_OUTPUT = 1e-9
#: Symbols that the linear programme may free at once.
LARGEST_WINDOW = 200
#: Below which marginals outputs are dropped in the repairs of a nearly feasible table.
CUTS = (1e-300, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)


def usable_budget(epsilon: float) -> float:
    """`epsilon` minus a margin for rounding errors, at most LARGEST_BUDGET; not positive: outputs
    must be constant."""
    return min(epsilon, LARGEST_BUDGET) - max(1e-10 * epsilon, 4e-12)


def mix(response: Response, epsilon: float) -> Response:
    """The response mixed with the least share of its marginal that keeps the budget.

    Parameters
    ----------
    response : Response
        w, with share 0.
    epsilon : float
        The budget in nats; `usable_budget(epsilon)` is used.

    Returns
    -------
    Response

    Raises
    ------
    ArithmeticError
        If rounding makes the leakage exceed the budget, which should never happen.
    """
    q = response.w_marginal
    is_seen = q > 0
    _, highest = response.w_range
    ratio = float((highest[is_seen] / q[is_seen]).max())  # R
    odds = np.exp(usable_budget(epsilon))  # E
    share = 1.0 / odds
    if ratio > 1.0:
        share = max(share, (ratio - odds) / (ratio - 1.0))
    mixed = replace(response, share=share, base=q)
    if mixed.leakage > epsilon:  # where hardly any of w is kept, 1 - share has lost its digits
        kept = np.expm1(usable_budget(epsilon)) / (ratio - 1.0)
        mixed = replace(mixed, share=min(float(np.nextafter(1.0 - kept, 2.0)), 1.0))
    if mixed.leakage > epsilon:  # a guard that should never be needed
        raise ArithmeticError(
            f"rounding: the response leaks {mixed.leakage!r} > {epsilon!r}; report this belief"
        )
    return mixed


def mix_dense(belief: np.ndarray, table: np.ndarray, epsilon: float, cost: np.ndarray) -> Response:
    """`mix` for a table that is only nearly feasible: the cheapest of several repairs.

    Each drops the outputs whose marginal is below some cut, which can cost less than mixing in more
    of the marginal.

    Parameters
    ----------
    belief : array (n,)
        The distribution of the symbol.
    table : array (n, n)
        w.
    epsilon : float
        The budget in nats.
    cost : array (n, n)
        The distances by which repairs are compared.

    Returns
    -------
    Response
    """
    is_possible = belief > 0
    everyone = np.arange(belief.size)
    candidates = []
    for cut in CUTS:
        w = np.maximum(table, 0.0)
        w[:, belief @ w <= cut] = 0.0
        sums = w.sum(axis=1, keepdims=True)
        if (sums[is_possible] <= 0).any():
            break
        w = np.divide(w, sums, out=np.zeros_like(w), where=sums > 0)
        w[~is_possible] = belief @ w  # impossible symbols get the marginal, which reveals nothing
        response = Response(belief, everyone, 0.0, belief @ w, w, everyone)
        candidates.append(mix(response, epsilon))
    candidates.append(constant_response(belief, int(np.argmin(belief @ cost))))
    return min(candidates, key=lambda response: response.cost(cost))


def constant_response(belief: np.ndarray, label: int, bound: float = -np.inf) -> Response:
    """Always the same output, which leaks nothing.

    Parameters
    ----------
    belief : array (n,)
        The distribution of the symbol.
    label : int
        The output.
    bound : float
        A proven lower bound of the cost of every response within the budget.

    Returns
    -------
    Response
    """
    always = np.ones((1, 1))
    return Response(
        belief=belief,
        labels=np.array([label]),
        share=1.0,
        base=always[0],
        table=always,
        row_class=np.zeros(belief.size, dtype=np.intp),
        bound=bound,
    )


def hamming_response(belief: np.ndarray, epsilon: float) -> Response:
    """The response of least expected Hamming distance within a budget.

    Parameters
    ----------
    belief : array (n,)
        The distribution of the symbol.
    epsilon : float
        The budget in nats.

    Returns
    -------
    Response
        Its `bound` is its proven cost.
    """
    odds = float(np.exp(usable_budget(epsilon)))
    order = _falling_order(belief, _is_common(belief, odds) | _is_worth_serving(belief, odds))
    allocation = allocate(belief[order], odds)
    if not allocation.attained:
        order = _falling_order(belief, belief > 0.0)
        allocation = allocate(belief[order], odds)
    b = belief[order]
    if allocation.attained:
        response = _attaining_response(b, odds, allocation)
        truth = allocation.bound
    else:
        response, truth = _search_windows(b, odds, allocation)
    bound = 0.0
    if epsilon <= LARGEST_BUDGET:
        bound = 1.0 - truth
    return mix(replace(response.extended(belief, order), bound=bound), epsilon)


def _falling_order(belief: np.ndarray, is_sorted: np.ndarray) -> np.ndarray:
    """The possible symbols: those of the mask (n,) in falling order of belief, then the others."""
    chosen = np.flatnonzero(is_sorted)
    falling = chosen[np.argsort(-belief[chosen], kind="stable")]
    others = np.flatnonzero((belief > 0.0) & ~is_sorted)
    return np.append(falling, others)


def _is_common(b: np.ndarray, odds: float) -> np.ndarray:
    """Which symbols have b >= 1/K."""
    return b >= 1.0 / (odds + 1.0)


def _is_worth_serving(b: np.ndarray, odds: float) -> np.ndarray:
    """Which symbols have E^2 b > max b."""
    return b > b.max() / odds**2


@dataclass(frozen=True)
class Allocation:
    """The optimum of the knapsack in this module's docstring."""

    bound: float  # of the probability of keeping the truth
    q: np.ndarray  # (m,), the marginal of the m most probable symbols, which are served in full
    part: float  # in [0, 1), the share of 1/K of the next symbol, z
    attained: bool  # whether a response attains the bound


def allocate(b: np.ndarray, odds: float) -> Allocation:
    """Solve the knapsack.

    Parameters
    ----------
    b : array (k,)
        Beliefs in falling order, as far as they are worth serving.
    odds : float
        E.

    Returns
    -------
    Allocation
    """
    cap = odds + 1.0
    n_common = int(np.count_nonzero(_is_common(b, odds)))
    n_worth = int(np.count_nonzero(_is_worth_serving(b, odds)))
    room = cap * b[n_common:].sum()  # in units of 1/K
    n_full = int(np.floor(room))
    part = room - n_full
    if part < LEAST_PART:
        part = 0.0
    if n_common + n_full >= max(n_worth, n_common):
        n_full = max(n_worth - n_common, 0)
        part = 0.0
    n_served = n_common + n_full
    served = b[:n_served]
    q = np.maximum(served, 1.0 / cap)
    if part == 0.0:
        q[0] += 1.0 - q.sum()
    bound = float(served @ q / odds + (1 - 1 / odds) * served.sum())
    if part:
        bound += odds * b[n_served] * part / cap
        if b[n_served] < NEGLIGIBLE:  # z would add at most its belief; the bound stands
            q[0] += part / cap
            part = 0.0
    attained = part == 0.0 or cap * b[n_served:].sum() >= 1.0
    return Allocation(bound, q, part, bool(attained))


def _attaining_response(b: np.ndarray, odds: float, allocation: Allocation) -> Response:
    """The response that attains the allocation's bound."""
    q = allocation.q
    part = allocation.part
    n_served = q.size
    row_class = np.where(np.arange(b.size) < n_served, -1, 0)
    spare = np.maximum(q - b[:n_served], 0.0)  # room in the columns of served symbols
    if spare.sum() > 0:
        shares = spare / spare.sum()
    else:  # by rounding, for a tail of no weight, which then goes to the first symbol
        shares = np.eye(1, n_served)[0]
    rows = [shares]
    if part > 0:
        row_class[n_served + 1 :] = 1
        rarer = b[n_served + 1 :].sum()
        into_z = part * (1 / (odds + 1) - b[n_served]) / rarer
        rows = [np.append((1 - share) * shares, share) for share in (part, into_z)]
    return Response(b, np.arange(len(rows[0])), 0.0, rows[0], np.array(rows), row_class)


def _search_windows(b: np.ndarray, odds: float, allocation: Allocation) -> tuple[Response, float]:
    """A response by programmes over a growing window, and an upper bound of the probability of
    keeping the truth."""
    # Start from the response without z, in case the programme finds none that is better.
    q = allocation.q.copy()
    n_served = q.size
    q[0] += 1.0 - q.sum()
    upper = allocation.bound
    truth = float(b[:n_served] @ (q / odds + 1 - 1 / odds))
    best = _attaining_response(b, odds, Allocation(truth, q, 0.0, True))
    for reach in (3 * 2**k for k in range(9)):
        around_z = np.arange(max(0, n_served - reach), min(b.size, n_served + reach))
        active = np.union1d([0], around_z)
        with suppress(ArithmeticError):  # HiGHS gave up: a larger window may do
            window = _respond_in_window(b, odds, active, allocation.q)
            upper = min(upper, utility_bound(b, odds, window.nu))
            if window.truth > truth:
                best = window.response
                truth = window.truth
        agrees = upper - truth <= AGREEMENT * upper
        if agrees or active.size == b.size or active.size > LARGEST_WINDOW:
            break
    return best, upper


@dataclass(frozen=True, eq=False)
class _Window:
    """The best response in which only the symbols of a window may differ from an allocation."""

    response: Response
    truth: float  # its probability of keeping the truth
    nu: np.ndarray  # (n,), dual values of all symbols


def _respond_in_window(
    b: np.ndarray, odds: float, active: np.ndarray, allocated: np.ndarray
) -> _Window:
    """The best response if only `active` symbols may differ from the allocated marginal."""
    gain = 1 - 1 / odds
    m = active.size
    fixed = np.setdiff1d(np.arange(allocated.size), active)
    row_class = np.full(b.size, m)  # all rarer symbols are one
    row_class[active] = np.arange(m)
    row_class[fixed] = -1
    is_free = row_class >= 0
    mass = np.bincount(row_class[is_free], b[is_free])
    own = np.eye(mass.size, m) * b[active]
    spare = np.maximum(allocated[fixed] - b[fixed], 0.0)  # room in the columns of fixed symbols
    w, dual = _solve_window(mass, -gain * own, -b[active] / odds, odds, spare.sum())
    shares = spare
    if spare.sum() > 0:
        shares = spare / spare.sum()
    elsewhere = w[:, m:].sum(axis=1, keepdims=True)
    table = np.maximum(np.hstack([w[:, :m], elsewhere * shares]), 0.0)
    output = mass @ table + np.append(np.zeros(m), b[fixed])
    table[:, output <= SLIGHT_OUTPUT] = 0.0
    table[:, np.argmax(output)] += np.finfo(float).tiny  # so that no row is empty
    table /= table.sum(axis=1, keepdims=True)
    response = Response(b, np.append(active, fixed), 0.0, output, table, row_class)
    kept = np.append(np.diagonal(table)[:m], np.ones(fixed.size))
    truth = float(b[response.labels] @ (response.w_marginal / odds + gain * kept))
    nu = -np.append(dual, dual[-1])[row_class]
    nu[fixed] = _tight_values(b[fixed], odds, -dual[-1])
    return _Window(response, truth, nu)


def _tight_values(belief: np.ndarray, odds: float, of_rarer: float) -> np.ndarray:
    """The dual values that make the terms of served symbols in U(nu) tight (`utility_bound`).

    `of_rarer` is the value of the symbols that are rarer than all of these.
    """
    cap = odds + 1.0
    if_common = belief / odds + (1 - 1 / odds)
    by_others = (1 - cap * belief) * of_rarer
    if_rare = (odds * belief - by_others) / (cap * belief)
    return np.where(belief >= 1 / cap, if_common, if_rare)


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
    cap = odds + 1.0
    n_outputs = m + (elsewhere > 0)
    n_more = n_outputs - m
    # Variables: w, row by row, then cap * q.
    costs = np.hstack([w_cost, np.zeros((n, n_more))]).ravel()
    w_limited = kron(eye_array(n), eye_array(m, n_outputs))
    limits = kron(np.ones((n, 1)), -eye_array(m))
    row_sums = kron(eye_array(n), np.ones((1, n_outputs)))
    marginals = kron(cap * mass[None], eye_array(n_outputs))
    equalities = [[row_sums, None], [marginals, -eye_array(n_outputs, m)]]
    solved = linprog(
        c=np.concatenate([costs, q_cost / cap]),
        A_ub=hstack([w_limited, limits]).tocsr(),
        b_ub=np.zeros(n * m),
        A_eq=block_array(equalities).tocsr(),
        b_eq=np.concatenate([np.ones(n), np.zeros(m), np.full(n_more, cap * elsewhere)]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solved.status != 0:
        raise ArithmeticError(
            f"HiGHS found no optimum of the exact response ({solved.message}); report the belief"
        )
    w = solved.x[: n * n_outputs].reshape(n, n_outputs)
    return w, solved.eqlin.marginals[:n] / mass


def utility_bound(b: np.ndarray, odds: float, nu: np.ndarray) -> float:
    """An upper bound of the probability of keeping the truth within the budget, from any dual
    values (weak duality).

        U(nu) = sum_x b(x) nu(x)
                + max_y max { b(y)/E + (1 - 1/E) b(y) w(y) - sum_x b(x) nu(x) w(x) }
        over all w with 0 <= w <= K and sum_x b(x) w(x) = 1.

    Each inner maximum fills the mass 1/K in rising order of nu(x) - (1 - 1/E) [x = y].

    Parameters
    ----------
    b : array (n,)
        Beliefs.
    odds : float
        E.
    nu : array (n,)
        Dual values of the rows.

    Returns
    -------
    float
    """
    cap = odds + 1.0
    gain = 1 - 1 / odds
    order = np.argsort(nu, kind="stable")
    mass = np.concatenate([[0.0], np.cumsum(b[order])])
    price = np.concatenate([[0.0], np.cumsum(b[order] * nu[order])])
    cheaper = mass[np.argsort(order)]  # mass of symbols cheaper than each
    # The same, than the symbol as its own output.
    cheaper_than_own = mass[np.searchsorted(nu[order], nu - gain, side="left")]
    own = np.minimum(b, 1 / cap - np.minimum(cheaper_than_own, 1 / cap))
    amount = 1 / cap - own  # taken from the other symbols, cheapest first
    passes_own = amount > cheaper
    filled = np.interp(np.where(passes_own, amount + b, amount), mass, price)
    others = filled - np.where(passes_own, b * nu, 0.0)
    rounding = 8 * np.finfo(float).eps * cap
    best_output = (b / odds + cap * (gain * own - own * nu - others)).max()
    return float((b * nu).sum() + best_output) + rounding
