"""Sensitivity hulls: the convex hull K of the differences of answers over edges (Definition 5.1 of
[5]).

K is symmetric about 0. It may be flat (Example 5.2: a segment; without edges: the point 0); norm
and density are then those of its span, and vectors off it have norm infinity.

K is held as half-spaces |a . v| <= 1, so that the K-norm of v is the largest |a . v|, and as cones
from 0 over its facets, which give volumes, moments and exact uniform samples. The half-spaces and
the mechanisms' noise are wider than K by `slack`, lest rounding put an edge's difference outside.
"""

from __future__ import annotations
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import factorial, hypot
from typing import Self

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
#: With a wider slack, noise of norm 128 / (1 + slack) or more is rounded by more than the slack
#: covers.
MOST_SLACK = 4.0
#: Where each coordinate has its own unit, the tolerance for flatness grows with the largest size
#: over width up to this.
MOST_ROUNDING = 2.0**42
#: From this many points on, a hull in the plane is found faster without those well inside.
MANY_POINTS = 500
#: A corner of a polygon this close to the line between its neighbours is rounding, not a corner.
ROUNDING = 1e-12


class SensitivityHull(FrozenArrays):
    """The convex hull of finite vectors and their negatives.

    Parameters
    ----------
    differences : array-like (m, d)
        The vectors.
    magnitude : float or array-like (d,)
        The size of the answers whose differences they are, which decides how far rounding may move
        them.

    Raises
    ------
    ValueError
        If the vectors are not finite, smaller than 1e-50 or larger than 1e50, or the body is too
        thin for its norm to be computed.

    Examples
    --------
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
        points = _checked_differences(differences)
        self.ambient_dimension = points.shape[1]
        self._magnitude = np.broadcast_to(magnitude, points.shape[1:])
        measure = _Measure.of(points, self._magnitude)
        self.uneven = measure.uneven
        self._unit = measure.unit
        self.tolerance = measure.tolerance
        self._spanning, self._scaled_basis = _span(points, measure.tolerance, measure.unit)
        self.dimension = len(self._spanning)
        to_coordinates = self._to_coordinates()
        if self.dimension > 1:
            outline = _symmetric_hull(points, self._spanning, to_coordinates)
        else:
            outline = _segment(self._spanning, measure.unit)
        self.vertices = outline.vertices
        self.facet_vertices = outline.facet_vertices
        self._facet_normals = outline.normals
        self.cone_volumes = self._cone_volumes(to_coordinates)
        self.volume = float(self.cone_volumes.sum())
        self.slack = _slack(outline)
        # Pairs are told apart in coordinates in which no body is thin.
        apart = outline.normals
        if self.dimension:
            apart = outline.normals @ self._spanning.T
        self.halfspaces = outline.normals[_one_of_each_pair(apart)] / (1 + self.slack)
        self.__post_init__()  # freezes them

    def _to_coordinates(self) -> np.ndarray:
        """The map (d, r) to coordinates in which the spanning points are unit vectors."""
        scaled = _even_coordinates(self._spanning / self._unit, self._scaled_basis)
        return scaled / self._unit[:, None]

    def _cone_volumes(self, to_coordinates: np.ndarray) -> np.ndarray:
        """The volumes, in the span, of the cones over the facets, (F,)."""
        basis = self._scaled_basis
        content = 1.0
        if self.uneven:
            basis = to_coordinates
            content = float(_content(self._spanning, self._unit))
        determinants = np.abs(np.linalg.det(self.facet_vertices @ basis))
        return determinants * content / factorial(self.dimension)

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
        """Whether f_i - f_j lies in K, for each pair.

        Parameters
        ----------
        left : array-like (a, d)
            Rows f_i.
        right : array-like (b, d)
            Rows f_j.

        Returns
        -------
        array (a, b) of bool

        Raises
        ------
        ValueError
            If a vector is not finite, or has other than d coordinates.
        """
        rows = as_vectors(left, self.ambient_dimension)
        columns = as_vectors(right, self.ambient_dimension)
        origin = columns[:1]  # far from 0 coordinates would lose digits
        rows = rows - origin
        columns = columns - origin
        norms = cdist(rows @ self.halfspaces.T, columns @ self.halfspaces.T, "chebyshev")
        is_inside = norms <= 1
        if self.dimension < self.ambient_dimension:
            distances = cdist(rows / self._unit, columns / self._unit)
            off_span = cdist(self.beside(rows), self.beside(columns))
            is_inside &= off_span <= self.tolerance + FLAT * distances
        return is_inside

    def extended(self, vector: ArrayLike) -> SensitivityHull:
        """The convex hull of K, a vector (d,) or several (k, d), and their negatives."""
        return SensitivityHull(np.vstack([self.vertices, vector]), self._magnitude)

    def extended_volumes(self, vectors: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Exact dimensions (k,) and volumes (k,) of the hulls `extended` by each of the vectors
        (k, d).

        A vector v beyond the facet with normal a adds (a . v - 1) times the volume of the facet's
        cone, and -v as much again; the parts do not overlap, because 0 lies in K. A vector off the
        span makes a bipyramid.
        """
        v = as_vectors(vectors, self.ambient_dimension)
        height = self._height(v)
        is_off_span = height > 0
        beyond = np.maximum(v @ self._facet_normals.T - 1, 0)
        in_span = self.volume + 2 * beyond @ self.cone_volumes
        bipyramid = 2 * self.volume * height / (self.dimension + 1)
        return self.dimension + is_off_span, np.where(is_off_span, bipyramid, in_span)

    def _height(self, v: np.ndarray) -> np.ndarray:
        """Distances (...) of vectors (..., d) from the span, 0 where they are rounding errors."""
        if self.uneven:
            spanning = np.broadcast_to(self._spanning, (*v.shape[:-1], *self._spanning.shape))
            above = np.concatenate([spanning, v[..., None, :]], axis=-2)
            height = _content(above, self._unit) / _content(self._spanning, self._unit)
        else:
            in_span = (v @ self._scaled_basis) @ self._scaled_basis.T
            height = np.linalg.norm(v - in_span, axis=-1)
        off_span = np.linalg.norm(self.beside(v), axis=-1)
        return np.where(off_span > self.rounding(v), height, 0.0)

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
        dimension = f"dimension {self.dimension} of {self.ambient_dimension}"
        return f"SensitivityHull({dimension}, {len(self.vertices)} vertices)"


def _checked_differences(differences: ArrayLike) -> np.ndarray:
    """Finite vectors (m, d), not so small or large that volumes, and with them the noise, underflow
    or overflow."""
    points = as_numbers(
        differences, "differences must be finite vectors, shape (m, d)", "give one a row"
    )
    largest = float(np.abs(points).max(initial=0.0))
    has_good_size = largest == 0 or 1e-50 < largest < 1e50
    if points.ndim != 2 or points.shape[1] == 0 or not has_good_size:
        raise ValueError(
            "differences must be finite vectors, shape (m, d), 0 or of a size from 1e-50 to 1e50, "
            f"found shape {points.shape} and size {largest:g}; give one a row, in another unit"
        )
    return points


@dataclass(frozen=True, eq=False)
class _Measure:
    """The unit of each coordinate, and the extent, in these units, up to which a body is flat.

    A coordinate that changes by less than the rounding of another one is a dimension nevertheless,
    since it must not be released as it is: then each coordinate is measured by its own largest
    difference, and the measure is uneven.
    """

    unit: np.ndarray  # (d,)
    tolerance: float
    uneven: bool

    @classmethod
    def of(cls, points: np.ndarray, magnitude: np.ndarray) -> Self:
        """For differences (m, d) of answers of the magnitude (d,)."""
        widths = np.abs(points).max(axis=0, initial=0.0)
        largest = float(np.abs(points).max(initial=0.0))
        tolerance = FLAT * max(largest, float(magnitude.max()), 1e-300)
        uneven = bool(((widths > 0.0) & (widths <= tolerance)).any())
        if not uneven:
            return cls(np.ones(widths.size), tolerance, uneven)
        unit = np.where(widths > 0.0, widths, 1.0)
        rounding = max(1.0, float((magnitude / unit).max()))
        return cls(unit, FLAT * min(rounding, MOST_ROUNDING), uneven)


@dataclass(frozen=True, eq=False)
class _Outline:
    """Vertices (v, d), the vertices of facets (F, r, d), and normals (F, d): a . v <= 1."""

    vertices: np.ndarray
    facet_vertices: np.ndarray
    normals: np.ndarray


def _segment(spanning: np.ndarray, unit: np.ndarray) -> _Outline:
    """The outline of a segment, spanned by (1, d), or of the point 0, spanned by (0, d)."""
    r = len(spanning)
    end = spanning.sum(axis=0)
    vertices = np.array([end, -end])[: r + 1] + 0.0  # no -0.0
    facet_vertices = vertices[:, None][:, :r]
    scaled = end / unit
    normals = vertices / unit**2 / (scaled @ scaled or 1.0)
    return _Outline(vertices, facet_vertices, normals)


def _slack(outline: _Outline) -> float:
    """By how much of K the half-spaces must be wider for rounding.

    a . v is rounded as its summands, which cancel where K is thin; 256 also covers the noise.
    """
    summands = np.abs(outline.normals) @ np.abs(outline.vertices).max(axis=0)
    slack = max(SLACK, 256 * np.finfo(float).eps * float(summands.max()))
    if slack > MOST_SLACK:
        raise ValueError(
            "differences must span a body whose norm can be computed, found one so thin aslant "
            f"that rounding is {slack / 256:.2g} of it; "
            "give answers in other coordinates, or round them"
        )
    return slack


def sensitivity_hull(policy: PolicyGraph, answers: ArrayLike) -> SensitivityHull:
    """The sensitivity hull K(G, f) (Definition 5.1 of [5]).

    Parameters
    ----------
    policy : PolicyGraph over N states
        G, constrained to the possible states.
    answers : array-like (N, d) or (N,)
        f.

    Returns
    -------
    SensitivityHull

    Raises
    ------
    ValueError
        Unless each of the N states has a finite row, and if the body is too thin.

    Examples
    --------
    The running example of [5]:

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
        differences = (corners[:, None] - corners).reshape(-1, f.shape[1])
        return SensitivityHull(differences, magnitude)
    return SensitivityHull(policy.differences(f), magnitude)


def l1_sensitivity(policy: PolicyGraph, answers: ArrayLike) -> float:
    """The largest l1 distance of the answers of connected states (Definition 3.2 of [5]).

    Parameters
    ----------
    policy : PolicyGraph over N states
        Constrained to the possible states.
    answers : array-like (N, d) or (N,)
        f.

    Returns
    -------
    float
        0 without edges.

    Raises
    ------
    ValueError
        Unless each of the N states has a finite row.

    Examples
    --------
    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> l1_sensitivity(PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]), f)
    5.0
    """
    return float(np.abs(policy.differences(answers)).sum(axis=1).max(initial=0.0))


def cross_polytope(dimension: int, radius: float) -> SensitivityHull:
    """The ball {v : ||v||_1 <= radius}: its K-norm mechanism is Laplace's (Theorem 5.1 of [5]).

    Parameters
    ----------
    dimension : int
        d, at least 1.
    radius : float
        > 0.

    Returns
    -------
    SensitivityHull

    Raises
    ------
    ValueError
        If the dimension or the radius is out of range.
    """
    radius = check_level(radius, "radius")
    return SensitivityHull(radius * np.eye(check_horizon(dimension, "dimension")))


def _span(points: np.ndarray, tolerance: float, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points (r, d) that span all within `tolerance`, and an orthonormal basis (d, r), in multiples
    of `unit` (d,).

    Each is the point farthest from the span of those before it.
    """
    chosen: list[int] = []
    scaled = points / unit
    basis = np.zeros((points.shape[1], 0))
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
    scaled = vectors / unit
    minors = []
    for chosen in map(list, combinations(range(d), k)):
        minors.append(np.linalg.det(scaled[..., chosen]) * unit[chosen].prod())
    return np.sqrt(np.square(minors).sum(axis=0))


def _even_coordinates(spanning: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """The map (d, r) to coordinates in which spanning points are unit vectors: of thin bodies Qhull
    loses corners."""
    return basis @ np.linalg.inv(spanning @ basis)


def _symmetric_hull(
    points: np.ndarray, spanning: np.ndarray, to_coordinates: np.ndarray
) -> _Outline:
    """The hull of points (m, d) and their negatives, in a span of two dimensions or more."""
    coordinates = points @ to_coordinates
    kept = _outer(coordinates)
    points = np.concatenate([points[kept], -points[kept]]) + 0.0  # no -0.0
    coordinates = np.concatenate([coordinates[kept], -coordinates[kept]])
    hull = _hull_about(coordinates, coordinates)
    if hull is None:
        # Some nearly coincide; moved by much less than the slack, they coincide or are clearly
        # apart.
        original = coordinates
        coordinates = np.round(coordinates, 11)
        points = coordinates @ spanning + 0.0
        hull = _hull_about(original, coordinates)
    if hull is None:
        raise ValueError(
            f"differences must be clearly apart for Qhull, found {len(kept)} in {points.shape[1]} "
            "dimensions, some of which nearly coincide; round the answers, or drop edges"
        )
    if points.shape[1] > 2:
        normals = _normals(hull) @ to_coordinates.T
        return _Outline(points[hull.vertices], points[hull.simplices], normals)
    corners = _polygon(coordinates, hull.vertices, to_coordinates)
    facets = np.stack([corners, np.roll(corners, -1)], axis=1)
    ones = np.ones((len(facets), 2, 1))
    normals = np.linalg.solve(coordinates[facets], ones)[..., 0] @ to_coordinates.T
    return _Outline(points[corners], points[facets], normals)


def _hull_about(points: np.ndarray, corners: np.ndarray) -> ConvexHull | None:
    """Qhull's hull of `corners` (m, r); None if it fails or leaves points (m, r) farther outside
    than the slack."""
    with suppress(QhullError):
        hull = ConvexHull(corners)
        # all products would be too many
        parts = np.array_split(_normals(hull), len(hull.equations) // 512 + 1)
        farthest = max(np.abs(points @ part.T).max() for part in parts)
        if farthest <= 1 + SLACK / 2:
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
    x, y = -to_coordinates[0]
    turned = coordinates[corners] @ np.array([[x, -y], [y, x]])
    orientation = np.sign(np.linalg.det(to_coordinates))
    angles = orientation * np.arctan2(turned[:, 1], turned[:, 0])
    angles[angles < 1e-9] += 2 * np.pi
    corners = corners[np.argsort(angles)]
    farthest = int(np.argmax(np.linalg.norm(coordinates[corners], axis=1)))
    circuit = coordinates[np.roll(corners, -farthest)].tolist()
    is_kept = [True, *_corners_kept(circuit)]
    return corners[np.roll(is_kept, farthest)]


def _corners_kept(circuit: list[list[float]]) -> Iterator[bool]:
    """Whether each corner but the first, which is kept, is away from the line between the last one
    kept and the next one."""
    x, y = circuit[0]
    for (at_x, at_y), (next_x, next_y) in pairwise([*circuit[1:], circuit[0]]):
        area = (at_x - x) * (next_y - y) - (at_y - y) * (next_x - x)
        is_kept = abs(area) > ROUNDING * hypot(next_x - x, next_y - y)
        yield is_kept
        if is_kept:
            x = at_x
            y = at_y


def _corners(points: np.ndarray) -> np.ndarray:
    """The points (n, d) that may be vertices of their hull; all of them where it may be flat."""
    if points.shape[1] == 1:
        return points[[np.argmin(points), np.argmax(points)]]
    if len(points) < 50:
        return points
    shifted = points - points[0]
    tolerance = FLAT * np.abs(shifted).max()
    spanning, basis = _span(shifted, tolerance, np.ones(points.shape[1]))
    with suppress(QhullError):
        if len(spanning) == points.shape[1]:
            return points[ConvexHull(shifted @ _even_coordinates(spanning, basis)).vertices]
    return points


def _one_of_each_pair(normals: np.ndarray) -> np.ndarray:
    """The indices of distinct normals, one of a and -a; the simplices of one facet share their
    normal."""
    scaled = np.round(normals / (np.abs(normals).max() or 1.0), 13)
    first = np.argmax(scaled != 0, axis=1)
    signs = np.sign(scaled[np.arange(len(scaled)), first])
    _, index = np.unique(scaled * signs[:, None] + 0.0, axis=0, return_index=True)
    return np.sort(index)


def _outer(coordinates: np.ndarray) -> np.ndarray:
    """Indices of points (m, r) that may be vertices of the hull.

    Of many points in the plane, on which Qhull is slow, those inside a circle that lies in the hull
    are left out.
    """
    if coordinates.shape[1] != 2 or len(coordinates) < MANY_POINTS:
        return np.arange(len(coordinates))
    x, y = np.ascontiguousarray(coordinates.T)
    farthest = []
    for angle in np.linspace(0, np.pi, 8, endpoint=False):
        along = np.cos(angle) * x + np.sin(angle) * y
        farthest.append(np.abs(along).argmax())
    extreme = coordinates[farthest]
    normals = _normals(ConvexHull(np.concatenate([extreme, -extreme])))
    squared_radius = (1 - 1e-9) / (normals**2).sum(axis=1).max()
    return np.flatnonzero(x * x + y * y >= squared_radius)


def _normals(hull: ConvexHull) -> np.ndarray:
    """The normals a of a Qhull hull about 0, its facets being a . v <= 1."""
    return hull.equations[:, :-1] / -hull.equations[:, -1:]
