import os
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.sip import setups
from tests.tplrepro.sip.oracles import (
    beliefs,
    budgets,
    checked_rows,
    distances_in_a_square,
    least_cost,
)
from tplrepro import sip
from tplrepro.sip.generation import (
    MARGIN_LEVELS,
    NEGLIGIBLE,
    SEPARATE_INPUTS,
    _Generation,
    generated_response,
)


def looked_up(table):
    return lambda x, y: table[x, y]


@settings(max_examples=40)
@given(beliefs(2, 30), budgets, st.integers(0, 99))
def test_a_generated_response_keeps_its_budget_and_is_never_better_than_the_best(
    belief, epsilon, seed
):
    table = distances_in_a_square(np.random.default_rng(seed), belief.size)
    response = generated_response(belief, looked_up(table), epsilon)
    assert sip.instantaneous_leakage(checked_rows(response, belief), belief) <= epsilon
    assert response.leakage <= epsilon
    assert response.cost(looked_up(table)) == pytest.approx(response.cost(table), rel=1e-12)
    assert (
        response.cost(table)
        >= sip.OptimalResponse(epsilon, table).response(belief).bound * (1 - 1e-9) - 1e-12
    )


@pytest.mark.parametrize(
    ("epsilon", "restart"), [(0.5, 0.05), (2.0, 0.05), (5.0, 0.05), (0.5, 1.0), (2.0, 1.0)]
)
def test_a_generated_response_costs_little_more_than_the_best(epsilon, restart):
    """Batches of five symbols, with beliefs as a chain with restarts gives them: few likely ones,
    all possible."""
    rng = np.random.default_rng(int(10 * epsilon))
    batches = sip.observed_batches(
        [rng.choice(6, size=1000, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04])], 5
    )
    n = batches.n_states
    belief = (1 - restart) * rng.dirichlet(np.full(n, 0.05)) + restart / n
    table = batches.distance()(np.arange(n)[:, None], np.arange(n))
    best = sip.OptimalResponse(epsilon, table).response(belief)
    response = generated_response(belief, batches.distance(), epsilon)
    assert response.leakage <= epsilon
    assert best.bound <= response.cost(table) <= 1.05 * best.cost(table)


def test_few_symbols_are_answered_exactly_and_impossible_ones_by_the_marginal():
    rng = np.random.default_rng(5)
    table, belief = (
        distances_in_a_square(rng, 9),
        np.append(rng.dirichlet(np.ones(8)), 0.0)[rng.permutation(9)],
    )
    possible = np.flatnonzero(belief)
    response = sip.OptimalResponse(1.0, looked_up(table)).response(belief)
    rows = checked_rows(response, belief)
    assert rows[belief == 0] == pytest.approx(response.marginal[None])
    inside = table[np.ix_(possible, possible)]
    assert response.cost(table) == pytest.approx(
        least_cost(belief[possible], inside, 1.0), abs=1e-7
    )
    assert response.bound == -np.inf  # the impossible symbol might be a better output
    nearby, even = np.array([[0, 4, 1], [4, 0, 1], [1, 1, 0]]), [0.5, 0.5, 0.0]
    bound, other = (
        sip.OptimalResponse(0.1, kind).response(even) for kind in (looked_up(nearby), nearby)
    )
    assert bound.bound <= other.cost(nearby) < 1.01 < bound.cost(nearby)


def test_gaze_on_a_fine_grid_is_answered_from_few_cells():
    """Beliefs over 10,000 cells, even ones and those of a chain with restarts: Euclidean distance
    within the budget."""
    distance, rng = partial(setups.cell_distance, columns=100), np.random.default_rng(0)
    for likely in (0.0, 0.99):
        belief = np.full(10_000, (1 - likely) / 10_000)
        belief[rng.choice(10_000, 8, replace=False)] += likely / 8
        response = sip.OptimalResponse(1.0, distance).response(belief)
        assert response.leakage <= 1.0
        assert response.cost(distance) < 0.85 * distance(np.arange(10_000), 5050).mean()
        assert response.labels.size < 20


def test_rounding_errors_of_a_belief_do_not_change_the_response():
    """Differences grow about thirtyfold with each release; solutions that are not rounded differ by
    1e-10 here."""
    rng = np.random.default_rng(4)
    table = distances_in_a_square(rng, 300)
    for epsilon in (0.5, 1.5):
        belief = 0.9 * rng.dirichlet(np.full(300, 0.05)) + 0.1 / 300
        disturbed = belief * (1 + 1e-15 * rng.standard_normal(300))
        responses = [
            generated_response(each, looked_up(table), epsilon) for each in (belief, disturbed)
        ]
        assert responses[1].marginal == pytest.approx(responses[0].marginal, abs=1e-14)


def test_symbols_of_which_all_are_common_are_output_unchanged():
    """Each has a belief of 1/K or more, K = e^5 + 1, so that only Theorem 4's share of the marginal
    changes them; one more is as unlikely as what cannot occur."""
    table = distances_in_a_square(np.random.default_rng(6), 101)
    belief = np.append(np.full(100, 0.01), NEGLIGIBLE)
    response = generated_response(belief, looked_up(table), 5.0)
    assert response.leakage <= 5.0
    rows = checked_rows(response, belief)
    share = np.exp(-5.0)
    assert rows[:100, :100] == pytest.approx((1 - share) * np.eye(100) + share / 100, rel=1e-9)
    assert rows[100] == pytest.approx(response.marginal)


def test_a_sample_of_few_symbols_holds_all_of_them():
    rng = np.random.default_rng(7)
    n = SEPARATE_INPUTS + 10
    generation = _Generation(np.full(n, 1.0 / n), looked_up(distances_in_a_square(rng, n)), 0.5)
    sample = generation.sample
    assert np.sort(sample.symbols).tolist() == [*range(n)]
    assert sample.mass == pytest.approx(np.full(n, 1.0 / n))


def test_symbols_have_one_number_if_they_prefer_the_same_outputs_by_the_same_level():
    rng = np.random.default_rng(8)
    k, m = 4000, 8
    costs = rng.random((k, m))
    generation = SimpleNamespace(b=np.full(k, 1.0 / k))
    numbers = _Generation._preferences(generation, costs.copy())
    best_two = np.argsort(costs, axis=1)[:, :2]
    least_two = np.sort(costs, axis=1)[:, :2]
    margins = least_two[:, 1] - least_two[:, 0]
    levels = np.digitize(margins / margins.mean(), MARGIN_LEVELS)
    kinds = np.column_stack([best_two, levels])
    _, kind_of = np.unique(kinds, axis=0, return_inverse=True)
    pairs = np.unique(np.column_stack([kind_of, numbers]), axis=0)
    assert len(pairs) == len(np.unique(kind_of)) == len(np.unique(numbers)) > 200


FIND_OUTPUTS = """
from functools import partial
import numpy as np
from experiments.sip import setups
from tplrepro import sip
belief = np.full(2500, 0.5 / 2500)
belief[[7, 1250, 1301, 2000]] += 0.125
response = sip.OptimalResponse(1.0, partial(setups.cell_distance, columns=50)).response(belief)
found = (response.labels.tolist(), response.marginal.round(9).tolist())
"""


def test_symbols_that_are_equally_near_are_tried_in_the_same_order_on_every_processor():
    """On a grid many are: argpartition took others of them with fewer vector instructions."""
    few = {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512F AVX512_SKX AVX2 FMA3"}
    command = [sys.executable, "-c", f"{FIND_OUTPUTS}print(found)"]
    done = subprocess.run(command, env=os.environ | few, capture_output=True, text=True, check=True)
    here = {}
    exec(FIND_OUTPUTS, here)
    assert len(here["found"][0]) > 0
    assert done.stdout.strip() == str(here["found"])
