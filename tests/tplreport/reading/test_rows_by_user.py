"""Rows are gathered by user in the order that NumPy's own sorts give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tplreport.reading.rows_by_user import Spill, _of_one_type, plain_label, stable_order

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


def test_a_part_of_what_was_spilt_is_read_again():
    spill = Spill()
    arrays = [np.arange(5), np.linspace(0.0, 1.0, 7), np.arange(3, dtype=np.int16)]
    for array in arrays:
        spill.append(array)
    for k, array in enumerate(arrays):
        assert spill.read(k).tolist() == array.tolist()
        for start, stop in ((0, 2), (1, 3), (2, 2)):
            assert spill.read(k, start, stop).tolist() == array[start:stop].tolist()


def test_numbers_of_many_digits_are_texts():
    assert plain_label(10**18 - 1) == 10**18 - 1
    assert plain_label(1 - 10**18) == 1 - 10**18
    assert plain_label(10**18) == "1000000000000000000"
    assert plain_label(-(10**18)) == "-1000000000000000000"


def test_numbers_are_texts_only_beside_other_labels():
    assert _of_one_type([1, 2]).dtype.kind == "i"
    assert _of_one_type([1, 2.5]).tolist() == [1.0, 2.5]
    assert _of_one_type([1, 2.5, "a"]).tolist() == ["1", "2.5", "a"]
