"""Drawings of policy graphs and sensitivity hulls in the plane, as in Figs. 3 to 9, 14 and 15 of [5]."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator
from numpy.typing import ArrayLike

from tplrepro.dphmm.constraint import as_answers
from tplrepro.dphmm.hull import SensitivityHull
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.figures import PALETTE

__all__ = ["draw_hull", "draw_policy", "draw_transitions", "plain_log_scale"]


def draw_policy(
    axes: Axes,
    policy: PolicyGraph,
    answers: ArrayLike,
    *,
    added: Iterable = (),
    exposed: Iterable = (),
    labels: bool = True,
    impossible: bool = True,
) -> None:
    """States at their answers (N, 2), edges of the policy, impossible states in grey.

    Parameters
    ----------
    added : pairs of states whose edges are drawn dashed
    exposed : states that are ringed
    labels : write s_1 ... s_N
    impossible : show the impossible states
    """
    f = as_answers(answers, policy.n_states)
    new = {tuple(sorted(edge)) for edge in added}
    for i, j in policy.edge_array.tolist():
        color, linestyle = (PALETTE[1], "--") if (i, j) in new else (PALETTE[0], "-")
        axes.plot(*f[[i, j]].T, color=color, linestyle=linestyle, marker="", zorder=2)
    x, y = f[list(exposed)].T
    axes.scatter(x, y, s=110, facecolors="none", edgecolors=PALETTE[1], linewidths=1.2, zorder=4)
    _draw_states(axes, f, policy.possible, labels, impossible)


def draw_transitions(axes: Axes, matrix: ArrayLike, answers: ArrayLike) -> None:
    """States at their answers and an arrow for each transition of positive probability; staying is not drawn."""
    P = np.asarray(matrix)
    f = as_answers(answers, len(P))
    arrow = {"arrowstyle": "-|>", "color": PALETTE[0], "shrinkA": 5, "shrinkB": 5, "lw": 0.9, "mutation_scale": 7}
    arrow["connectionstyle"] = "arc3,rad=0.14"
    for i, j in np.argwhere(P > 0).tolist():
        if i != j:
            axes.annotate("", f[j], f[i], arrowprops=arrow, zorder=2)
    _draw_states(axes, f, np.arange(len(P)))


def draw_hull(
    axes: Axes,
    hull: SensitivityHull,
    centre: ArrayLike = (0.0, 0.0),
    *,
    color: str = PALETTE[2],
    label: str | None = None,
    fill: bool = True,
    linestyle: str = "-",
) -> None:
    """The body `centre` + K in the plane; a flat hull is drawn as its segment."""
    corners = np.asarray(centre) + hull.vertices
    corners = np.vstack([corners, corners[:1]])
    if fill and hull.dimension == 2:
        axes.fill(*corners.T, color=color, alpha=0.15, linewidth=0, zorder=1)
    axes.plot(*corners.T, color=color, linestyle=linestyle, marker="", label=label, zorder=1.5)


def plain_log_scale(axes: Axes) -> None:
    """A logarithmic vertical axis with plain numbers at 1, 2 and 5."""
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")


def _draw_states(axes: Axes, f: np.ndarray, possible: np.ndarray, labels: bool = True, impossible: bool = True) -> None:
    halo = [withStroke(linewidth=2, foreground="white")]  # labels are readable where edges pass below
    for state in range(len(f)) if impossible else possible.tolist():
        color = "black" if state in possible else "#b0b0b0"
        axes.plot(*f[state], marker="o", color=color, linestyle="", zorder=3)
        if labels:
            style: dict[str, Any] = {"textcoords": "offset points", "color": color, "zorder": 5, "path_effects": halo}
            axes.annotate(f"$s_{{{state + 1}}}$", f[state], (4, 4), **style)
    margin = 0.16 * np.ptp(f, axis=0).max() + 0.1
    (left, bottom), (right, top) = f.min(axis=0) - margin, f.max(axis=0) + margin
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
