"""Upper bounds of the loss function over several steps, for pauses of any length (`filter`).

Over k steps of one chain the adversary's knowledge passes through P^k, by squaring in O(log k)
products.

**Longer is never more.** A row of P^(k+1) = P P^k is a mean of rows of P^k, so for each set of
columns its sum lies between those of two rows of P^k; hence L of P^(k+1) is at most L of P^k.
`keep_leading_digits` rounds a number of steps down to one of eight an octave (all up to 16), so
that a pause of length k needs O(log k) of these loss functions, which are kept. Once no two rows of
a power differ by more than its rounding errors may, it stands for all higher ones. With
`PriorFreeLoss`, contraction coefficients multiply, so the same holds.

**Rounding.** All terms are positive, so a product of k factors by any tree has a relative error of
at most about k n u in each entry, u = 2^-53; rows divided by their sums, of at most rho = k n
2^-52. A sum q of columns then changes by at most rho q, and by at most rho / 2. So both 1 + q x and
1 + d x of Eq. (24) of [1], with x = e^alpha - 1, change by at most the factors (1 + rho)^(+-1) and
1 + rho x / 2, and L is understated by at most rho min(x, 2 (1 + rho)) <= 4 rho (1 - e^-alpha). This
adds to `ties`.
"""

from functools import reduce
from typing import Any

import numpy as np

from tplrepro.leakage.loss_function import TIES, PrivacyLossFunction
from tplrepro.leakage.prior_free import PriorFreeLoss
from tplrepro.leakage.temporal import dense_array
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


class LossOverSteps:
    """Upper bounds of L over any number of steps of one side.

    Memory grows with the logarithm of the longest pause.

    >>> over = LossOverSteps(PrivacyLossFunction([[0.8, 0.2], [0.2, 0.8]])).bound
    >>> [float(f"{over(steps).at_most(1.0):.4g}") for steps in (1, 2, 10, 10**6)]
    [0.5694, 0.3358, 0.005589, 7.908e-14]
    """

    def __init__(self, loss: PrivacyLossFunction):
        self.loss = loss
        self._powers: dict[int, Any] = {}  # of 2^i steps: arrays (n, n), or PriorFreeLoss
        self._kept: dict[int, PrivacyLossFunction] = {1: loss}
        self._enough: int | None = None  # steps that stand for all further ones

    def __reduce__(self) -> tuple:
        return LossOverSteps, (self.loss,)

    def check_pause_possible(self) -> None:
        """ValueError if releases cannot pause: products need a matrix, and a dense one."""
        if isinstance(self.loss, PriorFreeLoss):
            return
        check_from_matrix(self.loss)
        dense_array(self.loss.matrix, MAX_STATES, "release every time point")

    def bound(self, steps: int) -> PrivacyLossFunction:
        """A loss function that bounds L of `steps` steps."""
        for exponent in range(1, steps.bit_length()):
            if self._enough is None and 2**exponent not in self._kept:
                self._keep(2**exponent)
        if self._enough is not None:
            steps = min(steps, self._enough)
        if steps in self._kept:
            return self._kept[steps]
        if steps == keep_leading_digits(steps):
            return self._keep(steps)
        return self._make(steps)

    def _keep(self, steps: int) -> PrivacyLossFunction:
        loss = self._make(steps)
        self._kept[steps] = loss
        is_power_of_two = steps.bit_count() == 1
        if is_power_of_two:
            largest_difference = loss.support(np.zeros(1))  # of two rows, in sum
            if largest_difference.item() <= loss.ties:
                self._enough = steps
        return loss

    def _make(self, steps: int) -> PrivacyLossFunction:
        if self.loss.is_zero and not self.loss.ties:
            return self.loss
        exponents = [exponent for exponent in range(steps.bit_length()) if steps >> exponent & 1]
        powers = [self._power(exponent) for exponent in exponents]
        if isinstance(self.loss, PriorFreeLoss):
            return powers[0].after(powers[1:])
        from tplrepro.leakage.envelope import joint_hull  # loads SciPy

        product = reduce(np.matmul, powers)
        hull = joint_hull(TransitionMatrix(product, normalize=True))
        loss = PrivacyLossFunction.of_hull(self.loss.matrix, hull)
        loss.ties = product_ties(len(product), steps)
        return loss

    def _power(self, exponent: int) -> Any:
        """The matrix of 2^exponent steps, (n, n), or its PriorFreeLoss."""
        if exponent not in self._powers:
            self._powers[exponent] = self._make_power(exponent)
        return self._powers[exponent]

    def _make_power(self, exponent: int) -> Any:
        if isinstance(self.loss, PriorFreeLoss):
            if exponent == 0:
                return self.loss
            half = self._power(exponent - 1)
            return half.after([half])
        if exponent == 0:
            return dense_array(self.loss.matrix, MAX_STATES, "release more often")
        half = self._power(exponent - 1)
        return half @ half
