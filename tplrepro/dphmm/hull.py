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
#: Of this many answers, the corners are found first, since their differences have the same hull.
MANY_ANSWERS = 50
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
        span = _Span.of(points, measure.tolerance, measure.unit)
        self._spanning = span.points
        self._scaled_basis = span.basis
        self.dimension = len(span.points)
        to_coordinates = self._to_coordinates()
        if self.dimension > 1:
            outline = _outline_hull(points, self._spanning, to_coordinates)
        else:
            outline = _outline_segment(self._spanning, measure.unit)
        self.vertices = outline.vertices
        self.facet_vertices = outline.facet_vertices
        self._facet_normals = outline.normals
        self.cone_volumes = self._cone_volumes(to_coordinates)
        self.volume = float(self.cone_volumes.sum())
        self.slack = _slack_for_rounding(outline)
        one_of_each_pair = self._one_normal_of_each_pair()
        self.halfspaces = one_of_each_pair / (1 + self.slack)
        self.__post_init__()  # freezes them

    @property
    def _is_flat(self) -> bool:
        """Whether the span is not the whole space."""
        return self.dimension < self.ambient_dimension

    def _to_coordinates(self) -> np.ndarray:
        """The map (d, r) to coordinates in which the spanning points are unit vectors."""
        scaled_spanning = self._spanning / self._unit
        from_scaled = _even_coordinates(scaled_spanning, self._scaled_basis)
        return from_scaled / self._unit[:, None]

    def _cone_volumes(self, to_coordinates: np.ndarray) -> np.ndarray:
        """The volumes, in the span, of the cones over the facets, (F,)."""
        if self.uneven:
            basis = to_coordinates
            unit_volume = float(_parallelotope_volume(self._spanning, self._unit))
        else:
            basis = self._scaled_basis
            unit_volume = 1.0
        facets = self.facet_vertices @ basis
        determinants = np.linalg.det(facets)
        parallelotopes = np.abs(determinants) * unit_volume
        return parallelotopes / factorial(self.dimension)

    def _one_normal_of_each_pair(self) -> np.ndarray:
        """Distinct normals (h, d) of facets, one of a and -a."""
        normals = self._facet_normals
        if self.dimension == 0:
            return normals[_one_of_each_pair(normals)]
        # Pairs are told apart in coordinates in which no body is thin.
        in_coordinates = normals @ self._spanning.T
        return normals[_one_of_each_pair(in_coordinates)]

    def norm(self, vectors: ArrayLike) -> np.ndarray:
        """||v||_K = inf{r > 0 : v in rK} of vectors (..., d), shape (...); infinite off the
        span."""
        v = as_vectors(vectors, self.ambient_dimension)
        along_normals = v @ self.halfspaces.T
        norm = np.abs(along_normals).max(axis=-1)
        if self._is_flat:
            is_off_span = self._height(v) > 0
            norm = np.where(is_off_span, np.inf, norm)
        return norm[()]

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
        rows_along_normals = rows @ self.halfspaces.T
        columns_along_normals = columns @ self.halfspaces.T
        norms = cdist(rows_along_normals, columns_along_normals, "chebyshev")
        is_inside = norms <= 1
        if self._is_flat:
            distances = cdist(rows / self._unit, columns / self._unit)
            off_span = cdist(self.beside(rows), self.beside(columns))
            rounding = self.tolerance + FLAT * distances
            is_inside &= off_span <= rounding
        return is_inside

    def extended(self, vector: ArrayLike) -> SensitivityHull:
        """The convex hull of K, a vector (d,) or several (k, d), and their negatives."""
        points = np.vstack([self.vertices, vector])
        return SensitivityHull(points, self._magnitude)

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
        along_normals = v @ self._facet_normals.T
        beyond_facet = np.maximum(along_normals - 1, 0)
        volume_in_span = self.volume + 2 * beyond_facet @ self.cone_volumes
        bipyramid = 2 * self.volume * height / (self.dimension + 1)
        dimensions = self.dimension + is_off_span
        volumes = np.where(is_off_span, bipyramid, volume_in_span)
        return dimensions, volumes

    def _height(self, v: np.ndarray) -> np.ndarray:
        """Distances (...) of vectors (..., d) from the span, 0 where they are rounding errors."""
        if self.uneven:
            height = self._height_by_volumes(v)
        else:
            in_span = (v @ self._scaled_basis) @ self._scaled_basis.T
            height = np.linalg.norm(v - in_span, axis=-1)
        off_span = np.linalg.norm(self.beside(v), axis=-1)
        is_off_span = off_span > self.rounding(v)
        return np.where(is_off_span, height, 0.0)

    def _height_by_volumes(self, v: np.ndarray) -> np.ndarray:
        """Distances (...) of vectors (..., d) from the span: the volume of a parallelotope over
        that of its base."""
        n_spanning = len(self._spanning)
        base_shape = (*v.shape[:-1], n_spanning, self.ambient_dimension)
        base = np.broadcast_to(self._spanning, base_shape)
        apex = v[..., None, :]
        parallelotope = np.concatenate([base, apex], axis=-2)
        volume = _parallelotope_volume(parallelotope, self._unit)
        return volume / _parallelotope_volume(self._spanning, self._unit)

    def beside(self, v: np.ndarray) -> np.ndarray:
        """The part of vectors (..., d) orthogonal to the span, each coordinate measured in its own
        unit."""
        scaled = v / self._unit
        in_span = (scaled @ self._scaled_basis) @ self._scaled_basis.T
        return scaled - in_span

    def rounding(self, v: np.ndarray) -> np.ndarray:
        """The length (...) up to which `beside` is rounding, for vectors (..., d)."""
        lengths = np.linalg.norm(v / self._unit, axis=-1)
        return self.tolerance + FLAT * lengths

    def coordinates(self, v: np.ndarray) -> np.ndarray:
        """Coordinates (..., dimension) of vectors (..., d) in the span, without what lies off
        it."""
        scaled = v / self._unit
        return scaled @ self._scaled_basis

    def vector(self, coordinates: np.ndarray) -> np.ndarray:
        """The vectors (..., d) in the span with these coordinates."""
        scaled = coordinates @ self._scaled_basis.T
        return scaled * self._unit

    def second_moment(self) -> np.ndarray:
        """E[u u^T] of a uniform point u of K, (d, d).

        Of a simplex with vertices 0, w_1..w_r it is (sum w w^T + (sum w)(sum w)^T) / ((r + 1)(r +
        2)); the simplices count by their volumes.
        """
        r = self.dimension
        sums = self.facet_vertices.sum(axis=1, keepdims=True)
        vertices_and_sum = np.concatenate([self.facet_vertices, sums], axis=1)
        shares = self.cone_volumes / self.volume
        products = np.einsum("f,fki,fkj->ij", shares, vertices_and_sum, vertices_and_sum)
        return products / ((r + 1) * (r + 2))

    def __repr__(self) -> str:
        n_vertices = len(self.vertices)
        dimension = f"dimension {self.dimension} of {self.ambient_dimension}"
        return f"SensitivityHull({dimension}, {n_vertices} vertices)"


def _checked_differences(differences: ArrayLike) -> np.ndarray:
    """Finite vectors (m, d), not so small or large that volumes, and with them the noise, underflow
    or overflow."""
    constraint = "differences must be finite vectors, shape (m, d)"
    points = as_numbers(differences, constraint, "give one a row")
    largest = _largest_size(points)
    has_good_size = largest == 0 or 1e-50 < largest < 1e50
    has_rows = points.ndim == 2 and points.shape[1] > 0
    if not (has_rows and has_good_size):
        found = f"found shape {points.shape} and size {largest:g}"
        raise ValueError(
            f"{constraint}, 0 or of a size from 1e-50 to 1e50, {found}; "
            "give one a row, in another unit"
        )
    return points


def _largest_size(points: np.ndarray) -> float:
    """The largest absolute value of a coordinate; 0 without points."""
    return float(np.abs(points).max(initial=0.0))


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
        """The measure for differences (m, d) of answers of the magnitude (d,)."""
        widths = np.abs(points).max(axis=0, initial=0.0)
        largest_answer = float(magnitude.max())
        largest = max(_largest_size(points), largest_answer, 1e-300)
        tolerance = FLAT * largest
        changes = widths > 0.0
        changes_little = changes & (widths <= tolerance)
        if not changes_little.any():
            return cls(unit=np.ones(widths.size), tolerance=tolerance, uneven=False)
        unit = np.where(changes, widths, 1.0)
        size_over_width = float((magnitude / unit).max())
        rounding = min(max(1.0, size_over_width), MOST_ROUNDING)
        return cls(unit=unit, tolerance=FLAT * rounding, uneven=True)


@dataclass(frozen=True, eq=False)
class _Outline:
    """Vertices (v, d), the vertices of facets (F, r, d), and normals (F, d): a . v <= 1."""

    vertices: np.ndarray
    facet_vertices: np.ndarray
    normals: np.ndarray


def _outline_segment(spanning: np.ndarray, unit: np.ndarray) -> _Outline:
    """The outline of a segment, spanned by (1, d), or of the point 0, spanned by (0, d)."""
    if len(spanning) == 0:
        origin = np.zeros((1, unit.size))
        no_vertices = np.zeros((1, 0, unit.size))
        return _Outline(vertices=origin, facet_vertices=no_vertices, normals=origin)
    end = spanning[0]
    vertices = np.array([end, -end]) + 0.0  # no -0.0
    scaled_end = end / unit
    squared_length = scaled_end @ scaled_end
    normals = vertices / unit**2 / squared_length
    return _Outline(
        vertices=vertices,
        facet_vertices=vertices[:, None],  # each end is a facet
        normals=normals,
    )


def _slack_for_rounding(outline: _Outline) -> float:
    """By how much of K the half-spaces must be wider for rounding.

    a . v is rounded as its summands, which cancel where K is thin; 256 also covers the noise.
    """
    largest_coordinates = np.abs(outline.vertices).max(axis=0)
    sizes_of_summands = np.abs(outline.normals) @ largest_coordinates
    rounding = np.finfo(float).eps * float(sizes_of_summands.max())
    slack = max(SLACK, 256 * rounding)
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
    possible_answers = f[policy.possible]
    magnitude = np.abs(possible_answers).max(axis=0)
    if policy.is_complete:
        # The differences of all answers have the same hull as those of the corners of the answers'
        # own hull.
        corners = _corners_of_answers(possible_answers)
        differences_of_pairs = corners[:, None] - corners
        differences = differences_of_pairs.reshape(-1, f.shape[1])
    else:
        differences = policy.differences(f)
    return SensitivityHull(differences, magnitude)


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
    differences = policy.differences(answers)
    l1_distances = np.abs(differences).sum(axis=1)
    return float(l1_distances.max(initial=0.0))


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
    dimension = check_horizon(dimension, "dimension")
    corners = radius * np.eye(dimension)
    return SensitivityHull(corners)


@dataclass(frozen=True, eq=False)
class _Span:
    """Some points that span all others, and an orthonormal basis of their span."""

    points: np.ndarray  # (r, d)
    basis: np.ndarray  # (d, r), in multiples of the unit

    @classmethod
    def of(cls, points: np.ndarray, tolerance: float, unit: np.ndarray) -> Self:
        """The span of points (m, d) within `tolerance`, in multiples of `unit` (d,).

        Each point that is chosen is the farthest one from the span of those before it.
        """
        chosen: list[int] = []
        scaled = points / unit
        basis = np.zeros((unit.size, 0))
        for _ in range(min(points.shape)):
            in_span = (scaled @ basis) @ basis.T
            residual = scaled - in_span
            squared_lengths = np.einsum("ij,ij->i", residual, residual)
            if np.sqrt(squared_lengths.max()) <= tolerance:
                break
            farthest = int(np.argmax(squared_lengths))
            chosen.append(farthest)
            basis, _ = np.linalg.qr(scaled[chosen].T)
        return cls(points[chosen], basis)


def _parallelotope_volume(vectors: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """The k-dimensional volumes (...) of the parallelotopes of vectors (..., k, d), by the formula
    of Cauchy and Binet.

    Coordinates are measured in `unit` (d,), so that none of them is rounded as a larger one.
    """
    k, d = vectors.shape[-2:]
    scaled = vectors / unit
    minors = []
    for columns in combinations(range(d), k):
        chosen = list(columns)
        scaled_minor = np.linalg.det(scaled[..., chosen])
        minor = scaled_minor * unit[chosen].prod()
        minors.append(minor)
    sum_of_squares = np.square(minors).sum(axis=0)
    return np.sqrt(sum_of_squares)


def _even_coordinates(spanning: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """The map (d, r) to coordinates in which the r points `spanning` (r, d) are unit vectors: of
    thin bodies Qhull loses corners. `basis` (d, r) is an orthonormal one of their span."""
    spanning_in_basis = spanning @ basis
    return basis @ np.linalg.inv(spanning_in_basis)


def _outline_hull(points: np.ndarray, spanning: np.ndarray, to_coordinates: np.ndarray) -> _Outline:
    """The hull of points (m, d) and their negatives, in a span of two dimensions or more.

    `spanning` (r, d) are the points in whose coordinates Qhull works, `to_coordinates` (d, r) leads
    to these. ValueError if Qhull fails on points that nearly coincide.
    """
    coordinates = points @ to_coordinates
    kept = _candidate_corners(coordinates)
    points = _with_negatives(points[kept]) + 0.0  # no -0.0
    coordinates = _with_negatives(coordinates[kept])
    hull = _hull_about(coordinates, coordinates)
    if hull is None:
        # Some nearly coincide; moved by much less than the slack, they coincide or are clearly
        # apart.
        original = coordinates
        coordinates = np.round(coordinates, 11)
        points = coordinates @ spanning + 0.0
        hull = _hull_about(original, coordinates)
    n_dimensions = points.shape[1]
    if hull is None:
        raise ValueError(
            f"differences must be clearly apart for Qhull, found {len(kept)} in {n_dimensions} "
            "dimensions, some of which nearly coincide; round the answers, or drop edges"
        )
    if n_dimensions > 2:
        corners = hull.vertices
        facets = hull.simplices
        normals = _normals_of_facets(hull)
    else:
        corners = _order_corners(coordinates, hull.vertices, to_coordinates)
        next_corners = np.roll(corners, -1)
        facets = np.stack([corners, next_corners], axis=1)
        normals = _normals_of_sides(coordinates[facets])
    return _Outline(
        vertices=points[corners], facet_vertices=points[facets], normals=normals @ to_coordinates.T
    )


def _with_negatives(points: np.ndarray) -> np.ndarray:
    """Points (m, r) and then their negatives, (2 m, r)."""
    return np.concatenate([points, -points])


def _normals_of_sides(ends: np.ndarray) -> np.ndarray:
    """The normals a (s, 2) of a polygon's sides, from their two ends (s, 2, 2): a . v = 1 at
    both."""
    ones = np.ones((len(ends), 2, 1))
    normals = np.linalg.solve(ends, ones)
    return normals[..., 0]


def _hull_about(points: np.ndarray, corners: np.ndarray) -> ConvexHull | None:
    """Qhull's hull of `corners` (c, r); None if it fails or leaves one of `points` (m, r) farther
    outside than the slack."""
    with suppress(QhullError):
        hull = ConvexHull(corners)
        if _largest_norm(points, hull) <= 1 + SLACK / 2:
            return hull
    return None


def _largest_norm(points: np.ndarray, hull: ConvexHull) -> float:
    """The largest |a . v| of points v (m, r) over the facets of a hull; 1 at its corners."""
    n_parts = len(hull.equations) // 512 + 1  # all products at once would be too many
    largest_norms = []
    for normals in np.array_split(_normals_of_facets(hull), n_parts):
        along_normals = points @ normals.T
        largest_norms.append(np.abs(along_normals).max())
    return float(np.max(largest_norms))


def _order_corners(
    coordinates: np.ndarray, corners: np.ndarray, to_coordinates: np.ndarray
) -> np.ndarray:
    """The numbers `corners` (c,) of a polygon's corners among `coordinates` (m, 2),
    counter-clockwise from the direction (-1, 0), which itself is last. `to_coordinates` (2, 2)
    leads from the plane to coordinates.

    Corners within `ROUNDING` of the line between their neighbours are dropped one at a time: of two
    that are close, one stays. So rounding changes neither the order nor the choice.
    """
    order = _order_from_left(coordinates[corners], to_coordinates)
    corners = corners[np.argsort(order)]
    distances = np.linalg.norm(coordinates[corners], axis=1)
    farthest = int(np.argmax(distances))
    from_farthest = np.roll(corners, -farthest)
    circuit = coordinates[from_farthest].tolist()
    is_kept_from_farthest = [True, *_corners_kept(circuit)]
    is_kept = np.roll(is_kept_from_farthest, farthest)
    return corners[is_kept]


def _order_from_left(coordinates: np.ndarray, to_coordinates: np.ndarray) -> np.ndarray:
    """Numbers (c,) in about (0, 2 pi] by which vectors with these coordinates (c, 2) are in
    counter-clockwise order in the plane, from the direction (-1, 0), which is last.

    They are angles in the coordinates, not in the plane; `to_coordinates` (2, 2) leads from the
    plane to the coordinates.
    """
    x, y = -to_coordinates[0]  # the coordinates of (-1, 0)
    turn_left_to_front = np.array([[x, -y], [y, x]])
    turned = coordinates @ turn_left_to_front
    orientation = np.sign(np.linalg.det(to_coordinates))
    along = turned[:, 0]
    across = turned[:, 1]
    angles = orientation * np.arctan2(across, along)
    angles[angles < 1e-9] += 2 * np.pi
    return angles


def _corners_kept(circuit: list[list[float]]) -> Iterator[bool]:
    """Whether each corner but the first, which is kept, is away from the line between the last one
    kept and the next one."""
    x, y = circuit[0]
    to_the_first = [*circuit[1:], circuit[0]]
    for (at_x, at_y), (next_x, next_y) in pairwise(to_the_first):
        base_x = next_x - x
        base_y = next_y - y
        area = (at_x - x) * base_y - (at_y - y) * base_x
        is_kept = abs(area) > ROUNDING * hypot(base_x, base_y)
        yield is_kept
        if is_kept:
            x = at_x
            y = at_y


def _corners_of_answers(points: np.ndarray) -> np.ndarray:
    """The points (n, d) that may be vertices of their hull; all of them where it may be flat."""
    n_points, d = points.shape
    if d == 1:
        lowest = np.argmin(points)
        highest = np.argmax(points)
        return points[[lowest, highest]]
    if n_points < MANY_ANSWERS:
        return points
    shifted = points - points[0]
    tolerance = FLAT * np.abs(shifted).max()
    span = _Span.of(shifted, tolerance, np.ones(d))
    if len(span.points) < d:
        return points
    coordinates = shifted @ _even_coordinates(span.points, span.basis)
    with suppress(QhullError):
        hull = ConvexHull(coordinates)
        return points[hull.vertices]
    return points


def _one_of_each_pair(normals: np.ndarray) -> np.ndarray:
    """The indices of distinct normals, one of a and -a; the simplices of one facet share their
    normal."""
    largest = np.abs(normals).max()
    if largest == 0:  # of a point
        largest = 1.0
    scaled = np.round(normals / largest, 13)
    first_nonzero = np.argmax(scaled != 0, axis=1)
    rows = np.arange(len(scaled))
    signs = np.sign(scaled[rows, first_nonzero])
    pointing_forward = scaled * signs[:, None] + 0.0  # no -0.0
    _, first_occurrences = np.unique(pointing_forward, axis=0, return_index=True)
    return np.sort(first_occurrences)


def _candidate_corners(coordinates: np.ndarray) -> np.ndarray:
    """Indices of points (m, r) that may be vertices of the hull.

    Of many points in the plane, on which Qhull is slow, those inside a circle that lies in the hull
    are left out.
    """
    n_points, r = coordinates.shape
    if r != 2 or n_points < MANY_POINTS:
        return np.arange(n_points)
    x, y = np.ascontiguousarray(coordinates.T)
    farthest = []
    for angle in np.linspace(0, np.pi, 8, endpoint=False):
        along = np.cos(angle) * x + np.sin(angle) * y
        farthest.append(np.abs(along).argmax())
    inner_polygon = ConvexHull(_with_negatives(coordinates[farthest]))
    squared_normals = _normals_of_facets(inner_polygon) ** 2
    nearest_side = squared_normals.sum(axis=1).max()  # 1 / (its distance from 0)^2
    squared_radius = (1 - 1e-9) / nearest_side
    squared_distances = x * x + y * y
    return np.flatnonzero(squared_distances >= squared_radius)


def _normals_of_facets(hull: ConvexHull) -> np.ndarray:
    """The normals a of a Qhull hull about 0, its facets being a . v <= 1."""
    directions = hull.equations[:, :-1]
    distances = -hull.equations[:, -1:]
    return directions / distances
