"""Suprema at each phase of a cycle, against recursions with 60 digits that share no code with the
package, and against the exact leakage of the worst mechanism."""

from itertools import product

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplrepro as tpl
from tplrepro.leakage.suprema import _Round, backward_suprema, forward_suprema
from tplrepro.leakage.temporal import loss_cycles

SELDOM = [[0.9999, 0.0001], [0.5, 0.5]]
mp.mp.dps = 60


def vertices(matrix):
    """d(S) and q(S) of all pairs of rows and all sets of columns."""
    rows = [[mp.mpf(float(x)) for x in row] for row in matrix]
    rows = [[x / mp.fsum(row) for x in row] for row in rows]
    n = len(rows)
    pairs = []
    for chosen in product([False, True], repeat=n):
        sums = [mp.fsum(x for x, is_in in zip(row, chosen, strict=True) if is_in) for row in rows]
        pairs += [(d, q) for d in sums for q in sums if q >= d]
    return pairs


def step(pairs, u, epsilon):
    """e^x - 1 after a step, by Eq. (13) of [1] for u = e^x - 1."""
    largest = max((q * u + 1) / (d * u + 1) for d, q in pairs)
    return mp.exp(mp.mpf(epsilon)) * largest - 1


def iterate(steps, budgets, laps):
    """BPL of the last lap, (p,), from below."""
    pairs = [vertices(matrix) for matrix in steps]
    p = len(steps)
    u = mp.expm1(mp.mpf(float(budgets[0])))
    lap = [u]
    for time in range(1, laps * p):
        u = step(pairs[(time - 1) % p], u, float(budgets[time % p]))
        lap = [*lap[-p + 1 :], u] if p > 1 else [u]
    return [mp.log1p(u) for u in lap]


def dirichlet_cycle(seed, p, n, *, stay=0.0, concentration=0.7):
    rng = np.random.default_rng(seed)
    steps = rng.dirichlet(np.full(n, concentration), (p, n))
    return (1.0 - stay) * steps + stay * np.eye(n)


def suprema_of(steps, budgets):
    """The suprema of BPL and of FPL with one cycle of matrices on both sides."""
    losses = loss_cycles(tpl.Cycle(steps), tpl.Cycle(steps))
    budgets = np.array(budgets, float)
    backward = backward_suprema(losses.backward, budgets, 0)
    forward = forward_suprema(losses.forward, budgets, 0)
    return backward.phases, forward.phases


@pytest.mark.parametrize("seed", range(12))
def test_iterated_recursions_rise_to_the_suprema(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 13))
    steps = dirichlet_cycle(seed, p, 2, concentration=2.0)
    budgets = rng.uniform(0.01, 0.4, p) * (rng.random(p) < 0.8)
    budgets[seed % p] = 0.2
    backward, forward = suprema_of(steps, budgets)
    limits = iterate(steps, budgets, laps=25)
    assert all(s >= limit for s, limit in zip(backward.tolist(), limits, strict=True))
    np.testing.assert_allclose(backward, [float(limit) for limit in limits], rtol=1e-9)
    # From the last phase to the first: the step from phase 0 is the last of the reverse order.
    reverse = [*steps[:-1][::-1], steps[-1]]
    limits = iterate(reverse, budgets[::-1], laps=25)[::-1]
    assert all(s >= limit for s, limit in zip(forward.tolist(), limits, strict=True))
    np.testing.assert_allclose(forward, [float(limit) for limit in limits], rtol=1e-9)


def walks_round(steps, budgets):
    """The linear fractional functions of u, as (2, 2) mpmath numbers, by which BPL grows in a
    period: one for each sequence of vertices."""
    walks = np.array([[[1, 0], [0, 1]]], dtype=object)
    for matrix, epsilon in zip(steps, np.roll(budgets, -1), strict=True):
        growth = mp.exp(mp.mpf(float(epsilon)))
        turns = [[[growth * q - d, growth - 1], [d, 1]] for d, q in {*vertices(matrix)}]
        walks = (np.array(turns, dtype=object)[:, None] @ walks).reshape(-1, 2, 2)
    return walks


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), p=st.integers(2, 3))
def test_the_supremum_is_the_largest_over_all_sequences_of_vertices(seed, p):
    steps = dirichlet_cycle(seed, p, 3 if p == 2 else 2, stay=0.2)
    budgets = np.random.default_rng(seed).uniform(0.01, 1.0, p)
    largest = mp.mpf(0)
    for walk in walks_round(steps, budgets):
        b = walk[1, 1] - walk[0, 0]
        c = walk[1, 0]
        if c == 0:
            root = walk[0, 1] / b if b > 0 else mp.inf
        else:
            root = (mp.sqrt(b**2 + 4 * c * walk[0, 1]) - b) / (2 * c)
        largest = max(largest, root)
    exact = mp.log1p(largest)
    found = suprema_of(steps, budgets)[0][0]
    assert found >= exact
    assert found == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("p", [2, 5, 24, 168, pytest.param(1200, marks=pytest.mark.slow)])
def test_near_critical_budgets_are_never_understated(p):
    rng = np.random.default_rng(p)
    for closeness in 10.0 ** -np.arange(4, 16, dtype=float):
        q = rng.uniform(0.5, 0.95, p)
        steps = [np.array([[x, 1.0 - x], [0.0, 1.0]]) for x in q]
        budgets = -np.log(q) - closeness * rng.uniform(0.0, 2.0 / p, p)
        walk = mp.eye(2)
        for x, epsilon in zip(q, np.roll(budgets, -1), strict=True):
            growth = mp.exp(mp.mpf(float(epsilon)))
            walk = mp.matrix([[growth * mp.mpf(float(x)), growth - 1], [0, 1]]) * walk
        missing = 1 - walk[0, 0]
        exact = mp.log1p(walk[0, 1] / missing) if missing > 0 else mp.inf
        assert suprema_of(steps, budgets)[0][0] >= exact


def test_one_matrix_has_the_bits_of_its_supremum():
    loss = tpl.PrivacyLossFunction([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]])
    for epsilon in (1e-9, 0.1, 0.7, 3.0):
        suprema = tpl.leakage_suprema(epsilon, loss, None)
        assert suprema.bpl.tolist() == [loss.supremum(epsilon)]
        assert suprema.fpl.tolist() == [epsilon]


@pytest.mark.parametrize("p", [2, 7])
def test_a_matrix_repeated_has_its_supremum(p):
    P = [[0.8, 0.2], [0.1, 0.9]]
    for loss in (tpl.PrivacyLossFunction(P), tpl.PriorFreeLoss(P)):
        suprema = tpl.leakage_suprema(0.1, tpl.Cycle([loss] * p), None)
        np.testing.assert_allclose(suprema.bpl, loss.supremum(0.1), rtol=1e-11)


def test_steps_of_different_kinds_are_bisected():
    steps = [*dirichlet_cycle(1, 3, 3, stay=0.1)]
    mixed = [tpl.PriorFreeLoss(steps[0]), tpl.PrivacyLossFunction(steps[1]), steps[2]]
    suprema = tpl.leakage_suprema([0.1, 0.0, 0.3], tpl.Cycle(mixed), None)
    series = tpl.temporal_privacy_leakage([0.1, 1e-300, 0.3] * 60, tpl.Cycle(mixed), None)
    np.testing.assert_allclose(suprema.bpl, series.bpl[-3:], rtol=1e-12)
    assert (suprema.bpl >= series.bpl[-3:]).all()


@pytest.mark.parametrize("budget", [0.2, 55.0])
def test_many_phases_need_no_bisection_though_their_budgets_add_up(monkeypatch, budget):
    """Fifty walks round a week of minutes take a minute; a few do."""
    monkeypatch.setattr(_Round, "_bisected_limit", None)
    p = 2000
    cycle = tpl.Cycle([*dirichlet_cycle(3, p, 3, stay=0.2)])
    suprema = tpl.leakage_suprema(budget, cycle, None)
    series = tpl.temporal_privacy_leakage(budget, cycle, None, horizon=3 * p)
    assert (suprema.bpl >= series.bpl[-p:]).all()
    np.testing.assert_allclose(suprema.bpl, series.bpl[-p:], rtol=1e-10)


@pytest.mark.parametrize("budget", [1e-308, 1e-310, 5e-324])
def test_a_search_ends_among_the_smallest_floats(monkeypatch, budget):
    """No two of them differ by less than a share of 2^-48."""
    levels = []
    raises = _Round._raises

    def noted(walk, level):
        levels.append(level)
        assert len(levels) < 1000
        return raises(walk, level)

    monkeypatch.setattr(_Round, "_raises", noted)
    cycle = tpl.Cycle([[[0.8, 0.2], [0.1, 0.9]], [[0.6, 0.4], [0.3, 0.7]]])
    suprema = tpl.leakage_suprema(budget, cycle.reverse(start=[0.5, 0.5]), cycle)
    assert levels
    assert (suprema.bpl >= budget).all()
    assert (suprema.tpl <= 10 * budget).all()


def nearly_any_rows(n, rng):
    """Rows of chance, those that hardly ever move, or those that never do."""
    kind = rng.random()
    if kind < 0.4:
        seldom = 10.0 ** rng.uniform(-14, -1)
        return (1.0 - seldom) * np.eye(n) + seldom * np.roll(np.eye(n), 1, 0)
    if kind < 0.5:
        return np.eye(n)
    rows = rng.dirichlet(np.full(n, rng.choice([0.02, 0.1, 1.0])), n)
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("cases", [8, pytest.param(300, marks=pytest.mark.slow)])
def test_no_exact_walk_round_a_long_cycle_leads_above_its_supremum(monkeypatch, cases):
    """Budgets of hundreds of nats in a round; it is the least level that no walk raises."""
    monkeypatch.setattr(_Round, "_bisected_limit", lambda _: np.inf)
    rng = np.random.default_rng(cases)
    judged = 0
    while judged < cases:
        n = int(rng.choice([2, 3]))
        p = int(rng.choice([8, 20, 60]))
        kinds = [nearly_any_rows(n, rng) for _ in range(3)]
        places = rng.integers(3, size=p)
        shares = rng.dirichlet(np.full(p, rng.choice([0.1, 1.0, 10.0])))
        budgets = np.minimum(rng.uniform(300, 3000) * shares, 59.0)
        losses = [tpl.PrivacyLossFunction(rows) for rows in kinds]
        supremum = _Round([losses[k] for k in places], budgets.tolist()).limits(False)[0]
        if supremum == np.inf or budgets.sum() < 300.0:
            continue
        pairs = [vertices(rows) for rows in kinds]
        with mp.workdps(400):
            level = mp.mpf(supremum)
            u = mp.expm1(level)
            for k, epsilon in zip(places, np.roll(budgets, -1), strict=True):
                u = step(pairs[k], u, float(epsilon))
            assert mp.log1p(u) <= level
        judged += 1


def test_large_budgets_are_bisected():
    steps = dirichlet_cycle(2, 4, 3)
    for epsilon in (60.0, 100.0, 800.0):
        suprema = tpl.leakage_suprema(epsilon, tpl.Cycle(steps), None)
        series = tpl.temporal_privacy_leakage(epsilon, tpl.Cycle(steps), None, horizon=40)
        np.testing.assert_allclose(suprema.bpl, series.bpl[-4:], rtol=1e-12)


def test_all_phases_or_none_have_a_supremum():
    night = np.eye(2)
    assert (tpl.leakage_suprema(0.1, tpl.Cycle([night, night]), None).bpl == np.inf).all()
    with_day = tpl.Cycle([night, night, [[0.7, 0.3], [0.4, 0.6]]])
    assert (tpl.leakage_suprema(0.1, with_day, with_day).tpl < 2.0).all()
    loses_itself = tpl.Cycle([[[0.9, 0.1], [0.0, 1.0]]] * 2)
    assert (tpl.leakage_suprema(0.11, loses_itself, None).bpl == np.inf).all()
    assert (tpl.leakage_suprema(0.10, loses_itself, None).bpl < 10.0).all()
    # What is not known at one step is forgotten there.
    assert tpl.leakage_suprema([0.1, 0.2], tpl.Cycle([night, None]), None).bpl.tolist() == [
        0.1,
        pytest.approx(0.3),
    ]


@pytest.mark.parametrize("start", [[0.5, 0.5], "any"])
def test_a_start_outside_the_habit(start):
    forward = tpl.Cycle(SELDOM)
    habit = tpl.leakage_suprema(0.1, forward.reverse(), None)
    assert habit.bpl.tolist() == [pytest.approx(0.2111, abs=1e-4)]
    suprema = tpl.leakage_suprema(0.1, forward.reverse(start=start), forward)
    assert suprema.tpl.max() >= 0.678
    known = forward.reverse(start=[0.5, 0.5])
    for horizon in (8, 20):
        steps = known.first[: horizon - 1]
        exact = tpl.exact_leakage(0.1, steps, SELDOM, horizon=horizon)
        assert exact.bpl.max() <= suprema.bpl.max()
        assert exact.joint.max() > 0.677  # of the habit it would be less


def test_first_times_come_before_the_phases():
    habits = tpl.Cycle([SELDOM, [[0.8, 0.2], [0.3, 0.7]]])
    backward = habits.reverse(start=[0.2, 0.8])
    m = len(backward.first)
    suprema = tpl.leakage_suprema([0.1, 0.2], backward, habits)
    assert len(suprema) == m + 2
    assert list(suprema.index[:2]) == ["time 0", "time 1"]
    assert list(suprema.index[m:]) == ["later, 0", "later, 1"]
    series = tpl.temporal_privacy_leakage([0.1, 0.2] * 40, backward, habits)
    np.testing.assert_allclose(suprema.bpl[:m], series.bpl[:m], rtol=1e-12)
    np.testing.assert_allclose(suprema.fpl[:m], series.fpl[:m], rtol=1e-12)
    for time in range(m, 80):
        phase = time % 2
        assert suprema.bpl[m + phase] >= series.bpl[time]
        assert suprema.fpl[m + phase] >= series.fpl[time]


def test_suprema_are_no_series_of_releases():
    habits = tpl.Cycle([SELDOM, [[0.8, 0.2], [0.3, 0.7]]], step="12h")
    suprema = tpl.leakage_suprema([0.1, 0.2], habits.reverse(), habits)
    for name in ("composed", "w_event", "user_level"):
        assert not hasattr(suprema, name)
    table = suprema.to_frame()
    assert list(table.columns) == ["epsilon", "bpl", "fpl", "tpl"]
    assert list(table.index) == habits.phases
    np.testing.assert_array_equal(table["tpl"], suprema.bpl + suprema.fpl - [0.1, 0.2])
    assert suprema.max() == suprema.tpl.max()
    assert str(suprema).split()[:4] == ["epsilon", "BPL", "FPL", "TPL"]
    assert "<p>suprema of leakages, nats</p>" in suprema._repr_html_()
    axes = suprema.plot()
    assert [label.get_text() for label in axes.get_legend().get_texts()][1:] == [
        "BPL",
        "FPL",
        "TPL",
    ]
    with pytest.raises(ValueError, match="read-only"):
        suprema.bpl[0] = 0.0


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_exact_leakage_exceeds_the_suprema(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 4))
    n = int(rng.integers(2, 4))
    habits = tpl.Cycle(dirichlet_cycle(seed, p, n, stay=rng.uniform(0.0, 0.7)))
    budgets = rng.uniform(0.05, 0.6, p)
    start = rng.dirichlet(np.ones(n))
    horizon = 9
    for backward in (habits.reverse(start=start), habits.reverse(start="any")):
        suprema = tpl.leakage_suprema(budgets, backward, habits)
        m = len(suprema) - p
        law = start
        steps = []
        for time in range(horizon - 1):
            joint = habits[time % p].toarray() * law[:, None]
            law = joint.sum(axis=0)
            steps.append((joint / law).T)
        spent = budgets[np.arange(horizon) % p]
        exact = tpl.exact_leakage(spent, steps, [habits[t % p] for t in range(horizon - 1)])
        rows = [*range(m), *(m + time % p for time in range(m, horizon))][:horizon]
        assert (exact.bpl <= suprema.bpl[rows] * (1 + 1e-12)).all()
        assert (exact.joint <= suprema.tpl[rows] * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("epsilons", "message"),
    [
        ([0.1, 0.2, 0.3], r"epsilons must have shape \(2,\), found \(3,\); give one number"),
        ([0.0, 0.0], "epsilons must not all be 0, found"),
        ([-0.1, 0.2], "epsilons must be finite and at least 0, found -0.1; give one number"),
        (np.inf, "epsilons must be finite and at least 0, found inf"),
    ],
)
def test_budgets_that_are_none(epsilons, message):
    with pytest.raises(ValueError, match=message):
        tpl.leakage_suprema(epsilons, tpl.Cycle([SELDOM, SELDOM]), None)


def test_a_list_says_nothing_of_later_steps():
    with pytest.raises(ValueError, match="found a list of 2 matrices; give one matrix, or a Cycle"):
        tpl.leakage_suprema(0.1, [SELDOM, SELDOM], None)


def exact_limit(matrix, epsilon):
    """The supremum over time of one matrix: the largest root over all vertices, of d u^2 + b u =
    e^epsilon - 1."""
    growth = mp.expm1(mp.mpf(epsilon))
    largest = growth
    for d, q in vertices(matrix):
        b = 1 - q + d - growth * q
        if d == 0 and b <= 0:
            return mp.inf
        root = mp.sqrt(b**2 + 4 * d * growth)
        u = 2 * growth / (b + root) if b > 0 else (root - b) / (2 * d)
        largest = max(largest, u)
    return mp.log1p(largest)


def next_to_critical(rng):
    """Two rows whose d(S) is tiny or 0, and a budget within 50 units in the last place of the
    critical one, -log q(S)."""
    stay = rng.uniform(0.02, 0.999)
    seldom = 10.0 ** rng.uniform(-300, -3)
    if seldom >= stay or rng.random() < 0.1:
        seldom = 0.0
    critical = float(-mp.log(mp.mpf(stay)))
    epsilon = critical + int(rng.integers(-50, 51)) * np.spacing(critical)
    return [[stay, 1.0 - stay], [seldom, 1.0 - seldom]], float(epsilon)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 60))]
)
def test_no_supremum_next_to_a_critical_budget_is_understated(seed):
    """The equation of Theorem 11 cancels there: it gave 250 nats for 461."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        P, epsilon = next_to_critical(rng)
        exact = exact_limit(P, epsilon)
        assert tpl.PrivacyLossFunction(P).supremum(epsilon) >= exact
        assert tpl.leakage_suprema(epsilon, P, None).bpl[0] >= exact


@pytest.mark.parametrize("kind", ["spread", "sharp", "near identity", "critical"])
def test_the_supremum_of_the_budget_for_a_level_is_within_it(kind):
    """`budget_for` takes more than the margins of `supremum`, which undoes it."""
    rng = np.random.default_rng([64, len(kind)])
    for _ in range(60):
        n = int(rng.integers(2, 5))
        P, _ = next_to_critical(rng)
        if kind != "critical":
            P = rng.dirichlet(np.full(n, 0.3), n)
        if kind == "sharp":
            P = 10.0 ** rng.uniform(-300, 0, (n, n))
        if kind == "near identity":
            P = np.eye(n) + 10.0 ** rng.uniform(-15, -1) * P
        P = tpl.TransitionMatrix(np.asarray(P), normalize=True)
        for loss in (tpl.PrivacyLossFunction(P), tpl.PriorFreeLoss(P)):
            levels = 10.0 ** rng.uniform(-9, 2.9, 10)
            for level, budget in zip(levels, loss.budget_for(levels), strict=True):
                if budget > 0.0:
                    assert loss.supremum(budget) <= level


@pytest.mark.parametrize("seed", range(3))
def test_no_floor_that_a_filter_takes_next_to_a_critical_budget_exceeds_its_level(seed):
    rng = np.random.default_rng([3, seed])
    for _ in range(60):
        P, floor = next_to_critical(rng)
        exact = exact_limit(P, floor)
        level = 600.0
        if exact < mp.inf:
            level = float(exact) * (1.0 - 1e-10)
        with pytest.raises(ValueError, match="floor must keep the TPL within"):
            tpl.TemporalFilter(level, P, None, floor=floor)


@pytest.mark.parametrize("stay", [0.65, 0.92])
def test_the_supremum_of_one_matrix_is_not_understated_next_to_its_critical_budget(stay):
    """The equation of Theorem 11 cancels there: it gave up to 0.25 % less."""
    P = [[stay, 1.0 - stay], [0.0, 1.0]]
    critical = -np.log(stay)
    for distance in 10.0 ** -np.linspace(1, 15, 57):
        epsilon = float(critical * (1.0 - distance))
        assert tpl.PrivacyLossFunction(P).supremum(epsilon) >= exact_limit(P, epsilon)


def test_the_supremum_of_one_matrix_counts_what_ties_of_its_rows_hide():
    rng = np.random.default_rng(22)
    for _ in range(20):
        P = np.eye(4) + 1e-14 * rng.dirichlet(np.ones(4), 4)
        P = tpl.TransitionMatrix(P, normalize=True)
        cycle = tpl.Cycle([P, P])
        epsilon = 1e-13 * rng.uniform(0.5, 2.0)
        alone = tpl.leakage_suprema(epsilon, P, None).bpl[0]
        repeated = tpl.leakage_suprema(epsilon, cycle, None).bpl[0]
        assert exact_limit(P.toarray(), epsilon) <= alone <= repeated


def test_only_time_0_spends_nothing_more_where_it_has_passed():
    steps = [[[0.8, 0.2], [0.1, 0.9]], [[0.6, 0.4], [0.3, 0.7]]]
    losses = loss_cycles(None, tpl.Cycle(steps)).forward
    budgets = np.array([0.2, 0.1])
    first, second, third = forward_suprema(losses, budgets, 3, has_passed=True).first
    assert second == pytest.approx(losses.at(1).at(third) + 0.1, rel=1e-12)
    assert first == pytest.approx(losses.at(0).at(second), rel=1e-12)
    alone = forward_suprema(losses, budgets, 3).first
    assert alone[0] == pytest.approx(first + 0.2, rel=1e-12)
