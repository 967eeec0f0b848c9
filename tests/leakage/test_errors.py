"""What each public function refuses: a few words of the constraint, the value found or the remedy of each message."""

import numpy as np
import pytest
import scipy.sparse

import tplrepro as tpl
from tests.leakage.matrices import BACKWARD, FIG_3, FIG_4, FORWARD, THREE
from tplrepro.leakage import linear_program, published

L = tpl.PrivacyLossFunction(FIG_4)
BAD = [[0.8, 0.1], [0.2, 0.8]]
TABLES = published.algorithm_2(FIG_4)
FUNCTION = published.algorithm_4(TABLES, 0.1, 10)
WALKS = {"a": [0, 1]}
NOT_A_LEAKAGE = "finite leakage in nats, at least 0, found"


def of_three(backward=None, forward=None):
    return tpl.temporal_privacy_leakage([0.1] * 3, backward, forward)


def with_gaps(times, epsilons=(0.1, 0.1)):
    return tpl.leakage_at_all_times(epsilons, BACKWARD, FORWARD, times=times, horizon=4)


def of_users(users=WALKS, epsilons=(0.3, 0.5, 0.2), **options):
    return tpl.population_leakage(users, epsilons, **options)


CASES = [
    # the loss function
    (lambda: tpl.PrivacyLossFunction([[0.5, 0.5]]), r"must be square, found shape \(1, 2\)"),
    (lambda: tpl.PrivacyLossFunction(BAD), "found 0.9 in row 0.*normalize=True"),
    (lambda: tpl.PrivacyLossFunction([[1.5, -0.5], [0.5, 0.5]]), "negative, found -0.5 in row 0, column 1"),
    (lambda: tpl.PrivacyLossFunction([[np.nan, 1.0], [0.5, 0.5]]), "finite numbers, found nan in row 0, column 0"),
    (lambda: tpl.PrivacyLossFunction(np.empty((0, 0))), "at least one"),
    (lambda: L(-1.0), f"alpha must be a {NOT_A_LEAKAGE} -1"),
    (lambda: tpl.privacy_loss(FIG_4, [1.0, 2.0]), "alpha must be one number"),
    (lambda: L.supremum(0.0), "epsilon must be a finite privacy budget.*found 0"),
    (lambda: L.budget_for(-1.0), "alpha must be.*found -1"),
    (lambda: L.witness(-1.0), "alpha must be.*found -1"),
    # leakages over time
    (lambda: tpl.temporal_privacy_leakage([]), r"at least one budget, found shape \(0,\)"),
    (lambda: tpl.temporal_privacy_leakage([[0.1]]), r"one-dimensional .* found shape \(1, 1\)"),
    (lambda: tpl.temporal_privacy_leakage([0.1, 0.0]), "greater than 0, found 0; leave out"),
    (lambda: tpl.temporal_privacy_leakage([[0.1], [0.1, 0.2]]), "epsilons must be .*found (str|list)"),
    (lambda: of_three([FIG_3] * 3), "backward must be .*3 matrices for 2 steps; give T - 1"),
    (lambda: of_three().composed(-1, 1), "0 <= first <= last < 3, found first = -1, last = 1"),
    (lambda: of_three().composed(0, 3), "0 <= first <= last < 3"),
    (lambda: of_three().w_event(0), "w must be at least 1"),
    (lambda: of_three().w_event(4), "at most the number of time points 3, found 4"),
    (lambda: tpl.TemporalAccountant().remaining(0.0), "alpha must be a finite level in nats, greater than 0"),
    (lambda: tpl.TemporalAccountant().skip(0), "count must be at least 1"),
    # time points without a release
    (lambda: with_gaps([]), "one or more increasing time points"),
    (lambda: with_gaps([True, False]), "one bool for each of them"),
    (lambda: with_gaps([2, 1]), "increasing time points in 0..3, .* found .2 1.; sort them"),
    (lambda: with_gaps(np.ma.masked_less([0, 2], 1), [0.1] * 2), r"found \[-- 2\]"),
    (lambda: with_gaps([0, 2], [0.1] * 3), "one budget or one for each release, found 3 for 2 releases"),
    # exact and measured leakages
    (lambda: tpl.exact_leakage([300.0] * 3, THREE), "at most 700 nats, found 900"),
    (lambda: tpl.exact_leakage([1e-6] * 10**6, THREE), "n = 3, T = 1000000"),
    (lambda: tpl.exact_leakage([1.0], THREE, released=[3]), "among 0..2, found 3"),
    (lambda: tpl.exact_leakage([1.0] * 2, THREE, released=[]), "at least one state, found none"),
    (lambda: tpl.exact_leakage([1.0] * 2, tpl.smoothed(scipy.sparse.eye_array(5000), 1e-6)), "found 5000"),
    (lambda: tpl.worst_outputs([1.0], THREE, time=1), "time point in 0..0, found 1"),
    (lambda: tpl.worst_outputs([1.0], THREE, time=0.5), "whole number, found 0.5"),
    (lambda: tpl.mechanism_leakage([[1.0, 0.0], [0.5, 0.5]], horizon=2), "greater than 0"),
    (lambda: tpl.mechanism_leakage([]), "at least one table"),
    (lambda: tpl.mechanism_leakage([[1.0, 0.5], [0.5, 0.5]]), "horizon = T"),
    (lambda: tpl.mechanism_leakage(np.ones((3, 2)), np.eye(2), horizon=2), "3, 3] rows and 2 states"),
    (lambda: tpl.mechanism_leakage(np.ones((2, 2)), np.eye(2), horizon=0), "at least 1"),
    (lambda: tpl.ExactGaussianProfile([1.0] * 2, THREE), "2 states, found 3; take temporal_privacy_profile"),
    (lambda: tpl.ExactGaussianProfile([1.0, 0.0]), "greater than 0, found 0"),
    (lambda: tpl.ExactGaussianProfile([1.0]).delta(-1.0), "at least 0, found -1"),
    (lambda: tpl.ExactGaussianProfile([1.0]).epsilon(0.0), "at least 1e-15, found 0"),
    (lambda: tpl.measured_leakage([1.0, 2.0]), "row for each time"),
    (lambda: tpl.measured_leakage([[0.0, -np.inf]]), "finite"),
    (lambda: tpl.measured_leakage(np.zeros((3, 3)), np.eye(2)), "each of the 2 states, found 3"),
    # many users
    (lambda: of_users({}), "at least one user"),
    (lambda: of_users([[0, 1]]), "each user to her sequences, found list"),
    (lambda: of_users({"a": [0, 1], "b": []}), "found none for user 'b'; leave her out"),
    (lambda: of_users({"a": [0, 9]}, n_states=3), "unknown state 9"),
    (lambda: of_users(smoothing=-1.0), "smoothing must be .*found -1"),
    (lambda: of_users(prior_weight=0.0), "prior_weight must be.*found 0; pass None"),
    (lambda: of_users(batch_size=0), "batch_size must be at least 1"),
    # the linear programme
    (lambda: linear_program.loss(FIG_3, 1, solver="CPLEX"), "'CBC', 'HiGHS', 'highspy', found 'CPLEX'"),
    (lambda: linear_program.loss(FIG_3, 1, formulation="dual"), "'scaled', 'pairwise', found 'dual'"),
    (lambda: linear_program.loss(FIG_3, 20.5), r"at most 20 .*scaled.*found 20\.5.*use tplrepro\.privacy_loss"),
    (lambda: linear_program.loss(FIG_3, 10.5, formulation="pairwise"), r"at most 10 .*pairwise.*found 10\.5"),
    # the published algorithms
    (lambda: published.algorithm_4(TABLES, 0, 1), "0 < a_1 <= a_m <= 700, found a_1=0 and a_m=1"),
    (lambda: published.algorithm_4(TABLES, 1, 701), "a_m=701; use PrivacyLossFunction"),
    (lambda: published.algorithm_5(0.05, FUNCTION), r"0 or lie in \[0.1, 10\].*found 0.05; widen"),
    (lambda: published.piecewise_coefficients([0.5, 0.5], [0.2, 0.3, 0.5]), "one length"),
    (lambda: published.algorithm_6(0, TABLES), "finite privacy budget in nats, greater than 0, found 0"),
    (lambda: published.algorithm_6([1, 2], TABLES), "epsilon must be one number"),
]
LEAKAGES = [
    lambda alpha: published.algorithm_3(alpha, TABLES),
    lambda alpha: published.algorithm_4(TABLES, alpha, 10),
    lambda alpha: published.algorithm_5(alpha, FUNCTION),
    lambda alpha: published.algorithm_1(FIG_4, 1, epsilon=alpha),
]
CASES += [(lambda c=c, a=a: c(a), f"{NOT_A_LEAKAGE} {a}") for c in LEAKAGES for a in (-1, np.inf, np.nan)]


@pytest.mark.parametrize(("call", "message"), CASES)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
