"""The one-sided form of problem (15) of [3] as a linear programme for HiGHS (see `tplrepro.sip.mixture`)."""

from __future__ import annotations

import numpy as np

__all__ = ["solve_one_sided"]


def solve_one_sided(
    mass: np.ndarray,
    w_cost: np.ndarray,
    q_cost: np.ndarray,
    odds: float,
    *,
    elsewhere: float = 0.0,
    by_output: bool = True,
) -> tuple[np.ndarray, float, np.ndarray]:
    """Minimise sum w_cost w + sum q_cost q over responses w with q = mass @ w and w <= (odds + 1) q.

    Parameters
    ----------
    mass : ndarray (n,), positive probabilities of the rows
    w_cost, q_cost : ndarrays (n, m), (m,)
    odds : float, e^epsilon
    elsewhere : float, optional: one more output, without limit or cost, has this probability
    by_output : bool, the order and unit of the variables
        Where several responses are optimal, it decides which one HiGHS finds: published draws depend on it.

    Returns w (n, m), or (n, m + 1) with `elsewhere` > 0, nearly feasible to the solver's tolerance; the least cost; and
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
    limits = hstack(
        [each(eye_array(n), eye_array(m, outputs)), each(np.ones((n, 1)), -(odds + 1) / unit * eye_array(m))]
    )
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
        raise ArithmeticError(
            f"HiGHS found no optimum for the exact response ({solved.message}); please report the belief"
        )
    w = solved.x[: n * outputs]
    w = w.reshape(outputs, n).T if by_output else w.reshape(n, outputs)
    return w, float(solved.fun), solved.eqlin.marginals[:n] / mass
