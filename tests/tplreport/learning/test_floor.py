"""One number instead of a matrix: what its score may change by, how rarely it fails, its use."""

from itertools import product

import mpmath
import numpy as np
import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from tests.oracles import supremum_mpmath
from tests.tplfrontier.chains.test_confidence import enumerated_loss, random_counts
from tests.tplreport.learning.test_learn import weeks
from tplfrontier.chains.confidence import divergence_radii, upper_end
from tplreport.learning import floor as floors
from tplreport.learning.floor import (
    SENSITIVITY,
    UNITS,
    Budget,
    Levels,
    Scores,
    Side,
    levels_of,
    qualities_of,
)
from tplreport.learning.model import floor_beside_model
from tplreport.learning.worst_shares import curves_of, largest_ratio, slope_of_end, upper_end_of
from tplreport.publishing.counts import calibrated

CONFIDENCE = 0.9875
#: Three habits: which place one is at says little about the next one.
THREE = tpl.TransitionMatrix([[0.6, 0.2, 0.2], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]])


def largest_loss(counts, w, alpha, confidence=CONFIDENCE):
    curves = curves_of(counts)
    radii = divergence_radii(curves.totals - w, len(counts), confidence)
    return np.log(largest_ratio(*curves, radii, w, np.expm1(alpha))[0])


def test_upper_ends_are_those_of_the_matrices():
    rng = np.random.default_rng(0)
    for _ in range(300):
        share = float(rng.choice([0.0, 1.0, rng.random(), 10 ** rng.uniform(-9, 0)]))
        radius = float(10 ** rng.uniform(-6, 2))
        expected = float(upper_end(np.array(share), radius - 1e-14))
        assert upper_end_of(share, 1.0 - share, radius) == pytest.approx(expected, abs=3e-14)


@pytest.mark.parametrize("share", [0.01, 0.4, 0.97])
@pytest.mark.parametrize("radius", [1e-3, 0.1, 2.0])
def test_the_slope_of_an_upper_end_is_its_derivative(share, radius):
    step = 1e-5 * share
    ends = [upper_end_of(x, 1.0 - x, radius) for x in (share - step, share + step)]
    p = upper_end_of(share, 1.0 - share, radius)
    expected = (ends[1] - ends[0]) / (2.0 * step)
    assert slope_of_end(share, 1.0 - share, p) == pytest.approx(expected, rel=1e-5)
    assert slope_of_end(share, 1.0 - share, 1.0) == 0.0
    assert slope_of_end(share, 1.0 - share, share) == 0.0


def test_the_largest_loss_is_within_that_of_sets_and_that_of_the_hull():
    rng = np.random.default_rng(1)
    for _ in range(40):
        counts = random_counts(rng, int(rng.integers(2, 6)), int(10 ** rng.uniform(2, 5)))
        w = float(10 ** rng.uniform(-3, -0.6) * counts.sum(axis=1).max())
        alpha = float(10 ** rng.uniform(-1, 1))
        found = largest_loss(counts, w, alpha)
        assert found >= enumerated_loss(counts, alpha, CONFIDENCE, w) * (1 - 1e-12)
        hull = tf.loss_from_counts(counts, CONFIDENCE, noise=w)(alpha)
        assert found >= hull * (1 - 5e-2)
        assert found <= alpha * (1 + 1e-12)
        if alpha < 1.0 and found > 0.5 * alpha:  # else the empty set may count
            assert found <= hull * (1 + 1e-12)


def test_a_candidate_is_kept_as_by_the_hull():
    counts = random_counts(np.random.default_rng(2), 3, 20_000)
    levels = Levels(np.geomspace(0.9, 0.01, 60), aim=40 * UNITS, refusal=8 * UNITS)
    scores = Scores(counts, levels, Budget(1.0, 0.1, CONFIDENCE), 20).compute()
    assert (np.diff(scores) >= 0).all()
    assert scores[0] == -1
    for floor, score in zip(levels.candidates.tolist(), scores.tolist(), strict=True):
        for users, is_kept in ((score, True), (score + 1, False)):
            if not 0 <= users <= 80 * UNITS:
                continue
            w = users * 20 / UNITS
            sides = [tf.loss_from_counts(c, CONFIDENCE, noise=w) for c in (counts.T, counts)]
            most = tpl.allocate_by_upper_bound(1.0, *sides)
            assert (floor <= most * (1 + 1e-3)) or not is_kept
            assert (floor >= most * (1 - 1e-6)) or is_kept


@mpmath.workdps(50)
@pytest.mark.parametrize("counts", [[[26188, 1459], [0, 48780]], [[32415, 0], [3410, 49915]]])
def test_the_supremum_next_to_a_critical_floor_is_not_understated(counts):
    """The equation of Theorem 11 cancels there: it was 7e-9 nats too low."""
    side = Side(np.array(counts, float), 0.95)
    low, high = 0.0, 1.0
    for _ in range(60):
        floor = 0.5 * (low + high)
        if side.supremum(floor, 0.0, 20.0) <= 20.0:
            low = floor
        else:
            high = floor
    supremum = side.supremum(low, 0.0, 20.0)
    radii = divergence_radii(side.curves.totals, 2, 0.95)
    radii.flags.writeable = False
    _, q, d = largest_ratio(*side.curves, radii, 0.0, np.expm1(supremum)).tolist()
    assert supremum >= supremum_mpmath(q, d, low)


@mpmath.workdps(50)
@pytest.mark.parametrize("floor", [1e-3, 0.02, 0.2])
def test_a_small_supremum_is_not_understated(floor):
    """Where the margin of a ratio is that of its probabilities over a small growth."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        side = Side(random_counts(rng, int(rng.integers(2, 5)), 50_000), 0.95)
        supremum = side.supremum(floor, 5.0, 20.0)
        if supremum == np.inf:
            continue
        radii = divergence_radii(side.curves.totals - 5.0, len(side.curves.totals), 0.95)
        radii.flags.writeable = False
        _, q, d = largest_ratio(*side.curves, radii, 5.0, np.expm1(supremum)).tolist()
        exact = supremum_mpmath(q, d, floor)
        assert exact <= supremum <= exact * (1 + 1e-9)


def test_a_score_counts_the_model_as_a_release():
    """Its epsilon counts where it is above the supremum of BPL, as for a floor beside a matrix."""
    counts = random_counts(np.random.default_rng(5), 3, 50_000)
    levels = Levels(np.geomspace(0.9, 0.01, 200), aim=40 * UNITS, refusal=8 * UNITS)
    sides = [tf.loss_from_counts(c, CONFIDENCE) for c in (counts.T, counts)]
    for epsilon in (0.1, 0.6, 0.9):
        scores = Scores(counts, levels, Budget(1.0, epsilon, CONFIDENCE), 20).compute()
        largest = levels.candidates[scores >= 0].max()
        assert largest == pytest.approx(floor_beside_model(1.0, *sides, epsilon), rel=0.03)


def one_user_replaced(counts, steps, rng):
    """Counts in which up to so many steps are others: spread, or all of one cell for another."""
    neighbour = counts.copy()
    n = len(counts)
    is_spread = rng.random() < 0.5
    for sign in (-1, 1):
        cell = tuple(rng.integers(n, size=2))
        for _ in range(steps):
            if is_spread:
                cell = tuple(rng.integers(n, size=2))
            if neighbour[cell] + sign >= 0:
                neighbour[cell] += sign
    return neighbour


@pytest.mark.parametrize("pairs", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_one_user_changes_a_score_by_at_most_one(pairs):
    """Also where the steps of the one are all in the rows and sets that matter."""
    rng = np.random.default_rng(pairs)
    largest = 0
    for _ in range(pairs):
        n = int(rng.integers(2, 4))
        m = int(rng.integers(1, 8))
        counts = random_counts(rng, n, int(10 ** rng.uniform(1, 3.5)))
        levels = Levels(np.geomspace(0.9, 0.02, 5), aim=25 * UNITS, refusal=8 * UNITS)
        budget = Budget(1.0, float(rng.choice([0.05, 0.4])), CONFIDENCE)
        scores = Scores(counts, levels, budget, m).compute()
        others = Scores(one_user_replaced(counts, m, rng), levels, budget, m).compute()
        change = np.abs(scores - others).max()
        assert change <= UNITS
        qualities = qualities_of(scores, levels) - qualities_of(others, levels)
        assert np.abs(qualities).max() <= UNITS
        largest = max(largest, change)
    assert largest > 0.75 * UNITS


@pytest.mark.parametrize(("n", "users", "epsilon"), [*product([2, 20], [1000, 10**6], [0.1, 3.0])])
def test_a_candidate_that_is_not_kept_is_improbable_whatever_the_data_are(n, users, epsilon):
    """By the weights of the exponential mechanism; OpenDP's draw prefers better scores still."""
    levels = levels_of(n, users, epsilon, 1.0, 0.025)
    count = len(levels.candidates)
    worst = np.full(count, -1)
    gap = np.where(np.arange(count) < count - 1, -1, 2 * levels.aim)
    for scores in (worst, gap):
        weights = np.exp(qualities_of(scores, levels) * epsilon / SENSITIVITY / 2)
        assert weights[:count][scores < 0].sum() / weights.sum() <= 0.025
    assert 25 < levels.users * epsilon < 40
    assert levels.candidates[0] == pytest.approx(0.95)
    assert levels.candidates[-1] == pytest.approx(0.005)


def test_draws_have_the_weights_of_their_budget(monkeypatch):
    """Neighbours differ by at most the budget, and the best answer is the likeliest.

    One mechanism makes all draws: to make one takes longer than a draw.
    """
    mechanisms = []

    def make_once(*given):
        if not mechanisms:
            mechanisms.append(calibrated(*given))
        return mechanisms[0]

    monkeypatch.setattr(floors, "calibrated", make_once)
    levels = Levels(np.array([0.3, 0.2, 0.1]), aim=2 * UNITS, refusal=3 * UNITS)
    counted = []
    for scores in ([-1, 62, 130], [30, 94, 100]):
        qualities = qualities_of(np.array(scores), levels)
        drawn = [floors._choose(qualities, 1.0) for _ in range(4000)]
        counted.append(np.bincount(drawn, minlength=4) / len(drawn))
    ratios = counted[0] / counted[1]
    assert np.abs(np.log(ratios)).max() <= 1.0 + 0.15
    assert counted[0][1] == counted[0].max()
    assert counted[0].min() == counted[0][3]


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 8.0])
def test_a_draw_has_the_scale_of_its_budget(epsilon, monkeypatch):
    """Twice what one user changes over epsilon, as the exponential mechanism."""
    asked = []

    def first(make, whole, metric, change, scale, bound):
        asked.append((change, scale, bound))
        return lambda qualities: 0

    monkeypatch.setattr(floors, "calibrated", first)
    assert floors._choose(np.array([-1, -2]), epsilon) == 0
    assert asked == [(SENSITIVITY, 2 * SENSITIVITY / epsilon, epsilon)]


@pytest.fixture(scope="module")
def data():
    return weeks(5000, np.random.default_rng(3), THREE)


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Of a draw that gives the likeliest answer."""
    monkeypatch.setattr(floors, "_choose", lambda qualities, epsilon: int(np.argmax(qualities)))
    return {
        "path": tmp_path / "model.json",
        "states": 3,
        "steps_per_user": 20,
        "epsilon": 0.5,
        "alpha": 1.0,
        "method": "floor",
    }


def test_a_floor_is_below_that_of_the_chain_and_a_publisher_keeps_it(data, settings):
    model = tr.learn_privately(data, **settings)
    true_floor = tpl.allocate_by_upper_bound(1.0, THREE.reverse(), THREE)
    assert 0.4 * true_floor < model.floor < true_floor
    with pytest.raises(ValueError, match="holds one number, found a question for its matrix"):
        _ = model.matrix
    with pytest.raises(ValueError, match="alpha must be that of the model, 1, found 2"):
        model.floor_for(2.0)
    path = settings["path"].with_name("counts.sqlite")
    publisher = tr.Publisher(path, model=settings["path"], alpha=1.0, sensitivity=2)
    publisher.publish(8, {"a": 5, "b": 4})
    publisher.skip(9, until=11)
    publisher.publish(12, {"a": 5, "b": 4}, epsilon=model.floor / 2)
    assert publisher.remaining == tr.Publisher(path).remaining == model.floor
    assert publisher.ledger["epsilon"].tolist() == [0.5, model.floor, 0.0, model.floor / 2]
    with pytest.raises(tpl.LeakageExceededError, match="the floor of the model"):
        publisher.publish(13, {"a": 5, "b": 4}, epsilon=1.01 * model.floor)
    with pytest.raises(ValueError, match="leakages need a chain"):
        _ = publisher.leakage
    assert publisher.resume(20).remaining == model.floor
    budgets = [0.5, *[model.floor] * 400]
    assert tpl.temporal_privacy_leakage(budgets, THREE.reverse(), THREE).tpl.max() < 1.0


def test_a_refusal_is_a_model_without_a_floor(data, settings, monkeypatch):
    monkeypatch.setattr(floors, "_choose", lambda qualities, epsilon: len(qualities) - 1)
    model = tr.learn_privately(data, **settings)
    assert model.floor == 0.0
    with pytest.raises(ValueError, match="the floor is 0: 5,000 users and epsilon 0.5 do not"):
        tr.Publisher(settings["path"].with_name("c"), model=model, alpha=1.0, sensitivity=2)


def test_what_a_floor_needs_is_said_before_anything_is_drawn(data, settings):
    few = data.select(np.arange(200))
    with pytest.raises(ValueError, match="200 users and epsilon 0.5 do not suffice for 3 states"):
        tr.learn_privately(few, **settings)
    with pytest.raises(ValueError, match="method='floor' needs the level"):
        tr.learn_privately(data, **settings | {"alpha": None})
    with pytest.raises(ValueError, match="epsilon must be below alpha = 0.4"):
        tr.learn_privately(data, **settings | {"alpha": 0.4})
    assert not settings["path"].exists()


def test_the_method_is_by_the_number_of_states(tmp_path):
    rng = np.random.default_rng(4)
    sizes = {}
    for n in (3, 9):
        chain = tpl.TransitionMatrix(rng.dirichlet(np.full(n, 30.0), n))
        data = weeks(3000, rng, chain)
        settings = {"states": n, "steps_per_user": 20, "epsilon": 0.9}
        with_level = tr.learn_privately(data, path=tmp_path / f"a{n}", alpha=2.0, **settings)
        without = tr.learn_privately(data, path=tmp_path / f"b{n}", **settings)
        sizes[n] = (with_level.request.method, without.request.method)
    assert sizes == {3: ("matrix", "matrix"), 9: ("floor", "matrix")}
