import dataclasses

import numpy as np
import pytest

from experiments import comparison
from experiments.comparison.calibration import Outcome


@pytest.mark.parametrize("name", ["equal budgets", "DPHMM, radius", "LDP, unary encoding"])
def test_calibrated_parameters_leak_what_was_asked(setting, mechanisms, name):
    seeds, target = [1, 2], 1.0
    swept = comparison.sweep(mechanisms[name], setting, 300, seeds, 0.4, 2.0, 7)
    assert swept.leakage[0, 0] <= 0.4
    assert swept.leakage_near[0, -1] >= 2.0
    for near in (False, True):
        found = comparison.at_equal_leakage(swept, target, near)
        runs = zip(found.parameter, seeds, strict=True)
        again = [comparison.simulate(mechanisms[name], parameter, setting, 300, seed, 0.95) for parameter, seed in runs]
        np.testing.assert_allclose([o.leakage_near if near else o.leakage for o in again], target, rtol=0.03)
        np.testing.assert_allclose([o.inferred_error for o in again], found.inferred_error, rtol=0.05)


@pytest.mark.parametrize("parameter", [0.3, 2.0])
def test_no_run_leaks_more_than_theory_allows(setting, mechanisms, parameter):
    for name, mechanism in mechanisms.items():
        outcome = comparison.simulate(mechanism, parameter, setting, 200, 5, 0.5)
        assert outcome.leakage <= outcome.largest <= mechanism.bound(setting, parameter) + 1e-9, name
        assert outcome.leakage_near <= outcome.leakage


def test_a_seed_is_one_crowd_for_all_mechanisms(setting, mechanisms):
    outcomes = [comparison.simulate(m, 1.0, setting, 25, 3, 0.9) for m in mechanisms.values()]
    assert len({o.prior_error for o in outcomes}) == 1
    seeds = [comparison.simulate(mechanisms["equal budgets"], 1.0, setting, 25, seed, 0.9) for seed in (3, 4)]
    assert seeds[0] == outcomes[0] != seeds[1]
    everybody, more = (setting.sample(size, np.random.default_rng(0)) for size in (40, 100))
    np.testing.assert_array_equal(np.sort(everybody.paths, axis=0), np.sort(setting.paths, axis=0))
    assert more.n_users == 100  # drawn with replacement


def test_crossings_by_hand():
    line = np.array([[1.0, 2.0, 4.0]])
    swept = Outcome(np.array([[0.1, 1.0, 10.0]]), line, line / 8, line, 8 / line, 3 * line, line)
    found = comparison.at_equal_leakage(swept, np.sqrt(2))
    assert found.parameter == pytest.approx(np.sqrt(0.1))
    assert found.error == pytest.approx(8 / np.sqrt(2))
    assert np.isnan(comparison.at_equal_leakage(swept, 5.0).parameter)
    assert comparison.at_equal_leakage(swept, 0.25, near=True).parameter == pytest.approx(1.0)
    # From nothing at all the leakage jumps beyond the target: the last parameter that leaks nothing.
    jump = dataclasses.replace(swept, leakage=np.array([[0.0, 4.0, 5.0]]))
    assert comparison.at_equal_leakage(jump, 1.0).error == pytest.approx(8.0)
