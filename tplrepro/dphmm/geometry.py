"""Convex geometry behind the sensitivity hull: spans, and hulls of points and their negatives by Qhull."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull, QhullError

__all__ = ["corner_points", "one_of_each_pair", "orthonormal", "spanning_points", "symmetric_hull"]


def spanning_points(points: np.ndarray, tolerance: float) -> list[int]:
    """Points, each the farthest from the span of those before it, as long as one is farther than `tolerance`."""
    chosen: list[int] = []
    residual = points
    while len(points) and len(chosen) < points.shape[1]:
        lengths = np.einsum("ij,ij->i", residual, residual)
        farthest = int(np.argmax(lengths))
        if np.sqrt(lengths[farthest]) <= tolerance:
            break
        chosen.append(farthest)
        if len(chosen) < points.shape[1]:
            basis = orthonormal(points[chosen])
            residual = points - (points @ basis) @ basis.T
    return chosen


def orthonormal(vectors: np.ndarray) -> np.ndarray:
    """Orthonormal basis (d, r) of r independent vectors (r, d)."""
    return np.linalg.qr(vectors.T)[0]


def symmetric_hull(points: np.ndarray, spanning: np.ndarray, basis: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of points (m, d) and their negatives: vertices (v, d), those of each facet (F, r, d), normals a, a . v <= 1."""
    # In coordinates in which the spanning points are unit vectors no body is thin, and Qhull does not fail on one.
    to_coordinates = basis @ np.linalg.inv(spanning @ basis)
    coordinates = points @ to_coordinates
    kept = _outer(coordinates)
    points = np.concatenate([points[kept], -points[kept]]) + 0.0  # no -0.0
    hull = ConvexHull(np.concatenate([coordinates[kept], -coordinates[kept]]))
    vertices = points[hull.vertices]
    if points.shape[1] == 2:
        vertices = vertices[np.argsort(np.arctan2(vertices[:, 1], vertices[:, 0]))]
    return vertices, points[hull.simplices], _normals(hull) @ to_coordinates.T


def corner_points(points: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of `labels` (n,) those of points (n, d) that may be vertices of their hull; all of them where it may be flat."""
    if points.shape[1] == 1:
        return labels[[np.argmin(points), np.argmax(points)]]
    if len(points) < 50:
        return labels
    try:
        return labels[ConvexHull(points - points[0]).vertices]
    except QhullError:
        return labels


def one_of_each_pair(normals: np.ndarray) -> np.ndarray:
    """Of normals a and -a keep one; triangulated facets share theirs, which are kept once."""
    if not len(normals):
        return normals
    scaled = np.round(normals / np.abs(normals).max(), 13)
    first = scaled[np.arange(len(scaled)), np.argmax(scaled != 0, axis=1)]
    _, index = np.unique(scaled * np.sign(first)[:, None] + 0.0, axis=0, return_index=True)
    return normals[np.sort(index)]


def _outer(coordinates: np.ndarray) -> np.ndarray:
    """Indices of the points (m, r) that may be vertices: in the plane, those not well inside a polygon of extremes.

    A graph of 300 states may have 40,000 edges, of which Qhull need see few. Eight extremes drop most points, of which
    64 then drop most that are left.
    """
    n, r = coordinates.shape
    kept = np.arange(n)
    if r != 2 or n < 500:
        return kept
    for directions in (8, 64):
        x, y = np.ascontiguousarray(coordinates[kept].T)
        angles = np.linspace(0, np.pi, directions, endpoint=False)
        extreme = kept[[int(np.argmax(np.abs(np.cos(angle) * x + np.sin(angle) * y))) for angle in angles]]
        normals = _normals(ConvexHull(np.concatenate([coordinates[extreme], -coordinates[extreme]])))
        # The circle within the polygon settles most points by one comparison.
        kept = kept[x * x + y * y >= (1 - 1e-9) / (normals**2).sum(axis=1).max()]
        kept = kept[np.abs(coordinates[kept] @ normals.T).max(axis=1) >= 1 - 1e-9]
    return kept


def _normals(hull: ConvexHull) -> np.ndarray:
    """The normals a of a Qhull hull about 0, its facets being a . v <= 1."""
    return hull.equations[:, :-1] / -hull.equations[:, -1:]
