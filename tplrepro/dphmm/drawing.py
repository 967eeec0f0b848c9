"""Drawings of policy graphs and sensitivity hulls in the plane, as in Figs. 3 to 9, 14 and 15 of [5]."""

from __future__ import annotations

import numpy as np

from tplrepro.dphmm.constraint import as_answers

__all__ = ["draw_hull", "draw_policy", "draw_transitions", "plain_log_scale"]


def draw_policy(axes, policy, answers, *, added=(), exposed=(), labels=True, impossible=True):
    """States at their answers, edges of the policy, impossible states in grey.

    Parameters
    ----------
    axes : matplotlib Axes
    policy : PolicyGraph over N states
    answers : array-like (N, 2)
    added : pairs of states whose edges are drawn dashed
    exposed : states that are ringed
    labels : bool, write s_1 ... s_N
    impossible : bool, show the impossible states
    """
    from tplrepro.figures import PALETTE

    f = as_answers(answers, policy.n_states)
    new = {tuple(sorted(edge)) for edge in added}
    for i, j in policy.edge_array.tolist():
        dashed = (i, j) in new
        color, linestyle = (PALETTE[1], "--") if dashed else (PALETTE[0], "-")
        axes.plot(*f[[i, j]].T, color=color, linestyle=linestyle, marker="", zorder=2)
    _states(axes, f, policy.possible, labels, impossible)
    ringed = list(exposed)
    axes.scatter(*f[ringed].T, s=110, facecolors="none", edgecolors=PALETTE[1], linewidths=1.2, zorder=4)
    _frame(axes, f)


def draw_transitions(axes, matrix, answers):
    """States at their answers and an arrow for each transition of positive probability; staying is not drawn."""
    from tplrepro.figures import PALETTE

    P = np.asarray(matrix)
    f = as_answers(answers, len(P))
    for i, j in np.argwhere(P > 0).tolist():
        if i != j:
            arrow = {
                "arrowstyle": "-|>",
                "color": PALETTE[0],
                "shrinkA": 5,
                "shrinkB": 5,
                "lw": 0.9,
                "connectionstyle": "arc3,rad=0.14",
                "mutation_scale": 7,
            }
            axes.annotate("", f[j], f[i], arrowprops=arrow, zorder=2)
    _states(axes, f, np.arange(len(P)), True)
    _frame(axes, f)


def draw_hull(axes, hull, centre=(0.0, 0.0), *, color=None, label=None, fill=True, linestyle="-"):
    """The body `centre` + K; a flat hull is drawn as its segment.

    Parameters
    ----------
    hull : SensitivityHull in the plane
    centre : (2,)
    """
    from tplrepro.figures import PALETTE

    color = PALETTE[2] if color is None else color
    corners = np.asarray(centre) + hull.vertices
    corners = np.vstack([corners, corners[:1]])
    if fill and hull.dimension == 2:
        axes.fill(*corners.T, color=color, alpha=0.15, linewidth=0, zorder=1)
    axes.plot(*corners.T, color=color, linestyle=linestyle, marker="", label=label, zorder=1.5)


def _states(axes, f, possible, labels: bool, impossible: bool = True):
    from matplotlib.patheffects import withStroke

    held = np.isin(np.arange(len(f)), possible)
    for state, point in enumerate(f):
        if not (held[state] or impossible):
            continue
        color = "black" if held[state] else "#b0b0b0"
        axes.plot(*point, marker="o", color=color, linestyle="", zorder=3)
        if labels:
            halo = [withStroke(linewidth=2, foreground="white")]  # readable where edges pass below
            axes.annotate(
                f"$s_{{{state + 1}}}$",
                point,
                (4, 4),
                textcoords="offset points",
                color=color,
                zorder=5,
                path_effects=halo,
            )


def _frame(axes, f):
    margin = 0.16 * np.ptp(f, axis=0).max() + 0.1
    axes.set_xlim(f[:, 0].min() - margin, f[:, 0].max() + margin)
    axes.set_ylim(f[:, 1].min() - margin, f[:, 1].max() + margin)
    axes.set_aspect("equal")


def plain_log_scale(axes):
    """A logarithmic vertical axis with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import LogLocator

    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
