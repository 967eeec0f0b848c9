"""What one place, blocks and pairs of places leak, for the notebook explore/intervals."""

import numpy as np
import pytest

from experiments import one_place


def test_about_one_place_less_is_told_than_about_blocks_and_pairs():
    chain = one_place.chain_of_pairs(0.8, 0.6)
    assert chain[(0, 0), (0, 0)] == 0.8
    assert chain[(0, 1), (1, 1)] == 0.6
    found = one_place.largest_leakages(0.1, chain, [2, 8, 40])
    np.testing.assert_allclose(found[one_place.PAIRS], [0.2, 0.8, 4.0], rtol=1e-9)
    assert (found[one_place.ONE] <= found[one_place.BLOCKS]).all()
    for_ever = one_place.leakages_for_ever(0.1, chain)
    for name, value in for_ever.items():
        assert found[name].iloc[-1] == pytest.approx(value, rel=0.01)
        assert found[name].iloc[-1] <= value
