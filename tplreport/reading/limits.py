"""How much of a file is read: one table for the command and the interactive page.

Small files may hold very much. `sizes` finds out how much, before a file is read; a compressed
stream is measured while it is unpacked.
"""

import os
import re
from dataclasses import dataclass, replace

#: Environment variable of a factor for the limits of the command.
FACTOR = "TPLREPRO_LIMITS"


@dataclass(frozen=True)
class Limits:
    """How much is read of one file."""

    columns: int
    line_bytes: int  # of the first line of a text
    values: int  # of a Parquet or Feather file; more if the file is large, see `growth`
    cells: int  # of a workbook, the empty ones between others included
    workbook_bytes: int  # of the unpacked members of a workbook; with `growth`, more of a large one
    stream_bytes: int  # of a compressed text when it is unpacked; likewise
    growth: int  # times the size of the file: so much is allowed in any case
    remedy: str


COMMAND = Limits(
    columns=20_000,
    line_bytes=4 << 20,
    values=100_000_000,
    cells=10_000_000,
    workbook_bytes=256 << 20,
    stream_bytes=64 << 20,
    growth=100,
    remedy=f"leave out what is not needed, or set {FACTOR}=10 to read ten times as much",
)
PAGE = Limits(
    columns=1_000,
    line_bytes=1 << 20,
    values=10_000_000,
    cells=1_000_000,
    workbook_bytes=64 << 20,
    stream_bytes=32 << 20,
    growth=0,
    remedy="leave out what is not needed, or use the command tplrepro report, which reads more",
)


def limits_of_command() -> Limits:
    """The limits of the command, times the factor that the user has set."""
    text = os.environ.get(FACTOR, "1")
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise ValueError(
            f"{FACTOR} must be a whole number from 1 on, found {text!r}; set it to such as 10"
        )
    factor = int(text)
    return replace(
        COMMAND,
        columns=factor * COMMAND.columns,
        line_bytes=factor * COMMAND.line_bytes,
        values=factor * COMMAND.values,
        cells=factor * COMMAND.cells,
        workbook_bytes=factor * COMMAND.workbook_bytes,
        stream_bytes=factor * COMMAND.stream_bytes,
        growth=factor * COMMAND.growth,
    )
