"""Sensitivity hulls: the convex hull K of the differences of answers over edges (Definition 5.1 of
[5]).

K is symmetric about 0. It may be flat (Example 5.2: a segment; without edges: the point 0); norm
and density are then those of its span, and vectors off it have norm infinity.

K is held as half-spaces |a . v| <= 1, so that the K-norm of v is the largest |a . v|, and as cones
from 0 over its facets, which give volumes, moments and exact uniform samples. The half-spaces and
the mechanisms' noise are wider than K by `slack`, lest rounding put an edge's difference outside.
"""

from __future__ import annotations
from contextlib import suppress
from itertools import combinations, pairwise
from math import factorial, hypot

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.distance import cdist

from tplrepro.dphmm.constraint import as_answers, as_vectors
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.mechanisms.k_norm import SLACK
from tplrepro.validation import FrozenArrays, as_numbers, check_horizon, check_level

#: Extents below this fraction of the largest number involved are rounding, not a dimension.
FLAT = 2.0**-46
#: With a wider slack, noise of norm 128 / (1 + slack) or more is rounded by more than the slack covers.
MOST_SLACK = 4.0
#: Where each coordinate has its own unit, the tolerance for flatness grows with the largest size over width up to this.
MOST_ROUNDING = 2.0**42
#: A corner of a polygon this close to the line between its neighbours is rounding, not a corner.
ROUNDING = 1e-12


class SensitivityHull(FrozenArrays):
    """The convex hull of finite vectors (m, d) and their negatives.

    `magnitude`, a number or (d,), is the size of the answers whose differences they are: it decides
    how far rounding may move them.

    >>> K = SensitivityHull([[1, -1], [0, 1]])
    >>> K.dimension, round(K.volume, 6)
    (2, 2.0)
    >>> K.norm([[1, 0], [0, 2]]).round(6).tolist()
    [2.0, 2.0]
    """

    dimension: int  # of the span: 0 for a point, 1 for a segment
    ambient_dimension: int  # d
    vertices: np.ndarray  # (v, d); in the plane counter-clockwise
    volume: float  # in the span: area of a polygon, length of a segment, 1 for a point
    facet_vertices: np.ndarray  # (F, dimension, d), the simplices over which cones from 0 make up K
    cone_volumes: np.ndarray  # (F,)
    uneven: bool  # whether each coordinate is measured by its own largest difference
    slack: float  # by how much of K the half-spaces are wider
    # (h, d), one row a of each pair of facets |a . v| <= 1; of a point only 0
    halfspaces: np.ndarray

    def __init__(self, differences: ArrayLike, magnitude: ArrayLike = 0.0):
        points = as_numbers(
            differences, "differences must be finite vectors, shape (m, d)", "give one a row"
        )
        largest = float(np.abs(points).max(initial=0.0))
        # Outside these bounds volumes underflow or overflow, and with them the noise.
        if points.ndim != 2 or points.shape[1] == 0 or not (largest == 0 or 1e-50 < largest < 1e50):
            raise ValueError(
                "differences must be finite vectors, shape (m, d), 0 or of a size from 1e-50 to 1e50, "
                f"found shape {points.shape} and size {largest:g}; give one a row, in another unit"
            )
        self.ambient_dimension = points.shape[1]
        # A coordinate that changes by less than the rounding of another one is a dimension
        # nevertheless, since it must not be released as it is: then each coordinate is measured by
        # its own largest difference.
        widths = np.abs(points).max(axis=0, initial=0.0)
        self._magnitude = np.broadcast_to(magnitude, widths.shape)
        tolerance = FLAT * max(largest, float(self._magnitude.max()), 1e-300)
        self.uneven = bool(((widths > 0.0) & (widths <= tolerance)).any())
        self._unit = np.where(self.uneven & (widths > 0.0), widths, 1.0)
        if self.uneven:
            tolerance = FLAT * min(
                max(1.0, float((self._magnitude / self._unit).max())), MOST_ROUNDING
            )
        self.tolerance = tolerance
        spanning, self._scaled_basis = _span(points, self.tolerance, self._unit)
        self._spanning, self.dimension = spanning, len(spanning)
        to_coordinates = (
            _even_coordinates(spanning / self._unit, self._scaled_basis) / self._unit[:, None]
        )
        if self.dimension > 1:
            self.vertices, self.facet_vertices, normals = _symmetric_hull(
                points, spanning, to_coordinates
            )
        else:
            end = spanning.sum(axis=0)  # of the segment; 0 for a point
            self.vertices = np.array([end, -end])[: self.dimension + 1] + 0.0  # no -0.0
            self.facet_vertices = self.vertices[:, None][:, : self.dimension]
            scaled = end / self._unit
            normals = self.vertices / self._unit**2 / (scaled @ scaled or 1.0)
        inside, content = self._scaled_basis, 1.0
        if self.uneven:
            inside, content = to_coordinates, float(_content(spanning, self._unit))
        self.cone_volumes = (
            np.abs(np.linalg.det(self.facet_vertices @ inside))
            * content
            / factorial(self.dimension)
        )
        self.volume = float(self.cone_volumes.sum())
        self._facet_normals = normals
        # a . v is rounded as its summands, which cancel where K is thin; 256 also covers the noise.
        summands = np.abs(normals) @ np.abs(self.vertices).max(axis=0)
        self.slack = max(SLACK, 256 * np.finfo(float).eps * float(summands.max()))
        if self.slack > MOST_SLACK:
            raise ValueError(
                "differences must span a body whose norm can be computed, found one so thin aslant that rounding is "
                f"{self.slack / 256:.2g} of it; give answers in other coordinates, or round them"
            )
        # coordinates in which no body is thin
        apart = normals @ spanning.T if self.dimension else normals
        self.halfspaces = normals[_one_of_each_pair(apart)] / (1 + self.slack)
        self.__post_init__()  # freezes them

    def norm(self, vectors: ArrayLike) -> np.ndarray:
        """||v||_K = inf{r > 0 : v in rK} of vectors (..., d), shape (...); infinite off the
        span."""
        v = as_vectors(vectors, self.ambient_dimension)
        inside = np.abs(v @ self.halfspaces.T).max(axis=-1)
        if self.dimension < self.ambient_dimension:
            inside = np.where(self._height(v) > 0, np.inf, inside)
        return inside[()]

    def contains(self, vectors: ArrayLike) -> np.ndarray:
        """Whether vectors (..., d) lie in K or on its boundary, shape (...)."""
        return self.norm(vectors) <= 1

    def pairwise_contains(self, left: ArrayLike, right: ArrayLike) -> np.ndarray:
        """Whether f_i - f_j lies in K, (a, b), for rows f_i of `left` (a, d) and f_j of `right` (b,
        d)."""
        rows, columns = (as_vectors(points, self.ambient_dimension) for points in (left, right))
        # far from 0 coordinates would lose digits
        rows, columns = rows - columns[:1], columns - columns[:1]
        inside = cdist(rows @ self.halfspaces.T, columns @ self.halfspaces.T, "chebyshev") <= 1
        if self.dimension < self.ambient_dimension:
            distances = cdist(rows / self._unit, columns / self._unit)
            inside &= (
                cdist(self.beside(rows), self.beside(columns)) <= self.tolerance + FLAT * distances
            )
        return inside

    def extended(self, vector: ArrayLike) -> SensitivityHull:
        """The convex hull of K, a vector (d,) or several (k, d), and their negatives."""
        return SensitivityHull(np.vstack([self.vertices, vector]), self._magnitude)

    def extended_volumes(self, vectors: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Exact dimensions (k,) and volumes (k,) of the hulls `extended` by each of the vectors (k,
        d).

        A vector v beyond the facet with normal a adds (a . v - 1) times the volume of the facet's
        cone, and -v as much again; the parts do not overlap, because 0 lies in K. A vector off the
        span makes a bipyramid.
        """
        v = as_vectors(vectors, self.ambient_dimension)
        height = self._height(v)
        beyond = np.maximum(v @ self._facet_normals.T - 1, 0)
        inside = self.volume + 2 * beyond @ self.cone_volumes
        volumes = np.where(height > 0, 2 * self.volume * height / (self.dimension + 1), inside)
        return self.dimension + (height > 0), volumes

    def _height(self, v: np.ndarray) -> np.ndarray:
        """Distances (...) of vectors (..., d) from the span, 0 where they are rounding errors."""
        if self.uneven:
            spanning = np.broadcast_to(self._spanning, (*v.shape[:-1], *self._spanning.shape))
            above = np.concatenate([spanning, v[..., None, :]], axis=-2)
            height = _content(above, self._unit) / _content(self._spanning, self._unit)
        else:
            height = np.linalg.norm(v - (v @ self._scaled_basis) @ self._scaled_basis.T, axis=-1)
        return np.where(np.linalg.norm(self.beside(v), axis=-1) > self.rounding(v), height, 0.0)

    def beside(self, v: np.ndarray) -> np.ndarray:
        """The part of vectors (..., d) orthogonal to the span, each coordinate measured in its own
        unit."""
        scaled = v / self._unit
        return scaled - (scaled @ self._scaled_basis) @ self._scaled_basis.T

    def rounding(self, v: np.ndarray) -> np.ndarray:
        """The length (...) up to which `beside` is rounding, for vectors (..., d)."""
        return self.tolerance + FLAT * np.linalg.norm(v / self._unit, axis=-1)

    def coordinates(self, v: np.ndarray) -> np.ndarray:
        """Coordinates (..., dimension) of vectors (..., d) in the span, without what lies off
        it."""
        return (v / self._unit) @ self._scaled_basis

    def vector(self, coordinates: np.ndarray) -> np.ndarray:
        """The vectors (..., d) in the span with these coordinates."""
        return (coordinates @ self._scaled_basis.T) * self._unit

    def second_moment(self) -> np.ndarray:
        """E[u u^T] of a uniform point u of K, (d, d)."""
        # Of a simplex with vertices 0, w_1..w_r: (sum w w^T + (sum w)(sum w)^T) / ((r + 1)(r + 2)).
        sums = self.facet_vertices.sum(axis=1, keepdims=True)
        arms = np.concatenate([self.facet_vertices, sums], axis=1)
        moment = np.einsum("f,fki,fkj->ij", self.cone_volumes / self.volume, arms, arms)
        return moment / ((self.dimension + 1) * (self.dimension + 2))

    def __repr__(self) -> str:
        return f"SensitivityHull(dimension {self.dimension} of {self.ambient_dimension}, {len(self.vertices)} vertices)"


def sensitivity_hull(policy: PolicyGraph, answers: ArrayLike) -> SensitivityHull:
    """The sensitivity hull K(G, f) of a policy graph and answers f, (N, d) or (N,) (Definition 5.1
    of [5]).

    ValueError unless each of the policy's N states has a finite row. The running example of [5]:

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]])
    >>> sensitivity_hull(G, f).vertices.tolist()
    [[-4.0, -1.0], [1.0, -1.0], [3.0, 0.0], [4.0, 1.0], [-1.0, 1.0], [-3.0, 0.0]]
    """
    f = as_answers(answers, policy.n_states)
    magnitude = np.abs(f[policy.possible]).max(axis=0)
    if policy.is_complete:
        # The differences of all answers have the same hull as those of the corners of the answers'
        # own hull.
        corners = _corners(f[policy.possible])
        return SensitivityHull((corners[:, None] - corners).reshape(-1, f.shape[1]), magnitude)
    return SensitivityHull(policy.differences(f), magnitude)


def l1_sensitivity(policy: PolicyGraph, answers: ArrayLike) -> float:
    """The largest l1 distance of the answers of connected states (Definition 3.2 of [5]); 0 without
    edges.

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> l1_sensitivity(PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]), f)
    5.0
    """
    return float(np.abs(policy.differences(answers)).sum(axis=1).max(initial=0.0))


def cross_polytope(dimension: int, radius: float) -> SensitivityHull:
    """The ball {v : ||v||_1 <= radius}: its K-norm mechanism is Laplace's (Theorem 5.1 of [5])."""
    return SensitivityHull(
        check_level(radius, "radius") * np.eye(check_horizon(dimension, "dimension"))
    )


def _span(points: np.ndarray, tolerance: float, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points (r, d) that span all within `tolerance`, and an orthonormal basis (d, r), in multiples
    of `unit` (d,).

    Each is the point farthest from the span of those before it.
    """
    chosen: list[int] = []
    scaled, basis = points / unit, np.zeros((points.shape[1], 0))
    for _ in range(min(points.shape)):
        residual = scaled - (scaled @ basis) @ basis.T
        lengths = np.einsum("ij,ij->i", residual, residual)
        if np.sqrt(lengths.max()) <= tolerance:
            break
        chosen.append(int(np.argmax(lengths)))
        basis = np.linalg.qr(scaled[chosen].T)[0]
    return points[chosen], basis


def _content(vectors: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """The k-dimensional volume (...) of the parallelotopes of vectors (..., k, d), by the formula
    of Cauchy and Binet.

    Coordinates are measured in `unit` (d,), so that none of them is rounded as a larger one.
    """
    k, d = vectors.shape[-2:]
    columns = [list(chosen) for chosen in combinations(range(d), k)]
    minors = [
        np.linalg.det((vectors / unit)[..., chosen]) * unit[chosen].prod() for chosen in columns
    ]
    return np.sqrt(np.square(minors).sum(axis=0))


def _even_coordinates(spanning: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """The map (d, r) to coordinates in which spanning points are unit vectors: of thin bodies Qhull
    loses corners."""
    return basis @ np.linalg.inv(spanning @ basis)


def _symmetric_hull(
    points: np.ndarray, spanning: np.ndarray, to_coordinates: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The hull of points (m, d) and their negatives: vertices (v, d), facets (F, r, d) and normals
    a, a . v <= 1."""
    coordinates = points @ to_coordinates
    kept = _outer(coordinates)
    points = np.concatenate([points[kept], -points[kept]]) + 0.0  # no -0.0
    coordinates = np.concatenate([coordinates[kept], -coordinates[kept]])
    hull = _hull_about(coordinates, coordinates)
    # points nearly coincide; moved by much less than the slack, they coincide or are clearly apart
    if hull is None:
        original, coordinates = coordinates, np.round(coordinates, 11)
        points, hull = coordinates @ spanning + 0.0, _hull_about(original, coordinates)
    if hull is None:
        raise ValueError(
            f"differences must be clearly apart for Qhull, found {len(kept)} in {points.shape[1]} dimensions, some "
            "of which nearly coincide; round the answers, or drop edges"
        )
    if points.shape[1] == 2:
        corners = _polygon(coordinates, hull.vertices, to_coordinates)
        facets = np.stack([corners, np.roll(corners, -1)], axis=1)
        vertices, normals = (
            points[corners],
            np.linalg.solve(coordinates[facets], np.ones((len(facets), 2, 1)))[..., 0],
        )
    else:
        facets, vertices, normals = hull.simplices, points[hull.vertices], _normals(hull)
    return vertices, points[facets], normals @ to_coordinates.T


def _hull_about(points: np.ndarray, corners: np.ndarray) -> ConvexHull | None:
    """Qhull's hull of `corners` (m, r); None if it fails or leaves points (m, r) farther outside
    than the slack."""
    with suppress(QhullError):
        hull = ConvexHull(corners)
        # all products would be too many
        parts = np.array_split(_normals(hull), len(hull.equations) // 512 + 1)
        if max(np.abs(points @ part.T).max() for part in parts) <= 1 + SLACK / 2:
            return hull
    return None


def _polygon(
    coordinates: np.ndarray, corners: np.ndarray, to_coordinates: np.ndarray
) -> np.ndarray:
    """A polygon's corners, by index, counter-clockwise from the direction (-1, 0), which itself is
    last.

    Corners within `ROUNDING` of the line between their neighbours are dropped one at a time: of two
    that are close, one stays. So rounding changes neither the order nor the choice.
    """
    start = -to_coordinates[0]
    turned = coordinates[corners] @ np.array([[start[0], -start[1]], [start[1], start[0]]])
    angles = np.sign(np.linalg.det(to_coordinates)) * np.arctan2(turned[:, 1], turned[:, 0])
    angles[angles < 1e-9] += 2 * np.pi
    corners = corners[np.argsort(angles)]
    farthest = int(np.argmax(np.linalg.norm(coordinates[corners], axis=1)))
    circuit = coordinates[np.roll(corners, -farthest)].tolist()
    is_kept = [True] * len(corners)
    x, y = circuit[0]  # the last one kept
    for position, ((at_x, at_y), (after_x, after_y)) in enumerate(
        pairwise([*circuit[1:], circuit[0]]), start=1
    ):
        area = (at_x - x) * (after_y - y) - (at_y - y) * (after_x - x)
        is_kept[position] = abs(area) > ROUNDING * hypot(after_x - x, after_y - y)
        if is_kept[position]:
            x, y = at_x, at_y
    return corners[np.roll(is_kept, farthest)]


def _corners(points: np.ndarray) -> np.ndarray:
    """The points (n, d) that may be vertices of their hull; all of them where it may be flat."""
    if points.shape[1] == 1:
        return points[[np.argmin(points), np.argmax(points)]]
    if len(points) < 50:
        return points
    shifted = points - points[0]
    spanning, basis = _span(shifted, FLAT * np.abs(shifted).max(), np.ones(points.shape[1]))
    with suppress(QhullError):
        if len(spanning) == points.shape[1]:
            return points[ConvexHull(shifted @ _even_coordinates(spanning, basis)).vertices]
    return points


def _one_of_each_pair(normals: np.ndarray) -> np.ndarray:
    """The indices of distinct normals, one of a and -a; the simplices of one facet share their
    normal."""
    scaled = np.round(normals / (np.abs(normals).max() or 1.0), 13)
    first = scaled[np.arange(len(scaled)), np.argmax(scaled != 0, axis=1)]
    _, index = np.unique(scaled * np.sign(first)[:, None] + 0.0, axis=0, return_index=True)
    return np.sort(index)


def _outer(coordinates: np.ndarray) -> np.ndarray:
    """Indices of points (m, r) that may be vertices of the hull.

    Of many points in the plane, on which Qhull is slow, those inside a circle that lies in the hull
    are left out.
    """
    if coordinates.shape[1] != 2 or len(coordinates) < 500:
        return np.arange(len(coordinates))
    x, y = np.ascontiguousarray(coordinates.T)
    angles = np.linspace(0, np.pi, 8, endpoint=False)
    extreme = coordinates[
        [np.abs(np.cos(angle) * x + np.sin(angle) * y).argmax() for angle in angles]
    ]
    normals = _normals(ConvexHull(np.concatenate([extreme, -extreme])))
    return np.flatnonzero(x * x + y * y >= (1 - 1e-9) / (normals**2).sum(axis=1).max())


def _normals(hull: ConvexHull) -> np.ndarray:
    """The normals a of a Qhull hull about 0, its facets being a . v <= 1."""
    return hull.equations[:, :-1] / -hull.equations[:, -1:]
