"""States have names: whatever belongs to them is aligned here, by label if it has labels, else by position."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def checked_states(states: Any, n: int | None = None) -> Any:
    """The distinct labels of n states (None: any number), by default 0..n-1."""
    if states is None and n is not None:
        return range(n)
    try:
        if isinstance(states, (set, frozenset)):
            raise TypeError("a set has no order")
        labels = states if isinstance(states, range) else tuple(states)
        twice = [label for label, count in Counter(labels).items() if count > 1]
    except TypeError as error:
        raise ValueError(f"states must be labels, found {str(states)[:60]} ({error}); list them in order") from None
    if twice:
        raise ValueError(f"states must be distinct, found {twice[0]!r} more than once; give each its own label")
    if n is not None and len(labels) != n:
        raise ValueError(f"states must be {n} labels, found {len(labels)}; give each state its own label")
    return labels


def by_state(values: Any, states: int | Sequence | None, name: str, axes: tuple[int, ...] = (0,)) -> Any:
    """Values with these axes in the order of the states: labels, or n for 0..n-1, None where the values
    decide n.

    A mapping, a pandas Series and a DataFrame are put in that order by their labels, ValueError if these are
    not the states. An array or a list is in that order already. So is a pandas object with the default index
    0..k-1, unless these are the labels of the states in another order.

    Examples
    --------
    >>> by_state({"a": 0.2, "b": 0.8}, ["b", "a"], "initial")
    [0.8, 0.2]
    """
    if isinstance(values, Mapping):
        held = [*values.values()]
        return [held[k] for k in _order([*values], states, name)]
    if not hasattr(values, "iloc"):
        return values
    for axis in axes[: values.ndim]:
        found = values.axes[axis].tolist()
        default = found == [*range(len(found))]
        named = not isinstance(states, (int, range, type(None))) and {*found} == {*states}
        if not default or named:
            values = values.take(_order(found, states, name), axis=axis)
    return values


def _order(found: list, states: int | Sequence | None, name: str) -> list[int]:
    """The position of each state among the labels found."""
    if states is None or isinstance(states, int):
        states = range(len(found) if states is None else states)
    position = {label: k for k, label in enumerate(found)}
    if len(position) < len(found) or position.keys() != {*states}:
        raise ValueError(
            f"{name} must have the states {[*states[:5]]} as labels once each, found {found[:5]}; "
            "reindex it, or give an array in their order"
        )
    return [position[state] for state in states]


def common_states(several: Iterable[Sequence], name: str = "all matrices") -> Sequence | None:
    """The states that all sides of an analysis share, None if there is no side; a range fits any labels."""
    states = [*several]
    sizes = sorted({len(labels) for labels in states})
    labelled = dict.fromkeys(tuple(labels) for labels in states if not isinstance(labels, range))
    if len(sizes) > 1 or len(labelled) > 1:
        different = sizes if len(sizes) > 1 else " and ".join(str([*labels[:5]]) for labels in labelled)
        raise ValueError(
            f"{name} must have the same states in the same order, found {different}; estimate them over one set"
        )
    return next(iter([*labelled, *states]), None)
