import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tplrepro.sip.oracles import distances_in_a_square
from tplrepro import sip

recordings = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1, max_size=6)


@settings(max_examples=50)
@given(recordings, st.integers(1, 4))
def test_batches_are_what_slices_of_each_sequence_hold(sequences, width):
    batches = sip.observed_batches(sequences, width)
    cut = [[tuple(own[k : k + width]) for k in range(0, len(own), width)] for own in sequences]
    assert [[batches.labels[k] for k in own] for own in batches] == cut
    assert set(batches.labels) == {batch for own in cut for batch in own}
    assert batches.widths.tolist() == [len(label) for label in batches.labels]
    distance = batches.distance()
    for x, y in itertools.product(range(batches.n_states), repeat=2):
        one, other = batches.labels[x], batches.labels[y]
        changed = sum(a != b for a, b in zip(one, other, strict=False))
        assert distance(x, y) == (changed if len(one) == len(other) else np.inf)


def test_where_all_batches_occur_they_are_those_of_the_full_alphabet():
    rng = np.random.default_rng(0)
    everything = rng.permutation(np.array(list(itertools.product(range(3), repeat=2)))).ravel()
    batches = sip.observed_batches([everything], 2)
    between = distances_in_a_square(rng, 3)
    numbers = np.arange(9)
    assert batches.distance(between)(numbers[:, None], numbers) == pytest.approx(
        sip.batch_distance(3, 2, between)
    )
    assert batches[0].tolist() == (everything[0:-1:2] * 3 + everything[1::2]).tolist()
    without_the_middle = sip.observed_batches([[0, 2, 2, 0]], 2, n_symbols=3)
    assert without_the_middle.distance(between)(0, 1) == between[0, 2] + between[2, 0]
    belief = rng.dirichlet(np.ones(9))
    one = sip.OptimalResponse(1.0, batches.distance(between)).response(belief)
    other = sip.BatchResponse(1.0, 2, 3, between).response(belief)
    assert one.matrix() == pytest.approx(other.matrix(), abs=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_the_width_of_a_batch_is_known_and_each_keeps_its_budget(order):
    """Beliefs are those that Bayes' rule gives over all paths of batches of the widths at hand."""
    rng = np.random.default_rng(order)
    batches = sip.observed_batches([rng.integers(0, 2, size) for size in (7, 5, 9, 3, 6)], 2)
    chain = sip.chain_from_sequences(batches, order=order, restart=0.2)
    mechanisms = {width: sip.OptimalResponse(0.7 * width) for width in (1, 2)}
    for own in batches.select(batches.lengths > 1):
        paths = chain.start
        for step, width in zip(
            sip.release(own, mechanisms, chain, rng=rng), batches.widths[own], strict=True
        ):
            paths = paths * (batches.widths == width)[chain.symbols]
            belief = np.bincount(chain.symbols, paths / paths.sum(), minlength=chain.n_symbols)
            response = mechanisms[width].response(belief)
            assert step.likelihood == pytest.approx(
                response.column(step.output), rel=1e-6, abs=1e-9
            )
            assert (
                sip.instantaneous_leakage(
                    response.matrix()[batches.widths == width], belief[belief > 0]
                )
                <= 0.7 * width
            )
            assert step.leakage <= 0.7 * width
            assert batches.widths[step.output] == width
            paths = (paths * step.likelihood[chain.symbols]) @ chain.toarray()
