import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from tests.tplrepro.dphmm.policies import F, categorical, random_policy
from tplrepro.dphmm import PolicyGraph, SensitivityHull, l1_sensitivity, protect, sensitivity_hull
from tplrepro.dphmm.hull import MANY_POINTS, _candidate_corners, _Measure
from tplrepro.mechanisms.k_norm import uniform_points


def _as_set(points):
    return {tuple(p) for p in points.tolist()}


def test_example_5_2_is_a_segment_and_without_edges_the_hull_is_a_point():
    G = categorical().constrain([1, 2, 4])
    K = sensitivity_hull(G, F)
    assert (l1_sensitivity(G, F), K.dimension, _as_set(K.vertices)) == (
        2,
        1,
        {(1.0, -1.0), (-1.0, 1.0)},
    )
    assert K.volume == pytest.approx(2 * np.sqrt(2))
    assert K.norm([[0.5, -0.5], [1, 2]]) == pytest.approx([0.5, np.inf])
    assert K.contains([[1, 1], [-1, 1]]).tolist() == [False, True]
    G = categorical().constrain([0, 1, 4])
    K = sensitivity_hull(G, F)
    assert (l1_sensitivity(G, F), K.dimension, K.volume, K.vertices.tolist()) == (
        0,
        0,
        1.0,
        [[0.0, 0.0]],
    )
    assert K.norm([[0, 0], [1e-9, 0]]).tolist() == [0, np.inf]
    assert K.pairwise_contains(F[:2], F[:2]).tolist() == [[True, False], [False, True]]
    assert K.second_moment().tolist() == [[0, 0], [0, 0]]


@given(
    st.integers(0, 100_000),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([1, 1e-6, 1e-9, 1e-12]),
)
@settings(max_examples=60)
def test_every_edge_lies_in_the_hull_and_no_facet_is_idle(seed, d, whole, thinness):
    rng = np.random.default_rng(seed)
    policy, f = random_policy(rng, int(rng.integers(2, 30)), d, whole=whole)
    f = f * [1, 1, thinness][-d:] @ np.linalg.qr(rng.normal(size=(d, d)))[0]  # the thin ones aslant
    K = sensitivity_hull(policy, f)
    assert (K.norm(policy.differences(f)) <= 1).all()
    clear = np.abs(K.norm(f[:, None] - f) - 1) > 1e-6
    assert (K.pairwise_contains(f, f) == K.contains(f[:, None] - f))[clear].all()
    assert K.pairwise_contains(f, f)[tuple(policy.edge_array.T)].all()
    far = f + 1e7 * np.abs(f).max()
    assert (
        sensitivity_hull(policy, far).pairwise_contains(far, far)[tuple(policy.edge_array.T)].all()
    )
    # Vertices lie on the boundary but for the slack, which rounding asks for where K is thin.
    on_boundary = np.ones(len(K.vertices)) if K.dimension else [0]
    assert (1 + K.slack) * K.norm(K.vertices) == pytest.approx(
        on_boundary, rel=1e-12, abs=1e-13 / thinness
    )
    assert 1e-10 <= K.slack <= max(1e-10, 3e-11 / thinness)
    assert K.norm(-K.vertices) == pytest.approx(K.norm(K.vertices))


@pytest.mark.parametrize("unit", [1e-40, 1e-20, 1e20, 1e40])
@pytest.mark.parametrize("width", [1.0, 1e-20])
def test_a_measure_is_that_of_the_same_points_in_another_unit(unit, width):
    points = np.array([[1.0, width], [-1.0, width]])
    magnitude = np.abs(points).max(axis=0)
    one = _Measure.of(points, magnitude)
    other = _Measure.of(points * unit, magnitude * unit)
    assert other.uneven == one.uneven == (width < 1.0)
    if one.uneven:
        assert other.unit == pytest.approx(one.unit * unit)
        assert other.tolerance == pytest.approx(one.tolerance)
    else:
        assert other.unit.tolist() == one.unit.tolist() == [1.0, 1.0]
        assert other.tolerance == pytest.approx(one.tolerance * unit, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("beyond", [0.0, 2e-10, 1e-6])
def test_a_point_on_the_side_of_many_or_hardly_beyond_it_is_a_candidate(beyond):
    """It is the farthest one in none of the directions that are tried."""
    angle = np.pi / 16
    turned = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    inside = np.random.default_rng(0).uniform(-0.5, 0.5, (MANY_POINTS, 2))
    outside = [[1.0, 1.0], [1.0, -1.0], [1.0 + beyond, 0.0]]
    kept = _candidate_corners(np.vstack([inside, outside]) @ turned)
    assert kept.tolist() == [MANY_POINTS, MANY_POINTS + 1, MANY_POINTS + 2]


def test_a_corner_that_rounding_splits_is_one_corner():
    rng = np.random.default_rng(0)
    for _ in range(300):
        points = rng.integers(-3, 4, (20, 2)) + 10 ** rng.uniform(-13, -9) * rng.normal(
            size=(20, 2)
        )
        K = SensitivityHull(points)
        assert K.norm(points).max() <= 1
        assert K.volume == pytest.approx(ConvexHull(np.vstack([points, -points])).volume, rel=1e-9)
    # Qhull fails on the first two, and leaves points out of the third
    for d, seed in [(4, 6), (5, 0), (5, 101)]:
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(30 if d == 4 else 15, d))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        near = np.vstack([points + 5e-14 * rng.normal(size=points.shape) for _ in range(4)])
        assert (K := SensitivityHull(near)).norm(near).max() <= 1
        assert K.volume == pytest.approx(SensitivityHull(points).volume, rel=1e-9)


@given(
    st.integers(0, 100_000),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([None, 1e-3, 1e-6, 1e-9, 1e-11]),
)
@settings(max_examples=60)
def test_the_norm_is_invariant_under_linear_maps_also_onto_flat_hulls(seed, d, rank, thinness):
    rng, rank = np.random.default_rng(seed), min(d, rank)
    policy, f = random_policy(rng, 15, rank)
    # A square map, one that makes thin, or an isometry onto a line or plane in a space of more
    # dimensions.
    T = np.diag([1, 1, thinness][-d:]) if thinness else rng.normal(size=(d, d)) + 2 * np.eye(d)
    T = T if d == rank else np.linalg.qr(rng.normal(size=(d, rank)))[0]
    v, mapped = (
        rng.normal(size=(6, rank)) * np.abs(f).max(),
        f @ T.T + (d > rank) * rng.normal(size=d),
    )
    K, TK = sensitivity_hull(policy, f), sensitivity_hull(policy, mapped)
    assert TK.dimension == rank
    assert TK.norm(v @ T.T) == pytest.approx(K.norm(v), rel=1e-6)
    assert TK.volume == pytest.approx(K.volume * np.sqrt(np.linalg.det(T.T @ T)), rel=1e-6)
    if d > rank:
        off = np.linalg.svd(T)[0][:, -1]
        assert TK.norm(v @ T.T + 1e-6 * np.abs(mapped).max() * off).tolist() == [np.inf] * 6
        moment = T @ K.second_moment() @ T.T
        assert TK.second_moment() == pytest.approx(
            moment, rel=1e-9, abs=1e-9 * np.abs(moment).max()
        )


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("flat", [False, True])
def test_the_hull_of_a_complete_graph_is_that_of_all_its_edges(d, flat):
    f = np.random.default_rng(d).normal(size=(60, d))
    f[:, d - flat :] = 1.5
    G = PolicyGraph.complete(60)
    # in the plane most of these are left out
    short, long = sensitivity_hull(G, f), SensitivityHull(G.differences(f))
    assert short.dimension == long.dimension == d - flat
    assert _as_set(short.vertices) == _as_set(long.vertices)
    # rounding is not a dimension
    on_a_line = 4e6 + np.outer(np.arange(5) * 340.0, [np.cos(0.3), np.sin(0.3)])
    assert sensitivity_hull(PolicyGraph.complete(5), on_a_line).dimension == 1


@given(st.integers(0, 100_000), st.integers(1, 3), st.integers(0, 3), st.booleans())
@settings(max_examples=40)
def test_extended_volumes_are_those_of_the_hulls(seed, d, rank, whole):
    rng = np.random.default_rng(seed)
    points = rng.integers(-3, 4, (6, d)).astype(float) if whole else rng.normal(size=(6, d))
    points[:, min(rank, d) :] = 0
    K = SensitivityHull(points)
    vectors = np.vstack([rng.normal(size=(4, d)) * 3, points[0] * 2, points[1] / 3])
    dimensions, volumes = K.extended_volumes(vectors)
    for v, dimension, volume in zip(vectors, dimensions, volumes, strict=True):
        built = SensitivityHull(np.vstack([points, v]))
        assert (built.dimension, built.volume) == (dimension, pytest.approx(volume, rel=1e-9))
        assert K.extended(v).volume == pytest.approx(built.volume)


@pytest.mark.parametrize("seed", range(12))
def test_polygons_samples_and_added_edges_do_not_depend_on_last_bits(seed):
    rng = np.random.default_rng(seed)
    policy, answers = random_policy(rng, 15, 2, density=[0.002, 0.02, 0.2][seed % 3], whole=True)
    nudges = 1 + 2.0**-51 * rng.integers(-1, 2, (7, 2))  # one for each row and column of the grid
    answers, nudged = 0.34 * answers, 0.34 * answers * nudges[answers.astype(int) + 3, [0, 1]]
    for method in ("stepwise", "greedy"):
        protections = [protect(policy, f, method) for f in (answers, nudged)]
        assert protections[0].added_edges == protections[1].added_edges
    one, other = (protection.hull for protection in protections)
    assert other.vertices == pytest.approx(one.vertices, abs=1e-12)
    # they go round
    assert one.dimension < 2 or (np.diff(np.arctan2(*one.vertices.T[::-1])) > 0).all()
    samples = [uniform_points(hull, 200, rng=np.random.default_rng(1)) for hull in (one, other)]
    assert samples[1] == pytest.approx(samples[0], abs=1e-9)
