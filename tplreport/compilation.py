"""Compile kernels before something is timed, or prints that it waits for them."""

import numpy as np

from tplfrontier.pairs import leakage
from tplreport.learning.floor import Side
from tplreport.reporting.evidence import count_in_table


def compile_kernels() -> None:
    """Compile all kernels that are not stored compiled, those of the other packages included."""
    leakage.compile_kernels()
    counts = np.full((2, 2), 10.0)
    Side(counts, 0.95).supremum(0.1, 1.0, 1.0)
    numbers = np.zeros(2, dtype=np.int64)
    count_in_table.compiled(numbers, numbers, np.zeros(1, dtype=np.int32))
