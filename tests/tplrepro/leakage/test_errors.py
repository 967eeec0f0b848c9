"""What each public function refuses: a few words of the constraint, the value found or the remedy
of each message."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse
from dp_accounting import dp_event

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from tests.tplrepro.leakage.matrices import BACKWARD, FIG_3, FIG_4, FORWARD, THREE
from tplfrontier.profiles.privacy_profile import PrivacyProfile
from tplfrontier.series.state_space import LinearGaussianSeries
from tplrepro.leakage import linear_program, published

L = tpl.PrivacyLossFunction(FIG_4)
BAD = [[0.8, 0.1], [0.2, 0.8]]
BAD_DELTAS = [(1.5, 0.0), (0.5, -0.1), (0.5, np.nan), (), ([0.1],)]
TABLES = published.algorithm_2(FIG_4)
FUNCTION = published.algorithm_4(TABLES, 0.1, 10)
WALKS = {"a": [0, 1]}
EQUAL, PAIR = [[0.5, 0.5], [0.5, 0.5]], [[0, 1], [1, 0]]
AR = LinearGaussianSeries.autoregressive
LEVEL = LinearGaussianSeries([[1.0]], [[0.3]], [2.0], [[0.5]], 12)  # a random walk
SHRINKING = LinearGaussianSeries([[0.5]], [[1.0]], [1.0], [[9.0]], 3)
SMOOTH = LinearGaussianSeries([[1.0, 1.0], [0.0, 1.0]], np.zeros((2, 2)), [1.0, 0.0], np.eye(2), 12)
GAUSSIAN, SAMPLED = dp_event.GaussianDpEvent(2.0), dp_event.SampledWithoutReplacementDpEvent
PROFILE = tf.temporal_privacy_profile([GAUSSIAN] * 3, FORWARD, FORWARD)
NOT_A_LEAKAGE = "finite leakage in nats, at least 0, found"


def of_three(backward=None, forward=None):
    return tpl.temporal_privacy_leakage([0.1] * 3, backward, forward)


def with_gaps(times, epsilons=(0.1, 0.1)):
    return tpl.leakage_at_all_times(epsilons, BACKWARD, FORWARD, times=times, horizon=4)


def of_users(users=WALKS, epsilons=(0.3, 0.5, 0.2), **options):
    return tr.population_leakage(users, epsilons, **options)


UNKNOWN = {"backward": None, "forward": None}


def of_pairs(bounds, **options):
    return tf.pairwise_leakage(bounds, **{"horizon": 2} | UNKNOWN | options)


def of_series(series, noise=1.0, change=1.0):
    return tf.gaussian_series_leakage(series, noise, change)


def of_events(*events, **options):
    return tf.temporal_privacy_profile([*events], **UNKNOWN | options)


def of_deltas(*deltas, **options):
    return PrivacyProfile(np.array(deltas), 0.1, **options)


def composed(*arguments):
    return tf.EventAccountant(FORWARD, None).compose(*arguments)


def with_evidence(evidence):
    return tpl.condition_on(FORWARD, [0.5, 0.5], evidence)


CASES = [
    # the loss function
    (lambda: tpl.PrivacyLossFunction([[0.5, 0.5]]), r"must be square, found shape \(1, 2\)"),
    (lambda: tpl.PrivacyLossFunction(BAD), "found 0.9 in row 0.*normalize=True"),
    (
        lambda: tpl.PrivacyLossFunction([[1.5, -0.5], [0.5, 0.5]]),
        "negative, found -0.5 in row 0, column 1",
    ),
    (
        lambda: tpl.PrivacyLossFunction([[np.nan, 1.0], [0.5, 0.5]]),
        "finite numbers, found nan in row 0, column 0",
    ),
    (lambda: tpl.PrivacyLossFunction(np.empty((0, 0))), "at least one"),
    (lambda: L(-1.0), f"alpha must be a {NOT_A_LEAKAGE} -1"),
    (lambda: tpl.privacy_loss(FIG_4, [1.0, 2.0]), "alpha must be one number"),
    (lambda: L.supremum(0.0), "epsilon must be a finite privacy budget.*found 0"),
    (lambda: L.budget_for(-1.0), "alpha must be.*found -1"),
    (lambda: L.witness(-1.0), "alpha must be.*found -1"),
    (lambda: L.hockey_stick([2.0, 0.5]), "gamma must be at least 1, found 0.5; swap the rows"),
    # leakages over time
    (
        lambda: tpl.temporal_privacy_leakage([], None, None),
        r"at least one budget, found shape \(0,\)",
    ),
    (
        lambda: tpl.temporal_privacy_leakage([[0.1]], None, None),
        r"one-dimensional .* found shape \(1, 1\)",
    ),
    (
        lambda: tpl.temporal_privacy_leakage([0.1, 0.0], None, None),
        "greater than 0, found 0; leave out",
    ),
    (
        lambda: tpl.temporal_privacy_leakage([[0.1], [0.1, 0.2]], None, None),
        "epsilons must be .*found (str|list)",
    ),
    (lambda: of_three([FIG_3] * 3), "backward must be .*3 matrices for 2 steps; give T - 1"),
    (lambda: of_three().composed(-1, 1), "0 <= first <= last < 3, found first = -1, last = 1"),
    (lambda: of_three().composed(0, 3), "0 <= first <= last < 3"),
    (lambda: of_three().composed(0, 2.0), "last must be a whole number"),
    (lambda: of_three().w_event(0), "w must be at least 1"),
    (lambda: of_three().w_event(4), "at most the number of time points 3, found 4"),
    (
        lambda: tpl.TemporalAccountant(None, None).budget_within(0.0),
        "alpha must be a finite level in nats, greater than 0",
    ),
    (lambda: tpl.TemporalAccountant(None, None).skip(0), "count must be at least 1"),
    # time points without a release
    (lambda: with_gaps([]), "one or more increasing time points"),
    (lambda: with_gaps([True, False]), "one bool for each of them"),
    (lambda: with_gaps([2, 1]), "increasing time points in 0..3, .* found .2 1.; sort them"),
    (lambda: with_gaps(np.ma.masked_less([0, 2], 1), [0.1] * 2), r"found \[-- 2\]"),
    (
        lambda: with_gaps([0, 2], [0.1] * 3),
        "one budget or one for each release, found 3 for 2 releases",
    ),
    # exact and measured leakages
    (lambda: tpl.exact_leakage([300.0] * 3, THREE, None), "at most 700 nats, found 900"),
    (lambda: tpl.exact_leakage([1e-6] * 10**6, THREE, None), "n = 3, T = 1000000"),
    (lambda: tpl.exact_leakage([1.0], THREE, None, released=[3]), "among 0..2, found 3"),
    (
        lambda: tpl.exact_leakage([1.0] * 2, THREE, None, released=[]),
        "at least one state, found none",
    ),
    (
        lambda: tpl.exact_leakage(
            [1.0] * 2, tpl.smoothed(scipy.sparse.eye_array(5000), 1e-6), None
        ),
        "found 5000",
    ),
    (
        lambda: tpl.worst_outputs([1.0], THREE, None, time=1),
        "0 to 0, or from -1 to -1, which count",
    ),
    (lambda: tpl.worst_outputs([1.0], THREE, None, time=-2), "from the end, found -2; give one of"),
    (lambda: tpl.worst_outputs([1.0], THREE, None, time=0.5), "whole number, found 0.5"),
    (
        lambda: tf.mechanism_leakage([[1.0, 0.0], [0.5, 0.5]], None, None, horizon=2),
        "greater than 0",
    ),
    (lambda: tf.mechanism_leakage([], None, None), "at least one table"),
    (lambda: tf.mechanism_leakage([[1.0, 0.5], [0.5, 0.5]], None, None), "horizon = T"),
    (
        lambda: tf.mechanism_leakage(np.ones((3, 2)), np.eye(2), None, horizon=2),
        "3, 3] rows and 2 states",
    ),
    (lambda: tf.mechanism_leakage(np.ones((2, 2)), np.eye(2), None, horizon=0), "at least 1"),
    (
        lambda: tf.ExactGaussianProfile([1.0] * 2, THREE, None),
        "2 states, found 3; take temporal_privacy_profile",
    ),
    (lambda: tf.ExactGaussianProfile([1.0, 0.0], None, None), "greater than 0, found 0"),
    (lambda: tf.ExactGaussianProfile([1.0], None, None).delta(-1.0), "at least 0, found -1"),
    (lambda: tf.ExactGaussianProfile([1.0], None, None).epsilon(0.0), "at least 1e-15, found 0"),
    (lambda: tf.measured_leakage([1.0, 2.0], None, None), "row for each time"),
    (lambda: tf.measured_leakage([[0.0, -np.inf]], None, None), "finite"),
    (
        lambda: tf.measured_leakage(np.zeros((3, 3)), np.eye(2), None),
        "each of the 2 states, found 3",
    ),
    # many users
    (lambda: of_users({}), "at least one user"),
    (lambda: of_users([[0, 1]]), "each user to her sequences, found list"),
    (lambda: of_users("my.csv"), r"found str; give a dict, or read a file with .*read_sequences"),
    # one number without a horizon
    *(
        (lambda call=call: call(0.1, FORWARD, FORWARD), r"such as \[0.1\] \* T, or .* horizon=T")
        for call in (tpl.temporal_privacy_leakage, tpl.exact_leakage, tf.ExactGaussianProfile)
    ),
    (lambda: of_users(epsilons=0.1), r"such as \[0.1\] \* T, or one number and horizon=T"),
    (lambda: of_users({"a": [0, 1], "b": []}), "found none for user 'b'; leave her out"),
    (lambda: of_users({"a": [0, 9]}, n_states=3), "unknown state 9"),
    (lambda: of_users(smoothing=-1.0), "smoothing must be .*found -1"),
    (lambda: of_users(prior_weight=0.0), "prior_weight must be.*found 0; pass None"),
    (lambda: of_users(smoothing=1e308), "smoothing must be .* found 1e"),
    (lambda: of_users(batch_size=0), "batch_size must be at least 1"),
    (lambda: of_users(n_jobs=0), "n_jobs must be .* found 0"),
    # Gaussian series
    (lambda: of_series(np.eye(3)[:2]), r"finite \(n, n\) matrix, found shape \(2, 3\)"),
    (lambda: of_series([[1.0, 0.5], [0.4, 1.0]]), "symmetric .* asymmetry 0.1"),
    (lambda: of_series([[1.0, 2.0], [2.0, 1.0]]), "semidefinite, .* eigenvalue -1"),
    (lambda: of_series([[1.0, 0.0], [0.0, 0.0]]), "variance greater than 0, found 0"),
    (
        lambda: of_series(
            tf.LinearGaussianSeries([[1, 1], [0, 1]], 0 * np.eye(2), [1, 1], 1e18 * np.eye(2), 3)
        ),
        r"too far apart for doubles \(Singular matrix\); add noise",
    ),
    (lambda: of_series(np.eye(2), 0.0), "greater than 0, found 0; give sigma"),
    (lambda: of_series(np.eye(2), [1.0, np.nan]), "greater than 0, found nan"),
    (lambda: of_series(np.eye(2), [1.0] * 3), r"shape \(\), \(2,\) or \(2, 2\), found \(3,\)"),
    (lambda: of_series(np.eye(2), -np.eye(2)), "greater than 0, found -1"),
    (lambda: of_series(np.eye(2), change=0.0), "change must be .*found 0"),
    (lambda: of_series(AR(0.5, 3), AR(0.5, 2)), "horizon 3, found 2"),
    (lambda: of_series(SMOOTH, [1e20] + [1e-20] * 11), "more than 1e-08 of its variance"),
    (lambda: tf.gaussian_series_limit(LEVEL, 1.0, 1.0), "eigenvalue of modulus 1"),
    (lambda: tf.gaussian_series_limit(SHRINKING, 1.0, 1.0), "share of"),
    (
        lambda: tf.gaussian_series_limit(np.eye(3), 1.0, 1.0),
        "needs a LinearGaussianSeries, found ndarray",
    ),
    (
        lambda: tf.endless_series_noise(1.0, np.eye(3), 1.0),
        "needs a LinearGaussianSeries, found ndarray",
    ),
    (lambda: AR(1.0, 3), r"stationary series, found \[1.0\]"),
    (lambda: AR([0.5, np.nan], 3), "stationary series, found"),
    (lambda: AR([], 3), "stationary series, found"),
    (
        lambda: AR([1.999987061555357, -0.9999870615972078], 3),
        "clearly stationary series, .* with roots up to 0.99999",
    ),
    (lambda: AR(0.5, 0), "horizon must be at least 1"),
    (
        lambda: LinearGaussianSeries(np.eye(2), np.eye(2), [1.0], np.eye(2), 3),
        r"shape \(1, 1\), found shape \(2, 2\)",
    ),
    # profiles
    (
        lambda: of_events(dp_event.UnsupportedDpEvent()),
        "one of NoOp.*, found UnsupportedDpEvent.*; give the epsilon",
    ),
    (lambda: of_events("0.1"), "an event must be an epsilon, .* found '0.1'"),
    (
        lambda: of_events(-0.1),
        "an event's epsilon must be a finite privacy budget in nats, greater than 0, found -0.1",
    ),
    (
        lambda: of_events(dp_event.GaussianDpEvent(0.0)),
        "noise_multiplier of an event must be.* 0.0; .*NonPrivate",
    ),
    (
        lambda: of_events(dp_event.PoissonSampledDpEvent(1.5, 0.1)),
        r"sampling_probability must .*\[0, 1\], found 1.5",
    ),
    (lambda: of_events((GAUSSIAN, 0)), "the count of an event must be at least 1, found 0"),
    (
        lambda: of_events(1.0, backward=tpl.PriorFreeLoss(FORWARD), pairs=True),
        "must be matrices, found PriorFreeLoss",
    ),
    (lambda: of_events(None, None), "events must hold at least one release, found none"),
    (lambda: of_events(1.0, grid=800.0), "at most 512 nats, found 800"),
    (
        lambda: tf.temporal_privacy_profile(GAUSSIAN, None, None),
        r"a list .* found GaussianDpEvent.*; give \[event\] \* T",
    ),
    (lambda: tf.temporal_privacy_profile({1.0, 0.1}, FORWARD, None), "events must be a list"),
    (
        lambda: PROFILE.epsilon(0.0),
        "delta must be greater than 0 and less than 1, found 0; give a probab",
    ),
    (lambda: PROFILE.epsilon([1e-6, 1e-5]), "delta must be one number, found shape"),
    (lambda: PROFILE.delta(-1.0), "epsilon must be a finite leakage in nats, at least 0, found -1"),
    (lambda: PROFILE.profile_at(0).on(0.0), "grid must be .* found 0"),
    (lambda: PROFILE.profile_at(1.0), "t must be a whole number, found 1.0"),
    (lambda: PROFILE.profile_at(3), "t must be a time point from 0 to 2, or from -3 to -1"),
    (lambda: PROFILE.composed(0.0, 1.0), "first must be a whole number, found 0.0"),
    (lambda: PrivacyProfile.of_event(1.0, 0), "grid must be .* greater than 0, found 0"),
    (
        lambda: of_deltas(0.1, 0.2),
        "deltas must be probabilities that do not rise along a grid > 0, found",
    ),
    *(
        (lambda bad=bad: of_deltas(*bad), "deltas must be probabilities that do not rise")
        for bad in BAD_DELTAS
    ),
    (lambda: of_deltas(0.5, 0.1j), "deltas must be numbers, .*complex"),
    (lambda: of_deltas(0.5, 0.0, largest=-1.0), "largest must be at least 0, found -1"),
    (
        lambda: PrivacyProfile(np.ma.array([0.5, 0.1], mask=[0, 1]), 0.1),
        "deltas must be numbers, .* masked",
    ),
    (
        lambda: tf.ExactGaussianProfile([0.1] * 64, np.eye(2), None),
        "must fit .* take fewer releases",
    ),
    # accounts
    (lambda: composed(True), "epsilon must be .* found True"),
    (lambda: composed(1.0, True), "count must be a whole number, found True"),
    (lambda: composed(1.0).epsilon(None), "delta must be .* found nan"),
    (lambda: composed(1.0).epsilon([0.1, 0.2]), r"delta must be one number, found shape \(2,\)"),
    (
        lambda: composed(dp_event.GaussianDpEvent("a")),
        "noise_multiplier of an event must be a number, found str",
    ),
    (
        lambda: composed(dp_event.GaussianDpEvent([1, 2])),
        r"noise_multiplier must be one number, found shape \(2,\)",
    ),
    (lambda: composed(SAMPLED(0, 0, GAUSSIAN)), "source_dataset_size must be at least 1, found 0"),
    (lambda: composed(SAMPLED(9, "a", GAUSSIAN)), "sample_size of an event must be a number"),
    # pairs of states
    (lambda: of_pairs([[0, 1], [-1, 0]]), "bounds must be at least 0, found -1 between 1 and 0"),
    (lambda: of_pairs([[0, np.nan], [1, 0]]), "bounds must be at least 0, found nan"),
    (lambda: of_pairs([[0, 1], [1, 2]]), "must be 0 for a state and itself, found 2 at 1"),
    (lambda: of_pairs([PAIR]), "one matrix for each release, 2 of them, found 1"),
    (lambda: of_pairs(PAIR, horizon=None), "must come with a horizon"),
    (lambda: of_pairs([[0, 1, 1], [1, 0, 1]]), "must have shape"),
    (lambda: of_pairs(PAIR, backward=np.eye(3)), r"between 3 states must have shape \(3, 3\)"),
    (lambda: of_pairs("many"), "bounds must be numbers"),
    (
        lambda: of_pairs(PAIR, backward=tpl.PriorFreeLoss(EQUAL)),
        "must be matrices, found PriorFreeLoss",
    ),
    # any prior and any evidence
    (lambda: with_evidence(np.ones((2, 3))), "evidence must have shape .T, 2., found .2, 3."),
    (
        lambda: with_evidence([[1, 1], [1, -1]]),
        "evidence must not be negative, found -1 in row 1, column 1",
    ),
    (lambda: with_evidence([[1, 1], [0, 0]]), "an output must have positive probability"),
    (lambda: with_evidence([[1j, 1], [0, 0]]), "evidence must be probabilities, found"),
    # the linear programme
    (
        lambda: linear_program.loss(FIG_3, 1, solver="CPLEX"),
        "'CBC', 'HiGHS', 'highspy', found 'CPLEX'",
    ),
    (
        lambda: linear_program.loss(FIG_3, 1, formulation="dual"),
        "'scaled', 'pairwise', found 'dual'",
    ),
    (
        lambda: linear_program.loss(FIG_3, 20.5),
        r"at most 20 .*scaled.*found 20\.5.*use tplrepro\.privacy_loss",
    ),
    (
        lambda: linear_program.loss(FIG_3, 10.5, formulation="pairwise"),
        r"at most 10 .*pairwise.*found 10\.5",
    ),
    # the published algorithms
    (lambda: published.algorithm_4(TABLES, 0, 1), "0 < a_1 <= a_m <= 700, found a_1=0 and a_m=1"),
    (lambda: published.algorithm_4(TABLES, 1, 701), "a_m=701; use PrivacyLossFunction"),
    (lambda: published.algorithm_5(0.05, FUNCTION), r"0 or lie in \[0.1, 10\].*found 0.05; widen"),
    (lambda: published.piecewise_coefficients([0.5, 0.5], [0.2, 0.3, 0.5]), "one length"),
    (
        lambda: published.algorithm_6(0, TABLES),
        "finite privacy budget in nats, greater than 0, found 0",
    ),
    (lambda: published.algorithm_6([1, 2], TABLES), "epsilon must be one number"),
]
LEAKAGES = [
    lambda alpha: published.algorithm_3(alpha, TABLES),
    lambda alpha: published.algorithm_4(TABLES, alpha, 10),
    lambda alpha: published.algorithm_5(alpha, FUNCTION),
    lambda alpha: published.algorithm_1(FIG_4, 1, epsilon=alpha),
]
CASES += [
    (lambda c=c, a=a: c(a), f"{NOT_A_LEAKAGE} {a}") for c in LEAKAGES for a in (-1, np.inf, np.nan)
]


@pytest.mark.parametrize(("call", "message"), CASES)
def test_each_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_both_sides_must_be_given():
    for call in (
        partial(tpl.temporal_privacy_leakage, [0.1]),
        tpl.TemporalAccountant,
        partial(tr.Publisher, "counts", alpha=1.0, sensitivity=1),
    ):
        for given in ({"backward": FIG_3}, {"forward": FIG_3}, {}):
            with pytest.raises(
                TypeError,
                match="both be given, found .*give None for what|None: the adversary does not know",
            ):
                call(**given)


def test_states_are_numbered_by_whole_numbers():
    for state, error in (
        (0.5, "unknown state 0.5; the matrix has 2 states"),
        (2, "in .0, 2., found 2; see"),
    ):
        with pytest.raises((ValueError, IndexError), match=error):
            tpl.TransitionMatrix(FORWARD).row(state)
