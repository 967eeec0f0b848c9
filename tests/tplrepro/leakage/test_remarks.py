"""What [1] says in passing: the range of Algorithm 4, how often Algorithm 1 removes columns, and
what each of its adversaries causes."""

import numpy as np
import pytest

import tplrepro as tpl
from tplrepro import published


def random_rows(seed):
    """A random chain of 2 to 6 states, with zeros where the seed is odd."""
    rng = np.random.default_rng(seed)
    rows = rng.random((2 + seed % 5, 2 + seed % 5))
    if seed % 2:
        rows *= rng.random(rows.shape) > 0.3
    rows += np.eye(len(rows)) * 1e-3
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(6))
def test_the_range_of_algorithm_4_suffices_for_a_horizon_or_for_ever(seed):
    """(T + 1) ε for T releases (section 6.1), and Algorithm 6's supremum, if finite (section 5)."""
    rows = random_rows(seed)
    epsilon, horizon = 0.3, 12
    exact = tpl.temporal_privacy_leakage([epsilon] * horizon, backward=rows, forward=None).bpl
    supremum, _, _ = published.algorithm_6(epsilon, published.algorithm_2(rows))
    ends = [(horizon + 1) * epsilon]
    if np.isfinite(supremum):
        ends.append(supremum)
    for end in ends:
        pieces = published.algorithm_4(rows, 1e-9, end)
        leakage = [epsilon]
        for _ in range(horizon - 1):
            leakage.append(published.algorithm_5(leakage[-1], pieces, epsilon))
        assert leakage == pytest.approx(exact, rel=1e-10)


def removals(q, d, alpha):
    """In how many rounds Algorithm 1 removes columns, how many it leaves, and what it returns."""
    left = np.flatnonzero(q > d)
    rounds = 0
    while True:
        top, bottom = np.expm1(alpha) * np.array([q[left].sum(), d[left].sum()]) + 1
        stays = q[left] * bottom > d[left] * top
        if stays.all():
            return rounds, len(left), np.log(top / bottom)
        left = left[stays]
        rounds += 1


def test_algorithm_1_removes_columns_more_often_for_a_larger_alpha_and_less_than_n_times():
    rng = np.random.default_rng(0)
    alphas = [0.1, 1.0, 5.0, 15.0, 30.0]
    totals = np.zeros(len(alphas))
    for _ in range(200):
        n = rng.integers(3, 12)
        q, d = rng.dirichlet(np.ones(n), size=2)
        found = [removals(q, d, alpha) for alpha in alphas]
        ours = [published._losses_of_pairs(q[None], d[None], alpha)[0, 0] for alpha in alphas]
        assert [loss for _, _, loss in found] == pytest.approx(ours, rel=1e-9)
        assert max(rounds for rounds, _, _ in found) < n
        left = [columns for _, columns, _ in found]
        assert left == sorted(left, reverse=True)
        assert found[-1][1] == 1
        totals += [rounds for rounds, _, _ in found]
    assert (np.diff(totals) >= 0).all()


@pytest.mark.parametrize("seed", range(6))
def test_each_adversary_causes_what_its_knowledge_is_about(seed):
    """Against the exact leakage: only the backward matrix raises BPL, only the forward one FPL."""
    rows = random_rows(seed)
    epsilons = np.full(4, 0.5)
    sides = {"backward": rows, "forward": rows}
    for known in ([], ["backward"], ["forward"], ["backward", "forward"]):
        knowledge = {side: rows if side in known else None for side in sides}
        bound = tpl.temporal_privacy_leakage(epsilons, **knowledge)
        exact = tpl.exact_leakage(epsilons, **knowledge)
        for leakage, side in ((bound.bpl, "backward"), (bound.fpl, "forward")):
            assert (leakage > epsilons + 1e-12).any() == (side in known)
        assert (exact.bpl <= bound.bpl + 1e-12).all()
        assert (exact.fpl <= bound.fpl + 1e-12).all()
        assert (exact.tpl > epsilons + 1e-12).any() == bool(known)
