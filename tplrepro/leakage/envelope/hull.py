"""What a search of the envelope returns: the joint hull, or its point on one tangent."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Hull", "as_hull", "no_points", "tangent_point"]


class Hull(NamedTuple):
    """Vertices in order of growing alpha (falling d); `d`, `gap`, `rest` are d(S), q(S) - d(S) and 1 - q(S)."""

    d: np.ndarray
    gap: np.ndarray
    rest: np.ndarray
    row_q: np.ndarray
    row_d: np.ndarray


def no_points() -> tuple[np.ndarray, np.ndarray]:
    """The points (0, 3) and pairs of rows (0, 2) of a hull without vertices."""
    return np.empty((0, 3)), np.empty((0, 2), dtype=np.int64)


def as_hull(points: np.ndarray, pairs: np.ndarray) -> Hull:
    return Hull(*np.ascontiguousarray(points.T), *np.ascontiguousarray(pairs.T))


def tangent_point(points: np.ndarray, inverse: float) -> tuple[float, float, float]:
    """(d, gap, rest) of the one among `points` to which the line from (-inverse, 0) is steepest."""
    return tuple(points[np.argmax(points[:, 1] / (points[:, 0] + inverse))].tolist())
