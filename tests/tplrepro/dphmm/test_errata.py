"""What docs/errata/dphmm2016.md says is printed wrong, shown. Other entries are shown in the test
named there."""

import numpy as np
import pytest
from scipy import stats

from experiments.dphmm.local_mechanism import LocalMechanism
from experiments.dphmm.running_example import ATTACKED_EDGES
from tests.tplrepro.dphmm.policies import F, categorical
from tplrepro import dphmm


def test_laplace_noise_of_the_appendix_has_scale_1_and_variance_2():
    # Lemma 11.1 prints "mean 0 and variance 1" and the density exp(-|n|) / 2.
    assert stats.laplace.pdf(0.7) == pytest.approx(np.exp(-0.7) / 2)
    assert stats.laplace.var() == 2
    mechanism = dphmm.LaplaceMechanism(categorical(), F, 1.0)
    scale = dphmm.l1_sensitivity(categorical(), F)
    assert mechanism.log_density([3, -2], [0, 0]) == pytest.approx(
        np.log(np.exp(-5 / scale) / (2 * scale) ** 2)
    )
    # With variance 1, scale 1/sqrt(2), the loss would be sqrt(2) epsilon: footnote 4's 3/2 would be
    # 2.12.
    small = dphmm.LaplaceMechanism(categorical().constrain([1, 2, 4]), F, 1.0)
    assert small.log_density(F[4], F[4]) - small.log_density(F[4], F[1:3]) == pytest.approx(1.5)


@pytest.mark.parametrize(("epsilon", "staircase", "laplace"), [(1.0, 0.96, 1.0), (4.0, 0.14, 0.25)])
def test_staircase_noise_is_smaller_than_laplace_noise_in_one_dimension(
    epsilon, staircase, laplace
):
    """Each step is e^-epsilon times the last; its end is at k + 1/(1 + e^(epsilon/2)) (Geng and
    Viswanath, 2016)."""
    steps = 1000
    x = np.arange(-60, 60, 1 / steps) + 0.5 / steps
    density = np.exp(-epsilon * np.floor(np.abs(x) + 1 - 1 / (1 + np.exp(epsilon / 2))))
    density /= density.sum()
    # sensitivity 1
    assert np.abs(np.log(density[steps:] / density[:-steps])).max() <= epsilon * (1 + 1e-9)
    assert density @ np.abs(x) == pytest.approx(staircase, abs=0.005)
    mechanism = dphmm.LaplaceMechanism(dphmm.PolicyGraph.complete(2), [[0.0], [1.0]], epsilon)
    of_mechanism = np.exp(mechanism.log_density(x[:, None], [0.0])) / steps
    assert of_mechanism @ np.abs(x) == pytest.approx(laplace, abs=0.001)


def test_the_printed_sum_of_algorithm_3_is_minus_twice_the_area():
    # Section 11.3 sums det(v_i, v_{i+1}) over clockwise vertices; its minimum is at the largest
    # hull.
    G = categorical().constrain([2, 3, 4, 5])
    for j, area in ((3, 14.0), (4, 16.0), (5, 20.0)):
        K = dphmm.sensitivity_hull(G.connect([(2, j)]), F)
        clockwise = K.vertices[::-1]
        printed = np.linalg.det(np.stack([clockwise, np.roll(clockwise, -1, axis=0)], axis=1)).sum()
        assert [K.volume, printed] == pytest.approx([area, -2 * area])
    # not (2, 5)
    assert set(dphmm.protectable_graph(G, F, "stepwise").edges) - set(G.edges) == {(2, 3)}


def test_algorithm_3_must_find_exposed_states_again_after_each_step():
    # s_1 and s_2 are exposed; connecting them hides both, so the second loop pass would add an edge
    # in vain.
    f = np.array([[0, 0], [0, 1], [9, 0], [9.5, 0], [5, 5], [5.3, 5.1]])
    G = dphmm.PolicyGraph.from_edges(6, [(2, 3), (4, 5)])
    for method in ("greedy", "stepwise"):
        result = dphmm.protectable_graph(G, f, method)
        assert set(result.edges) - set(G.edges) == {(0, 1)}


def test_example_11_2_belongs_to_another_graph_and_swaps_states():
    # Printed for s* = s_4: K = Conv(+-(1, 1)) and z on the line f(s_4) f(s_5).
    local = LocalMechanism(
        dphmm.PolicyGraph.from_edges(6, ATTACKED_EDGES).constrain([3, 4, 5]), F, 1.0
    )
    four = local.mechanisms[3]
    assert (F[5] - F[3]).tolist() == [1, 1]
    assert four.hull.norm(F[5] - F[3]) == pytest.approx(1)
    # so not that line, but f(s_4) f(s_6), as the inferences below have it
    assert four.hull.norm(F[4] - F[3]) == np.inf
    # In the graph of Fig. 3b s_4 has both neighbours and all three states share a hull: nothing is
    # inferred.
    whole = LocalMechanism(categorical().constrain([3, 4, 5]), F, 1.0)
    assert len({whole.mechanisms[s].hull.vertices.tobytes() for s in (3, 4, 5)}) == 1
    # Printed: "when s* = s_6, z is on the line f(s_6) f(s_5)". That is s_5; noise for s_6 fills the
    # plane.
    assert local.mechanisms[5].hull.dimension == 2
    assert local.mechanisms[4].hull.norm(F[5] - F[4]) == pytest.approx(1)


def test_equation_1_divides_by_zero_on_a_flat_hull():
    # Example 5.2: a segment has area 0; on its line the density is that of Eq. (1) with d = 1 and
    # its length.
    G = categorical().constrain([1, 2])
    mechanism = dphmm.KNormMechanism(G, F, 0.5)
    length = 2 * np.sqrt(2)
    assert mechanism.log_density(F[1], F[1]) == pytest.approx(np.log(0.5 / length))
    assert mechanism.log_density(F[1], F[2]) == pytest.approx(np.log(0.5 / length) - 0.5)


def hulls_tried(policy, answers, monkeypatch):
    """How many hulls Algorithm 3 compares: one for each exposed state and each other state."""
    sizes = []

    def counted(hull, differences):
        sizes.append(len(differences))
        return extended_volumes(hull, differences)

    extended_volumes = dphmm.SensitivityHull.extended_volumes
    with monkeypatch.context() as patched:
        patched.setattr(dphmm.SensitivityHull, "extended_volumes", counted)
        dphmm.protectable_graph(policy, answers, "stepwise")
    return sum(sizes)


def test_algorithm_3_keeps_its_complexity_where_most_states_have_an_edge(monkeypatch):
    """Of O(n m^3) O(m^2) is for each hull, so that n times 2 m hulls may be tried.

    A walk of short steps, and five states without an edge far from it, which are exposed.
    """
    policy = dphmm.PolicyGraph.from_edges(30, [(k, k + 1) for k in range(24)])
    n = 5
    m = 24
    angles = np.arange(n)
    far_away = 100 * np.column_stack([np.cos(angles), np.sin(angles)])
    for seed in range(5):
        walk = np.random.default_rng(seed).normal(size=(25, 2)).cumsum(axis=0)
        answers = np.vstack([walk, far_away])
        assert dphmm.exposed_states(policy, answers).size == n
        assert 0 < hulls_tried(policy, answers, monkeypatch) <= n * 2 * m


@pytest.mark.parametrize("n_states", [10, 20, 40])
def test_algorithm_3_exceeds_its_complexity_where_most_states_have_no_edge(n_states, monkeypatch):
    """With m = 1 edge, O(n m^3) is O(n); places on a parabola hide none of one another."""
    places = np.arange(n_states)
    answers = np.column_stack([places, places**2])
    policy = dphmm.PolicyGraph.from_edges(n_states, [(0, 1)])
    n = dphmm.exposed_states(policy, answers).size
    assert n == n_states - 2
    assert hulls_tried(policy, answers, monkeypatch) == n * (n_states - 1)
