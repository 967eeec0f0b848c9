"""The recorded numbers of a claim by name, and expressions over them."""

import string
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.claims.statement import Claim, ClaimError


def _is_close(a: Any, b: Any, rtol: float = 1e-9, atol: float = 0.0) -> bool:
    return bool(np.allclose(a, b, rtol=rtol, atol=atol))


#: Keys of a number that is recorded with its interval.
ENDS = {"value", "low", "high"}
#: Before a format: a number is followed by half of its interval instead of both ends.
HALF = "±"
#: What an expression may call.
FUNCTIONS = {
    "abs": abs,
    "all": np.all,
    "any": np.any,
    "array": np.array,
    "close": _is_close,
    "diff": np.diff,
    "exp": np.exp,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "len": len,
    "list": list,
    "log": np.log,
    "max": max,
    "mean": np.mean,
    "median": np.median,
    "min": min,
    "range": range,
    "round": round,
    "sorted": sorted,
    "sqrt": np.sqrt,
    "sum": sum,
    "zip": zip,
}


def paths_of(claim: Claim, name: str) -> list[list]:
    """The places of a claim's number in the results: one, or those of a list that the claim makes
    of several."""
    given = (claim.numbers or {})[name]
    several = [given]
    if isinstance(given, dict) and "each" in given:
        several = [_path_through(key, given) for key in given["each"]]
    elif isinstance(given, dict):
        several = given["of"]
    return [path if isinstance(path, list) else [path] for path in several]


def _path_through(key: str | int, given: Mapping) -> list:
    """The place of one result of a list: `key`, below one key of them all or before another."""
    path: list = [key]
    if "below" in given:
        path.insert(0, given["below"])
    if "then" in given:
        path.append(given["then"])
    return path


def recorded(claim: Claim, name: str, record: Mapping) -> Any:
    """The number of a claim that has this name, or the list of numbers, as it is in the record of
    its notebook."""
    values = [_value_at(path, claim, record) for path in paths_of(claim, name)]
    if isinstance((claim.numbers or {})[name], dict):
        return values
    return values[0]


def _value_at(path: Sequence, claim: Claim, record: Mapping) -> Any:
    """The entry of the record's results that the keys and indices of `path` lead to."""
    value = record.get("results", {})
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            missing = path if len(path) > 1 else path[0]
            raise ClaimError(
                f"{claim.id}: {claim.record} has no {missing!r} in its results; record it"
            ) from None
    return value


def names_of(claim: Claim, record: Mapping) -> dict[str, Any]:
    """Notebook parameters and the claim's numbers by name; an interval of x (or a list of them)
    adds x_low, x_high."""
    names = dict(record.get("parameters", {}))
    for name in claim.numbers or {}:
        value = recorded(claim, name, record)
        if _is_interval(value):
            names |= _names_of_interval(name, value)
        elif isinstance(value, list) and value and all(map(_is_interval, value)):
            columns = {key: [interval[key] for interval in value] for key in ENDS}
            names |= _names_of_interval(name, columns)
        else:
            names[name] = _as_number(value)
    return names


def _names_of_interval(name: str, interval: Mapping[str, Any]) -> dict[str, Any]:
    """A number, or a list of them, and the ends of its interval, or of theirs."""
    return {
        name: _as_number(interval["value"]),
        f"{name}_low": _as_number(interval["low"]),
        f"{name}_high": _as_number(interval["high"]),
    }


def _is_interval(value: Any) -> bool:
    return isinstance(value, dict) and ENDS <= value.keys()


def _as_number(value: Any) -> Any:
    """A list of numbers as an array, and "inf", "-inf", "nan" as floats, because JSON has none;
    else the value."""
    try:
        if isinstance(value, str):
            return float(value)
        if isinstance(value, list):
            return np.array(value, dtype=float)
    except ValueError:  # text
        pass
    return value


def evaluate(claim: Claim, expression: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression over `names` and `FUNCTIONS`; ClaimError, with the name of the
    claim, if it fails."""
    try:
        return eval(expression.strip(), {"__builtins__": {}} | FUNCTIONS | dict(names))
    except Exception as error:
        raise ClaimError(
            f"{claim.id}: {expression!r} fails: {type(error).__name__}: {error}; correct it"
        ) from None


def fill(claim: Claim, text: str, names: Mapping[str, Any]) -> str:
    """A text with ``{expression:format}`` replaced by numbers; arrays become lists, and a number
    with an interval is followed by it, or by half of its width: ``{expression:±.3f}``."""
    return _Filling(claim).vformat(text, (), names)


class _Filling(string.Formatter):
    """Looks up an expression with the interval of the same name, and writes both."""

    def __init__(self, claim: Claim):
        self.claim = claim

    def get_field(self, field, args, names):
        """The value of the expression `field`, with its interval or None, as a pair for
        `format_field`; `args` are not used."""
        value = evaluate(self.claim, field, names)
        low = names.get(f"{field}_low")
        high = names.get(f"{field}_high")
        if low is None:
            return (value, None), field
        return (value, (low, high)), field

    def format_field(self, value_and_interval, spec):
        value, interval = value_and_interval
        try:
            if isinstance(value, np.ndarray | list | tuple):
                return self._format_list(value, interval, spec)
            if interval is not None and spec.startswith(HALF):
                return _with_half_width(value, interval, spec.removeprefix(HALF))
            text = format(value, spec)
            if interval is None:
                return text
            low, high = interval
            return f"{text} ({format(low, spec)} to {format(high, spec)})"
        except (TypeError, ValueError) as error:
            raise ClaimError(
                f"{self.claim.id}: cannot write {value!r} as {spec!r}: {error}; correct it"
            ) from None

    def _format_list(self, values, interval, spec: str) -> str:
        """Numbers between commas, each followed by its interval; `interval` holds all lower and all
        upper ends, or is None."""
        parts = np.ravel(values).tolist()
        intervals: list[tuple | None] = [None] * len(parts)
        if interval is not None:
            intervals = list(zip(*interval, strict=True))
        texts = [
            self.format_field((part, of_part), spec)
            for part, of_part in zip(parts, intervals, strict=True)
        ]
        return ", ".join(texts)


def _with_half_width(value: float, interval: tuple[float, float], spec: str) -> str:
    """A number in the middle of its interval with half of the interval's width: "0.3 ± 0.1"."""
    low, high = interval
    if not np.isclose(high - value, value - low, atol=1e-12):
        raise ValueError(f"it is not in the middle of {low} and {high}")
    return f"{format(value, spec)} {HALF} {format((high - low) / 2, spec)}"
