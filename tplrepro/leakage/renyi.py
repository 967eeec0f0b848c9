"""Temporal Renyi leakage: a bound on BPL, FPL and TPL in Renyi divergence of an order a (Mironov, CSF 2017).

Let the laws of what was released before, given the state before, be rho apart at most. Two states now mix them by two
rows of the correlation matrix, which share all but a mass of at most tau, the largest total variation distance of two
rows. Since exp((a - 1) D_a) is jointly convex (jointly concave for a < 1), the mixtures are at most

    log(1 - tau + tau e^((a - 1) rho)) / (a - 1)

apart, tau rho for a = 1, the Kullback-Leibler divergence. This is a bound, not the exact supremum: of the joint hull it
uses tau alone. Then divergences add up as in Eqs. (11), (13), (15) of [1], since given the state at a time its past,
its release and its future are independent.
"""

from dataclasses import dataclass
from math import exp, expm1, log, log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.leakage.temporal import Correlation, accumulate_steps, as_loss_function, steps_of_both_sides
from tplrepro.leakage.vertex import LARGE
from tplrepro.validation import LARGEST, FrozenArrays, as_numbers, check_alpha, check_delta

__all__ = ["TemporalRenyiLeakage", "temporal_renyi_leakage"]


class RenyiStep(NamedTuple):
    """What a divergence about the neighbouring time point is worth at this one; `tau` in [0, 1], `order` > 0."""

    tau: float
    order: float

    def at(self, rho: float) -> float:
        """The bound of the module's docstring, for rho >= 0."""
        power = self.order - 1.0
        if power == 0.0 or self.tau in (0.0, 1.0):
            return self.tau * rho
        if power * rho > LARGE:
            return rho + (log(self.tau) + log1p((1.0 / self.tau - 1.0) * exp(-power * rho))) / power
        return log1p(self.tau * expm1(power * rho)) / power


@dataclass(frozen=True)
class TemporalRenyiLeakage(FrozenArrays):
    """Bounds on the Renyi leakages of T releases, (orders, T) each, in nats; a row an order.

    `divergences` are those of each release by itself, `bpl` and `fpl` with the releases before and after it.
    """

    orders: np.ndarray
    divergences: np.ndarray
    bpl: np.ndarray
    fpl: np.ndarray

    @property
    def tpl(self) -> np.ndarray:
        """Temporal Renyi leakage, (orders, T)."""
        return self.bpl + self.fpl - self.divergences

    def epsilon(self, delta: ArrayLike) -> np.ndarray:
        """The epsilon with which each time is (epsilon, delta)-DP against both sides, (T,): that of the best order.

        By Proposition 12 of Canonne, Kamath, Steinke (NeurIPS 2020). 0 < delta < 1, one or (T,); ValueError if no order
        is above 1.
        """
        delta = check_delta(delta)
        above = self.orders > 1.0
        if not above.any():
            raise ValueError(
                f"(epsilon, delta) needs an order above 1, found {self.orders.tolist()}; add, say, 2 to 64"
            )
        a, leakage = self.orders[above, None], self.tpl[above]
        added = -np.log(delta * a) / (a - 1.0)
        rounding = (leakage.shape[1] + 8.0) * 2.0**-50 * (leakage + abs(added) + 1.0 / a)
        return np.maximum(leakage + np.log1p(-1.0 / a) + added + rounding, 0.0).min(axis=0)


def temporal_renyi_leakage(
    divergences: ArrayLike, backward: Correlation = None, forward: Correlation = None, *, orders: ArrayLike
) -> TemporalRenyiLeakage:
    """Bounds on the BPL, FPL and TPL of a series of releases in Renyi divergence.

    Parameters
    ----------
    divergences : array-like (orders, T), or (T,) for a single order
        The largest Renyi divergence in nats of each release between two values of a user, >= 0: ``orders[:, None] *
        rho`` for rho-zCDP, ``orders[:, None] / (2 * multiplier**2)`` for Gaussian noise; 0 where nothing is released.
    backward, forward : as in `temporal_privacy_leakage`
    orders : array-like (orders,) or float, each finite and > 0; 1 is the Kullback-Leibler divergence

    ValueError for divergences or orders out of range or of another shape, and as `temporal_privacy_leakage`.

    Examples
    --------
    >>> orders = np.array([2.0, 8.0, 32.0])
    >>> r = temporal_renyi_leakage(np.outer(orders, [0.02] * 5), [[0.8, 0.2], [0.1, 0.9]], orders=orders)
    >>> r.bpl[0].round(4).tolist()  # order 2
    [0.04, 0.0682, 0.0882, 0.1025, 0.1129]
    >>> r.epsilon(1e-6).round(3).tolist()
    [0.942, 1.571, 1.948, 2.06, 2.171]
    """
    numbers = as_numbers(orders, "orders must be finite and greater than 0", "give, say, 2 to 64")
    a = np.atleast_1d(numbers)
    if a.ndim != 1 or not a.size or not ((a > 0.0) & (a <= LARGEST)).all():
        raise ValueError(f"orders must be finite and greater than 0, (orders,), found {numbers}; give, say, 2 to 64")
    rho = check_alpha(divergences, "divergences")
    rho = rho[None] if numbers.ndim == 0 or (rho.ndim == 1 and a.size == 1) else rho
    if rho.ndim != 2 or len(rho) != a.size or not rho.size:
        raise ValueError(
            f"divergences must have shape ({a.size}, T), found {np.shape(divergences)}; give a row for each order"
        )
    before, after, _ = steps_of_both_sides(as_loss_function, backward, forward, rho.shape[1])
    distances = {id(L): min(L.slope_at(0.0) * (1.0 + 2.0**-50), 1.0) for L in (*before, *after) if L is not None}

    def along(losses: list, order: float, row: np.ndarray) -> np.ndarray:
        made = {id(L): L if L is None else RenyiStep(distances[id(L)], order) for L in losses}
        return accumulate_steps([made[id(L)] for L in losses], row)

    pairs = list(zip(a.tolist(), rho, strict=True))
    bpl = np.array([along(before, order, row) for order, row in pairs])
    fpl = np.array([along(after[::-1], order, row[::-1])[::-1] for order, row in pairs])
    return TemporalRenyiLeakage(a, rho, bpl, fpl)
