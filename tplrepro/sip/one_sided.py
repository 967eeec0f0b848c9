"""Problem (15) of [3] in one-sided form: the linear programme, and mixtures that keep a budget exactly.

Every response within a budget eps can be written a(y|x) = q(y) / E + (1 - 1/E) w(y|x) with E = e^eps, w a response of
the same marginal q and w(y|x) <= (E + 1) q(y): the two-sided constraint of the problem becomes one-sided. Conversely,
for any response w with marginal q and largest ratio R = max w/q, mixing with a share t of q gives ratios between t and
t + (1 - t) R, so

    t = max(1/E, (R - E) / (R - 1))

is enough to keep the budget. Solvers' answers go through this step, with R computed from the numbers at hand: no
tolerance of a solver ever reaches the guarantee.
"""

from dataclasses import replace

import numpy as np

from tplrepro.sip.response import Response

__all__ = ["constant_response", "mix", "mix_dense", "solve_one_sided", "usable_budget"]

#: Beyond this budget the exact response is that of this budget: costs differ by less than 3e-9 of the distance.
LARGEST_BUDGET = 20.0


def usable_budget(epsilon: float) -> float:
    """The budget that computations aim at: below `epsilon` by more than their rounding, and at most LARGEST_BUDGET.

    Below about 1e-11 it is negative: rounding alone could leak more, so the output must not depend on the input.
    """
    return min(epsilon, LARGEST_BUDGET) - max(1e-10 * epsilon, 4e-12)


def mix(response: Response, epsilon: float) -> Response:
    """The response with the least share of the marginal that keeps the budget `usable_budget(epsilon)`."""
    seen = response.w_marginal > 0
    ratio = float((response.w_range[1][seen] / response.w_marginal[seen]).max())
    odds = np.exp(usable_budget(epsilon))
    mixed = replace(response, share=max(1.0 / odds, (ratio - odds) / (ratio - 1.0) if ratio > 1.0 else 0.0))
    if mixed.leakage > epsilon:  # cannot happen; the guarantee does not rest on that
        raise ArithmeticError(f"rounding: the response leaks {mixed.leakage!r} > {epsilon!r}; report this belief")
    return mixed


def mix_dense(
    belief: np.ndarray, table: np.ndarray, epsilon: float, cost: np.ndarray, bound: float = -np.inf
) -> Response:
    """As `mix` for a full table (n, n) of w that is only nearly feasible; `cost` (n, n) chooses what to drop.

    Outputs with a tiny marginal are where a solver's tolerance is large against the constraint: dropping them (their
    inputs keep the rest of their row) can cost less than mixing the whole response. Several cuts are tried.
    """
    possible, everyone = belief > 0, np.arange(belief.size)
    found = []
    for cut in (1e-300, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4):
        w = np.maximum(table, 0.0)
        w[:, belief @ w <= cut] = 0.0
        sums = w.sum(axis=1, keepdims=True)
        if (sums[possible] <= 0).any():
            break
        w = np.divide(w, sums, out=np.zeros_like(w), where=sums > 0)
        w[~possible] = belief @ w  # a symbol that cannot occur gives nothing away
        found.append(mix(Response(belief, everyone, 1.0, w, everyone, bound=bound), epsilon))
    return min(found, key=lambda response: response.cost(cost), default=constant_response(belief, cost, bound))


def constant_response(belief: np.ndarray, cost: np.ndarray | None = None, bound: float = -np.inf) -> Response:
    """The best output that does not depend on the input; `cost` None is Hamming distance. Its leakage is 0."""
    label = int(np.argmax(belief)) if cost is None else int(np.argmin(belief @ cost))
    everyone = np.zeros(belief.size, dtype=np.intp)
    return Response(belief, np.array([label]), 1.0, np.ones((1, 1)), everyone, bound=bound)


def solve_one_sided(
    mass: np.ndarray,
    w_cost: np.ndarray,
    q_cost: np.ndarray,
    odds: float,
    *,
    elsewhere: float = 0.0,
    by_output: bool = True,
) -> tuple[np.ndarray, float, np.ndarray]:
    """Minimise sum w_cost w + sum q_cost q over responses w with q = mass @ w and w <= (odds + 1) q, by HiGHS.

    Rows have positive probabilities `mass` (n,); `w_cost` (n, m), `q_cost` (m,). With `elsewhere` > 0, one more output,
    without limit or cost, has this probability. `by_output` is the order and unit of the variables: where several
    responses are optimal, it decides which one HiGHS finds, and published draws depend on it.

    Returns w (n, m), or (n, m + 1) with `elsewhere`, nearly feasible to the solver's tolerance; the least cost; and
    the dual values of the rows, each divided by its mass. Raises ArithmeticError if HiGHS gives up.
    """
    from scipy.optimize import linprog
    from scipy.sparse import block_array, eye_array, hstack, kron

    n, m = w_cost.shape
    outputs = m + (elsewhere > 0)

    def each(of_rows, of_outputs):
        return kron(of_outputs, of_rows) if by_output else kron(of_rows, of_outputs)

    # Variables: w, then unit * q.
    unit = 1.0 if by_output else odds + 1.0
    costs = np.hstack([w_cost, np.zeros((n, outputs - m))])
    own = each(eye_array(n), eye_array(m, outputs))
    limits = hstack([own, each(np.ones((n, 1)), -(odds + 1) / unit * eye_array(m))])
    rows, marginals = each(eye_array(n), np.ones((1, outputs))), each(unit * mass[None], eye_array(outputs))
    solved = linprog(
        np.concatenate([(costs.T if by_output else costs).ravel(), q_cost / unit]),
        limits.tocsr(),
        np.zeros(n * m),
        block_array([[rows, None], [marginals, -eye_array(outputs, m)]]).tocsr(),
        np.concatenate([np.ones(n), np.zeros(m), np.full(outputs - m, unit * elsewhere)]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solved.status != 0:
        raise ArithmeticError(f"HiGHS found no optimum of the exact response ({solved.message}); report the belief")
    w = solved.x[: n * outputs]
    w = w.reshape(outputs, n).T if by_output else w.reshape(n, outputs)
    return w, float(solved.fun), solved.eqlin.marginals[:n] / mass
