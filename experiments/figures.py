"""Figures in one style, each saved as PNG and PDF with a record of its provenance, and its numbers
as CSV.

Files are written to the folder named by ``TPLREPRO_FIGURES``, by default ``build/figures`` of the
repository. With ``TPLREPRO_PICTURES=no``, as in the check of the committed notebooks, there are
records and tables alone.
"""

import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments import parameters
from experiments.provenance import provenance, repository_folder, write_with_record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

# Okabe and Ito's eight colours, which readers with any form of colour blindness can distinguish;
# black comes last because it is the colour of the axes.
PALETTE = (
    "#0072B2",  # blue
    "#D55E00",  # vermillion
    "#009E73",  # bluish green
    "#CC79A7",  # reddish purple
    "#E69F00",  # orange
    "#56B4E9",  # sky blue
    "#F0E442",  # yellow
    "#000000",
)

# A broad grey band behind the curves, for a limit such as the budget.
BAND = {"color": "0.6", "zorder": 1, "linewidth": 5, "alpha": 0.4, "linestyle": "-", "marker": ""}

# How a line is drawn when the colours have run out.
GREY = {"color": "0.45", "markerfacecolor": "white"}

# Metadata (versions, dates) that Matplotlib would write into a file.
VOLATILE = {
    ".png": ("Software",),
    ".pdf": ("Creator", "Producer", "CreationDate"),
    ".svg": ("Creator", "Date"),
}

# Attribute of a figure: what `parameters.check` had found when it was begun.
DRAWN_WITH = "drawn_with_parameters"

# Widths of the IEEE two-column layout, in inches.
SINGLE_COLUMN = 3.5
DOUBLE_COLUMN = 7.16


def use_style() -> None:
    """Set Matplotlib's defaults for every figure of the repository, regardless of the user's
    settings.

    Curves differ in greyscale as well; no text is smaller than 7 pt at print width; PDF embeds its
    fonts.
    """
    import matplotlib as mpl
    from cycler import cycler

    backend = mpl.get_backend()
    mpl.rcdefaults()
    mpl.rcParams["backend"] = backend
    mpl.rc("figure", figsize=(SINGLE_COLUMN, 2.5), dpi=110, titlesize=9)
    mpl.rc("figure.constrained_layout", use=True)
    mpl.rc("savefig", dpi=300)
    mpl.rc("font", size=8)
    mpl.rc("axes", titlesize=8, labelsize=8, grid=True, axisbelow=True)
    mpl.rc("axes.spines", top=False, right=False)
    mpl.rc("xtick", labelsize=7)
    mpl.rc("ytick", labelsize=7)
    mpl.rc("legend", fontsize=7, frameon=False, handlelength=2.6)
    mpl.rc("grid", color="#d9d9d9", linewidth=0.5)
    mpl.rc("lines", linewidth=1.3, markersize=4)
    colours = cycler(color=PALETTE)
    dashes = cycler(linestyle=["-", "--", "-.", ":", "-", "--", "-.", ":"])
    markers = cycler(marker=["o", "s", "^", "D", "v", "P", "X", "*"])
    mpl.rc("axes", prop_cycle=colours + dashes + markers)
    mpl.rc("pdf", fonttype=42)
    mpl.rc("svg", hashsalt="tplrepro")


def subplots(
    rows: int = 1,
    cols: int = 1,
    columns: int | None = None,
    panel_height: float = 2.2,
    **kwargs: Any,
) -> "tuple[Figure, Any]":
    """Figure and axes at the width of one or two printed columns, in the house style.

    Parameters
    ----------
    rows, cols : int
        Numbers of panels down and across.
    columns : {1, 2}, optional
        Printed columns that the figure spans; by default one for a single panel across, else two.
    panel_height : float
        Of one row, in inches.
    **kwargs
        Of `matplotlib.pyplot.subplots`.

    Returns
    -------
    Figure, Axes or array of Axes
        As `matplotlib.pyplot.subplots` gives them.
    """
    import matplotlib.pyplot as plt

    if columns is None:
        columns = min(cols, 2)
    if columns == 1:
        width = SINGLE_COLUMN
    else:
        width = DOUBLE_COLUMN
    use_style()
    figure, axes = plt.subplots(rows, cols, figsize=(width, panel_height * rows), **kwargs)
    setattr(figure, DRAWN_WITH, parameters.latest_check())
    return figure, axes


def line_styles(names: Iterable[str]) -> dict[str, dict]:
    """Colour, dashes and marker of each name, the same in all panels; each line is thinner than the
    previous one.

    A line drawn later therefore never hides an earlier one at the same place. When the colours run
    out, lines are grey with hollow markers.
    """
    import matplotlib as mpl

    use_style()
    cycle = list(mpl.rcParams["axes.prop_cycle"])
    names = list(dict.fromkeys(names))
    last = max(len(names) - 1, 1)
    styles = {}
    for number, name in enumerate(names):
        width = 2.6 - 1.6 * number / last
        styles[name] = dict(cycle[number % len(cycle)])
        styles[name] |= {"linewidth": width, "markersize": 2.5 * width**0.5 + 1.5}
        if number >= len(cycle):
            styles[name] |= GREY
    return styles


def legend_below(figure: "Figure", axes: Iterable, ncols: int) -> None:
    """One legend in `ncols` columns below all panels, with each label of `axes` once."""
    handles_by_label = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles_by_label[label] = handle
    figure.legend(
        handles_by_label.values(), handles_by_label.keys(), loc="outside lower center", ncols=ncols
    )


def mark_zeros(axis: "Axes", x: Any, values: Any, **style: Any) -> int:
    """Hollow markers at the lower edge of a logarithmic axis where `values` are 0, at their `x`: a
    curve would vanish there. Returns how many there are."""
    at_zero = np.asarray(x)[np.asarray(values) == 0]
    hollow = style | {"linestyle": "", "markerfacecolor": "none", "clip_on": False, "label": "_"}
    if at_zero.size:  # an empty line would count in the layout
        axis.plot(at_zero, np.zeros(at_zero.size), transform=axis.get_xaxis_transform(), **hollow)
    return at_zero.size


def save_figure(
    figure: "Figure",
    name: str,
    *,
    results: dict | None = None,
    data: str = "none",
    inputs: Iterable = (),
    table: "DataFrame | None" = None,
) -> None:
    """Write a figure and its record, with the parameters of the notebook.

    Parameters
    ----------
    figure : Figure
    name : str
        Such as "tkde2019/fig3".
    results : dict, optional
        The numbers that the figure shows or that the text quotes.
    data : str
        "none", "real", "real (unverified)" (no published checksum confirms the files), "synthetic"
        or "synthetic in part: NAME, ..."; the title of the last two says so.
    inputs : iterable of path-like
        The data files that were read, required if `data` is real; a folder stands for all files in
        it.
    table : DataFrame, optional
        The numbers that the figure plots.

    Raises
    ------
    ValueError
        For another `name` or `data`; if the parameters in the kernel are no longer those that
        `parameters.check` found; or if the figure was begun before the last check.
    """
    target = _target(name)
    record = provenance(name, results, data, inputs)
    _check_drawn_with_these_parameters(figure)
    if data.startswith("synthetic"):
        _say_synthetic(figure, data.removeprefix("synthetic").removeprefix(" in part"))
    contents = {}
    if os.environ.get("TPLREPRO_PICTURES") != "no":
        contents[".png"] = figure_bytes(figure, ".png")
        contents[".pdf"] = figure_bytes(figure, ".pdf")
    if table is not None:
        contents[".csv"] = _comma_separated(table)
    write_with_record(target, contents, record)


def _check_drawn_with_these_parameters(figure: "Figure") -> None:
    """Raise ValueError if other parameters were in the kernel when the figure was begun."""
    checked = parameters.latest_check()
    if getattr(figure, DRAWN_WITH, checked) != checked:
        raise ValueError(
            "a figure must be drawn with the parameters that its record states, found one drawn "
            "before parameters.check() ran again; run all cells below the parameters cell again"
        )


def figure_bytes(figure: "Figure", suffix: str) -> bytes:
    """A figure as ".png", ".pdf" or ".svg" without dates and versions, so that equal figures have
    equal bytes."""
    # The constrained layout converges at its second execution; without the first, saving twice
    # would differ.
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
    content = io.BytesIO()
    left_out = dict.fromkeys(VOLATILE[suffix])
    figure.savefig(content, format=suffix.removeprefix("."), dpi=300, metadata=left_out)
    return content.getvalue()


def save_table(
    table: "DataFrame",
    name: str,
    *,
    results: dict | None = None,
    data: str = "none",
    inputs: Iterable = (),
) -> None:
    """Write a table as CSV with its provenance beside it.

    `results`, `data` and `inputs` are recorded as by `save_figure`, and refused by it for the same
    reasons.
    """
    target = _target(name)
    record = provenance(name, results, data, inputs)
    write_with_record(target, {".csv": _comma_separated(table)}, record)


def output_folder() -> Path:
    """Folder under which figures are written: ``TPLREPRO_FIGURES``, or ``build/figures`` of the
    repository."""
    named = os.environ.get("TPLREPRO_FIGURES")
    if named:
        return Path(named)
    return repository_folder() / "build" / "figures"


def _target(name: str) -> Path:
    """Where the files of a result are written, without their suffix."""
    path = Path(name)
    is_within = not path.is_absolute() and ".." not in path.parts
    if not is_within or path.suffix or not path.name:
        raise ValueError(
            f"name must be a relative path without a suffix, found {str(name)!r}; "
            "write it like 'tkde2019/fig3'"
        )
    return output_folder() / path


def _comma_separated(table: "DataFrame") -> bytes:
    return table.to_csv(index=False, float_format="%.9g", lineterminator="\n").encode()


def _say_synthetic(figure: "Figure", part: str) -> None:
    """Say in the title that the data are synthetic, unless some title does; `part` names those that
    are."""
    title = figure.get_suptitle()
    titles = [title, *(axes.get_title() for axes in figure.axes)]
    if any("synthetic data" in words.lower() for words in titles):
        return
    if title:
        figure.suptitle(f"{title} (synthetic data{part})")
    else:
        figure.suptitle(f"Synthetic data{part}")
