"""Rows are gathered by user in the order that NumPy's own sorts give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tplreport.reading.rows_by_user import stable_order

WHOLE = (np.int32, np.int64, np.uint64)


@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from(WHOLE), size=st.integers(0, 200))
def test_whole_numbers_of_any_size_are_sorted_as_lexsort_does(seed, dtype, size):
    rng = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    few = rng.integers(limits.min, limits.max, 5, dtype=dtype, endpoint=True)
    times = rng.choice(few, size)
    users = rng.integers(0, 2 ** int(rng.integers(1, 20)), size).astype(np.int32)
    assert stable_order(times, users).tolist() == np.lexsort((times, users)).tolist()
    assert stable_order(times).tolist() == np.argsort(times, kind="stable").tolist()


@pytest.mark.parametrize("times", [[0.5, -1.0, 0.5], [2, 1, 2]])
def test_equal_keys_keep_their_order(times):
    users = np.zeros(3, dtype=np.int32)
    assert stable_order(np.array(times), users).tolist() == [1, 0, 2]
