"""Noise for series of counts: Laplace with a budget for each time (Theorem 1 of [1]), or Gaussian.

OpenDP samples its noise exactly, safe against attacks on floating-point noise; its privacy map is
checked against each budget. NumPy's noise serves reproducible experiments and is not safe: a
warning says so.

Discrete Gaussian noise on the whole numbers does not keep the (epsilon, delta) of continuous noise
of its scale: delta is up to 2.1 times as large at scale 1. Whole counts therefore get discrete
noise on a grid of 2^-39 times the scale or finer, where delta is less than 1e-22 too large, and the
sum is then rounded, which keeps it. (Noise of a scale below 2^-21 has a grid of 2^-60, and is
rounded to 0 on any.)
"""

from __future__ import annotations
from collections.abc import Callable, Sequence
from math import frexp, inf, nextafter
from statistics import NormalDist
from typing import Any, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from tplfrontier.profiles.gaussian import check_noise_multipliers
from tplrepro.lazy import optional_import
from tplrepro.mechanisms.laplace import LaplaceNoise
from tplrepro.validation import (
    RngLike,
    as_numbers,
    check_budgets,
    check_choice,
    check_sensitivity,
    warn_caller,
)

LARGEST_SCALE = 2.0**57  # of Gaussian noise: 64 standard deviations fit 64 bits
# nats; a budget above it hides next to nothing, and is more often a count in the wrong place
LARGE = 20.0
FINE = 40  # bits of the scale of Gaussian noise in steps of its grid


class HasLabels(Protocol):
    """A Series or a DataFrame, for type checkers, most of which know no types of pandas."""

    iloc: Any
    index: Any


Labelled = TypeVar("Labelled", bound=HasLabels)


@overload
def release_counts(
    series: np.ndarray | Sequence[Any],
    epsilons: ArrayLike | None = ...,
    sensitivity: float | None = ...,
    mechanism: str = ...,
    *,
    rng: RngLike = ...,
    noise_multipliers: ArrayLike | None = ...,
    allow_large: bool = ...,
) -> np.ndarray: ...
@overload
def release_counts(
    series: Labelled,
    epsilons: ArrayLike | None = ...,
    sensitivity: float | None = ...,
    mechanism: str = ...,
    *,
    rng: RngLike = ...,
    noise_multipliers: ArrayLike | None = ...,
    allow_large: bool = ...,
) -> Labelled: ...
def release_counts(
    series: Any,
    epsilons: ArrayLike | None = None,
    sensitivity: float | None = None,
    mechanism: str = "opendp",
    *,
    rng: RngLike = None,
    noise_multipliers: ArrayLike | None = None,
    allow_large: bool = False,
) -> Any:
    """Add noise to the counts of each time: Laplace, scale sensitivity/epsilon_t (Theorem 1 of
    [1]), or Gaussian.

    Parameters
    ----------
    series : array-like (T,) or (T, n), whole numbers or floats
        One count or n counts for each time point.
    epsilons : array-like (T,) or float, budgets in nats, finite and > 0, for Laplace noise
    sensitivity : float > 0
        How much one user may change the counts of a time point: in sum, 2 for a histogram ([1]), 1
        for a single count ([2] takes 1 throughout); for Gaussian noise in Euclidean length, sqrt(2)
        for a histogram.
    mechanism : "opendp", "opendp-gaussian" or "numpy"
        OpenDP's noise for whole numbers is whole, and the result is clipped to 64 bits, which costs
        no privacy. NumPy always adds continuous Laplace noise.
    rng : int, numpy.random.Generator or None, only with "numpy"
    noise_multipliers : array-like (T,) or float, finite and > 0, only with "opendp-gaussian"
        Standard deviations over the sensitivity, such as `allocate_noise` gives.
    allow_large : bool; budgets may be above 20 nats, which hide next to nothing

    Returns
    -------
    noisy counts of the shape of `series`, with the labels of a Series or DataFrame
        int64 for whole numbers under OpenDP, else floats.

    Raises
    ------
    ValueError
        For counts that are missing, above 64 bits or of another length than the budgets or
        multipliers, for arguments that the mechanism does not take, for Laplace noise of a scale
        that is no finite number, and for Gaussian noise of a scale above 2^57.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> counts = [[10, 20], [11, 19]]
    >>> noisy = release_counts(counts, [1.0, 0.5], sensitivity=2, mechanism="numpy", rng=rng)
    >>> noisy.round(3).tolist()
    [[10.64, 18.766], [0.993, 5.362]]
    >>> release_counts([10, 11], [1.0, 0.5], sensitivity=1).dtype
    dtype('int64')
    >>> gaussian = {"mechanism": "opendp-gaussian", "noise_multipliers": 3.0}
    >>> release_counts([[10, 20]], sensitivity=2**0.5, **gaussian).shape
    (1, 2)
    """
    check_choice(mechanism, "mechanism", ("opendp", "opendp-gaussian", "numpy"))
    counts = checked_counts(series)
    gaussian = mechanism == "opendp-gaussian"
    given = _levels_of(mechanism, epsilons, noise_multipliers)
    if gaussian:
        levels = check_noise_multipliers(given, horizon=counts.shape[0])
    else:
        levels = check_budgets(given, horizon=counts.shape[0])
        _check_not_large(levels, allow_large)
    sensitivity = given_sensitivity(sensitivity)
    check_scale(levels, sensitivity, gaussian)
    if mechanism == "numpy":
        warn_caller(
            "NumPy's noise is for experiments, its lowest bits may reveal counts; release them "
            "with 'opendp'"
        )
        scale = (sensitivity / levels).reshape(-1, *[1] * (counts.ndim - 1))
        return _labelled(counts + LaplaceNoise(scale).sample(counts.shape, rng=rng), series)
    if rng is not None:
        raise ValueError(
            "OpenDP draws its own secure randomness and takes no generator, found rng; "
            'leave rng out, or pass mechanism="numpy" for reproducible noise'
        )
    whole = counts.dtype.kind == "i"
    if whole and not gaussian and not (sensitivity < 2**63 and sensitivity.is_integer()):
        raise ValueError(
            "the sensitivity of whole counts must be a whole number below 2**63, found "
            f"{sensitivity}; round it up, or pass float counts"
        )
    return _labelled(_add_noise(counts, levels, sensitivity, gaussian), series)


def given_sensitivity(sensitivity: float | None) -> float:
    """A sensitivity, for which nothing stands in; ValueError for none."""
    if sensitivity is None:
        raise ValueError(
            "sensitivity must be given, found none; give how much one user may change the counts "
            "of a time, such as 2 for a histogram"
        )
    return check_sensitivity(sensitivity)


def _levels_of(
    mechanism: str, epsilons: ArrayLike | None, noise_multipliers: ArrayLike | None
) -> Any:
    """The budgets of Laplace noise, or the multipliers of Gaussian, as they were given; ValueError
    unless the mechanism has these, and these alone are given."""
    wanted, other = "epsilons", "noise_multipliers"
    if mechanism == "opendp-gaussian":
        wanted, other = other, wanted
    levels = {"epsilons": epsilons, "noise_multipliers": noise_multipliers}
    names = [name for name, values in levels.items() if values is not None]
    if names != [wanted]:
        found = " and ".join(names) or "neither"
        raise ValueError(
            f'mechanism="{mechanism}" needs {wanted} and no {other}, found {found}; Laplace noise '
            'has budgets in nats, Gaussian noise (mechanism="opendp-gaussian") its standard '
            "deviation over the sensitivity"
        )
    return levels[wanted]


def _check_not_large(budgets: np.ndarray, allow_large: bool) -> None:
    if budgets.max() > LARGE and not allow_large:
        raise ValueError(
            f"budgets must be at most {LARGE:g} nats, found more, which hides nothing; the counts "
            "come first, then the budgets; pass allow_large=True if it is meant"
        )


def _add_noise(
    counts: np.ndarray, levels: np.ndarray, sensitivity: float, gaussian: bool
) -> np.ndarray:
    """Counts (T,) or (T, n) with OpenDP's noise.

    `levels` (T,) are budgets, or noise multipliers if `gaussian`; all counts of a level get noise
    by one call.
    """
    whole = counts.dtype.kind == "i"
    make: Callable = _laplace
    if gaussian and whole:
        make = _rounded_gaussian
    elif gaussian:
        make = _gaussian
    with optional_import():
        add = {level: make(whole, sensitivity, level) for level in {*levels.tolist()}}
    noisy = np.empty_like(counts)
    order = np.argsort(levels, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(levels[order])) + 1):
        of_level = counts[rows]
        add_level = add[levels[rows[0]]]
        noisy[rows] = np.reshape(add_level(of_level.ravel().tolist()), of_level.shape)
    return noisy


def noise_width(
    levels: np.ndarray, sensitivity: float, gaussian: bool, whole: bool, probability: float
) -> np.ndarray:
    """The half width of a band that holds the noise with at least a probability.

    Parameters
    ----------
    levels : array (T,), budgets of Laplace noise, or noise multipliers if `gaussian`
    sensitivity : float > 0
    gaussian : bool
    whole : bool, whether counts and their noise are whole numbers
    probability : float, 0 < probability < 1

    Returns
    -------
    array (T,)
        Of whole counts rounded up: Gaussian noise is then rounded, and discrete Laplace noise has
        shorter tails.
    """
    if gaussian:
        width = sensitivity * levels * NormalDist().inv_cdf(0.5 + 0.5 * probability)
    else:
        width = -np.log1p(-probability) * sensitivity / levels
    if whole:
        return np.ceil(width)
    return width


def check_scale(levels: np.ndarray, sensitivity: float, gaussian: bool) -> None:
    """ValueError for budgets, or noise multipliers if `gaussian`, whose noise cannot be drawn."""
    if not gaussian:
        with np.errstate(over="ignore"):
            largest = sensitivity / levels.min()
        if not np.isfinite(largest):
            raise ValueError(
                f"noise has the scale sensitivity / budget, which must be a finite number, found "
                f"{sensitivity:g} / {levels.min():g}; give more budget"
            )
        return
    most = max(sensitivity, 1.0) * levels.max()
    if most > LARGEST_SCALE:
        raise ValueError(
            f"noise multipliers and standard deviations must be at most 2**57, found {most:g}; "
            "reduce them"
        )


def _labelled(noisy: np.ndarray, series: Any) -> Any:
    """Noisy counts with the labels of the counts."""
    if not hasattr(series, "iloc"):
        return noisy
    if series.ndim == 2:
        return type(series)(noisy, index=series.index, columns=series.columns)
    return type(series)(noisy, index=series.index, name=series.name)


def _laplace(whole: bool, sensitivity: float, budget: float) -> Callable:
    """OpenDP's Laplace noise of `budget` nats, for whole counts or for floats."""
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    scale = sensitivity / budget
    if whole:
        metric = l1_distance(T="i64")
        return calibrated(make_laplace, whole, metric, int(sensitivity), scale, budget)
    return calibrated(make_laplace, whole, l1_distance(T="f64"), sensitivity, scale, budget)


def _gaussian(whole: bool, sensitivity: float, multiplier: float) -> Callable:
    """OpenDP's Gaussian noise, discrete for `whole` counts, of a standard deviation of `multiplier`
    times `sensitivity`: as private in zCDP as the multiplier says."""
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    # the square root in a sensitivity may be rounded down
    rho = 0.5 / multiplier / multiplier * (1.0 - 2.0**-50)
    return calibrated(
        make_gaussian, whole, l2_distance(T="f64"), sensitivity, multiplier * sensitivity, rho
    )


def _rounded_gaussian(
    whole: bool, sensitivity: float, multiplier: float
) -> Callable[[list[int]], list[int]]:
    """Adds to whole counts x the noise floor(N + 1/2), N on a fine grid: their sum is x + N,
    rounded."""
    bits = min(max(FINE - frexp(multiplier * sensitivity)[1], 0), 60)
    measurement = _gaussian(whole, sensitivity * 2.0**bits, multiplier)
    ends = np.iinfo(np.int64)

    def add(counts: list[int]) -> list[int]:
        steps = measurement([0] * len(counts))
        half = (1 << bits) >> 1
        return [
            min(max(x + ((N + half) >> bits), ends.min), ends.max)
            for x, N in zip(counts, steps, strict=True)
        ]

    return add


def calibrated(
    make: Callable, whole: bool, metric, change: float, scale: float, bound: float
) -> Callable:
    """OpenDP's measurement with the smallest scale, from `scale` on, whose privacy loss is at most
    `bound` for a change of `change` in the `metric`.

    `make` makes a measurement of a domain, the metric and a scale; `whole` counts are of 64 bits,
    others floats.
    """
    # the prelude would load all of scikit-learn
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")  # OpenDP asks every user of its mechanisms to opt in
    # Python's int would be the 32 bits of C.
    if whole:
        atoms = atom_domain(T="i64")
    else:
        atoms = atom_domain(T="f64", nan=False)
    while True:
        measurement = make(vector_domain(atoms), metric, scale)
        if measurement.map(change) <= bound:
            return measurement
        scale = nextafter(scale, inf)


def checked_counts(series: Any) -> np.ndarray:
    """Counts of any integer type as int64, others as floats."""
    counts = as_numbers(
        series, "series must be a rectangular array of counts", "give shape (T,) or (T, n)"
    )
    if hasattr(series, "tocsr"):
        series = series.toarray()
    if isinstance(series, (list, tuple)):
        values = np.asarray(series, dtype=object)  # keeps all digits
    else:
        values = np.asarray(series)
    if all(map(_is_whole, values.flat)):
        _check_64_bits(values)
        counts = values.astype(np.int64)
    if counts.ndim not in (1, 2) or counts.size == 0:
        raise ValueError(
            f"series must have shape (T,) or (T, n) and not be empty, found {counts.shape}; give "
            "T >= 1"
        )
    if not np.isfinite(counts).all():
        raise ValueError(
            f"counts must be finite, found {counts[~np.isfinite(counts)][0]}; fill in missing "
            "counts before the release"
        )
    return counts


def _is_whole(count: Any) -> bool:
    return isinstance(count, (int, np.integer)) and not isinstance(count, bool)


def _check_64_bits(values: np.ndarray) -> None:
    """ValueError for whole numbers that int64 does not hold."""
    if values.size == 0:
        return
    if int(values.max()) >= 2**63:
        raise ValueError(
            "whole counts must be below 2**63, found a larger one; give them as floats"
        )
    if int(values.min()) < -(2**63):
        raise ValueError(
            "whole counts must be at least -2**63, found a smaller one; give them as floats"
        )
