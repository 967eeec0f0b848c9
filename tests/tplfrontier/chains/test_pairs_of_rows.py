"""Theorem E: evidence about two rows together, by all paths, all sets and simulated chains."""

from itertools import permutations, product

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

import tplfrontier as tf
import tplrepro as tpl
from tplfrontier.chains import pairs_of_rows
from tplfrontier.chains.pairs_of_rows import PairsOfRows, Tilts


def evidence(tilts, count, total, probability):
    """F of one row by its definition; of a probability that is too high."""
    eta = tilts.tilts
    of_step = 1.0 - probability + probability * np.exp(-eta)
    logs = tilts.log_weights - eta * count - total * np.log(of_step)
    return float(np.log(np.exp(logs - logs.max()).sum()) + logs.max())


def upper_end(tilts, count, total, nats):
    """The largest probability of a set with so many nats, by bisection."""

    def excess(probability):
        return evidence(tilts, count, total, probability) - nats

    if excess(1.0) <= 0.0:
        return 1.0
    if excess(0.0) > 0.0:
        return np.nan
    return brentq(excess, 0.0, 1.0, xtol=1e-14)


def enumerated_loss(pairs, alpha):
    """The largest loss over all pairs of rows, sets of columns and splits of the nats."""
    u = np.expm1(alpha)
    largest = 0.0
    tilts = pairs.tilts
    totals = pairs.steps.sum(axis=1)
    for i, j in permutations(range(len(totals)), 2):
        for chosen in product([False, True], repeat=len(totals)):
            if not 0 < sum(chosen) < len(totals):
                continue
            high = pairs.steps[i, list(chosen)].sum()
            rest = pairs.steps[j, ~np.array(chosen)].sum()

            def loss(nats, high=high, rest=rest, i=i, j=j):
                x = upper_end(tilts, high, totals[i], nats)
                z = upper_end(tilts, rest, totals[j], pairs.nats - nats)
                value = np.log((x * u + 1.0) / ((1.0 - z) * u + 1.0))
                return 1.0 if np.isnan(value) else -value

            lent = -tilts.log_weights[0]
            bounds = (-0.999 * lent, pairs.nats + 0.999 * lent)
            splits = np.linspace(*bounds, 13)
            best = splits[int(np.argmin([loss(split) for split in splits]))]
            width = splits[1] - splits[0]
            found = minimize_scalar(loss, bounds=(best - width, best + width), method="bounded")
            largest = max(largest, -found.fun)
    return largest


def random_pairs(rng, most_states=4):
    n = int(rng.integers(2, most_states))
    rows = rng.dirichlet(np.ones(n), n)
    steps = 10 ** rng.uniform(0.5, 5)
    counts = [rng.multinomial(int(steps * rng.uniform(0.1, 1)), row) for row in rows]
    expected = None
    if rng.random() < 0.5:
        expected = float(max(steps, 1.0))
    confidence = float(rng.choice([0.5, 0.95, 0.999]))
    return np.array(counts, dtype=float), confidence, expected


def test_the_bound_is_above_every_set_and_split_and_close():
    rng = np.random.default_rng(2)
    ratios = []
    for _ in range(5):
        counts, confidence, expected = random_pairs(rng)
        alpha = float(10 ** rng.uniform(-1, 1))
        pairs = PairsOfRows.of(counts, confidence, 1, expected)
        loss = tf.loss_from_counts(counts, confidence, method="pairs", expected_steps=expected)
        ratios.append(loss(alpha) / enumerated_loss(pairs, alpha))
    assert min(ratios) >= 1.0 - 1e-12
    assert max(ratios) < 1.002


def test_parts_of_states_as_sets_cost_little(monkeypatch):
    """With more than a few states parts of them count, too: never less, and not much more."""
    rng = np.random.default_rng(9)
    ratios = []
    for _ in range(5):
        n = int(rng.integers(2, 5))
        steps = (10 ** rng.uniform(1, 4, n)).astype(int)
        rows = rng.dirichlet(np.ones(n), n)
        counts = [rng.multinomial(*row) for row in zip(steps, rows, strict=True)]
        losses = []
        for most in (9, 0):
            monkeypatch.setattr(pairs_of_rows, "MOST_BY_SET", most)
            losses.append(tf.loss_from_counts(np.array(counts), method="pairs"))
        for alpha in (0.1, 1.0, 5.0):
            ratios.append(losses[1](alpha) / losses[0](alpha))
    assert min(ratios) >= 1.0 - 1e-3  # of lines at some slopes
    assert max(ratios) < 1.3
    assert np.median(ratios) < 1.02


def test_the_evidence_of_all_paths_has_mean_1_and_seldom_exceeds_its_bound():
    """All walks of 8 steps of chains of two states, and their largest evidence on the way."""
    rng = np.random.default_rng(3)
    exceeded = []
    for _ in range(6):
        matrix = rng.dirichlet([0.5, 0.5], 2)
        tilts = Tilts.of_any()
        if rng.random() < 0.5:
            tilts = Tilts.of_expected(8.0, 1.0)
        mean = 0.0
        above = 0.0
        for walk in product((0, 1), repeat=8):
            probability = 1.0
            state = 0
            counts = np.zeros((2, 2))
            largest = 0.0
            for following in walk:
                probability *= matrix[state, following]
                counts[state, following] += 1
                state = following
                totals = counts.sum(axis=1)
                found = evidence(tilts, counts[0, 0], totals[0], matrix[0, 0])
                found += evidence(tilts, counts[1, 1], totals[1], matrix[1, 1])
                largest = max(largest, found)
            mean += probability * np.exp(found)
            above += probability * (largest >= np.log(2.0))
        assert mean == pytest.approx(1.0, abs=1e-12)
        exceeded.append(above)
    assert max(exceeded) <= 0.5
    assert max(exceeded) > 0.05


def test_a_tangent_plane_is_below_the_evidence():
    """On which all lines rest: the evidence is convex in a count and a probability."""
    rng = np.random.default_rng(4)
    for tilts in (Tilts.of_any(), Tilts.of_expected(100.0, 5.0)):
        total = 100.0
        counts = rng.uniform(0, total, (2000, 2))
        probabilities = rng.random((2000, 2))
        for count, probability in zip(counts, probabilities, strict=True):
            ends = [evidence(tilts, c, total, p) for c, p in zip(count, probability, strict=True)]
            middle = evidence(tilts, count.mean(), total, probability.mean())
            assert middle <= np.mean(ends) + 1e-9


def simulated_counts(matrix, steps, rng):
    state = 0
    counts = np.zeros((2, 2))
    for u in rng.random(steps):
        following = int(u > matrix[state, 0])
        counts[state, following] += 1
        state = following
    return counts


@pytest.mark.parametrize(
    ("matrix", "steps"), [([[0.8, 0.2], [0.1, 0.9]], 3000), ([[0.55, 0.45], [0.4, 0.6]], 300)]
)
def test_the_loss_exceeds_the_truth_by_less(matrix, steps):
    rng = np.random.default_rng(5)
    truth = tpl.privacy_loss(matrix, 1.0)
    methods = {
        "rows": {},
        "pairs": {"method": "pairs"},
        "expected": {"method": "pairs", "expected_steps": steps / 2},
    }
    excess = {name: [] for name in methods}
    for _ in range(20):
        counts = simulated_counts(np.array(matrix), steps, rng)
        for name, settings in methods.items():
            excess[name].append(tf.loss_from_counts(counts, **settings)(1.0) - truth)
    medians = {name: np.median(of_name) for name, of_name in excess.items()}
    assert 0.0 < medians["pairs"] < 0.8 * medians["rows"]
    assert 0.0 < medians["expected"] < 0.68 * medians["rows"]


@pytest.mark.slow
def test_the_loss_exceeds_the_truth_at_all_times_as_often_as_promised():
    """Looked at after each of many steps of one walk, with expected steps that are fixed."""
    rng = np.random.default_rng(6)
    held = []
    for _ in range(60):
        matrix = rng.dirichlet(np.ones(2), 2)
        truth = tpl.privacy_loss(matrix, 1.0)
        counts = np.zeros((2, 2))
        holds = True
        for _ in range(12):
            counts += simulated_counts(matrix, 60, rng)
            for settings in ({}, {"expected_steps": 200}):
                loss = tf.loss_from_counts(counts, 0.5, method="pairs", **settings)
                holds &= loss(1.0) >= truth
        held.append(holds)
    # both, each of which promises a half
    assert np.mean(held) > 0.5


@pytest.mark.slow
def test_all_phases_are_above_the_truth_as_often_as_promised():
    rng = np.random.default_rng(7)
    above = []
    for _ in range(150):
        n = int(rng.integers(2, 5))
        p = int(rng.integers(1, 4))
        rows = rng.dirichlet(np.ones(n), (p, n))
        steps = int(10 ** rng.uniform(1.5, 4))
        counts = [[rng.multinomial(steps, row) for row in matrix] for matrix in rows]
        found = tf.loss_from_counts(np.array(counts), 0.8, method="pairs", expected_steps=steps)
        truths = [tpl.privacy_loss(matrix, 1.0) for matrix in rows]
        above.append(all(loss(1.0) >= truth for loss, truth in zip(found, truths, strict=True)))
    assert np.mean(above) >= 0.8


def test_rows_without_steps_leave_everything_possible_about_them():
    loss = tf.loss_from_counts([[80, 20], [0, 0]], method="pairs")
    # from a state that was never left one may go where the other row leads least often
    share = tf.loss_from_counts([[80, 20], [0, 0]]).matrix.probabilities[0, 1]
    assert share == 0.2
    assert loss(1.0) > np.log(np.e / (0.2 * np.expm1(1.0) + 1.0))
    assert loss(1.0) <= 1.0
    assert tf.loss_from_counts(np.zeros((2, 2)), method="pairs").is_identity
    assert tf.loss_from_counts([[3]], method="pairs").is_zero


def test_a_row_without_steps_into_a_set_keeps_its_end():
    """Where no step led into a set, its least probability is 0 whatever the other row spends."""
    counts = [[3, 11, 9, 58], [5, 0, 0, 12], [190, 72, 160, 443], [4, 3, 9, 22]]
    assert tf.loss_from_counts(counts, method="pairs")(1.0) < 0.84


def test_the_promise_does_not_depend_on_how_many_steps_were_expected():
    """Far too many or too few expected steps cost some nats, and no more."""
    counts = np.array([[800, 200], [100, 900]])
    fitting = tf.loss_from_counts(counts, method="pairs", expected_steps=1000)(1.0)
    truth = tpl.privacy_loss(counts / 1000, 1.0)
    for expected in (10, 100, 10_000, 1e6):
        loss = tf.loss_from_counts(counts, method="pairs", expected_steps=expected)
        assert truth < fitting <= loss(1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "both"}, "method must be one of 'rows', 'pairs'"),
        ({"method": "pairs", "noise": 2.0}, "noise must be 0 with method='pairs', found 2"),
        ({"expected_steps": 10}, "expected_steps needs method='pairs'"),
        ({"method": "pairs", "expected_steps": 0}, "expected_steps must be a number of steps"),
        ({"method": "pairs", "expected_steps": np.inf}, "expected_steps must be a number of steps"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        tf.loss_from_counts([[80, 20], [10, 90]], **settings)


def largest_evidence(pairs, matrix):
    """That against a matrix over all pairs of rows and sets, over its bound, in nats."""
    n = len(matrix)
    sets = np.array([*product([0.0, 1.0], repeat=n)])[1:-1]
    totals = pairs.steps.sum(axis=1)
    of_rows = []
    for counts, total, row in zip(pairs.steps, totals, matrix, strict=True):
        values = [evidence(pairs.tilts, counts @ s, total, min(row @ s, 1.0)) for s in sets]
        of_rows.append(np.array(values))
    # the complement of the set with a number has the number that is as far from the end
    most = max((of_rows[i] + of_rows[j][::-1]).max() for i, j in permutations(range(n), 2))
    return most - pairs.nats


@pytest.mark.parametrize("phases", [1, 24])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_nats_are_those_of_a_union_over_all_pairs_and_sets(n, phases):
    """A pair and a set of states are also the pair in the other order and the other states."""
    different = set()
    for i, j in permutations(range(n), 2):
        for number in range(1, 2**n - 1):
            twin = (j, i, 2**n - 1 - number)
            different.add(min((i, j, number), twin))
    pairs = PairsOfRows.of(np.ones((n, n)), 0.95, phases, None)
    assert pairs.nats == pytest.approx(np.log(len(different) * phases / 0.05), rel=1e-14)


def test_a_row_beside_one_without_steps_has_the_end_of_its_largest_set():
    steps = np.array([[60.0, 30.0, 10.0], [0.0, 0.0, 0.0], [5.0, 5.0, 1.0]])
    pairs = PairsOfRows.of(steps, 0.95, 1, None)
    (corner,) = pairs._without_steps(0, 1)
    least, gap, _, *rows = corner.tolist()
    assert (least, rows) == (0.0, [0.0, 1.0])
    assert gap == pytest.approx(upper_end(pairs.tilts, 90.0, 100.0, pairs.nats), abs=1e-9)
    (other_way,) = pairs._without_steps(1, 0)
    assert other_way[0] == pytest.approx(1.0 - gap, abs=1e-9)


def exact_evidence(tilts, count, total, probability):
    """F of one row in 40 digits."""
    with mpmath.workdps(40):
        x = mpmath.mpf(probability)
        logs = []
        for eta, log_weight in zip(tilts.tilts.tolist(), tilts.log_weights.tolist(), strict=True):
            of_step = 1 - x + x * mpmath.exp(-mpmath.mpf(eta))
            logs.append(log_weight - mpmath.mpf(eta) * count - total * mpmath.log(of_step))
        top = max(logs)
        return top + mpmath.log(mpmath.fsum(mpmath.exp(value - top) for value in logs))


def test_the_nats_of_a_search_exceed_the_rounding_of_many_steps():
    steps = np.array([[6e8, 4e8], [5e8, 5e8]])
    pairs = PairsOfRows.of(steps, 0.95, 1, None)
    search = pairs_of_rows._Search(pairs, 0, np.array([1]), None)
    margin = float(np.min(search.nats - pairs.nats))
    errors = []
    for probability in np.linspace(0.05, 0.95, 19).tolist():
        found = pairs_of_rows.evidence_against_high(
            pairs.tilts, np.array(6e8), np.array(1e9), np.array(probability)
        )
        exact = exact_evidence(pairs.tilts, 6e8, 1e9, probability)
        errors.append(float(abs(mpmath.mpf(float(found.value)) - exact)))
    assert 0.0 < max(errors) <= margin


def test_corners_are_below_all_lines_and_nothing_below_the_lines_is_outside_them():
    rng = np.random.default_rng(4)
    for _ in range(50):
        count = int(rng.integers(1, 9))
        heights = rng.random(count)
        slopes = np.sort(1.0 + rng.exponential(3.0, count))
        corners = pairs_of_rows._corners_below(pairs_of_rows._Lines(heights, slopes), 0, 1)
        y = corners[:, 0]
        x = corners[:, 0] + corners[:, 1]
        assert (x <= 1.0).all()
        below = (heights + slopes * y[:, None]).min(axis=1)
        assert (x <= below + 1e-10 * (1.0 + slopes.max())).all()
        order = np.argsort(y)
        between = np.linspace(0.0, 1.0, 101)
        most = np.minimum((heights + slopes * between[:, None]).min(axis=1), 1.0)
        assert (np.interp(between, y[order], x[order]) >= most - 1e-9).all()


def check_possible_matrices(rng):
    """The loss of matrices on the border of what is possible, at several levels: the ratios to the
    bound."""
    n = int(rng.integers(2, 7))
    rows = rng.dirichlet(np.full(n, 10 ** rng.uniform(-0.5, 0.5)), n)
    steps = (10 ** rng.uniform(0, 5, n)).astype(int)
    counts = np.array([rng.multinomial(*row) for row in zip(steps, rows, strict=True)], float)
    confidence = float(rng.choice([0.05, 0.5, 0.95, 0.9999]))
    expected = None
    if rng.random() < 0.5:
        expected = float(10 ** rng.uniform(0, 5))
    pairs = PairsOfRows.of(counts, confidence, 1, expected)
    loss = tf.loss_from_counts(counts, confidence, method="pairs", expected_steps=expected)
    shares = loss.matrix.toarray()
    ratios = []
    for _ in range(6):
        corner = rng.dirichlet(np.full(n, 0.2), n)

        def excess(share, corner=corner):
            return largest_evidence(pairs, (1.0 - share) * shares + share * corner) + 1e-9

        if excess(0.0) > 0.0:
            continue
        share = 1.0
        if excess(1.0) > 0.0:
            share = brentq(excess, 0.0, 1.0, xtol=1e-12)
            while excess(share) > 0.0:
                share *= 1.0 - 1e-9
        matrix = (1.0 - share) * shares + share * corner
        matrix /= matrix.sum(axis=1, keepdims=True)
        true = tpl.PrivacyLossFunction(tpl.TransitionMatrix(matrix, normalize=True))
        ratios += [true(alpha) / loss(alpha) for alpha in (0.01, 0.1, 1.0, 3.0, 10.0)]
    assert max(ratios, default=0.0) <= 1.0 + 1e-9
    return ratios


def test_no_possible_matrix_leaks_more():
    rng = np.random.default_rng(8)
    ratios = [ratio for _ in range(3) for ratio in check_possible_matrices(rng)]
    assert max(ratios) > 0.5


@pytest.mark.slow
def test_none_of_many_possible_matrices_leaks_more():
    rng = np.random.default_rng(18)
    ratios = [ratio for _ in range(40) for ratio in check_possible_matrices(rng)]
    assert max(ratios) > 0.97


def test_steps_that_are_read_from_the_end_have_the_promise_at_single_looks_only():
    """All walks of five steps: transposed counts of the habit, for state 0 from rows 2 and 1."""
    matrix = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    backward = matrix.T  # the habit is uniform
    walks = np.array([*product(range(3), repeat=6)])
    after = walks[:, 1:]
    before = walks[:, :-1]
    probabilities = matrix[before, after].prod(axis=1) / 3.0
    totals_of_2 = (after == 2).cumsum(axis=1)
    totals_of_1 = (after == 1).cumsum(axis=1)
    into = ((after == 2) & (before == 0)).cumsum(axis=1)
    rest = ((after == 1) & (before != 0)).cumsum(axis=1)
    tilts = Tilts.of_expected(1.0, 1.0)
    found = np.array(
        [
            evidence(tilts, *of_2, backward[2, 0]) + evidence(tilts, *of_1, 1.0 - backward[1, 0])
            for of_2, of_1 in zip(
                zip(into.ravel(), totals_of_2.ravel(), strict=True),
                zip(rest.ravel(), totals_of_1.ravel(), strict=True),
                strict=True,
            )
        ]
    ).reshape(after.shape)
    means = probabilities @ np.exp(found)
    assert means == pytest.approx(np.ones(5), abs=1e-12)
    largest = found.max(axis=1)
    ever = [probabilities[largest >= r - 1e-9].sum() * np.exp(r) for r in np.unique(largest)]
    assert max(ever) == pytest.approx(1.31, abs=0.005)
