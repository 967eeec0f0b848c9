from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from experiments.sip import setups, tops
from experiments.sip.tops import release_tops
from tests.tplrepro.sip.oracles import beliefs, budgets, checked_rows
from tests.work import lines_run, most_bytes
from tplrepro import sip
from tplrepro.sip.response import Response, draw_symbol


@pytest.mark.parametrize(
    ("belief", "leakage", "cost", "least", "needed"),
    [([0.05, 0.95], 2.566, 0.0349, 0.05, 0.0), ([0.2, 0.3, 0.5], 1.261, 0.2281, 0.2742, 1.0)],
)
def test_the_papers_counterexample_exceeds_its_budget_and_the_optimal_response_does_not(
    belief, leakage, cost, least, needed
):
    published = sip.ConditionalRandomizedResponse(1.0).response(belief)
    assert (round(published.leakage, 3), round(published.cost(), 4)) == (leakage, cost)
    exact = sip.OptimalResponse(1.0).response(belief)
    assert exact.leakage <= 1.0
    assert exact.leakage == pytest.approx(needed, abs=1e-9)
    assert round(exact.cost(), 4) == least


@given(beliefs(), budgets)
@example(np.array([0.0, 1.0]), 1.0)
def test_the_published_response_keeps_the_marginal_and_its_budget_exactly_when_no_belief_is_small(
    belief, epsilon
):
    response = sip.ConditionalRandomizedResponse(epsilon).response(belief)
    assert belief @ checked_rows(response, belief) == pytest.approx(belief, rel=1e-9, abs=1e-15)
    assert response.marginal == pytest.approx(belief, rel=1e-9, abs=1e-15)
    smallest, threshold = belief[belief > 0].min(), 1 / (np.exp(epsilon) + 1)
    if smallest == 1:
        assert response.leakage == 0
    elif smallest < threshold * (1 - 1e-6):
        assert response.leakage > epsilon
    elif smallest > threshold * (1 + 1e-6):
        assert response.leakage == pytest.approx(epsilon, abs=1e-12)


@given(st.floats(0.01, 0.99), st.floats(0.0, 1.0), st.floats(0.1, 3.0), st.floats(0.1, 3.0))
def test_responses_have_the_closed_forms_of_appendix_d(p1, phi, first, second):
    a, b = sip.ConditionalRandomizedResponse(first), sip.ConditionalRandomizedResponse(second)
    chain = sip.SymbolChain.first_order([1 - p1, p1], [[1 - phi, phi], [phi, 1 - phi]])
    belief = sip.Belief.start(chain)
    response = a.response(belief.current)
    e1, e12 = np.exp(first), np.exp(first + second)
    after = {y: b.matrix(belief.observe(y, response).current) for y in (0, 1)}
    exact = {"rel": 1e-12, "abs": 1e-14}
    assert after[1][0, 1] == pytest.approx(
        (phi * (1 - p1) + (1 - phi) * (e1 - 1 + p1)) / e12, **exact
    )
    assert after[1][1, 0] == pytest.approx(
        ((1 - phi) * (1 - p1) + phi * (e1 - 1 + p1)) / e12, **exact
    )
    assert after[0][0, 1] == pytest.approx((phi * (e1 - p1) + (1 - phi) * p1) / e12, **exact)
    assert after[0][1, 0] == pytest.approx(((1 - phi) * (e1 - p1) + phi * p1) / e12, **exact)
    # Eqs. (49) to (52): the joint posterior of X_1 and X_2 after Y_1 = 1.
    posterior = np.array([1 - p1, p1]) * response.column(1) / response.marginal[1]
    assert posterior * phi == pytest.approx(phi * np.array([1 - p1, e1 - 1 + p1]) / e1, **exact)


def test_large_budgets_lose_no_digits():
    for epsilon in (30.0, 300.0):
        response = sip.RandomizedResponse(epsilon).response([0.5, 0.5])
        assert response.cost() == pytest.approx(np.exp(-epsilon), rel=1e-12)
        assert sip.local_differential_privacy(response.matrix()) == pytest.approx(epsilon)
    budget, _ = setups.least_leakage(sip.RandomizedResponse, [[0.5, 0.5]], [1.0], 1e-17)
    assert budget == pytest.approx(-np.log(1e-17))  # 39.1


@given(beliefs(), st.floats(0.01, 5.0), st.data())
def test_randomised_response_keeps_the_symbol_with_the_odds_of_its_budget(belief, epsilon, data):
    n, odds = belief.size, np.exp(epsilon)
    support = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any)))
    temporal = sip.TemporalRandomizedResponse(epsilon, np.tile(support / support.sum(), (n, 1)))
    plain, first = sip.RandomizedResponse(epsilon).response(belief), temporal.response(belief)
    for response, among in (
        (plain, np.ones(n, bool)),
        (first, np.ones(n, bool)),
        (temporal.response(belief, previous=0), support),
    ):
        rows = checked_rows(response, belief)
        assert not rows[:, ~among].any()
        assert np.diagonal(rows)[among] == pytest.approx(odds / (odds + among.sum() - 1), rel=1e-12)
        assert sip.local_differential_privacy(rows) == pytest.approx(
            epsilon if among.sum() > 1 else 0.0, rel=1e-9
        )
        assert response.leakage <= epsilon + 1e-12


def test_tops_errs_less_with_a_larger_budget_and_cuts_off_above_its_threshold(monkeypatch):
    rng = np.random.default_rng(0)
    sequence = rng.integers(0, 8, 400)
    errors = [np.abs(release_tops(sequence, 8, e, rng=rng) - sequence).mean() for e in (0.05, 20.0)]
    assert errors[1] < errors[0]
    monkeypatch.setattr(tops, "SMOOTHING", 1.0)
    assert (release_tops(sequence, 8, 60.0, rng=rng, warm_up=50) == sequence).mean() > 0.99
    cut = release_tops(np.r_[np.zeros(5, int), np.full(50, 7)], 8, 200.0, rng=rng)
    assert cut[5:].max() <= 1  # everything is cut off at a threshold taken from zeros
    assert release_tops([0], 1, 1.0, rng=rng).tolist() == [0]


def test_sampling_follows_the_rows():
    belief = [0.5, 0.3, 0.15, 0.05]
    rng = np.random.default_rng(1)
    for kind in (sip.ConditionalRandomizedResponse, sip.OptimalResponse, sip.RandomizedResponse):
        response, draws = kind(0.7).response(belief), 20_000
        counts = np.bincount([response.sample(2, rng=rng) for _ in range(draws)], minlength=4)
        # Five standard deviations of a binomial share.
        assert counts / draws == pytest.approx(response.row(2), abs=5 * 0.5 / np.sqrt(draws))
        assert 0 <= kind(0.7).sample(2, belief, rng=rng) < 4


def test_a_step_on_41270_states_takes_some_numbers_for_each_and_no_loop_over_them():
    rng = np.random.default_rng(0)
    n_states = 41_270
    sequences = [rng.integers(0, n_states, 8) for _ in range(50_000)]
    belief = sip.Belief.start(sip.chain_from_sequences(sequences, n_states))
    mechanism = sip.ConditionalRandomizedResponse(1.0)

    def step(symbol):
        response = mechanism.response(belief.current)
        assert response.leakage >= 1.0
        return belief.observe(response.sample(symbol, rng=rng), response)

    for symbol in sequences[0].tolist():
        assert lines_run(partial(step, symbol)) < 2000
        assert most_bytes(partial(step, symbol)) < 30 * 8 * n_states
        belief = step(symbol)


def test_a_symbol_is_drawn_from_weights_of_any_sum():
    weights = np.array([0.02, 0.06, 0.0, 0.12])
    rng = np.random.default_rng(0)
    counts = np.bincount([draw_symbol(weights, rng) for _ in range(2000)], minlength=4)
    np.testing.assert_allclose(counts / 2000, weights / weights.sum(), atol=0.04)


def test_symbols_beyond_a_response_get_its_marginal_as_a_distribution():
    """Also where the belief in its symbols sums to less than 1."""
    response = Response(
        belief=np.array([0.3, 0.1]),
        labels=np.array([0, 1]),
        share=0.0,
        base=np.array([0.5, 0.5]),
        table=np.array([[0.9, 0.1], [0.2, 0.8]]),
        row_class=np.array([0, 1]),
    )
    wide = response.extended(np.array([0.3, 0.6, 0.1]), np.array([0, 2]))
    assert wide.row(1) == pytest.approx([0.29 / 0.4, 0.0, 0.11 / 0.4], rel=1e-14)


def test_a_matrix_is_written_out_up_to_its_largest_size(monkeypatch):
    monkeypatch.setattr("tplrepro.sip.response.LARGEST_MATRIX", 3)
    mechanism = sip.OptimalResponse(1.0)
    assert mechanism.response([0.2, 0.3, 0.5]).matrix().shape == (3, 3)
    with pytest.raises(ValueError, match=r"limited to 3 symbols, found 4 symbols \(0.0 GB\)"):
        mechanism.response([0.25] * 4).matrix()


def test_a_distance_of_an_unknown_name_has_no_cost():
    response = sip.OptimalResponse(1.0).response([0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match="distance"):
        response.cost("manhattan")
