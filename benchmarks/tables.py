"""Lines of the tables of docs/benchmarks.md."""

import os
import statistics
from collections.abc import Iterator, Sequence

from benchmarks.measuring import Run

#: A measured number beside its aim.
PLAIN_HEAD = "| | measured | aim |\n|---|---|---|"
#: A baseline and the package in turn.
RATIO_HEAD = "| | baseline | tplrepro | ratio, median (range) | aim |\n|---|---|---|---|---|"


def row(*cells: object) -> str:
    """One line of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def head(*names: str) -> str:
    """The two lines that begin a table."""
    return row(*names) + "\n" + "|---" * len(names) + "|"


def shown(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> shown(2.0), shown(0.0123), shown(1.5e-5)
    ('2 s', '12.3 ms', '15 µs')
    """
    if seconds >= 0.1:
        return f"{seconds:.3g} s"
    if seconds >= 1e-4:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e6:.3g} µs"


def megabytes(count: float) -> str:
    """A number of bytes in megabytes."""
    return f"{count / 1e6:,.0f} MB"


def ratio_row(
    what: str, baseline: Sequence[float], ours: Sequence[float], aim: str = "", per: int = 1
) -> str:
    """A row of medians of the baseline and of ours, and of their ratios, round by round.

    Both are seconds of one round; `ours` are those of `per` calls, the baseline's of one. `aim` is
    the ratio to reach, "" for none.
    """
    each = [time / per for time in ours]
    ratios = [theirs / own for theirs, own in zip(baseline, each, strict=True)]
    ratio = f"{statistics.median(ratios):,.0f} ({min(ratios):,.0f} to {max(ratios):,.0f})"
    return row(what, shown(statistics.median(baseline)), shown(statistics.median(each)), ratio, aim)


def on_busy_processors(run: Run, what_would_shorten: str) -> Iterator[str]:
    """Sentences on how busy the processors were during a run, and what would shorten it."""
    count = os.cpu_count() or 1
    share = run.processors / run.wall / count
    yield ""
    yield f"The {count} processors are busy {share:.0%} of it: the floor is their time, which only"
    yield f"{what_would_shorten} would shorten."
