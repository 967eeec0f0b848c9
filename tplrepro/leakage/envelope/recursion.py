"""Compiled recursions of `vertex`, and the search for the largest range of differences
(`prior_free`)."""

import numpy as np

from tplrepro.leakage import vertex
from tplrepro.leakage.envelope.compiled import FAST, kernel

# They are in `vertex` beside their formulas, which also run as plain Python.
ascend = kernel()(vertex.ascend)
ascend_each = kernel()(vertex.ascend_each)
ascend_from = kernel()(vertex.ascend_from)


@kernel(fastmath=FAST)
def farthest(first, second, least):
    """The largest range above `least` of the difference of a row of `first` and one of `second`,
    and their numbers."""
    best_i, best_j = np.int64(0), np.int64(0)
    for i in range(first.shape[0]):
        for j in range(second.shape[0]):
            high = low = first[i, 0] - second[j, 0]
            for k in range(first.shape[1]):
                difference = first[i, k] - second[j, k]
                high = max(high, difference)
                low = min(low, difference)
            if high - low > least:
                least, best_i, best_j = high - low, i, j
    return least, best_i, best_j
