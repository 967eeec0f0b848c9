"""The loss of a step back in time whose law is near that of the habit.

Backward matrices depend on the law of the earlier state. Where that law p differs from the habit's,
pi, by at most h = max log(p_i pi_j / (p_j pi_i)), the backward leakage of the step is at most

    L_B(alpha + h) + L_B(h),

with L_B of the habit's backward matrix: given the later state, the expectation of a function under
p is that of the function times p / pi under pi, divided by that of p / pi, and each of the two
varies by at most the factor that L_B bounds. It is also at most the loss for any law
(`PriorFreeLoss` of the forward matrix), and at most alpha. docs/theory/cycles.md has the proof, and
docs/theory/profiles.md that of the counterpart for hockey-stick divergences,

    eta(gamma) <= e^h eta_B(rho gamma),    rho = max(e^-h, 1 - (e^h - 1) eta_B(1)).
"""

from __future__ import annotations
from functools import cached_property
from math import exp, expm1

import numpy as np

from tplrepro.leakage.loss_function import DOWN, UP, PrivacyLossFunction, Witness
from tplrepro.leakage.prior_free import PriorFreeLoss

#: Of a larger distance, e^h is large enough for all purposes.
MOST_DISTANCE = 700.0


class NearHabitLoss(PrivacyLossFunction):
    """The smaller of L_B(alpha + h) + L_B(h) and the loss for any law.

    Parameters
    ----------
    of_habit : PrivacyLossFunction of the backward matrix of the habit
    of_any_law : PriorFreeLoss of the forward matrix
    distance : float >= 0, h, nats

    Examples
    --------
    >>> P = [[0.8, 0.2], [0.1, 0.9]]
    >>> L = NearHabitLoss(PrivacyLossFunction(P), PriorFreeLoss(P), 0.001)
    >>> round(L.at(0.5), 6), round(L.of_habit.at(0.5), 6)
    (0.356233, 0.355182)
    """

    of_matrix = False

    def __init__(self, of_habit: PrivacyLossFunction, of_any_law: PriorFreeLoss, distance: float):
        self.matrix = of_habit.matrix
        self.of_habit = of_habit
        self.of_any_law = of_any_law
        self.distance = distance
        #: L_B(h), rounded up.
        self.added = of_habit.at_most(distance)

    def __repr__(self) -> str:
        return f"NearHabitLoss({self.of_habit!r}, distance {self.distance:.3g})"

    @property
    def is_identity(self) -> bool:
        return self.of_habit.is_identity and self.of_any_law.is_identity

    @property
    def is_zero(self) -> bool:
        return self.of_habit.is_zero and self.added == 0.0

    @cached_property
    def ties(self) -> float:
        return self.of_habit.ties

    def _at_near_habit(self, alpha: float) -> float:
        """L_B(alpha + h) + L_B(h)."""
        raised = alpha + self.distance
        return self.of_habit.at(raised) + self.added

    def at(self, alpha: float) -> float:
        near = self._at_near_habit(alpha)
        of_any_law = self.of_any_law.at(alpha)
        return min(near, of_any_law, alpha)

    def at_most(self, alpha: float) -> float:
        raised = alpha + self.distance
        near = self.of_habit.at_most(raised) + self.added
        rounded_up = near * UP
        of_any_law = self.of_any_law.at_most(alpha)
        return min(rounded_up, of_any_law, alpha)

    def slope_at(self, alpha: float) -> float:
        near = self._at_near_habit(alpha)
        of_any_law = self.of_any_law.at(alpha)
        if min(near, of_any_law) >= alpha:
            return 1.0
        if near < of_any_law:
            raised = alpha + self.distance
            return self.of_habit.slope_at(raised)
        return self.of_any_law.slope_at(alpha)

    def inverse_at(self, level: float) -> float:
        of_any_law = self.of_any_law.inverse_at(level)
        rest = level * DOWN - self.added
        if rest < 0.0:
            return of_any_law
        raised = self.of_habit.inverse_at(rest)
        near = raised * DOWN - self.distance
        return max(near, of_any_law)

    def inverse_within(self, level: float, alpha: float) -> float:
        of_any_law = self.of_any_law.inverse_within(level, alpha)
        rest = level * DOWN - self.added
        if rest < 0.0:
            return of_any_law
        most = alpha + self.distance
        raised = self.of_habit.inverse_within(rest, most)
        near = raised * DOWN - self.distance
        return max(near, of_any_law)

    def nearly_supremum(self, epsilon: float) -> float:
        near = self.of_habit.nearly_supremum(epsilon + self.distance + self.added) - self.distance
        at_least_spent = max(near, epsilon)
        of_any_law = self.of_any_law.nearly_supremum(epsilon)
        return min(at_least_spent, of_any_law)

    def _supremum(self, epsilon: float) -> float:
        # With y = alpha + h, alpha = epsilon + L_B(alpha + h) + L_B(h) is y = larger + L_B(y).
        larger = (epsilon + self.distance + self.added) * UP
        near = self.of_habit._supremum(larger) * UP - self.distance
        at_least_spent = max(near, epsilon)
        of_any_law = self.of_any_law._supremum(epsilon)
        return min(at_least_spent, of_any_law)

    def _budget_for(self, alpha: float) -> float:
        raised = alpha + self.distance
        larger = self.of_habit._budget_for(raised * DOWN)
        near = larger * DOWN - self.distance - self.added
        of_any_law = self.of_any_law._budget_for(alpha)
        return max(near, of_any_law)

    def support(self, slopes: np.ndarray) -> np.ndarray:
        """The smaller of e^h eta_B(rho gamma), gamma = 1 + slopes, and the largest under any law.

        Below gamma = 1, eta_B rises by no more than gamma falls.
        """
        ties = self.of_habit.ties
        no_slope = np.zeros(1)
        (at_no_slope,) = self.of_habit.support(no_slope)
        largest = float(at_no_slope) + ties
        if largest == 0.0:
            return np.zeros_like(slopes)
        distance = min(self.distance, MOST_DISTANCE)
        growth = exp(distance) * UP
        by_distance = -expm1(-distance)
        by_largest = expm1(distance) * largest
        one_less_rho = min(by_distance, by_largest) * UP
        rounding = 1.0 - DOWN
        gamma = 1.0 + slopes
        lowered = slopes - (one_less_rho + rounding) * gamma
        slopes_within = np.maximum(lowered, 0.0)
        of_habit = self.of_habit.support(slopes_within) + ties
        below_one = np.maximum(-lowered, 0.0)
        near = growth * (of_habit + below_one)
        of_any_law = self.of_any_law.support(slopes)
        return np.minimum(near, of_any_law)

    def unbounded_because(self) -> str:
        return self.of_habit.unbounded_because()

    def witness(self, alpha: float) -> Witness:
        """That of the habit, with the loss of this step."""
        witness = self.of_habit.witness(alpha)
        return witness._replace(loss=self.at(alpha))
