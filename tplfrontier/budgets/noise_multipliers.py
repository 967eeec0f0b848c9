"""Noise multipliers that know what they are, so that nobody takes them for budgets in nats."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.validation import NOISE_MULTIPLIER


class NoiseMultiplier(float):
    """One standard deviation of Gaussian noise over its sensitivity."""

    unit = NOISE_MULTIPLIER


class NoiseMultipliers(np.ndarray):
    """Standard deviations of Gaussian noise over its sensitivity, (T,): an array with a unit.

    Its numbers, slices and multiples are noise multipliers, too: checks of budgets refuse them.

    >>> plan = NoiseMultipliers.of([7.2, 7.1])
    >>> plan[0].unit, plan.max().unit, (2 * plan[:1]).unit, plan.tolist()[1].unit
    ('noise_multiplier', 'noise_multiplier', 'noise_multiplier', 'noise_multiplier')
    """

    unit = NOISE_MULTIPLIER

    @classmethod
    def of(cls, values: ArrayLike) -> "NoiseMultipliers":
        return np.array(values, dtype=float).view(cls)

    def __getitem__(self, key: Any) -> Any:
        return _with_unit(super().__getitem__(key))

    def __iter__(self) -> Iterator:
        return map(_with_unit, super().__iter__())

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """What NumPy computes of them: numbers with the unit, but truth values without. NumPy calls
        this."""
        if return_scalar:
            return _with_unit(np.asarray(array)[()])
        if array.dtype.kind != "f":
            return np.asarray(array)
        return super().__array_wrap__(array, context, return_scalar)

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        return _with_unit(super().mean(*args, **kwargs))

    def round(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return super().round(*args, **kwargs).view(NoiseMultipliers)

    def item(self, *args: Any) -> NoiseMultiplier:
        return NoiseMultiplier(super().item(*args))

    def tolist(self) -> Any:
        if self.ndim == 1:
            return [*self]
        return super().tolist()


def _with_unit(found: Any) -> Any:
    """A single number with the unit, and an array as it is."""
    if isinstance(found, np.floating):
        return NoiseMultiplier(found)
    return found
