import numpy as np
import pytest

from tests.dphmm.policies import F, categorical
from tplrepro import figures
from tplrepro.dphmm import drawing, sensitivity_hull
from tplrepro.dphmm.running_example import TRANSITIONS


@pytest.fixture
def axes():
    return figures.subplots()[1]


def test_each_edge_and_each_state_is_drawn_once(axes):
    G = categorical().constrain([1, 2, 4])
    drawing.draw_policy(axes, G, F, exposed=[4])
    segments = [line for line in axes.lines if len(line.get_xdata()) == 2]
    assert [line.get_xydata().tolist() for line in segments] == [[[2, 1], [3, 0]]]
    assert sum(len(line.get_xdata()) == 1 for line in axes.lines) == 6
    assert [text.get_text() for text in axes.texts] == [f"$s_{{{i}}}$" for i in range(1, 7)]


def test_added_edges_are_dashed_and_impossible_states_may_be_left_out(axes):
    drawing.draw_policy(axes, categorical().connect([(0, 1)]), F, added=[(1, 0)], labels=False)
    assert [line.get_linestyle() for line in axes.lines].count("--") == 1
    before = len(axes.lines)
    drawing.draw_policy(axes, categorical().constrain([1, 2]), F, impossible=False)
    assert len(axes.lines) - before == 3


def test_hulls_are_drawn_about_their_centre(axes):
    K = sensitivity_hull(categorical(), F)
    drawing.draw_hull(axes, K, F[1])
    outline = axes.lines[0].get_xydata()
    assert np.array_equal(outline[:-1], K.vertices + F[1])
    drawing.draw_hull(axes, sensitivity_hull(categorical().constrain([1, 2]), F), fill=True)
    assert len(axes.patches) == 1


def test_transitions_and_scale(axes):
    drawing.draw_transitions(axes, TRANSITIONS, F)
    arrows = [text for text in axes.texts if text.arrow_patch is not None]
    assert len(arrows) == np.count_nonzero(TRANSITIONS) - np.count_nonzero(np.diag(TRANSITIONS))
    drawing.plain_log_scale(axes)
    assert axes.get_yscale() == "log"
