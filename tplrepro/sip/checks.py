"""What all of SIP checks: sequences of symbols, responses as matrices, distances between symbols."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.validation import ROW_SUM_TOLERANCE, check_horizon

__all__ = ["check_distance", "check_response_matrix", "check_symbols"]


def check_symbols(sequence: ArrayLike, n_symbols: int) -> np.ndarray:
    """A sequence of symbols 0..n-1 as an int array (T,), T >= 1."""
    symbols, n = np.asarray(sequence), check_horizon(n_symbols, "n_symbols")
    if symbols.ndim != 1 or symbols.size == 0:
        raise ValueError(f"a sequence must hold at least one symbol, found shape {symbols.shape}; leave empty ones out")
    if symbols.min() < 0 or symbols.max() >= n or (symbols != np.round(symbols)).any():
        raise ValueError(f"symbols must be 0..{n - 1}, found {symbols.min()} to {symbols.max()}; check them")
    return symbols.astype(np.int64)


def check_response_matrix(matrix: ArrayLike, n: int | None = None) -> np.ndarray:
    """A response (n, m) as a float array; ValueError unless its n rows are distributions over the outputs."""
    rows = np.asarray(matrix, dtype=float)
    if rows.ndim != 2 or 0 in rows.shape or n not in (None, rows.shape[0]):
        raise ValueError(
            f"a response over {'n' if n is None else n} symbols must have a row a(.|x) for each, "
            f"found shape {rows.shape}; give rows a(.|x)"
        )
    sums = rows.sum(axis=1)
    if not np.isfinite(sums).all() or (rows < 0).any() or np.abs(sums - 1).max() > ROW_SUM_TOLERANCE:
        worst = int(np.argmax(np.where(np.isfinite(sums), np.abs(sums - 1), np.inf)))
        raise ValueError(
            f"rows a(.|x) must be non-negative and sum to 1 within {ROW_SUM_TOLERANCE:g}, found sum {sums[worst]:.12g} "
            f"in row {worst} and minimum {rows.min():g}; divide each row by its sum"
        )
    return rows


def check_distance(distance: str | ArrayLike, n: int) -> np.ndarray:
    """A distance matrix (n, n), finite and not negative; "hamming" is 1 off the diagonal."""
    if isinstance(distance, str):
        if distance != "hamming":
            raise ValueError(f"distance must be 'hamming' or an array (n, n), found {distance!r}; give one of these")
        return 1.0 - np.eye(n)
    values = np.asarray(distance, dtype=float)
    if values.shape != (n, n):
        raise ValueError(f"distances between {n} symbols must have shape ({n}, {n}), found {values.shape}; resize them")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"distances must be finite and not negative, found minimum {values.min():g}; correct them")
    return values
