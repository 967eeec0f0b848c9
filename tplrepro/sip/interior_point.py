"""An interior-point method for the one-sided programme of `tplrepro.sip.hamming` under any costs.

    minimise sum_x b(x) sum_y c(x, y) w(x, y)   with   sum_y w(x, y) = 1,  w >= 0,  s(x, y) = K q(y) - w(x, y)
    >= 0, q(y) = sum_x b(x) w(x, y)

Multipliers nu(x) of the rows, kappa(y) of the marginals, rho of s >= 0 and zeta of w >= 0, all per
mass b(x), satisfy zeta(x, y) = c(x, y) - nu(x) + rho(x, y) - kappa(y) and kappa(y) = K sum_x b(x)
rho(x, y).

Mehrotra's predictor-corrector method (1992) ends in the middle of the set of optimal responses, so
symbols that are alike are treated alike. Eliminating w, then q and kappa from a Newton step leaves
n equations in nu: O(n^2 m) for m outputs. All changes are sums of terms that do not cancel near the
optimum.
"""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

#: Newton steps; 400 symbols take 30 to 110.
MOST_STEPS = 300
#: A step goes this share of the way to the boundary, far from the optimum and near it.
SHARES = 0.95, 0.99


@np.errstate(all="ignore")  # what overflows ends the search
def solve_interior(
    b: np.ndarray, cost: np.ndarray, odds: float, gap: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The solution w (n, m), nu (n,), kappa (m,) for positive masses b (n,) with sum 1 and costs
    (n, m).

    It stops when the duality gap is at most `gap` times the cost, or when rounding errors prevent
    progress.
    """
    (n, m), cap = cost.shape, odds + 1.0
    # Aim at products proportional to this instead of 1/b, lest symbols of little mass rule the
    # steps.
    weight = np.sqrt(1.0 / (n * b))[:, None]
    primal = np.full((2, n, m), 1.0 / m) * np.array([1.0, odds])[:, None, None]  # w and s
    rho = np.repeat(weight / odds, m, axis=1)
    prices = cost.min() - 2.0 * weight  # nu + kappa, to which all outputs alike are central
    dual = np.array([cost - prices + rho, rho])
    nu = prices[:, 0] - cap * (b @ rho)[0]
    per_weight = 2.0 * m * float(b @ weight[:, 0])
    for _ in range(MOST_STEPS):
        products = primal * dual
        between = float(b @ products.sum(axis=(0, 2)))
        if between <= gap * float(b @ np.einsum("xy,xy->x", primal[0], cost)):
            break
        try:
            direction = _newton(primal, dual, b, cap, cost - nu[:, None])
            change, other, _ = direction(-products)
            # The further the straight way to the optimum is open, the less centring and the more
            # correction pays. A full correction after a short way throws iterates to the boundary,
            # where rounding errors decide how they go on.
            straight = min(_length(primal, change), _length(dual, other))
            aim = (
                0.5 * (1.0 - straight) ** 2 * between / per_weight * weight
                - products
                - straight * change * other
            )
            change, other, of_nu = direction(aim)
        except ValueError:  # LinAlgError, or numbers that are no floats beside masses near 0
            break
        if not (
            np.isfinite(change).all() and np.isfinite(other).all() and np.isfinite(of_nu).all()
        ):
            break
        share = float(np.clip(1.0 - between, *SHARES))
        forward, backward = (
            min(1.0, share * _length(*pair)) for pair in ((primal, change), (dual, other))
        )
        primal += forward * change
        dual += backward * other
        nu += backward * of_nu
    return primal[0], nu, cap * (b @ dual[1])


def _length(values: np.ndarray, changes: np.ndarray) -> float:
    """The largest multiple of the changes that leaves all (positive) values at or above 0."""
    return 1.0 / max(1e-300, -float((changes / values).min()))


def _newton(primal: np.ndarray, dual: np.ndarray, b: np.ndarray, cap: float, beyond: np.ndarray):
    """Newton's step: a function from the aimed changes (2, n, m) of primal * dual to changes of
    primal, dual and nu."""
    phi, theta = slope = dual / primal
    inverse = 1.0 / (phi + theta)
    of_s, of_w = theta * inverse, phi * inverse
    # q and kappa follow from beta dq - alpha dkappa = first, dq / gamma + beta dkappa = second.
    alpha, beta, gamma = b @ inverse, 1.0 - cap * (b @ of_s), 1.0 / (cap**2 * (b @ (of_s * phi)))
    pivot, root = alpha + beta**2 * gamma, np.sqrt(b)
    added = root[:, None] * of_s * (cap * np.sqrt(gamma))
    taken = root[:, None] * (inverse - of_s * (beta * gamma * cap)) / np.sqrt(pivot)
    solve = _solver(inverse.sum(axis=1), added, taken)
    # By how much rounding has made s and zeta too small.
    of_primal = cap * (b @ primal[0]) - primal[0] - primal[1]
    of_dual = beyond + dual[1] - cap * (b @ dual[1]) - dual[0]

    def direction(aim: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ratio = aim / primal
        ratio[1] -= theta * of_primal
        right = ratio[0] - ratio[1] - of_dual
        pulled = inverse * right
        first, second = b @ pulled, cap * (b @ (ratio[1] + of_s * right))
        kappa = (beta * gamma * second - first) / pivot
        lacking = (
            pulled.sum(axis=1) + inverse @ kappa + of_s @ (cap * gamma * (second - beta * kappa))
        )
        nu = solve(-root * lacking) / root
        first, second = first + (nu * b) @ inverse, second + cap * ((nu * b) @ of_s)
        kappa = (beta * gamma * second - first) / pivot
        room = cap * gamma * (second - beta * kappa)  # by which K q grows
        pulled += inverse * (nu[:, None] + kappa)
        change = np.array([pulled + of_s * room, of_w * room - pulled])
        other = ratio - slope * change
        change[1] += of_primal
        return change, other, nu

    return direction


def _solver(diagonal: np.ndarray, added: np.ndarray, taken: np.ndarray):
    """The function that solves (diag + added @ added.T - taken @ taken.T) x = right for x."""
    matrix = added @ added.T - taken @ taken.T
    matrix[np.diag_indices(len(matrix))] += diagonal
    unit = 1.0 / np.sqrt(np.diagonal(matrix))
    factor = _factor(matrix * unit * unit[:, None])
    return lambda right: unit * cho_solve(factor, unit * right)


def _factor(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """Cholesky's factor of a matrix with unit diagonal, which is raised where rounding made the
    matrix indefinite."""
    for more in (0.0, 1e-14, 1e-12, 1e-10):
        matrix[np.diag_indices(len(matrix))] = 1.0 + more
        try:
            return cho_factor(matrix)
        except LinAlgError:
            continue
    raise LinAlgError("the normal equations are no longer positive definite")


def lower_bound(b: np.ndarray, cost: np.ndarray, odds: float, nu: np.ndarray) -> float:
    """A lower bound of the cost of every feasible w, from any prices nu (n,).

        sum_x b(x) nu(x) + min_y min { sum_x b(x) (c(x, y) - nu(x)) w(x) : 0 <= w <= K, sum_x b(x)
        w(x) = 1 }

    (weak duality: weigh the inner minimum with q(y)).
    """
    return float(b @ nu + filled(cost - nu[:, None], b, 1.0 / (odds + 1.0)).min())


def filled(values: np.ndarray, mass: np.ndarray, amount: float) -> np.ndarray:
    """The least mean of values (n, m) over a share `amount` of the masses (n,), for each column."""
    order = np.argsort(values, axis=0)
    before = np.cumsum(mass[order], axis=0) - mass[order]
    taken = np.clip(amount - before, 0.0, mass[order])
    return (taken * np.take_along_axis(values, order, axis=0)).sum(axis=0) / amount
