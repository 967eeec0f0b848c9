"""Checks shared by all public functions: each error names the constraint, the value found and the
remedy.

`name` is what an error calls the argument, `must` its constraint, and `remedy` what to do. Whatever
belongs to states is aligned with them here: by label where it has labels, else by position.
"""

import operator
import sys
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

#: Rows of a transition matrix must sum to 1 within this; probabilities written with 10 digits pass.
ROW_SUM_TOLERANCE = 1e-9

#: Units of levels of noise over time, and names of Series of them.
EPSILON = "epsilon"
NOISE_MULTIPLIER = "noise_multiplier"
LARGEST = np.finfo(float).max
SMALLEST = np.nextafter(0.0, 1.0)
BELOW_ONE = np.nextafter(1.0, 0.0)
LEAST_LEVEL = 1e-300  # margins for rounding errors of smaller ones underflow
MOST_SMOOTHING = 1e200  # times a number of states it is finite
MOST_COUNT = 10**8  # arrays of more numbers do not fit in most memories
#: A seed, a generator, or None for draws that nobody can repeat.
RngLike = SupportsIndex | np.random.Generator | None
OUR_PACKAGES = ("tplrepro.", "tplfrontier.", "tplreport.")


def as_numbers(values: Any, must: str, remedy: str) -> np.ndarray:
    """Real numbers as a float array, which is not copied if it is one already.

    Parameters
    ----------
    values : array-like or scipy.sparse matrix
    must, remedy : str
        What an error says: the constraint, such as "beliefs must be numbers", and how to keep it.

    Returns
    -------
    array of the same shape

    Raises
    ------
    ValueError
        For masked or complex numbers, text and dates.

    Examples
    --------
    >>> as_numbers(np.array([0.5, 1j]), "beliefs must be numbers", "give reals")
    Traceback (most recent call last):
    ValueError: beliefs must be numbers, found ndarray (complex128 are no real numbers); give reals
    """
    kind = type(values).__name__
    is_list = isinstance(values, (list, tuple))
    if is_list and any(map(_is_masked_array, values)):
        values = np.ma.array(values)
    try:
        if hasattr(values, "tocsr"):
            values = values.toarray()
        array = np.asanyarray(values)
        if np.ma.is_masked(array):
            raise TypeError("some are masked")
        if array.dtype.kind == "O":
            array = np.asanyarray(array.tolist())  # an array of text if there is text among them
        if array.dtype.kind not in "biufO":
            raise TypeError(f"{array.dtype} are no real numbers")
        return np.asarray(array, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{must}, found {kind} ({error}); {remedy}") from None


def _is_masked_array(values: Any) -> bool:
    return isinstance(values, np.ma.MaskedArray)


def check_square(matrix: Any, name: str = "a transition matrix") -> None:
    """Raise ValueError unless an array or sparse matrix has the shape (n, n) with n >= 1."""
    n = matrix.shape[0] if matrix.ndim else 0
    if n == 0 or matrix.shape != (n, n):
        raise ValueError(
            f"{name} must be square, found shape {matrix.shape}; "
            "give a row and a column for each state, at least one"
        )


def check_entries(values: np.ndarray, name: str = "probabilities") -> None:
    """Raise ValueError unless all numbers are finite and not negative."""
    is_good = (values >= 0.0) & (values <= LARGEST)
    is_bad = ~is_good
    if is_bad.any():
        first = values[is_bad][0]
        constraint = "be finite numbers"
        if first < 0:
            constraint = "not be negative"
        place = ""
        if values.ndim == 2:
            row, column = np.argwhere(is_bad)[0]
            place = f" in row {row}, column {column}"
        raise ValueError(
            f"{name} must {constraint}, found {first:g}{place}; "
            "remove missing values and check the estimate"
        )


def checked_states(states: Any, n: int | None = None) -> Any:
    """The distinct labels of n states (None: any number), by default 0..n-1."""
    if states is None and n is not None:
        return range(n)
    try:
        labels = _as_labels(states)
        count_of_label = Counter(labels)
    except TypeError as error:
        beginning = str(states)[:60]
        raise ValueError(
            f"states must be labels, found {beginning} ({error}); list them in order"
        ) from None
    repeated = [label for label, count in count_of_label.items() if count > 1]
    if repeated:
        raise ValueError(
            f"states must be distinct, found {repeated[0]!r} more than once; "
            "give each its own label"
        )
    if n is not None and len(labels) != n:
        raise ValueError(
            f"states must be {n} labels, found {len(labels)}; give each state its own label"
        )
    return labels


def _as_labels(states: Any) -> range | tuple:
    """A range 0..n-1 as it is, other labels as a tuple; TypeError for a set."""
    if isinstance(states, (set, frozenset)):
        raise TypeError("a set has no order")
    if isinstance(states, range) and states == range(len(states)):
        return states
    return tuple(states)


def by_state(
    values: Any, states: int | Sequence | None, name: str, axes: tuple[int, ...] = (0,)
) -> Any:
    """Values whose `axes` belong to states, in the order of the states: labels; n for 0..n-1; None
    for any number.

    A mapping, a pandas Series or a DataFrame is put in that order by its labels, which must be the
    states, and so is each DataFrame in a list. An array or another list is in that order already,
    and so is a pandas object with the default index 0..k-1 on all these axes, unless these numbers
    are themselves the labels.

    >>> by_state({"a": 0.2, "b": 0.8}, ["b", "a"], "initial")
    [0.8, 0.2]
    """
    values = rows_as_frame(values)
    if isinstance(values, Mapping):
        return _mapping_by_state(values, states, name, axes[0])
    if isinstance(values, list | tuple) and any(map(_becomes_frame, values)):
        return [by_state(each, states, name, axes) for each in values]
    if not hasattr(values, "iloc"):
        return values
    labels_of_axis = {}
    for axis in axes[: values.ndim]:
        labels_of_axis[axis] = values.axes[axis].tolist()
    if _is_default_index(labels_of_axis.values(), states):
        return values
    for axis, labels in labels_of_axis.items():
        order = _order_by_states(labels, states, name)
        values = values.take(order, axis=axis)
    return values


def _mapping_by_state(
    values: Mapping, states: int | Sequence | None, name: str, axis: int
) -> list | np.ndarray:
    """The values of a mapping in the order of the states: a list, or, if their `axis` is not 0, an
    array with the states on it."""
    labels = [*values]
    by_position = [*values.values()]
    order = _order_by_states(labels, states, name)
    ordered = [by_position[k] for k in order]
    if axis == 0:
        return ordered
    return np.stack(ordered, axis=axis)


def _is_default_index(labels_of_axes: Iterable[list], states: int | Sequence | None) -> bool:
    """Whether all axes are numbered 0..k-1, and these numbers are not the labels of the states."""
    label_sets = []
    for labels in labels_of_axes:
        numbers = range(len(labels))
        if labels != [*numbers]:
            return False
        label_sets.append({*labels})
    if isinstance(states, (int, range)) or states is None:
        return True
    return {*states} not in label_sets


def _becomes_frame(values: Any) -> bool:
    frame = rows_as_frame(values)
    return hasattr(frame, "columns")


def rows_as_frame(values: Any) -> Any:
    """A list of pandas Series as the DataFrame of these rows, whose labels count; other values as
    they are."""
    if isinstance(values, list | tuple) and values and all(map(_is_series, values)):
        import pandas as pd

        return pd.DataFrame([*values])
    return values


def _is_series(values: Any) -> bool:
    return getattr(values, "ndim", 0) == 1 and hasattr(values, "iloc")


def _order_by_states(found: list, states: int | Sequence | None, name: str) -> list[int]:
    """The position of each state among the labels `found`; an error if they are not the states."""
    if states is None:
        states = range(len(found))
    elif isinstance(states, int):
        states = range(states)
    position = {label: k for k, label in enumerate(found)}
    is_distinct = len(position) == len(found)
    if not is_distinct or position.keys() != {*states}:
        first_states = [*states[:5]]
        raise ValueError(
            f"{name} must have the states {first_states} as labels once each, found {found[:5]}; "
            "reindex it, or give an array in their order"
        )
    return [position[state] for state in states]


def common_states(several: Iterable[Sequence], name: str = "all matrices") -> Sequence | None:
    """The states that all matrices of an analysis share, None if there are none; a range fits any
    labels."""
    states = [*several]
    sizes = sorted({len(labels) for labels in states})
    named = [tuple(labels) for labels in states if not isinstance(labels, range)]
    distinct = dict.fromkeys(named)
    if len(sizes) > 1 or len(distinct) > 1:
        found: Any = sizes
        if len(sizes) == 1:
            beginnings = [[*labels[:5]] for labels in distinct]
            found = " and ".join(map(str, beginnings))
        raise ValueError(
            f"{name} must have the same states in the same order, found {found}; "
            "estimate them over one set"
        )
    named_first = [*distinct, *states]
    return next(iter(named_first), None)


def check_distribution(
    distribution: Any, states: int | Sequence | None = None, name: str = "distribution"
) -> np.ndarray:
    """A distribution over states (labels or their number n; None for any number) as an array (n,)
    in their order with sum 1."""
    n = states
    if isinstance(states, Sequence):
        n = len(states)
    aligned = by_state(distribution, states, name)
    p = as_numbers(aligned, f"{name} must be probabilities", "give one for each state")
    is_size_right = p.size > 0 and n in (None, p.size)
    if p.ndim != 1 or not is_size_right:
        shape = f"({n},)"
        if n is None:
            shape = "(n,) with n >= 1"
        raise ValueError(
            f"{name} must have shape {shape}, found {p.shape}; give one probability for each state"
        )
    total = p.sum()
    is_negative = p < 0
    is_normalised = abs(total - 1.0) <= ROW_SUM_TOLERANCE  # False for NaN
    if is_negative.any() or not is_normalised:
        raise ValueError(
            f"{name} must be non-negative and sum to 1 within {ROW_SUM_TOLERANCE:g}, "
            f"found sum {total:.12g} and minimum {p.min():g}; divide it by its sum"
        )
    return p / total


def check_probability(
    probability: ArrayLike,
    name: str = "probability",
    remedy: str = "give one",
    *,
    zero: bool = True,
    one: bool = True,
) -> float:
    """One number from 0 to 1; `zero` and `one` say whether the ends are allowed."""
    least = 0.0
    most = 1.0
    opening = "["
    closing = "]"
    if not zero:
        least = SMALLEST
        opening = "("
    if not one:
        most = BELOW_ONE
        closing = ")"
    must = f"{name} must be a probability in {opening}0, 1{closing}"
    checked = check_range(probability, least, most, must, remedy)
    return as_scalar(checked, name)


def check_smoothing(smoothing: ArrayLike, name: str = "smoothing") -> float:
    """The s >= 0 that Laplacian smoothing adds to each count or probability."""
    must = f"{name} must be finite and at least 0, at most {MOST_SMOOTHING:g}"
    remedy = "give the s added to each count"
    checked = check_range(smoothing, 0.0, MOST_SMOOTHING, must, remedy)
    return as_scalar(checked, name)


def check_alpha(alpha: ArrayLike, name: str = "alpha") -> np.ndarray:
    """Leakages in nats as a float array; they must be finite and not negative."""
    must = f"{name} must be a finite leakage in nats, at least 0"
    return check_range(alpha, 0.0, LARGEST, must, "clip or correct it before the call")


def unit_of(values: Any) -> str | None:
    """`EPSILON` or `NOISE_MULTIPLIER`, where numbers say what they are: by the name of a Series, or
    the `unit` of an array, of a number or of one in a list."""
    if hasattr(values, "iloc"):
        found = [getattr(values, "name", None)]
    elif isinstance(values, (list, tuple)):
        kinds = {*map(type, values)}
        found = [getattr(kind, "unit", None) for kind in kinds]
    else:
        found = [getattr(values, "unit", None)]
    for unit in (EPSILON, NOISE_MULTIPLIER):
        if unit in found:
            return unit
    return None


def check_epsilon(epsilon: ArrayLike, name: str = "epsilon") -> np.ndarray:
    """Privacy budgets in nats as a float array; they must be finite and positive."""
    if type(epsilon) is not float and unit_of(epsilon) == NOISE_MULTIPLIER:
        raise ValueError(
            f"{name} must be privacy budgets in nats, found multipliers of Gaussian noise; "
            'release counts with noise_multipliers= and mechanism="opendp-gaussian", '
            "or make a Publisher with delta="
        )
    must = f"{name} must be a finite privacy budget in nats, greater than 0"
    remedy = "leave out time points at which nothing is released"
    return check_range(epsilon, SMALLEST, LARGEST, must, remedy)


def check_budgets(
    epsilons: ArrayLike, name: str = "epsilons", horizon: int | None = None
) -> np.ndarray:
    """Budgets over time, (T,) with T >= 1, positive and finite; with a `horizon`, T of them or one
    for all."""
    budgets = check_epsilon(epsilons, name)
    return check_series(budgets, name, "budget", horizon)


def check_series(
    values: np.ndarray, name: str, one: str, horizon: int | None = None, *, has_horizon: bool = True
) -> np.ndarray:
    """Numbers for T time points, (T,) with T >= 1; with a `horizon`, T of them or one for all.
    Errors call one of them `one`.

    `has_horizon` says whether the reader could have given a horizon, which the remedy then names.
    """
    if horizon is not None:
        horizon = check_horizon(horizon)
        if values.ndim == 0:
            values = np.full(horizon, values)
    if values.ndim != 1 or values.size == 0:
        remedy = f"give one {one} for each time point, such as [0.1] * T"
        if values.ndim == 0 and has_horizon:
            remedy += ", or one number and horizon=T"
        raise ValueError(
            f"{name} must be one-dimensional and hold at least one {one}, "
            f"found shape {values.shape}; {remedy}"
        )
    if horizon not in (None, values.size):
        raise ValueError(
            f"{name} must be one {one} or one for each release, "
            f"found {values.size} for {horizon} releases; give {horizon}"
        )
    return values


def check_level(alpha: ArrayLike, name: str = "alpha") -> float:
    """One requested privacy level in nats; it must be finite and positive."""
    must = f"{name} must be a finite level in nats, greater than 0"
    remedy = f"choose {LEAST_LEVEL:g} or more"
    checked = check_range(alpha, LEAST_LEVEL, LARGEST, must, remedy)
    return as_scalar(checked, name)


def check_sensitivity(sensitivity: Any) -> float:
    """The most by which one person changes the numbers of a time point; it must be finite and
    positive."""
    remedy = "give the most that one person changes, in sum"
    return check_positive(sensitivity, "sensitivity", remedy)


def check_positive(number: Any, name: str, remedy: str) -> float:
    """One number that is finite and positive."""
    must = f"{name} must be finite and greater than 0"
    checked = check_range(number, SMALLEST, LARGEST, must, remedy)
    return as_scalar(checked, name, remedy)


def check_delta(delta: ArrayLike) -> np.ndarray:
    """Probabilities of a privacy failure as a float array; they must be above 0 and below 1."""
    must = "delta must be greater than 0 and less than 1"
    remedy = "give a probability such as 1e-6 (pure DP, delta = 0: temporal_privacy_leakage)"
    return check_range(delta, SMALLEST, BELOW_ONE, must, remedy)


def check_choice(choice: Hashable, name: str, choices: Iterable[Hashable]) -> None:
    """Raise ValueError unless `choice` is one of the `choices`."""
    possible = list(choices)
    if choice not in possible:
        listed = ", ".join(map(repr, possible))
        raise ValueError(f"{name} must be one of {listed}, found {choice!r}; choose one")


def check_codes(values: ArrayLike, n: int, name: str) -> np.ndarray:
    """Whole numbers 0..n-1 of any shape as an array; ValueError for others."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of several lengths
        array = np.array(None)
    is_whole = array.dtype.kind in "iu" and not np.ma.is_masked(values)
    if array.size and not is_whole:
        raise ValueError(
            f"{name} must be whole numbers in 0..{n - 1}, "
            f"found {type(values).__name__} of {array.dtype}; code them so"
        )
    is_unknown = (array < 0) | (array >= n)
    unknown = array[is_unknown]
    if unknown.size:
        raise ValueError(
            f"{name} must be among 0..{n - 1}, found {unknown[0]}; "
            "drop it, or number them from 0 on"
        )
    return array.astype(np.intp)


def check_horizon(horizon: SupportsIndex, name: str = "horizon") -> int:
    """A number of time points, states or draws; it must be a whole number, from 1 to 10^8."""
    value = horizon if type(horizon) is int else check_whole(horizon, name)
    remedy = "give how many there are"
    if value < 1:
        raise ValueError(f"{name} must be at least 1, found {value}; {remedy}")
    if value > MOST_COUNT:
        raise ValueError(f"{name} must be at most {MOST_COUNT}, found {value}; {remedy}")
    return value


def check_time(time: SupportsIndex, horizon: int, name: str) -> int:
    """A time point of `horizon` as given, negative ones counting from the end; others are an
    error."""
    value = check_whole(time, name)
    last = horizon - 1
    if not -horizon <= value <= last:
        raise ValueError(
            f"{name} must be a time point from 0 to {last}, or from {-horizon} to -1, "
            f"which count from the end, found {value}; give one of the {horizon} times"
        )
    return value


def as_generator(rng: RngLike) -> np.random.Generator:
    """A generator of random numbers: `rng` itself, a new one of a seed, or, for None, one that
    nobody can repeat."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng()
    try:
        seed = check_whole(rng, "rng")
        return np.random.default_rng(seed)
    except ValueError:
        raise ValueError(
            "rng must be a whole number >= 0, a numpy.random.Generator or None, "
            f"found {rng!r}; give a seed such as 0"
        ) from None


def check_whole(number: SupportsIndex, name: str) -> int:
    """A whole number of any integer type."""
    try:
        if isinstance(number, bool):
            raise TypeError
        return int(operator.index(number))
    except TypeError:
        raise ValueError(f"{name} must be a whole number, found {number!r}; give an int") from None


def as_scalar(values: np.ndarray, name: str, remedy: str = "call once for each value") -> float:
    """The number in a checked array; an array with an axis is an error."""
    if values.ndim:
        raise ValueError(f"{name} must be one number, found shape {values.shape}; {remedy}")
    return float(values)


def check_range(values: ArrayLike, least: float, most: float, must: str, remedy: str) -> np.ndarray:
    """Numbers of any shape as an array; one outside `least` to `most`, both allowed, is an
    error."""
    if type(values) is float and least <= values <= most:
        return np.array(values)  # searches call with one float at a time
    if isinstance(values, bool) or getattr(values, "dtype", None) == np.bool_:
        raise ValueError(f"{must}, found {values!r}; {remedy}")
    numbers = as_numbers(values, must, remedy)
    is_good = (numbers >= least) & (numbers <= most)
    if not is_good.all():
        first_bad = numbers[~is_good].flat[0]
        raise ValueError(f"{must}, found {first_bad:g}; {remedy}")
    return numbers


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn the user at the line that called our packages."""
    frame = sys._getframe(1)
    level = 2
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(OUR_PACKAGES):
            break
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def frozen(values: Any) -> Any:
    """A read-only copy of an array-like or a scipy.sparse matrix of compressed rows."""
    if not hasattr(values, "indptr"):
        values = np.array(values)
        values.setflags(write=False)
        return values
    result = copy(values)
    result.data = frozen(values.data)
    result.indices = frozen(values.indices)
    result.indptr = frozen(values.indptr)
    return result


def _is_frozen(array: np.ndarray) -> bool:
    """Whether nobody else can change an array; one that is mapped from a file for reading may be
    larger than memory, and is taken as it is."""
    if array.flags.writeable:
        return False
    return array.flags.owndata or isinstance(array, np.memmap)


class FrozenArrays:
    """A base of results that hold read-only copies of the arrays given to them.

    A sparse matrix can be given other arrays, so each access makes a new one that shares these.
    """

    def __post_init__(self) -> None:
        fields = vars(self)
        for name, value in [*fields.items()]:
            if isinstance(value, np.ndarray):
                if not _is_frozen(value):
                    fields[name] = frozen(value)
            elif hasattr(value, "indptr"):
                private = "_" + name.lstrip("_")
                del fields[name]
                fields[private] = frozen(value)

    def __getattr__(self, name: str) -> Any:
        sparse = vars(self).get("_" + name)
        if hasattr(sparse, "indptr"):
            return copy(sparse)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        fields = vars(self)
        if name in fields or "_" + name in fields:
            kind = type(self).__name__
            raise AttributeError(f"{kind} cannot be changed, found a new {name}; make a new one")
        super().__setattr__(name, value)

    def __setstate__(self, state: dict) -> None:
        """Arrays from a pickle or a deep copy are frozen as well."""
        vars(self).update(state)
        FrozenArrays.__post_init__(self)


def with_index(values: np.ndarray, index: Any, name: str = EPSILON) -> Any:
    """Budgets (T,) as a Series with the labels `index` and this name, or as they are for None."""
    if index is None:
        return values
    import pandas as pd

    return pd.Series(values, index, name=name)
