"""Budgets of the phases of a cycle, which return for ever, whose TPL stays within alpha: Algorithm
7 of [1] for habits that follow the clock.

The suprema of BPL, FPL and TPL at each phase (`suprema`) grow with a factor of all budgets, so that
budgets of any shape have a largest factor. The shape of least error is found by SLSQP: round the
cycle, dS_{r+1} = L'(S_r) dS_r + d epsilon_{r+1}, and dS_r of the start of a round is that of its
end.
"""

from __future__ import annotations
from dataclasses import dataclass

import numpy as np

from tplrepro.allocation.minimisation import LeastError
from tplrepro.leakage.suprema import Suprema, backward_suprema, forward_suprema
from tplrepro.leakage.temporal import LossCycle, LossCycles

#: Where a supremum is infinite, SLSQP is given this many times alpha.
UNBOUNDED = 100.0
#: What slopes round a cycle are taken to fall short of 1, at least.
LEAST_REST = 1e-15


class OnCycle(LeastError):
    """The suprema of TPL of budgets (p,) that return with each cycle."""

    def __init__(self, alpha: float, losses: LossCycles):
        p = len(losses)
        super().__init__(alpha, np.full(p, 1.0 / p), power=1)
        self.losses = losses
        first_phases = np.arange(losses.n_first) % p
        #: The phases of the first time points, and all phases.
        self.phases_of_rows = np.concatenate([first_phases, np.arange(p)])

    def largest_tpl(self, budgets: np.ndarray) -> float:
        """The largest TPL of all times, rounded up, nats."""
        n_first = self.losses.n_first
        suprema = []
        if is_known(self.losses.backward):
            bpl = backward_suprema(self.losses.backward, budgets, n_first)
            suprema.append(_of_rows(bpl))
        if is_known(self.losses.forward):
            fpl = forward_suprema(self.losses.forward, budgets, n_first)
            suprema.append(_of_rows(fpl))
        # TPL is the sum of the suprema, less epsilon for each side that is counted twice.
        spent = budgets[self.phases_of_rows]
        tpl = sum(suprema) - (len(suprema) - 1) * spent
        return float(tpl.max())

    def tpl(self, budgets: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The suprema of TPL of the phases, once the first time points are past, and their
        derivatives."""
        bpl = backward_limits(self.losses.backward, budgets, change)
        fpl = forward_limits(self.losses.forward, budgets, change)
        leakages = bpl.leakages + fpl.leakages - budgets
        most = UNBOUNDED * self.alpha
        if leakages.max() > most:
            return np.minimum(leakages, most), change
        return leakages, bpl.derivative + fpl.derivative - change


@dataclass(frozen=True)
class Limits:
    """The limit of a leakage at each phase (p,), nats, and its derivatives by N unknowns (p, N), 0
    where the leakage grows without bound."""

    leakages: np.ndarray
    derivative: np.ndarray


def backward_limits(losses: LossCycle, budgets: np.ndarray, change: np.ndarray) -> Limits:
    """The limits of BPL under budgets that return with each cycle.

    Parameters
    ----------
    losses : LossCycle of the backward side, whose first steps count for nothing
    budgets : array (p,), nats
    change : array (p, N), the derivatives of the budgets by N unknowns

    Returns
    -------
    Limits
    """
    limits = backward_suprema(LossCycle(losses.steps, []), budgets, 0).phases
    return Limits(limits, _derivative_of_limits(losses.steps, limits, change))


def forward_limits(losses: LossCycle, budgets: np.ndarray, change: np.ndarray) -> Limits:
    """The limits of FPL, as `backward_limits` those of BPL.

    Parameters
    ----------
    losses : LossCycle of the forward side, whose first steps count for nothing
    budgets : array (p,), nats
    change : array (p, N)

    Returns
    -------
    Limits
    """
    # In reverse order, the step from phase 0 leads to phase p - 1 and is the last one.
    *others, last = losses.steps
    backwards = [*reversed(others), last]
    limits = forward_suprema(LossCycle(losses.steps, []), budgets, 0).phases
    limits_backwards = limits[::-1]
    change_backwards = change[::-1]
    derivative_backwards = _derivative_of_limits(backwards, limits_backwards, change_backwards)
    return Limits(limits, derivative_backwards[::-1])


def is_known(losses: LossCycle) -> bool:
    """Whether the adversary knows anything of a side."""
    return any(loss is not None for loss in [*losses.first, *losses.steps])


def _of_rows(suprema: Suprema) -> np.ndarray:
    return np.concatenate([suprema.first, suprema.phases])


def _derivative_of_limits(losses: list, limits: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The derivatives (p, N) by N unknowns of the limits (p,) of a leakage round a cycle; 0 where
    some limit is infinite.

    The k-th of `losses`, or None, leads from place k to the next; `change` (p, N) are the
    derivatives of the budgets.
    """
    if not np.isfinite(limits).all():
        return np.zeros_like(change)
    slopes = []
    for loss, limit in zip(losses, limits.tolist(), strict=True):
        slope = 0.0
        if loss is not None:
            slope = loss.slope_at(limit)
        slopes.append(slope)
    following = np.roll(change, -1, axis=0)
    # Once round, dS_0 = product dS_0 + added.
    product = 1.0
    added = np.zeros(change.shape[1])
    for slope, change_of_budget in zip(slopes, following, strict=True):
        product *= slope
        added = slope * added + change_of_budget
    derivatives = [added * (1.0 / max(1.0 - product, LEAST_REST))]
    for slope, change_of_budget in zip(slopes[:-1], following[:-1], strict=True):
        derivatives.append(slope * derivatives[-1] + change_of_budget)
    return np.array(derivatives)
