"""An interior-point method for the one-sided programme of `tplrepro.sip.hamming` under any costs.

    minimise sum_x b(x) sum_y c(x, y) w(x, y)
    with     sum_y w(x, y) = 1,  w >= 0,  s(x, y) = K q(y) - w(x, y) >= 0
    where    q(y) = sum_x b(x) w(x, y)

Multipliers nu(x) of the rows, kappa(y) of the marginals, rho of s >= 0 and zeta of w >= 0, all per
mass b(x), satisfy zeta(x, y) = c(x, y) - nu(x) + rho(x, y) - kappa(y) and kappa(y) = K sum_x b(x)
rho(x, y).

Mehrotra's predictor-corrector method (1992) ends in the middle of the set of optimal responses, so
symbols that are alike are treated alike. Eliminating w, then q and kappa from a Newton step leaves
n equations in nu: O(n^2 m) for m outputs. All changes are sums of terms that do not cancel near the
optimum.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

#: Newton steps; 400 symbols take 30 to 110.
MOST_STEPS = 300
#: A step goes this share of the way to the boundary, far from the optimum and near it.
SHARES = (0.95, 0.99)


@dataclass(frozen=True, eq=False)
class Optimum:
    """A solution of the one-sided programme and its prices."""

    w: np.ndarray  # (n, m), the response
    nu: np.ndarray  # (n,), of the rows
    kappa: np.ndarray  # (m,), of the marginals


@np.errstate(all="ignore")  # what overflows ends the search
def solve_interior(b: np.ndarray, cost: np.ndarray, odds: float, gap: float) -> Optimum:
    """Solve the one-sided programme.

    Parameters
    ----------
    b : array (n,)
        Positive masses with sum 1.
    cost : array (n, m)
        c(x, y).
    odds : float
        K - 1.
    gap : float
        It stops when the duality gap is at most this share of the cost, or when rounding errors
        prevent progress.

    Returns
    -------
    Optimum
    """
    n, m = cost.shape
    cap = odds + 1.0
    # Aim at products proportional to this instead of 1/b, lest symbols of little mass rule the
    # steps.
    weight = np.sqrt(1.0 / (n * b))[:, None]
    per_weight = 2.0 * m * float(b @ weight[:, 0])
    primal = np.empty((2, n, m))
    primal[0] = 1.0 / m  # w
    primal[1] = 1.0 / m * odds  # s
    rho = np.repeat(weight / odds, m, axis=1)
    prices = cost.min() - 2.0 * weight  # nu + kappa, to which all outputs alike are central
    dual = np.array([cost - prices + rho, rho])  # zeta and rho
    nu = prices[:, 0] - cap * (b @ rho)[0]
    for _ in range(MOST_STEPS):
        products = primal * dual
        between = float(b @ products.sum(axis=(0, 2)))
        if between <= gap * float(b @ np.einsum("xy,xy->x", primal[0], cost)):
            break
        try:
            newton = _Newton(primal, dual, b, cap, cost - nu[:, None])
            straight = newton.step(-products)
            # The further the straight way to the optimum is open, the less centring and the more
            # correction pays. A full correction after a short way throws iterates to the boundary,
            # where rounding errors decide how they go on.
            length = min(_length(primal, straight.primal), _length(dual, straight.dual))
            centre = 0.5 * (1.0 - length) ** 2 * between / per_weight * weight
            step = newton.step(centre - products - length * straight.primal * straight.dual)
        except ValueError:  # LinAlgError, or numbers that are no floats beside masses near 0
            break
        if not step.is_finite:
            break
        share = float(np.clip(1.0 - between, *SHARES))
        forward = min(1.0, share * _length(primal, step.primal))
        backward = min(1.0, share * _length(dual, step.dual))
        primal += forward * step.primal
        dual += backward * step.dual
        nu += backward * step.nu
    return Optimum(w=primal[0], nu=nu, kappa=cap * (b @ dual[1]))


def _length(values: np.ndarray, changes: np.ndarray) -> float:
    """The largest multiple of the changes that leaves all (positive) values at or above 0."""
    return 1.0 / max(1e-300, -float((changes / values).min()))


@dataclass(frozen=True, eq=False)
class _Step:
    """Changes of primal, (2, n, m), dual, (2, n, m), and nu, (n,)."""

    primal: np.ndarray
    dual: np.ndarray
    nu: np.ndarray

    @property
    def is_finite(self) -> bool:
        return all(np.isfinite(change).all() for change in (self.primal, self.dual, self.nu))


class _Newton:
    """Newton's method at one point: the normal equations are factored once, for several aims."""

    def __init__(
        self, primal: np.ndarray, dual: np.ndarray, b: np.ndarray, cap: float, beyond: np.ndarray
    ):
        self.primal = primal
        self.b = b
        self.cap = cap
        self.slope = dual / primal
        phi, theta = self.slope
        inverse = 1.0 / (phi + theta)
        of_s = theta * inverse
        of_w = phi * inverse
        # q and kappa follow from
        # beta dq - alpha dkappa = to_w and dq / gamma + beta dkappa = to_s.
        alpha = b @ inverse
        beta = 1.0 - cap * (b @ of_s)
        gamma = 1.0 / (cap**2 * (b @ (of_s * phi)))
        pivot = alpha + beta**2 * gamma
        root = np.sqrt(b)
        of_rows = root[:, None]
        added = of_rows * of_s * (cap * np.sqrt(gamma))
        left = inverse - of_s * (beta * gamma * cap)
        taken = of_rows * left / np.sqrt(pivot)
        self.solve = _solver(inverse.sum(axis=1), added, taken)
        self.inverse = inverse
        self.of_s = of_s
        self.of_w = of_w
        self.beta = beta
        self.gamma = gamma
        self.pivot = pivot
        self.root = root
        # By how much rounding has made s and zeta too small.
        self.of_primal = cap * (b @ primal[0]) - primal[0] - primal[1]
        self.of_dual = beyond + dual[1] - cap * (b @ dual[1]) - dual[0]

    def step(self, aim: np.ndarray) -> _Step:
        """The step that changes primal * dual by the aim, (2, n, m)."""
        _, theta = self.slope
        ratio = aim / self.primal
        ratio[1] -= theta * self.of_primal
        right = ratio[0] - ratio[1] - self.of_dual
        pulled = self.inverse * right
        to_w = self.b @ pulled
        to_s = self.cap * (self.b @ (ratio[1] + self.of_s * right))
        kappa = self._kappa(to_w, to_s)
        in_rows = pulled.sum(axis=1) + self.inverse @ kappa
        in_rows = in_rows + self.of_s @ self._room(to_s, kappa)
        nu = self.solve(-self.root * in_rows) / self.root
        paid = nu * self.b
        to_w = to_w + paid @ self.inverse
        to_s = to_s + self.cap * (paid @ self.of_s)
        kappa = self._kappa(to_w, to_s)
        room = self._room(to_s, kappa)
        pulled += self.inverse * (nu[:, None] + kappa)
        primal = np.array([pulled + self.of_s * room, self.of_w * room - pulled])
        dual = ratio - self.slope * primal
        primal[1] += self.of_primal
        return _Step(primal, dual, nu)

    def _kappa(self, to_w: np.ndarray, to_s: np.ndarray) -> np.ndarray:
        return (self.beta * self.gamma * to_s - to_w) / self.pivot

    def _room(self, to_s: np.ndarray, kappa: np.ndarray) -> np.ndarray:
        """By how much K q grows."""
        return self.cap * self.gamma * (to_s - self.beta * kappa)


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
    """A lower bound of the cost of every feasible w, from any prices (weak duality).

        sum_x b(x) nu(x) + min_y min { sum_x b(x) (c(x, y) - nu(x)) w(x) }
        over all w with 0 <= w <= K and sum_x b(x) w(x) = 1;

    weigh the inner minimum with q(y).

    Parameters
    ----------
    b : array (n,)
        Positive masses with sum 1.
    cost : array (n, m)
        c(x, y).
    odds : float
        K - 1.
    nu : array (n,)
        Prices of the rows.

    Returns
    -------
    float
    """
    least_means = least_column_means(cost - nu[:, None], b, 1.0 / (odds + 1.0))
    return float(b @ nu + least_means.min())


def least_column_means(values: np.ndarray, mass: np.ndarray, amount: float) -> np.ndarray:
    """The least mean of each column over a part of the masses.

    Parameters
    ----------
    values : array (n, m)
    mass : array (n,)
        The masses of the rows.
    amount : float
        The mass that the mean is over; masses may be divided.

    Returns
    -------
    array (m,)
    """
    order = np.argsort(values, axis=0)
    masses = mass[order]
    before = np.cumsum(masses, axis=0) - masses
    taken = np.clip(amount - before, 0.0, masses)
    return (taken * np.take_along_axis(values, order, axis=0)).sum(axis=0) / amount
