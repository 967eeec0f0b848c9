"""Drawings of policy graphs and sensitivity hulls in the plane, as in Figs. 3 to 9, 14 and 15 of
[5]."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import networkx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from experiments.figures import PALETTE
from tplrepro.display import count_from_one, label_log_axis
from tplrepro.dphmm.constraint import as_answers
from tplrepro.dphmm.hull import SensitivityHull
from tplrepro.dphmm.policy_graph import PolicyGraph

#: Grey outline of impossible states.
IMPOSSIBLE = "#b0b0b0"


def draw_policy(
    axes: Axes,
    policy: PolicyGraph,
    answers: ArrayLike,
    *,
    added: Iterable = (),
    exposed: Collection[int] = (),
    impossible: bool = True,
) -> None:
    """States at their answers (N, 2) and the edges of a policy, with those in `added` (pairs of
    states) dashed.

    Exposed states have an outline of another colour. Impossible ones are grey, or left out if
    `impossible` is False.
    """
    graph = networkx.Graph(policy.graph)
    if impossible:
        graph.add_nodes_from(range(policy.n_states))
    outlines = dict.fromkeys(graph, IMPOSSIBLE)
    outlines |= dict.fromkeys(policy.graph, "black")
    outlines |= dict.fromkeys(map(int, exposed), PALETTE[1])
    new = {frozenset(edge) for edge in added}
    styles, colors = [], []
    for edge in graph.edges:
        if frozenset(edge) in new:
            styles.append("--")
            colors.append(PALETTE[1])
        else:
            styles.append("-")
            colors.append(PALETTE[0])
    _draw_graph(
        axes,
        graph,
        answers,
        style=styles,
        edge_color=colors,
        edgecolors=[outlines[state] for state in graph],
    )


def draw_transitions(axes: Axes, matrix: ArrayLike, answers: ArrayLike) -> None:
    """States at their answers (N, 2) and an arrow for each transition of positive probability;
    staying is not drawn."""
    graph = networkx.DiGraph(np.argwhere(np.asarray(matrix) > 0).tolist())
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    _draw_graph(
        axes, graph, answers, edgecolors="black", connectionstyle="arc3,rad=0.14", arrowsize=7
    )


def draw_hull(
    axes: Axes,
    hull: SensitivityHull,
    centre: ArrayLike = (0.0, 0.0),
    *,
    fill: bool = True,
    **style: Any,
) -> None:
    """The body `centre` + K in the plane; a flat hull is drawn as its segment. `style` is that of
    the outline."""
    outline: dict[str, Any] = {
        "color": PALETTE[2],
        "linestyle": "-",
        "marker": "",
        "zorder": 1.5,
    } | style
    corners = np.asarray(centre) + hull.vertices
    corners = np.vstack([corners, corners[:1]])
    if fill and hull.dimension == 2:
        axes.fill(*corners.T, color=outline["color"], alpha=0.15, linewidth=0, zorder=1)
    axes.plot(*corners.T, **outline)


def with_subscripts(name: str) -> str:
    r"""A name of a policy or a method, with subscripts for Matplotlib.

    >>> print(with_subscripts("DPHMM, G_util"))
    DPHMM, $G_\mathrm{util}$
    """
    return re.sub(r"\bG_(\w+)", r"$G_\\mathrm{\1}$", name)


def over_time(
    panels: Iterable[Axes], by_time: pd.DataFrame, labels: dict[str, str], horizon: int
) -> None:
    """Fill a panel for each quantity in `labels`, which maps columns of `by_time` to labels of
    axes, with a line for each method.

    `by_time` has the columns method, time and the quantities. Lines have about ten markers over
    `horizon` timestamps.
    """
    for panel, (quantity, label) in zip(panels, labels.items(), strict=True):
        for method, part in by_time.groupby("method", sort=False):
            label_of_method = with_subscripts(method)
            every = max(1, horizon // 10)
            panel.plot(part.time, part[quantity], label=label_of_method, markevery=every)
        panel.set_ylabel(label)
        count_from_one(panel.xaxis, "timestamp")
        plain_log_scale(panel)


def over_choices(
    panels: Sequence[Axes],
    results: dict[str, list],
    data: str,
    labels: dict[str, str],
    names: list[str],
) -> None:
    """Fill a panel for each quantity in `labels`, which maps quantities to labels of axes, with a
    line for each method over the models of one data set; the last panel names the models.

    `results` are those of `evaluation.by_choice`: lists over models with keys such as "Geolife,
    DPLS: error". `data` is the data set, with which a key begins; `names` are the models, for the
    horizontal axis.
    """
    style = {}
    rotation = 0
    if " x " in names[0]:  # boxes have no order that a line could follow, and long names
        style["linestyle"] = ""
        rotation = 90
    for panel, (quantity, label) in zip(panels, labels.items(), strict=True):
        for key, values in results.items():
            if key.startswith(data) and key.endswith(f": {quantity}"):
                with_intervals(panel, range(len(names)), values, **style)
        panel.set_ylabel(label)
        panel.set_xticks(range(len(names)), [])
        plain_log_scale(panel)
    panels[-1].set_xticks(range(len(names)), map(_in_lines, names), rotation=rotation)


def _in_lines(name: str) -> str:
    """A name with a second line for the sides of a box: "Los Angeles (thinned)\n12 x 26"."""
    return re.sub(r" (\S+ x \S+) km$", r"\n\1", name)


def with_intervals(axes: Axes, x: Iterable, values: list, **style: Any) -> None:
    """A line over `x` with an interval at each of the `values` that is a dict of low, value and
    high; a plain number is drawn without one."""
    intervals = []
    for value in values:
        if isinstance(value, dict):
            intervals.append((value["low"], value["value"], value["high"]))
        else:
            intervals.append((value, value, value))
    low, middle, high = np.array(intervals).T
    lengths = np.maximum([middle - low, high - middle], 0)
    axes.errorbar(list(x), middle, lengths, capsize=2, elinewidth=0.8, **style)


def plain_log_scale(axes: Axes) -> None:
    """A logarithmic vertical axis with plain numbers at 1, 2 and 5."""
    axes.set_yscale("log")
    label_log_axis(axes.yaxis)


def _draw_graph(axes: Axes, graph: networkx.Graph, answers: ArrayLike, **styles) -> None:
    """Draw a graph whose nodes are states, named s_1, s_2, ..., at their answers (N, 2); `styles`
    are those of networkx."""
    f = as_answers(answers)
    names = {state: f"$s_{{{state + 1}}}$" for state in graph}
    usual = {"node_size": 130, "font_size": 7, "node_color": "white", "edge_color": PALETTE[0]}
    networkx.draw_networkx(
        graph, dict(enumerate(f)), labels=names, ax=axes, hide_ticks=False, **usual | styles
    )
    margin = 0.16 * np.ptp(f, axis=0).max() + 0.1
    left, bottom = f.min(axis=0) - margin
    right, top = f.max(axis=0) + margin
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
