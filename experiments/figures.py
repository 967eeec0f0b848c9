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
    dashes = cycler(linestyle=["-", "--", "-.", ":", "-", "--", "-.", ":"])
    mpl.rc(
        "axes",
        prop_cycle=cycler(color=PALETTE)
        + dashes
        + cycler(marker=["o", "s", "^", "D", "v", "P", "X", "*"]),
    )
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

    By default a single panel across spans one of the `columns`, several span two. `panel_height` is
    that of one row, in inches; `kwargs` go to `matplotlib.pyplot.subplots`, whose axes are
    returned.
    """
    import matplotlib.pyplot as plt

    if columns is None:
        columns = 1 if cols == 1 else 2
    width = SINGLE_COLUMN if columns == 1 else DOUBLE_COLUMN
    use_style()
    figure, axes = plt.subplots(rows, cols, figsize=(width, panel_height * rows), **kwargs)
    setattr(figure, DRAWN_WITH, parameters.checked())
    return figure, axes


def line_styles(names: Iterable[str]) -> dict[str, dict]:
    """Colour, dashes and marker of each name, the same in all panels; each line is thinner than the
    previous one.

    A line drawn later therefore never hides an earlier one at the same place. When the colours run
    out, lines are grey with hollow markers.
    """
    import matplotlib as mpl

    use_style()
    names, cycle = list(dict.fromkeys(names)), list(mpl.rcParams["axes.prop_cycle"])
    widths = [2.6 - 1.6 * i / max(len(names) - 1, 1) for i in range(len(names))]
    sizes = [2.5 * width**0.5 + 1.5 for width in widths]
    return {
        name: cycle[i % len(cycle)]
        | {"linewidth": width, "markersize": size}
        | ({"color": "0.45", "markerfacecolor": "white"} if i >= len(cycle) else {})
        for i, (name, width, size) in enumerate(zip(names, widths, sizes, strict=True))
    }


def legend_below(figure: "Figure", axes: Iterable, ncols: int) -> None:
    """One legend below all panels, with each label of `axes` once."""
    named = {
        label: handle
        for axis in axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=ncols)


def mark_zeros(axis, x, values, **style):
    """Hollow markers at the lower edge of a logarithmic axis, where values are 0 and a curve would
    vanish; returns how many there are."""
    at_zero = np.asarray(x)[np.asarray(values) == 0]
    hollow = style | {"linestyle": "", "markerfacecolor": "none", "clip_on": False, "label": "_"}
    if at_zero.size:  # an empty line would count in the layout
        axis.plot(at_zero, np.zeros(at_zero.size), transform=axis.get_xaxis_transform(), **hollow)
    return at_zero.size


def show_steps(axis, counts, labels):
    """Draw the shares of the steps (n, n) from each of the labelled states."""
    from tplrepro.display import shorten_labels

    labels = shorten_labels(labels)
    image = axis.imshow(
        counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), cmap="cividis", vmin=0, vmax=1
    )
    axis.grid(visible=False)
    axis.set_xticks(range(len(labels)), labels, rotation=90)
    axis.set_yticks(range(len(labels)), labels)
    axis.set(xlabel="to", ylabel="from")
    axis.figure.colorbar(image, ax=axis, label="share")


def save_figure(
    figure: "Figure",
    name: str,
    *,
    results: dict | None = None,
    data: str = "none",
    inputs: Iterable = (),
    table: "DataFrame | None" = None,
) -> None:
    """Write a figure and its record, with the parameters of the notebook, under `name`, such as
    "tkde2019/fig3".

    `results` are the numbers that the figure shows or that the text quotes, and `table` those that
    it plots. `data` is "none", "real", "real (unverified)" (no published checksum confirms the
    files), "synthetic" or "synthetic in part: NAME, ..."; the title of the last two says so.
    `inputs` are the data files that were read, required if `data` is real; a folder stands for all
    files in it. The record states the parameters that `parameters.check` found: ValueError if
    others are in the kernel now, or were when the figure was begun.
    """
    target = _target(name)
    record = provenance(name, results, data, inputs)
    checked = parameters.checked()
    if getattr(figure, DRAWN_WITH, checked) != checked:
        raise ValueError(
            "a figure must be drawn with the parameters that its record states, found one drawn "
            "before parameters.check() ran again; run all cells below the parameters cell again"
        )
    if data.startswith("synthetic"):
        _say_synthetic(figure, data.removeprefix("synthetic").removeprefix(" in part"))
    suffixes = () if os.environ.get("TPLREPRO_PICTURES") == "no" else (".png", ".pdf")
    contents = {suffix: figure_bytes(figure, suffix) for suffix in suffixes}
    if table is not None:
        contents[".csv"] = _comma_separated(table)
    write_with_record(target, contents, record)


def figure_bytes(figure: "Figure", suffix: str) -> bytes:
    """A figure as ".png", ".pdf" or ".svg" without dates and versions, so that equal figures have
    equal bytes."""
    # The constrained layout converges at its second execution; without the first, saving twice
    # would differ.
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
    content = io.BytesIO()
    figure.savefig(
        content, format=suffix.removeprefix("."), dpi=300, metadata=dict.fromkeys(VOLATILE[suffix])
    )
    return content.getvalue()


def save_table(
    table: "DataFrame",
    name: str,
    *,
    results: dict | None = None,
    data: str = "none",
    inputs: Iterable = (),
) -> None:
    """Write a table as CSV with its provenance beside it; arguments and errors as for
    `save_figure`."""
    write_with_record(
        _target(name), {".csv": _comma_separated(table)}, provenance(name, results, data, inputs)
    )


def output_folder() -> Path:
    """Folder under which figures are written: ``TPLREPRO_FIGURES``, or ``build/figures`` of the
    repository."""
    named = os.environ.get("TPLREPRO_FIGURES")
    return Path(named) if named else repository_folder() / "build" / "figures"


def _target(name):
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or path.suffix or not path.name:
        raise ValueError(
            f"name must be a relative path without a suffix, found {str(name)!r}; write it like 'tkde2019/fig3'"
        )
    return output_folder() / path


def _comma_separated(table):
    return table.to_csv(index=False, float_format="%.9g", lineterminator="\n").encode()


def _say_synthetic(figure, part):
    title = figure.get_suptitle()
    titles = [title, *(axes.get_title() for axes in figure.axes)]
    if not any("synthetic data" in words.lower() for words in titles):
        figure.suptitle(f"{title} (synthetic data{part})" if title else f"Synthetic data{part}")
