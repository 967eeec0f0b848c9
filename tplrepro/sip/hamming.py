"""The exact response: problem (15) of [3] in one-sided form, and its solution under Hamming
distance for any alphabet.

Every response within a budget eps can be written a(y|x) = q(y) / E + (1 - 1/E) w(y|x), with E =
e^eps and w a response of the same marginal q with w(y|x) <= K q(y), K = E + 1. Conversely, let a
response w have marginal q and largest ratio R = max w/q. Mixed with a share t of q, its ratios lie
between t and t + (1 - t) R, so t = max(1/E, (R - E) / (R - 1)) keeps the budget.
`mix_with_marginal` takes R from the solver's numbers, so the guarantee depends on no solver's
tolerance.

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
#: How far windows reach on both sides of z, one after another.
REACHES = (3, 6, 12, 24, 48, 96, 192, 384, 768)
#: Symbols that the linear programme may free at once.
LARGEST_WINDOW = 200
#: Below which marginals outputs are dropped in the repairs of a nearly feasible table.
CUTS = (1e-300, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)


def usable_budget(epsilon: float) -> float:
    """`epsilon` minus a margin for rounding errors, at most LARGEST_BUDGET; not positive: outputs
    must be constant."""
    margin = max(1e-10 * epsilon, 4e-12)
    return min(epsilon, LARGEST_BUDGET) - margin


def mix_with_marginal(response: Response, epsilon: float) -> Response:
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
    ratios = highest[is_seen] / q[is_seen]
    ratio = float(ratios.max())  # R
    odds = np.exp(usable_budget(epsilon))  # E
    share = 1.0 / odds
    if ratio > 1.0:
        share_for_ratio = (ratio - odds) / (ratio - 1.0)
        share = max(share, share_for_ratio)
    mixed = replace(response, share=share, base=q)
    if mixed.leakage > epsilon:
        mixed = replace(mixed, share=_share_near_one(ratio, epsilon))
    if mixed.leakage > epsilon:  # a guard that should never be needed
        raise ArithmeticError(
            f"rounding: the response leaks {mixed.leakage!r} > {epsilon!r}; report this belief"
        )
    return mixed


def _share_near_one(ratio: float, epsilon: float) -> float:
    """The share of the marginal where hardly any of w is kept and 1 - share has lost its digits."""
    kept = np.expm1(usable_budget(epsilon)) / (ratio - 1.0)
    share = np.nextafter(1.0 - kept, 2.0)
    return min(float(share), 1.0)


def mix_nearly_feasible(
    belief: np.ndarray, table: np.ndarray, epsilon: float, cost: np.ndarray
) -> Response:
    """The response from a table that is only nearly feasible: the cheapest of several repairs.

    Each repair drops the outputs whose marginal is below some cut, which can cost less than mixing
    in more of the marginal, and calls `mix_with_marginal`.

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
    candidates = []
    for cut in CUTS:
        repaired = _without_slight_outputs(belief, table, cut)
        if repaired is None:
            break
        candidates.append(mix_with_marginal(repaired, epsilon))
    cheapest_output = int(np.argmin(belief @ cost))
    candidates.append(constant_response(belief, cheapest_output))
    return min(candidates, key=lambda response: response.cost(cost))


def _without_slight_outputs(belief: np.ndarray, table: np.ndarray, cut: float) -> Response | None:
    """The response w of a table (n, n) without outputs whose marginal is at most `cut`; None if a
    possible symbol has no other output. Entries below 0 count as 0."""
    is_possible = belief > 0
    w = np.maximum(table, 0.0)
    marginal = belief @ w
    w[:, marginal <= cut] = 0.0
    sums = w.sum(axis=1, keepdims=True)
    if (sums[is_possible] <= 0).any():
        return None
    zeros = np.zeros_like(w)
    w = np.divide(w, sums, out=zeros, where=sums > 0)
    w[~is_possible] = belief @ w  # impossible symbols get the marginal, which reveals nothing
    marginal = belief @ w
    symbols = np.arange(belief.size)
    return Response(
        belief=belief, labels=symbols, share=0.0, base=marginal, table=w, row_class=symbols
    )


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
    may_be_served = _is_common(belief, odds) | _is_worth_serving(belief, odds)
    order = _falling_order(belief, may_be_served)
    allocation = solve_knapsack(belief[order], odds)
    if not allocation.attained:
        is_possible = belief > 0.0
        order = _falling_order(belief, is_possible)
        allocation = solve_knapsack(belief[order], odds)
    b = belief[order]
    if allocation.attained:
        response = _attaining_response(b, odds, allocation)
    else:
        response = _search_windows(b, odds, allocation)
    response = response.extended(belief, order)
    if epsilon > LARGEST_BUDGET:  # what is proven is proven of a smaller budget
        response = replace(response, bound=0.0)
    return mix_with_marginal(response, epsilon)


def _falling_order(belief: np.ndarray, is_sorted: np.ndarray) -> np.ndarray:
    """The possible symbols, by number: those of the mask `is_sorted` (n,) in falling order of
    belief, then the others."""
    chosen = np.flatnonzero(is_sorted)
    ranks = np.argsort(-belief[chosen], kind="stable")
    falling = chosen[ranks]
    is_other = (belief > 0.0) & ~is_sorted
    others = np.flatnonzero(is_other)
    return np.append(falling, others)


def _is_common(b: np.ndarray, odds: float) -> np.ndarray:
    """Which symbols have a belief b >= 1/K, (k,) of bool, K = odds + 1."""
    cap = odds + 1.0
    return b >= 1.0 / cap


def _is_worth_serving(b: np.ndarray, odds: float) -> np.ndarray:
    """Which symbols have E^2 b > max b, (k,) of bool, E = odds."""
    least_worth = b.max() / odds**2
    return b > least_worth


@dataclass(frozen=True)
class Allocation:
    """The optimum of the knapsack in this module's docstring."""

    bound: float  # of the probability of keeping the truth
    q: np.ndarray  # (m,), the marginal of the m most probable symbols, which are served in full
    part: float  # in [0, 1), the share of 1/K of the next symbol, z
    attained: bool  # whether a response attains the bound


def solve_knapsack(b: np.ndarray, odds: float) -> Allocation:
    """Solve the knapsack in this module's docstring.

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
    rare_mass = b[n_common:].sum()
    room = cap * rare_mass  # how many rare symbols it serves with 1/K each
    n_rare = int(np.floor(room))
    part = room - n_rare
    if part < LEAST_PART:
        part = 0.0
    n_rare_worth = max(n_worth - n_common, 0)
    if n_rare >= n_rare_worth:
        n_rare = n_rare_worth
        part = 0.0
    n_served = n_common + n_rare
    served = b[:n_served]
    q = np.maximum(served, 1.0 / cap)
    if part == 0.0:
        q[0] += 1.0 - q.sum()
    w_share = 1 - 1 / odds
    kept_by_marginal = served @ q / odds
    kept_by_w = w_share * served.sum()
    bound = float(kept_by_marginal + kept_by_w)
    if part:
        belief_in_z = b[n_served]
        bound += odds * belief_in_z * part / cap
        if belief_in_z < NEGLIGIBLE:  # z would add at most its belief; the bound stands
            q[0] += part / cap
            part = 0.0
    tau = b[n_served:].sum()  # the belief in z and rarer symbols
    attained = part == 0.0 or cap * tau >= 1.0
    return Allocation(bound=bound, q=q, part=part, attained=bool(attained))


def _attaining_response(b: np.ndarray, odds: float, allocation: Allocation) -> Response:
    """The response that attains the allocation's bound: served symbols are output unchanged, and
    the others fill up the columns of these.

    `b` (k,) are the beliefs in falling order as the allocation takes them, `odds` is E.
    """
    n_served = allocation.q.size
    row_class = np.zeros(b.size, dtype=np.intp)
    row_class[:n_served] = -1
    served = b[:n_served]
    lacking = np.maximum(allocation.q - served, 0.0)
    if lacking.sum() > 0:
        shares = lacking / lacking.sum()
    else:  # by rounding, for a tail of no weight, which then goes to the first symbol
        shares = np.eye(1, n_served)[0]
    table = shares[None]
    if allocation.part > 0:
        rarer = slice(n_served + 1, None)
        row_class[rarer] = 1
        zeta = b[rarer].sum()  # the belief in symbols rarer than z
        belief_in_z = b[n_served]
        lacking_in_z = 1 / (odds + 1) - belief_in_z
        z_into_z = allocation.part
        rarer_into_z = allocation.part * lacking_in_z / zeta
        row_of_z = _with_last_share(shares, z_into_z)
        row_of_rarer = _with_last_share(shares, rarer_into_z)
        table = np.array([row_of_z, row_of_rarer])
    return Response(
        belief=b,
        labels=np.arange(table.shape[1]),
        share=0.0,
        base=table[0],
        table=table,
        row_class=row_class,
        bound=1.0 - allocation.bound,
    )


def _with_last_share(shares: np.ndarray, last: float) -> np.ndarray:
    """A distribution (m + 1,): `last` for one more output, the rest in the proportions of shares
    (m,)."""
    rest = (1 - last) * shares
    return np.append(rest, last)


def _search_windows(b: np.ndarray, odds: float, allocation: Allocation) -> Response:
    """A response by programmes over a growing window, with a bound for all symbols, from an
    allocation that no response attains. `b` (k,) are all positive beliefs, in falling order, `odds`
    is E."""
    without_z = _without_z(b, odds, allocation)
    best = _attaining_response(b, odds, without_z)  # if the programme finds none that is better
    truth = without_z.bound
    upper = allocation.bound
    for reach in REACHES:
        active = _symbols_around_z(b.size, allocation.q.size, reach)
        with suppress(ArithmeticError):  # HiGHS gave up: a larger window may do
            optimum = _respond_in_window(b, odds, active, allocation.q)
            upper = min(upper, utility_bound(b, odds, optimum.nu))
            if optimum.truth > truth:
                best = optimum.response
                truth = optimum.truth
        agrees = upper - truth <= AGREEMENT * upper
        is_largest = active.size == b.size or active.size > LARGEST_WINDOW
        if agrees or is_largest:
            break
    return replace(best, bound=1.0 - upper)


def _without_z(b: np.ndarray, odds: float, allocation: Allocation) -> Allocation:
    """An allocation without its partly served symbol, whose mass the first symbol gets; its `bound`
    is what the response attains. `b` (k,) are the beliefs in falling order, `odds` is E."""
    q = allocation.q.copy()
    q[0] += 1.0 - q.sum()
    served = b[: q.size]
    kept = q / odds + 1 - 1 / odds
    truth = float(served @ kept)
    return Allocation(bound=truth, q=q, part=0.0, attained=True)


def _symbols_around_z(n_symbols: int, z: int, reach: int) -> np.ndarray:
    """The numbers of the most probable symbol, 0, and of those within `reach` of z, ascending."""
    first = max(0, z - reach)
    end = min(n_symbols, z + reach)
    return np.union1d([0], np.arange(first, end))


@dataclass(frozen=True, eq=False)
class _WindowOptimum:
    """The best response in which only the symbols of a window may differ from an allocation."""

    response: Response
    truth: float  # its probability of keeping the truth
    nu: np.ndarray  # (n,), dual values of all symbols


def _respond_in_window(
    b: np.ndarray, odds: float, active: np.ndarray, allocated: np.ndarray
) -> _WindowOptimum:
    """The best response if only the symbols numbered `active` may differ from the marginal
    `allocated` (m,) to the m served ones.

    `b` (k,) are the beliefs in falling order, `odds` is E. ArithmeticError if the solver gives up.
    """
    w_share = 1 - 1 / odds
    n_active = active.size
    fixed = np.setdiff1d(np.arange(allocated.size), active)
    row_class = _classes_in_window(b.size, active, fixed)
    is_free = row_class >= 0
    mass = np.bincount(row_class[is_free], b[is_free])
    lacking = np.maximum(allocated[fixed] - b[fixed], 0.0)  # in the columns of fixed symbols
    belief_in_output = np.eye(mass.size, n_active) * b[active]
    solution = _solve_window(
        mass=mass,
        w_cost=-w_share * belief_in_output,
        q_cost=-b[active] / odds,
        odds=odds,
        elsewhere=lacking.sum(),
    )
    w = _with_fixed_outputs(solution.w, n_active, lacking)
    output_by_fixed = np.append(np.zeros(n_active), b[fixed])
    output = mass @ w + output_by_fixed
    labels = np.append(active, fixed)
    table = _drop_slight_outputs(w, output)
    response = Response(
        belief=b, labels=labels, share=0.0, base=output, table=table, row_class=row_class
    )
    kept_by_active = np.diagonal(table)[:n_active]
    kept_by_w = np.append(kept_by_active, np.ones(fixed.size))
    kept = response.w_marginal / odds + w_share * kept_by_w
    truth = float(b[labels] @ kept)
    nu_of_rarer = -solution.dual[-1]
    nu = np.full(b.size, nu_of_rarer)
    nu[active] = -solution.dual[:n_active]
    nu[fixed] = _tight_values(b[fixed], odds, nu_of_rarer)
    return _WindowOptimum(response=response, truth=truth, nu=nu)


def _with_fixed_outputs(w: np.ndarray, n_active: int, lacking: np.ndarray) -> np.ndarray:
    """A solver's w with a column for each output, (c, n_active + f).

    After the active outputs a solver has one column for all fixed ones, if they lack something,
    which they share in proportion to what each is `lacking` (f,).
    """
    w_of_active = w[:, :n_active]
    w_elsewhere = w[:, n_active:].sum(axis=1, keepdims=True)
    w_of_fixed = w_elsewhere * _divide_by_sum(lacking)
    w_of_all = np.hstack([w_of_active, w_of_fixed])
    return np.maximum(w_of_all, 0.0)


def _classes_in_window(n_symbols: int, active: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """The class of each symbol's row, (n_symbols,): active symbols have rows of their own, all
    rarer symbols are one, and fixed ones are output unchanged, -1. `active` and `fixed` are numbers
    of symbols."""
    row_class = np.full(n_symbols, active.size)
    row_class[active] = np.arange(active.size)
    row_class[fixed] = -1
    return row_class


def _divide_by_sum(values: np.ndarray) -> np.ndarray:
    """Values divided by their sum, if that is positive."""
    total = values.sum()
    if total > 0:
        return values / total
    return values


def _drop_slight_outputs(w: np.ndarray, output: np.ndarray) -> np.ndarray:
    """w (c, m) without the outputs whose probability, of `output` (m,), is slight; rows sum to
    1."""
    table = w.copy()
    is_slight = output <= SLIGHT_OUTPUT
    table[:, is_slight] = 0.0
    likeliest = np.argmax(output)
    table[:, likeliest] += np.finfo(float).tiny  # so that no row is empty
    table /= table.sum(axis=1, keepdims=True)
    return table


def _tight_values(belief: np.ndarray, odds: float, of_rarer: float) -> np.ndarray:
    """The dual values (f,) that make the terms of served symbols in U(nu) tight (`utility_bound`).

    `belief` (f,) is that in the served symbols, `odds` is E, and `of_rarer` is the value of the
    symbols that are rarer than all of these.
    """
    cap = odds + 1.0
    w_share = 1 - 1 / odds
    if_common = belief / odds + w_share
    by_others = (1 - cap * belief) * of_rarer
    by_itself = odds * belief - by_others
    if_rare = by_itself / (cap * belief)
    is_common = _is_common(belief, odds)
    return np.where(is_common, if_common, if_rare)


@dataclass(frozen=True, eq=False)
class _WindowSolution:
    """A solver's response to the rows of a window, and their dual values per mass."""

    w: np.ndarray  # (n, m), or (n, m + 1) with an output for fixed symbols
    dual: np.ndarray  # (n,)


def _solve_window(
    *, mass: np.ndarray, w_cost: np.ndarray, q_cost: np.ndarray, odds: float, elsewhere: float
) -> _WindowSolution:
    """The w (n, m) that minimises sum w_cost w + sum q_cost q, where q = mass @ w, the rows of w
    sum to 1, and w <= (odds + 1) q.

    `mass` (n,) is that of the rows, `w_cost` (n, m), `q_cost` (m,). With elsewhere > 0, w has one
    more column: an output of this probability, without cost or limit. ArithmeticError if the solver
    finds no optimum.
    """
    from scipy.optimize import linprog
    from scipy.sparse import block_array, eye_array, hstack, kron

    n, m = w_cost.shape
    cap = odds + 1.0
    n_outputs = m
    if elsewhere > 0:
        n_outputs = m + 1
    n_more = n_outputs - m
    # Variables: w, row by row, then cap * q.
    cost_of_more = np.zeros((n, n_more))
    w_costs = np.hstack([w_cost, cost_of_more]).ravel()
    costs = np.concatenate([w_costs, q_cost / cap])
    # w - cap * q <= 0
    each_row = eye_array(n)
    w_limited = kron(each_row, eye_array(m, n_outputs))
    all_rows = np.ones((n, 1))
    limits = kron(all_rows, -eye_array(m))
    inequalities = hstack([w_limited, limits]).tocsr()
    # The rows of w sum to 1, and cap * mass @ w is cap * q, or of the one more output given.
    all_outputs = np.ones((1, n_outputs))
    row_sums = kron(each_row, all_outputs)
    marginals = kron(cap * mass[None], eye_array(n_outputs))
    minus_q = -eye_array(n_outputs, m)
    equalities = block_array([[row_sums, None], [marginals, minus_q]]).tocsr()
    marginal_of_more = np.full(n_more, cap * elsewhere)
    equal_to = np.concatenate([np.ones(n), np.zeros(m), marginal_of_more])
    solved = linprog(
        c=costs,
        A_ub=inequalities,
        b_ub=np.zeros(n * m),
        A_eq=equalities,
        b_eq=equal_to,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solved.status != 0:
        raise ArithmeticError(
            f"HiGHS found no optimum of the exact response ({solved.message}); report the belief"
        )
    n_of_w = n * n_outputs
    w = solved.x[:n_of_w].reshape(n, n_outputs)
    dual_of_row_sums = solved.eqlin.marginals[:n]
    return _WindowSolution(w=w, dual=dual_of_row_sums / mass)


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
    w_share = 1 - 1 / odds
    order = np.argsort(nu, kind="stable")
    sorted_b = b[order]
    sorted_nu = nu[order]
    mass = _sums_up_to(sorted_b)
    price = _sums_up_to(sorted_b * sorted_nu)
    rank = np.argsort(order)
    cheaper = mass[rank]  # the mass of symbols cheaper than each
    # An output's own symbol costs 1 - 1/E less: the mass of symbols that are still cheaper.
    rank_as_truth = np.searchsorted(sorted_nu, nu - w_share, side="left")
    cheaper_than_truth = mass[rank_as_truth]
    amount = 1 / cap
    left_for_truth = amount - np.minimum(cheaper_than_truth, amount)
    from_truth = np.minimum(b, left_for_truth)
    from_others = amount - from_truth  # cheapest first
    passes_truth = from_others > cheaper
    filled_up_to = np.where(passes_truth, from_others + b, from_others)
    price_with_truth = np.interp(filled_up_to, mass, price)
    weighted_nu = b * nu
    passed_price = np.where(passes_truth, weighted_nu, 0.0)
    price_of_others = price_with_truth - passed_price
    price_of_truth = from_truth * nu
    gains_by_w = w_share * from_truth - price_of_truth - price_of_others
    gains = b / odds + cap * gains_by_w
    bound = weighted_nu.sum() + gains.max()
    rounding = 8 * np.finfo(float).eps * cap
    return float(bound) + rounding


def _sums_up_to(values: np.ndarray) -> np.ndarray:
    """0 and the cumulative sums, (n + 1,)."""
    return np.concatenate([[0.0], np.cumsum(values)])
