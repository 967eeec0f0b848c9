import dataclasses

import numpy as np
import pytest

from experiments import comparison
from experiments.comparison.calibration import Outcome


@pytest.mark.parametrize("name", ["equal budgets", "DPHMM, radius", "LDP, unary encoding"])
def test_calibrated_parameters_leak_what_was_asked(setting, mechanisms, name):
    seeds, target = [1, 2], 1.0
    swept = comparison.sweep(mechanisms[name], setting, 300, seeds, low=0.4, high=2.0, points=7)
    assert swept.leakage[0, 0] <= 0.4
    assert swept.leakage_near[0, -1] >= 2.0
    for near in (False, True):
        found = comparison.at_equal_leakage(swept, target, near)
        runs = zip(found.parameter, seeds, strict=True)
        again = [
            comparison.simulate(mechanisms[name], parameter, setting, 300, seed, 0.95)
            for parameter, seed in runs
        ]
        np.testing.assert_allclose(
            [o.leakage_near if near else o.leakage for o in again], target, rtol=0.03
        )
        np.testing.assert_allclose(
            [o.inferred_error for o in again], found.inferred_error, rtol=0.05
        )


@pytest.mark.parametrize("parameter", [0.3, 2.0])
def test_no_run_leaks_more_than_its_bound_and_a_seed_fixes_users_and_noise(
    setting, mechanisms, parameter
):
    outcomes = {
        name: comparison.simulate(m, parameter, setting, 200, 5, 0.5)
        for name, m in mechanisms.items()
    }
    for name, outcome in outcomes.items():
        assert outcome.leakage_near <= outcome.leakage <= outcome.largest, name
        assert outcome.largest <= mechanisms[name].bound(setting, parameter) + 1e-9, name
    assert len({outcome.prior_error for outcome in outcomes.values()}) == 1
    same, other = (
        comparison.simulate(mechanisms["equal budgets"], parameter, setting, 200, seed, 0.5)
        for seed in (5, 6)
    )
    assert same == outcomes["equal budgets"] != other
    everybody = setting.sample(40, rng=np.random.default_rng(0))  # without replacement
    np.testing.assert_array_equal(np.sort(everybody.paths, axis=0), np.sort(setting.paths, axis=0))


def test_the_parameter_of_equal_leakage_is_interpolated_on_logarithmic_scales():
    line = np.array([[1.0, 2.0, 4.0]])
    swept = Outcome(np.array([[0.1, 1.0, 10.0]]), line, line / 8, line, 8 / line, 3 * line, line)
    found = comparison.at_equal_leakage(swept, np.sqrt(2))
    assert found.parameter == pytest.approx(np.sqrt(0.1))
    assert found.error == pytest.approx(8 / np.sqrt(2))
    assert np.isnan(comparison.at_equal_leakage(swept, 5.0).parameter)
    assert comparison.at_equal_leakage(swept, 0.25, near=True).parameter == pytest.approx(1.0)
    # From nothing at all the leakage jumps beyond the target: the last parameter that leaks
    # nothing.
    jump = dataclasses.replace(swept, leakage=np.array([[0.0, 4.0, 5.0]]))
    assert comparison.at_equal_leakage(jump, 1.0).error == pytest.approx(8.0)
