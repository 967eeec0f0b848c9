"""Numbers and labels in sentences, tables and figures."""

from collections import Counter
from collections.abc import Iterable
from html import escape
from typing import Any

from tplrepro.lazy import optional_import

#: Names in records and tables, as figures write them.
PLOTTED_NAMES = {"epsilon": "ε", "bpl": "BPL", "fpl": "FPL", "tpl": "TPL", "alpha / T": "α/T"}


def count_noun(number: float | str, noun: str, form: str = "") -> str:
    """A number, in the format `form`, and a noun that agrees with it.

    >>> count_noun(1, "release"), count_noun(1620, "step", ","), count_noun(0.5, "nat")
    ('1 release', '1,620 steps', '0.5 nats')
    """
    shown = format(number, form)
    if shown == "1":
        return f"{shown} {noun}"
    return f"{shown} {noun}s"


def format_number(value: float) -> str:
    """Three digits of a number, all digits before the point, and no exponent where it is large.

    >>> format_number(1612.4), format_number(33.333), format_number(0.00012)
    ('1,610', '33.3', '0.00012')
    """
    rounded = float(f"{value:.3g}")
    if abs(rounded) >= 1000:
        return f"{rounded:,.0f}"
    return f"{rounded:g}"


def shorten_labels(labels: Iterable, most: int = 12) -> list[str]:
    """Texts of at most `most` characters that differ where the labels do: the middle is left out,
    or a number added.

    >>> shorten_labels(["home", "Main Street 1", "Main Street 2", "Main Street, flat 1"])
    ['home', 'Main S…eet 1', 'Main S…eet 2', 'Main S…lat 1']
    >>> shorten_labels(["Main Street 1 north", "Main Street 2 north"])
    ['Main Str… #1', 'Main Str… #2']
    """
    texts = [str(label) for label in labels]
    short_texts = [_without_middle(text, most) for text in texts]
    occurrences = Counter(short_texts)
    distinct = []
    for number, (text, short) in enumerate(zip(texts, short_texts, strict=True), start=1):
        if occurrences[short] > 1:
            short = _with_number(text, number, most)
        distinct.append(short)
    return distinct


def _without_middle(text: str, most: int) -> str:
    """A text of at most `most` characters: its beginning, and as much of its end."""
    if len(text) <= most:
        return text
    n_first = most // 2
    n_last = most - n_first - 1
    first = text[:n_first]
    last = text[-n_last:]
    return f"{first}…{last}"


def _with_number(text: str, number: int, most: int) -> str:
    """A text of at most `most` characters: its beginning, and a number."""
    ending = f"… #{number}"
    n_first = most - len(ending)
    return text[:n_first] + ending


def plot_frame(frame: Any, ax: Any, **options: Any) -> Any:
    """A DataFrame drawn by pandas on Matplotlib's axes `ax`, or on new ones for None; returns the
    axes. Its points have markers: those of Matplotlib's settings, else small ones."""
    with optional_import():
        import matplotlib as mpl  # the error of pandas names no remedy
    has_markers = "marker" in mpl.rcParams["axes.prop_cycle"].keys
    if not has_markers:
        options.setdefault("marker", ".")
    return frame.plot(ax=ax, **options)


def count_from_one(axis: Any, label: str | None = None) -> None:
    """Ticks at 1 and at further whole numbers on an axis of Matplotlib that counts releases or
    times, and its label."""
    from tplrepro.ticks import TicksFromOne

    axis.set_major_locator(TicksFromOne())
    if label is not None:
        axis.set_label_text(label)


def label_log_axis(axis: Any) -> None:
    """Label 1, 2 and 5 of each decade of a logarithmic axis of Matplotlib, as plain numbers."""
    from matplotlib.ticker import LogLocator

    axis.set_minor_locator(LogLocator(subs=(2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("{x:g}")


def plot_over_time(frame: Any, ax: Any, **options: Any) -> Any:
    """A table over time, drawn as in the papers: times from 1, and their names of leakages."""
    from pandas import RangeIndex

    shown = frame.rename(columns=PLOTTED_NAMES)
    is_over_time = shown.index.name == "time"
    is_counted = is_over_time and isinstance(shown.index, RangeIndex)
    if is_counted:
        end = len(shown) + 1
        shown.index = RangeIndex(1, end)
    axes = plot_frame(shown, ax, **options)
    if is_counted:
        count_from_one(axes.xaxis, "time $t$")
    return axes


def frame_as_html(heading: str, frame: Any) -> str:
    """A heading and a DataFrame as notebooks show them, with at most ten rows and columns."""
    six_digits = "{:.6g}".format
    table = frame.to_html(max_rows=10, max_cols=10, float_format=six_digits)
    paragraph = f"<p>{escape(heading)}</p>"
    return f"{paragraph}\n{table}"
