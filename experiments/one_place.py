"""What releases tell about one place of a chain of order 2, about pairs of places, and in blocks of
two places."""

from itertools import product

import numpy as np
import pandas as pd

import tplfrontier as tf
import tplrepro as tpl

ONE = "one place"
BLOCKS = "blocks of two"
PAIRS = "overlapping pairs"
PLACES = "places"


def chain_of_pairs(stays_on: float, stays: float) -> tpl.TransitionMatrix:
    """The chain over pairs of two places: the last place is repeated with the probability
    `stays_on` where it repeats the one before, and else with `stays`."""
    pairs = [*product((0, 1), repeat=2)]
    rows = np.zeros((4, 4))
    for i, (before, last) in enumerate(pairs):
        probability = stays
        if before == last:
            probability = stays_on
        rows[i, pairs.index((last, last))] = probability
        rows[i, pairs.index((last, 1 - last))] = 1.0 - probability
    return tpl.TransitionMatrix(rows, pairs)


def largest_leakages(
    epsilon: float, chain: tpl.TransitionMatrix, horizons: list[int]
) -> pd.DataFrame:
    """The largest leakage, nats, of each notion in series of so many places, even numbers, each
    with the budget `epsilon`: columns of notions, rows of numbers of places."""
    blocks = tf.every_kth(chain, 2)
    rows = []
    for horizon in horizons:
        of_place = tf.one_place_leakage(epsilon, chain, horizon=horizon)
        of_pair = tpl.temporal_privacy_leakage(epsilon, chain.reverse(), chain, horizon=horizon)
        of_block = tpl.temporal_privacy_leakage(
            2.0 * epsilon, blocks.reverse(), blocks, horizon=horizon // 2
        )
        rows.append([of_place.max(), of_block.tpl.max(), of_pair.tpl.max()])
    index = pd.Index(horizons, name=PLACES)
    return pd.DataFrame(rows, index=index, columns=[ONE, BLOCKS, PAIRS])


def leakages_for_ever(epsilon: float, chain: tpl.TransitionMatrix) -> dict[str, float]:
    """The suprema over series of any length of what is told about one place, and about blocks of
    two."""
    blocks = tf.every_kth(chain, 2)
    sides = [tpl.PrivacyLossFunction(side) for side in (blocks.reverse(), blocks)]
    of_sides = [float(side.supremum(2.0 * epsilon)) for side in sides]
    of_blocks = sum(of_sides) - 2.0 * epsilon
    return {ONE: tf.one_place_supremum(epsilon, chain), BLOCKS: of_blocks}
