"""Theorem K against linear programmes over all mechanisms with given event-level budgets."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

import tplrepro as tpl
from tplfrontier import (
    allocate_for_one_place,
    estimate_higher_order,
    every_kth,
    one_place_leakage,
    one_place_supremum,
)

TRIPLES = [*product(range(2), repeat=3)]


def chain_of(rows, n, order):
    """The chain over all tuples, from the rows (n^k, n) of the next place."""
    tuples = [*product(range(n), repeat=order)]
    matrix = np.zeros((len(tuples), len(tuples)))
    for i, context in enumerate(tuples):
        for place in range(n):
            matrix[i, tuples.index((*context[1:], place))] += rows[i, place]
    return tpl.TransitionMatrix(matrix, tuples)


def law_of_paths(chain, n, order, horizon):
    """The stationary law of all paths (n^T,), T at least the order."""
    tuples = list(chain.states)
    matrix = chain.toarray()
    stationary = chain.stationary()
    law = []
    for path in product(range(n), repeat=horizon):
        if path[:order] not in tuples:
            law.append(0.0)
            continue
        place = tuples.index(path[:order])
        probability = stationary[place]
        for time in range(order, horizon):
            tuple_now = path[time - order + 1 : time + 1]
            if tuple_now not in tuples:
                probability = 0.0
                break
            following = tuples.index(tuple_now)
            probability *= matrix[place, following]
            place = following
        law.append(probability)
    return np.array(law)


def largest_leakages(law, n, epsilons):
    """The largest log-ratio about each place over all g that change by at most e^epsilon with each
    place alone: linear programmes, (T,)."""
    horizon = len(epsilons)
    paths = [*product(range(n), repeat=horizon)]
    number = {path: i for i, path in enumerate(paths)}
    rows, columns, entries = [], [], []
    row = 0
    for path in paths:
        for time in range(horizon):
            for place in range(n):
                if place != path[time]:
                    other = (*path[:time], place, *path[time + 1 :])
                    rows += [row, row]
                    columns += [number[path], number[other]]
                    entries += [1.0, -np.exp(epsilons[time])]
                    row += 1
    limits = coo_array((entries, (rows, columns)), shape=(row, len(paths))).tocsr()
    found = []
    for time in range(horizon):
        given = []
        for place in range(n):
            is_there = np.array([path[time] == place for path in paths])
            total = (law * is_there).sum()
            if total > 0.0:
                given.append(law * is_there / total)
        largest = 0.0
        for one, other in permutations(given, 2):
            best = linprog(-one, limits, np.zeros(row), other[None], [1.0])
            if best.status == 0:
                largest = max(largest, np.log(-best.fun))
        found.append(largest)
    return np.array(found)


def check_against_programmes(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([2, 2, 3]))
    order = int(rng.integers(1, 4 if n == 2 else 3))
    horizon = int(rng.integers(order, 6 if n == 2 else 4))
    rows = rng.dirichlet([rng.choice([0.3, 1.0, 3.0])] * n, n**order)
    if rng.random() < 0.3:
        rows = 0.7 * rows[np.arange(n**order) % n] + 0.3 * rows  # hardly more than order 1
    epsilons = rng.uniform(0.05, 0.8, horizon)
    chain = chain_of(0.98 * rows + 0.02 / n, n, order)
    found = one_place_leakage(epsilons, chain)
    true = largest_leakages(law_of_paths(chain, n, order, horizon), n, epsilons)
    assert (true <= found + 1e-7).all()
    assert (found <= epsilons.sum() * (1.0 + 1e-12)).all()
    return (true / found).max()


def test_no_mechanism_leaks_more_about_a_place():
    tightest = [check_against_programmes(seed) for seed in range(25)]
    assert max(tightest) > 0.99


@pytest.mark.slow
def test_no_mechanism_of_many_leaks_more_about_a_place():
    for seed in range(100, 400):
        check_against_programmes(seed)


def check_sparse_against_programmes(seed):
    """Chains of which some tuples never occur, and are no states."""
    rng = np.random.default_rng(seed)
    horizon = int(rng.integers(2, 6))
    rows = rng.dirichlet([1.0, 1.0], 4)
    is_left_out = rng.random(4) < 0.5
    rows[is_left_out] = np.eye(2)[rng.integers(0, 2, is_left_out.sum())]
    whole = chain_of(rows, 2, 2)
    try:
        stationary = whole.stationary()
    except ValueError:
        return 0.0
    kept = np.flatnonzero(stationary > 1e-12)
    places = {place for i in kept for place in whole.states[i]}
    if len(places) < 2:
        return 0.0
    matrix = whole.toarray()[np.ix_(kept, kept)]
    chain = tpl.TransitionMatrix(matrix, [whole.states[i] for i in kept])
    epsilons = rng.uniform(0.05, 0.8, horizon)
    found = one_place_leakage(epsilons, chain)
    # the places of `found` are numbered as they come in the states, which changes nothing
    true = largest_leakages(law_of_paths(whole, 2, 2, horizon), 2, epsilons)
    assert (true <= found + 1e-7).all()
    return (true / found).max()


def test_tuples_that_never_occur_count():
    tightest = [check_sparse_against_programmes(seed) for seed in range(60)]
    assert max(tightest) > 0.99


def test_a_walk_in_circles_tells_everything():
    """0 0 1 1 0 0 1 1: two places determine all others, and contexts such as 0 0 0 never occur."""
    chain = tpl.TransitionMatrix(np.roll(np.eye(4), 1, axis=1), [(0, 0), (0, 1), (1, 1), (1, 0)])
    found = one_place_leakage(0.3, chain, horizon=4)
    true = largest_leakages(law_of_paths(chain, 2, 2, 4), 2, [0.3] * 4)
    assert (true <= found + 1e-7).all()
    assert true.max() > 0.6


def test_order_1_is_the_recursion_of_the_paper():
    P = tpl.TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])
    chain = tpl.TransitionMatrix(P.toarray(), [(0,), (1,)])
    found = one_place_leakage(0.1, chain, horizon=12)
    expected = tpl.temporal_privacy_leakage(0.1, P.reverse(), P, horizon=12).tpl
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_an_estimated_chain_leaks_less_about_a_place_than_about_a_tuple():
    rng = np.random.default_rng(0)
    walk = [0, 1]
    for _ in range(4000):
        likely = 0.8 if walk[-1] == walk[-2] else 0.6
        walk.append(walk[-1] if rng.random() < likely else 1 - walk[-1])
    chain = estimate_higher_order([walk], order=2, smoothing=0.5, tuples="all")
    found = one_place_leakage(0.1, chain, horizon=60)
    of_tuples = tpl.temporal_privacy_leakage(0.1, chain.reverse(), chain, horizon=60).tpl
    assert found.max() < 0.2 * of_tuples.max()


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        (tpl.TransitionMatrix([[0.5, 0.5], [0.5, 0.5]]), "chain must be one over tuples"),
        (
            tpl.TransitionMatrix([[0.5, 0.5], [0.5, 0.5]], [("a", "b"), ("b", "c")]),
            "each tuple must continue the one before it",
        ),
    ],
)
def test_other_chains_are_refused(chain, message):
    with pytest.raises(ValueError, match=message):
        one_place_leakage(0.1, chain, horizon=3)


def test_what_a_place_tells_about_the_one_two_before_it_counts_in_order_3():
    """Of three places the last one copies the first one."""
    of_context = [[0.9, 0.1] if context[1] == 0 else [0.1, 0.9] for context in TRIPLES]
    chain = chain_of(np.array(of_context), 2, 3)
    epsilons = np.array([0.1, 0.1, 0.8])
    found = one_place_leakage(epsilons, chain)
    true = largest_leakages(law_of_paths(chain, 2, 3, 3), 2, epsilons)
    assert (true <= found + 1e-7).all()
    assert true[0] > 0.5


def random_chain(rng):
    """A chain of order up to 3 that forgets, and its number of places and order."""
    n = int(rng.choice([2, 2, 3]))
    order = int(rng.integers(1, 4 if n == 2 else 3))
    rows = 0.3 * rng.dirichlet(np.ones(n), n**order) + 0.7 * rng.dirichlet(np.ones(n))
    return chain_of(rows, n, order), n, order


def test_releases_for_ever_are_the_limit_of_long_series_from_above():
    rng = np.random.default_rng(11)
    for _ in range(6):
        chain, _, _ = random_chain(rng)
        epsilon = float(rng.uniform(0.01, 0.2))
        for_ever = one_place_supremum(epsilon, chain)
        if for_ever == np.inf:
            continue
        longer = [one_place_leakage(epsilon, chain, horizon=T)[T // 2] for T in (8, 24, 72)]
        assert longer == sorted(longer)
        assert longer[-1] <= for_ever
        assert longer[-1] == pytest.approx(for_ever, rel=0.02)


@pytest.mark.slow
def test_no_mechanism_leaks_more_than_releases_for_ever():
    rng = np.random.default_rng(12)
    ratios = []
    for _ in range(60):
        chain, n, order = random_chain(rng)
        horizon = 6 if n == 2 else 4
        epsilon = float(rng.uniform(0.01, 0.5))
        true = largest_leakages(law_of_paths(chain, n, order, horizon), n, [epsilon] * horizon)
        ratios.append((true / one_place_supremum(epsilon, chain)).max())
    assert max(ratios) <= 1.0 + 1e-7
    assert max(ratios) > 0.9


def test_for_ever_order_1_is_the_supremum_of_the_paper():
    P = tpl.TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])
    chain = tpl.TransitionMatrix(P.toarray(), [(0,), (1,)])
    sides = [tpl.PrivacyLossFunction(side).supremum(0.1) for side in (P.reverse(), P)]
    assert sum(sides) - 0.1 <= one_place_supremum(0.1, chain) * (1.0 + 1e-12)
    assert one_place_supremum(0.1, chain) == pytest.approx(sum(sides) - 0.1, rel=1e-5)


def test_the_budget_for_ever_keeps_its_level_and_is_the_largest():
    rows = [[0.8, 0.2], [0.4, 0.6], [0.6, 0.4], [0.2, 0.8]]
    chain = chain_of(np.array(rows), 2, 2)
    budget = allocate_for_one_place(1.0, chain)
    assert 0.9999 <= one_place_supremum(budget, chain) <= 1.0
    assert one_place_supremum(1.00001 * budget, chain) > 1.0
    # blocks of two places: less of a budget, as all of a block counts as one secret
    blocks = every_kth(chain, 2)
    of_blocks = tpl.allocate_by_upper_bound(1.0, blocks.reverse(), blocks) / 2.0
    assert of_blocks < budget


def test_places_that_determine_all_others_have_no_budget_for_ever():
    chain = tpl.TransitionMatrix(np.roll(np.eye(4), 1, axis=1), [(0, 0), (0, 1), (1, 1), (1, 0)])
    assert one_place_supremum(0.01, chain) == np.inf
    assert allocate_for_one_place(1.0, chain) == 0.0


def test_a_budget_for_ever_counts_what_is_told_about_a_place_and_not_on_the_way_to_it():
    """Place 2 is rare, and after it and another place that one is likely to follow again. So rows
    differ much given two places, but hardly given one."""
    rows = np.full((9, 2), 0.5)
    rows[6] = [0.8, 0.2]
    rows[7] = [0.2, 0.8]
    rare = np.full(9, 0.01)
    chain = chain_of(np.column_stack([0.99 * rows, rare]), 3, 2)
    budget = allocate_for_one_place(1.0, chain)
    assert 0.99999 <= one_place_supremum(budget, chain) <= 1.0
