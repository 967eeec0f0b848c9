"""Upper bounds of the loss function over several steps, for pauses of any length (`filter`).

Over k steps of a chain the adversary's knowledge passes through the product of k matrices, by
squaring in O(log k) products, for each phase of a cycle at which an interval begins.

**Longer is never more.** A row of a product M_1 M_2 is a mean of rows of M_2, so for each set of
columns its sum lies between those of two rows of M_2; and columns of M_1 M_2 are mixed from those
of M_1. Hence L of M_1 M_2 is at most L of M_1 and at most L of M_2, and L of an interval at most
that of each interval within it. `keep_leading_digits` rounds a number of steps down to one of eight
an octave (all up to 16), so that a pause of length k needs O(log k) of these loss functions, which
are kept. Once no two rows of a product differ by more than its rounding errors may, it stands for
all longer intervals. With `PriorFreeLoss`, contraction coefficients multiply, so the same holds.
After a start that is nearly forgotten (`near_habit`) the product is that of the habit, whose law
differs at the first of its times by at most the distance of that step.

**Rounding.** All terms are positive, so a product of k factors by any tree has a relative error of
at most about k n u in each entry, u = 2^-53; rows divided by their sums, of at most rho = k n
2^-52. A sum q of columns then changes by at most rho q, and by at most rho / 2. So both 1 + q x and
1 + d x of Eq. (24) of [1], with x = e^alpha - 1, change by at most the factors (1 + rho)^(+-1) and
1 + rho x / 2, and L is understated by at most rho min(x, 2 (1 + rho)) <= 4 rho (1 - e^-alpha). This
adds to `ties`.
"""

from __future__ import annotations
from collections.abc import Callable
from enum import Enum
from functools import reduce
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from tplrepro.leakage.loss_function import TIES, PrivacyLossFunction
from tplrepro.leakage.near_habit import NearHabitLoss
from tplrepro.leakage.prior_free import PriorFreeLoss
from tplrepro.leakage.temporal import LossCycle, dense_array
from tplrepro.markov.transition import TransitionMatrix

MAX_STATES = 3000  # of sparse matrices, whose product is dense


def keep_leading_digits(steps: int, digits: int = 4) -> int:
    """A number of steps rounded down to one with few binary digits other than 0.

    Parameters
    ----------
    steps : int >= 1
    digits : int >= 1, how many leading binary digits are kept

    Returns
    -------
    int from 1 to `steps`

    >>> [keep_leading_digits(steps) for steps in (1, 15, 17, 31, 35)]
    [1, 15, 16, 30, 32]
    """
    zeros = max(steps.bit_length() - digits, 0)
    return steps >> zeros << zeros


def product_ties(n: int, length: int) -> float:
    """`PrivacyLossFunction.ties` of a product of `length` matrices (n, n)."""
    return TIES + length * n * 2.0**-50


def check_from_matrix(loss: PrivacyLossFunction) -> None:
    """ValueError unless the matrix of a loss function determines it, as products need."""
    if not loss.of_matrix:
        raise ValueError(
            f"steps over a time without a release need matrices, found {loss!r} from counts; "
            "release every time point, or take PriorFreeLoss"
        )


class Kind(Enum):
    """What is known of the law at a step: nothing, that it is near the habit's, or all that its
    matrix needs."""

    ANY_LAW = "any law"
    NEAR_HABIT = "near habit"
    OF_MATRIX = "of matrix"


class Interval(NamedTuple):
    """So many successive steps, from a time point on."""

    start: int
    length: int


class Products:
    """Products of what is known of each step of a side, by squaring; these are kept.

    Parameters
    ----------
    losses : LossCycle
    factor_of : callable, the factor of a step, from its loss function
    multiply : callable of two factors
    latest_first : bool, whether the factor of the latest step is the first one
    """

    def __init__(
        self, losses: LossCycle, factor_of: Callable, multiply: Callable, latest_first: bool
    ):
        self.losses = losses
        self.factor_of = factor_of
        self.multiply = multiply
        self.latest_first = latest_first
        self._kept: dict[Interval, Any] = {}

    def over(self, start: int, length: int) -> Any:
        """The product over `length` steps, at least one, from time `start` on."""
        exponents = [exponent for exponent in range(length.bit_length()) if length >> exponent & 1]
        factors = []
        passed = 0
        for exponent in exponents:
            size = 2**exponent
            block_start = start + passed
            if self.latest_first:
                block_start = start + length - passed - size
            factors.append(self._block(block_start, size))
            passed += size
        return reduce(self.multiply, factors)

    def _block(self, start: int, size: int) -> Any:
        """The product over `size` steps, a power of 2, from time `start` on."""
        key = Interval(self.losses.place_of(start), size)
        if key not in self._kept:
            self._kept[key] = self._make_block(*key)
        return self._kept[key]

    def _make_block(self, start: int, size: int) -> Any:
        if size == 1:
            return self.factor_of(self.losses.at(start))
        half = size // 2
        return self.in_order(self._block(start, half), self._block(start + half, half))

    def in_order(self, earlier: Any, later: Any) -> Any:
        """The product over two successive intervals."""
        if self.latest_first:
            return self.multiply(later, earlier)
        return self.multiply(earlier, later)


class LossOfIntervals:
    """L over any interval of steps of one side, from the product over it.

    Parameters
    ----------
    losses : LossCycle
    side : "backward" or "forward"
    products : class of the products, `Products` or a subclass
    """

    #: Whether `matrix` of a loss function is the product, or to save memory only names the states.
    keeps_products = True

    def __init__(self, losses: LossCycle, side: str, products: type[Products] = Products):
        self.losses = losses
        self.side = side
        self._matrices = products(losses, _matrix_of, np.matmul, side == "backward")
        # Their order changes nothing.
        self._prior_free = products(losses, _any_law_of, _product_of_losses, False)

    def __reduce__(self) -> tuple:
        return type(self), (self.losses, self.side)

    def check_pause_possible(self) -> None:
        """ValueError if releases cannot pause: products need a matrix, and a dense one."""
        for loss in self.losses.distinct:
            if isinstance(loss, PriorFreeLoss):
                continue
            if _kind_of(loss) is Kind.OF_MATRIX:
                check_from_matrix(loss)
            _matrix_of(loss)

    def make_loss(self, start: int, length: int) -> PrivacyLossFunction | None:
        """L of `length` steps from time `start` on; None if one of them is not known."""
        steps: list[Any] = self.losses.over_interval(start, length)
        if None in steps:
            return None
        for step in steps:
            if step.is_zero and not step.ties:  # after it, nothing is known of the time before
                return step
        kinds = {_kind_of(step) for step in steps}
        if kinds == {Kind.ANY_LAW, Kind.OF_MATRIX}:
            kinds = {Kind.ANY_LAW}  # evidence may be about the times between, too
        if kinds == {Kind.ANY_LAW}:
            return self._prior_free.over(start, length)
        run = self._longest_run(steps, length)
        first_step = steps[run.start]
        if _kind_of(first_step) is Kind.OF_MATRIX:
            for step in steps[run.start : run.start + run.length]:
                check_from_matrix(step)
            return self._loss_of_product(first_step, start + run.start, run.length)
        return NearHabitLoss(
            self._loss_of_product(first_step, start + run.start, run.length),
            self._prior_free.over(start, length),
            first_step.distance,
        )

    def _longest_run(self, steps: list, length: int) -> Interval:
        """The longest run of steps that are all of the habit, or all near it; L of the whole
        interval is at most that of the run.

        `steps` holds the loss functions of the interval's `length` steps; of a longer one than a
        period, those of its first steps and of one period.
        """
        longest = Interval(0, 0)
        start = 0
        for kind, run in groupby(steps, _kind_of):
            run_length = len([*run])
            end = start + run_length
            if end == len(steps) and run_length >= len(self.losses):  # the cycle goes on
                run_length = length - start
            if kind is not Kind.ANY_LAW and run_length > longest.length:
                longest = Interval(start, run_length)
            start = end
        return longest

    def _loss_of_product(
        self, step: PrivacyLossFunction, start: int, length: int
    ) -> PrivacyLossFunction:
        """L of the product over `length` steps from time `start` on; `step` is the loss function of
        the first one."""
        if length == 1:
            return _of_habit(step)
        from tplrepro.leakage.envelope import joint_hull  # loads SciPy

        product = self._matrices.over(start, length)
        matrix = TransitionMatrix(product, step.matrix.states, normalize=True)
        kept_matrix = step.matrix
        if self.keeps_products:
            kept_matrix = matrix
        loss = PrivacyLossFunction.of_hull(kept_matrix, joint_hull(matrix))
        loss.ties = product_ties(len(product), length)
        return loss


class LossOverSteps(LossOfIntervals):
    """Upper bounds of L over any number of steps next to a release.

    Memory grows with the logarithm of the longest pause.

    >>> habit = LossCycle([PrivacyLossFunction([[0.8, 0.2], [0.2, 0.8]])], [])
    >>> over = LossOverSteps(habit, "backward")
    >>> [float(f"{over.bound(0, steps).at_most(1.0):.4g}") for steps in (1, 2, 10, 10**6)]
    [0.5694, 0.3358, 0.005589, 7.908e-14]
    """

    keeps_products = False

    def __init__(self, losses: LossCycle, side: str):
        super().__init__(losses, side)
        self._kept: dict[Interval, PrivacyLossFunction | None] = {}
        self._is_forgotten: dict[Interval, bool] = {}

    def bound(self, time: int, steps: int) -> PrivacyLossFunction | None:
        """A loss function that bounds L of `steps` steps, None if L is 0: of those from a time
        point on for backward leakages, of those up to it for forward ones."""
        for exponent in range(1, steps.bit_length()):
            size = 2**exponent
            if self._forgets(self._next_to(time, size)):
                steps = size
                break
        return self._loss_of_interval(self._next_to(time, steps))

    def _next_to(self, time: int, steps: int) -> Interval:
        start = time
        if self.side == "forward":
            start = time - steps
        return Interval(self.losses.place_of(start), steps)

    def _forgets(self, interval: Interval) -> bool:
        """Whether L of an interval is no more than its rounding, as of all longer ones then."""
        if interval not in self._is_forgotten:
            loss = self._loss_of_interval(interval)
            self._is_forgotten[interval] = loss is None or _is_negligible(_of_habit(loss))
        return self._is_forgotten[interval]

    def _loss_of_interval(self, interval: Interval) -> PrivacyLossFunction | None:
        start, length = interval
        if length == 1:
            return self.losses.at(start)
        if interval in self._kept:
            return self._kept[interval]
        loss = self.make_loss(start, length)
        if length == keep_leading_digits(length):
            self._kept[interval] = loss
        return loss


def _matrix_of(loss: PrivacyLossFunction) -> np.ndarray:
    return dense_array(loss.matrix, MAX_STATES, "release every time point")


def _any_law_of(loss: PrivacyLossFunction) -> PriorFreeLoss:
    """The loss of a step under any law and any evidence."""
    if isinstance(loss, PriorFreeLoss):
        return loss
    if isinstance(loss, NearHabitLoss):
        return loss.of_any_law
    return PriorFreeLoss(loss.matrix)


def _product_of_losses(step: PriorFreeLoss, other: PriorFreeLoss) -> PriorFreeLoss:
    return step.after([other])


def _kind_of(loss: PrivacyLossFunction) -> Kind:
    if isinstance(loss, PriorFreeLoss):
        return Kind.ANY_LAW
    if isinstance(loss, NearHabitLoss):
        return Kind.NEAR_HABIT
    return Kind.OF_MATRIX


def _of_habit(loss: PrivacyLossFunction) -> PrivacyLossFunction:
    """The loss of the habit, whose law that of a step is near or equal to."""
    if isinstance(loss, NearHabitLoss):
        return loss.of_habit
    return loss


def _is_negligible(loss: PrivacyLossFunction) -> bool:
    largest_difference = loss.support(np.zeros(1))  # of two rows, in sum
    return largest_difference.item() <= loss.ties
