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

from __future__ import annotations
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

#: Newton steps; 400 symbols take 30 to 110.
MOST_STEPS = 300
#: A step goes this share of the way to the boundary far from the optimum,
LEAST_SHARE = 0.95
#: and this share near it.
LARGEST_SHARE = 0.99
#: What is added to the diagonal of normal equations that rounding made indefinite.
RAISES = (0.0, 1e-14, 1e-12, 1e-10)


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
    iterate = _Iterate(b, cost, odds)
    for _ in range(MOST_STEPS):
        if iterate.duality_gap <= gap * iterate.cost_of_w():
            break
        try:
            newton = _Newton.at(iterate)
            straight = newton.step(-iterate.products)
            aim = iterate.centred_aim(straight)
            step = newton.step(aim)
        except ValueError:  # LinAlgError, or numbers that are no floats beside masses near 0
            break
        if not step.is_finite:
            break
        iterate.move(step)
    return Optimum(w=iterate.primal[0], nu=iterate.nu, kappa=iterate.kappa())


class _Iterate:
    """All variables at one point of the search, which starts where all outputs are alike; `b`,
    `cost` and `odds` as in `solve_interior`.

    `primal` (2, n, m) is w and s, `dual` (2, n, m) is zeta and rho.
    """

    def __init__(self, b: np.ndarray, cost: np.ndarray, odds: float):
        n, m = cost.shape
        self.b = b
        self.cost = cost
        self.cap = odds + 1.0  # K
        # Aim at products proportional to this instead of 1/b, lest symbols of little mass rule the
        # steps.
        weight = np.sqrt(1.0 / (n * b))
        self.total_weight = 2.0 * m * float(b @ weight)
        self.weight = weight[:, None]
        w = 1.0 / m
        self.primal = np.empty((2, n, m))
        self.primal[0] = w
        self.primal[1] = w * odds
        rho = np.repeat(self.weight / odds, m, axis=1)
        nu_and_kappa = cost.min() - 2.0 * self.weight  # their sum, (n, 1)
        zeta = cost - nu_and_kappa + rho
        self.dual = np.array([zeta, rho])
        kappa = self.kappa()[0]  # alike for all outputs
        self.nu = nu_and_kappa[:, 0] - kappa
        self._update_products()

    def _update_products(self) -> None:
        """Update the products w zeta and s rho, (2, n, m), and the duality gap, their sum."""
        self.products = self.primal * self.dual
        in_rows = self.products.sum(axis=(0, 2))
        self.duality_gap = float(self.b @ in_rows)

    def cost_of_w(self) -> float:
        """sum_x b(x) sum_y c(x, y) w(x, y)."""
        costs_of_rows = np.einsum("xy,xy->x", self.primal[0], self.cost)
        return float(self.b @ costs_of_rows)

    def kappa(self) -> np.ndarray:
        """K sum_x b(x) rho(x, y), (m,)."""
        rho = self.dual[1]
        return self.cap * (self.b @ rho)

    def centred_aim(self, straight: _Step) -> np.ndarray:
        """The changes of the products, (2, n, m), that the next step aims at by Mehrotra's rule.

        By the `straight` step all products would be 0, if they were linear.
        """
        # The further the straight way to the optimum is open, the less centring and the more
        # correction pays. A full correction after a short way throws iterates to the boundary,
        # where rounding errors decide how they go on.
        primal_length = _longest_step(self.primal, straight.primal)
        dual_length = _longest_step(self.dual, straight.dual)
        length = min(primal_length, dual_length)
        centring = 0.5 * (1.0 - length) ** 2
        centre = centring * self.duality_gap / self.total_weight * self.weight
        correction = length * straight.primal * straight.dual
        return centre - self.products - correction

    def move(self, step: _Step) -> None:
        """Go almost as far along a step as all variables stay positive."""
        near_optimum = 1.0 - self.duality_gap
        share = float(np.clip(near_optimum, LEAST_SHARE, LARGEST_SHARE))
        primal_length = _longest_step(self.primal, step.primal)
        dual_length = _longest_step(self.dual, step.dual)
        forward = min(1.0, share * primal_length)
        backward = min(1.0, share * dual_length)
        self.primal += forward * step.primal
        self.dual += backward * step.dual
        self.nu += backward * step.nu
        self._update_products()


def _longest_step(values: np.ndarray, changes: np.ndarray) -> float:
    """The largest multiple of the changes that leaves all values, which are positive, at or above
    0; large if none falls."""
    relative_changes = changes / values
    steepest_fall = -float(relative_changes.min())
    return 1.0 / max(1e-300, steepest_fall)


@dataclass(frozen=True, eq=False)
class _Step:
    """Changes of all variables."""

    primal: np.ndarray  # (2, n, m)
    dual: np.ndarray  # (2, n, m)
    nu: np.ndarray  # (n,)

    @property
    def is_finite(self) -> bool:
        """Whether all changes are finite numbers."""
        for change in (self.primal, self.dual, self.nu):
            if not np.isfinite(change).all():
                return False
        return True


@dataclass(frozen=True, eq=False)
class _Newton:
    """Newton's method at one point: the normal equations are factored once, for several aims.

    With phi = zeta / w and theta = rho / s, the conditions for the products give the changes of w
    and s from those of nu, q and kappa. Those of q and kappa then solve

        beta dq - alpha dkappa = to_w,   dq / gamma + beta dkappa = to_s,

    which leaves n equations in nu.
    """

    primal: np.ndarray  # (2, n, m), w and s
    slope: np.ndarray  # (2, n, m), phi and theta
    b: np.ndarray  # (n,)
    root: np.ndarray  # (n,), sqrt(b)
    cap: float  # K
    inverse: np.ndarray  # (n, m), 1 / (phi + theta)
    of_s: np.ndarray  # (n, m), theta / (phi + theta)
    of_w: np.ndarray  # (n, m), phi / (phi + theta)
    beta: np.ndarray  # (m,)
    gamma: np.ndarray  # (m,)
    pivot: np.ndarray  # (m,), alpha + beta^2 gamma
    equations: _DefiniteEquations  # the normal equations, for sqrt(b) dnu
    missing_in_s: np.ndarray  # (n, m), by how much rounding has made s too small
    missing_in_zeta: np.ndarray  # (n, m), by how much it has made zeta too small

    @classmethod
    def at(cls, iterate: _Iterate) -> Self:
        """Newton's method at the iterate."""
        b = iterate.b
        cap = iterate.cap
        w, s = iterate.primal
        zeta, rho = iterate.dual
        slope = iterate.dual / iterate.primal
        phi, theta = slope
        inverse = 1.0 / (phi + theta)
        of_s = theta * inverse
        of_w = phi * inverse
        alpha = b @ inverse
        beta = 1.0 - cap * (b @ of_s)
        curvature = b @ (of_s * phi)
        gamma = 1.0 / (cap**2 * curvature)
        pivot = alpha + beta**2 * gamma
        root = np.sqrt(b)
        added = root[:, None] * of_s * (cap * np.sqrt(gamma))
        per_s = beta * gamma * cap
        taken = root[:, None] * (inverse - of_s * per_s) / np.sqrt(pivot)
        equations = _DefiniteEquations(inverse.sum(axis=1), added, taken)
        limit = cap * (b @ w)  # K q
        missing_in_s = limit - w - s
        reduced_cost = iterate.cost - iterate.nu[:, None]
        missing_in_zeta = reduced_cost + rho - iterate.kappa() - zeta
        return cls(
            primal=iterate.primal,
            slope=slope,
            b=b,
            root=root,
            cap=cap,
            inverse=inverse,
            of_s=of_s,
            of_w=of_w,
            beta=beta,
            gamma=gamma,
            pivot=pivot,
            equations=equations,
            missing_in_s=missing_in_s,
            missing_in_zeta=missing_in_zeta,
        )

    def step(self, aim: np.ndarray) -> _Step:
        """The step that would change the products primal * dual by the aim, (2, n, m), if they were
        linear, and that repairs what rounding made missing."""
        ratio = aim / self.primal
        for_w, for_s = ratio
        _, theta = self.slope
        for_s -= theta * self.missing_in_s
        right = for_w - for_s - self.missing_in_zeta
        # By the aim alone: w grows by this, and its marginal and K q - s by to_w and to_s.
        by_aim = self.inverse * right
        to_w = self.b @ by_aim
        to_s = self._change_of_limit_by_aim(for_s, right)
        nu = self._change_of_nu(by_aim.sum(axis=1), to_w, to_s)
        # And by the change of nu as well.
        mass_of_nu = nu * self.b
        to_w = to_w + mass_of_nu @ self.inverse
        of_s_by_nu = mass_of_nu @ self.of_s
        to_s = to_s + self.cap * of_s_by_nu
        kappa = self._change_of_kappa(to_w, to_s)
        room = self._change_of_limit(to_s, kappa)
        by_aim += self.inverse * (nu[:, None] + kappa)
        primal = self._change_of_primal(by_aim, room)
        dual = ratio - self.slope * primal
        primal[1] += self.missing_in_s
        return _Step(primal=primal, dual=dual, nu=nu)

    def _change_of_limit_by_aim(self, for_s: np.ndarray, right: np.ndarray) -> np.ndarray:
        """By how much K q, (m,), would grow by the aim alone if nu and kappa stayed the same.
        `for_s` (n, m) is the aim for s rho over s, less theta times what is missing in s; `right`
        (n, m) is what the aim asks of w less that of s."""
        in_columns = self.b @ (for_s + self.of_s * right)
        return self.cap * in_columns

    def _change_of_primal(self, apart_from_room: np.ndarray, room: np.ndarray) -> np.ndarray:
        """The changes of w and s, (2, n, m), from `apart_from_room` (n, m), what w grows by were
        `room` 0; `room` (m,) is the growth of K q."""
        change_of_w = apart_from_room + self.of_s * room
        change_of_s = self.of_w * room - apart_from_room
        return np.array([change_of_w, change_of_s])

    def _change_of_nu(self, row_sums: np.ndarray, to_w: np.ndarray, to_s: np.ndarray) -> np.ndarray:
        """By how much nu changes, (n,), so that the rows of w, which would otherwise grow by their
        `row_sums` (n,) and what q and kappa add, keep their sums. `to_w`, `to_s` (m,) are the right
        sides of the equations for q and kappa."""
        kappa = self._change_of_kappa(to_w, to_s)
        room = self._change_of_limit(to_s, kappa)
        in_rows = row_sums + self.inverse @ kappa
        in_rows = in_rows + self.of_s @ room
        root_times_nu = self.equations.solve(-self.root * in_rows)
        return root_times_nu / self.root

    def _change_of_kappa(self, to_w: np.ndarray, to_s: np.ndarray) -> np.ndarray:
        """By how much kappa changes, (m,), from the right sides `to_w`, `to_s` (m,) of its
        equations."""
        through_q = self.beta * self.gamma * to_s
        return (through_q - to_w) / self.pivot

    def _change_of_limit(self, to_s: np.ndarray, kappa: np.ndarray) -> np.ndarray:
        """By how much K q grows, (m,), from the right side `to_s` (m,) and the change `kappa` (m,)
        of kappa."""
        left_to_q = to_s - self.beta * kappa
        return self.cap * self.gamma * left_to_q


class _DefiniteEquations:
    """(diag + added @ added.T - taken @ taken.T) x = right, positive definite but for rounding;
    `diagonal` (n,) is diag, `added` and `taken` are (n, m)."""

    def __init__(self, diagonal: np.ndarray, added: np.ndarray, taken: np.ndarray):
        matrix = added @ added.T
        matrix -= taken @ taken.T
        matrix[np.diag_indices(len(matrix))] += diagonal
        diagonal = np.diagonal(matrix)
        self.unit = 1.0 / np.sqrt(diagonal)
        scaled = matrix * self.unit * self.unit[:, None]
        self.factor = _factor_definite(scaled)

    def solve(self, right: np.ndarray) -> np.ndarray:
        """The solution x, (n,)."""
        scaled = cho_solve(self.factor, self.unit * right)
        return self.unit * scaled


def _factor_definite(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """Cholesky's factor of a matrix with unit diagonal, which is raised where rounding made the
    matrix indefinite."""
    diagonal = np.diag_indices(len(matrix))
    for more in RAISES:
        matrix[diagonal] = 1.0 + more
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
    reduced_cost = cost - nu[:, None]
    cap = odds + 1.0
    least_means = least_column_means(reduced_cost, b, 1.0 / cap)
    bound = b @ nu + least_means.min()
    return float(bound)


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
    sorted_values = np.take_along_axis(values, order, axis=0)
    return (taken * sorted_values).sum(axis=0) / amount
