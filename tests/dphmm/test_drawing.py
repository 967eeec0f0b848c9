import numpy as np
import pytest
from matplotlib.collections import LineCollection

from tests.dphmm.policies import F, categorical
from tplrepro import figures
from tplrepro.dphmm import drawing, sensitivity_hull
from tplrepro.dphmm.running_example import TRANSITIONS


@pytest.mark.parametrize("impossible", [True, False])
def test_each_edge_and_state_is_drawn_once_added_edges_dashed_and_hulls_about_their_centre(impossible):
    axes = figures.subplots()[1]
    graph = categorical().connect([(0, 1)]).constrain([0, 1, 2])
    drawing.draw_policy(axes, graph, F, added=[(1, 0)], exposed=np.array([2]), impossible=impossible)
    edges = next(each for each in axes.collections if isinstance(each, LineCollection))
    assert [segment.tolist() for segment in edges.get_segments()] == [[[1, 0], [2, 1]], [[2, 1], [3, 0]]]
    assert [pattern is None for _, pattern in edges.get_linestyle()] == [False, True]
    assert sorted(text.get_text() for text in axes.texts) == [f"$s_{{{i}}}$" for i in range(1, 7 if impossible else 4)]
    axes = figures.subplots()[1]
    K = sensitivity_hull(categorical(), F)
    drawing.draw_hull(axes, K, F[1])
    assert np.array_equal(axes.lines[0].get_xydata()[:-1], K.vertices + F[1])
    drawing.draw_hull(axes, sensitivity_hull(categorical().constrain([1, 2]), F), fill=True)
    assert len(axes.patches) == 1
    drawing.draw_transitions(axes, TRANSITIONS, F)
    assert len(axes.patches) == 1 + np.count_nonzero(TRANSITIONS) - np.count_nonzero(np.diag(TRANSITIONS))
    drawing.plain_log_scale(axes)
    assert axes.get_yscale() == "log"
