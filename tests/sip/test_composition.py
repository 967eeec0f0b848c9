import numpy as np
import pytest
from scipy.stats import binom

from tplrepro import sip


def test_theorem_1_and_theorem_2():
    assert sip.compose([0.1, 0.2, 0.3]) == pytest.approx(0.6)
    horizon, epsilon, delta = 500, 0.05, 1e-6
    deviation = np.sqrt(horizon) * epsilon * np.sqrt(2 * np.log(1 / delta))
    expected = horizon * epsilon * (np.exp(epsilon) - 1) + deviation
    assert sip.compose([epsilon] * horizon, delta) == pytest.approx(expected, rel=1e-12)
    assert sip.compose([1.0] * 3, delta) == 3.0  # the sum is the better bound here


def test_the_tail_of_a_long_sequence_keeps_theorem_2():
    # Binary, independent and even: the log-ratio of T releases is a sum of +- terms, so its tail is binomial.
    epsilon, horizon, delta = 0.2, 200, 1e-3
    rows = sip.ConditionalRandomizedResponse(epsilon).matrix([0.5, 0.5])
    up, down = np.log(rows[0, 0] / 0.5), np.log(rows[0, 1] / 0.5)
    kept = np.arange(horizon + 1)
    total = kept * up + (horizon - kept) * down
    bound = sip.compose([epsilon] * horizon, delta)
    assert binom.pmf(kept, horizon, rows[0, 0])[np.abs(total) > bound].sum() <= delta


def test_bad_arguments():
    with pytest.raises(ValueError, match="leakages must hold at least one budget, found none"):
        sip.compose([])
    with pytest.raises(ValueError, match="delta must be a probability from 0 to below 1, found 1"):
        sip.compose([0.1], 1.0)
