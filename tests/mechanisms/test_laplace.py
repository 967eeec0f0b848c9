import numpy as np
import pytest
from scipy import stats

from tplrepro.mechanisms import LaplaceNoise


@pytest.mark.parametrize("scale", [0.3, 1.0, 25.0])
def test_densities_and_tails_are_scipy_s(scale):
    noise, law = LaplaceNoise(scale), stats.laplace(scale=scale)
    x = np.concatenate([-np.geomspace(1e-6, 600, 40), [0], np.geomspace(1e-6, 600, 40)]) * scale
    assert noise.log_density(x) == pytest.approx(law.logpdf(x), rel=1e-13)
    assert noise.mean_square == pytest.approx(law.var())
    assert noise.log_ratio(x, 0.7) == pytest.approx(law.logpdf(x - 0.7) - law.logpdf(x), rel=1e-9, abs=1e-9)
    assert np.exp(noise.log_cdf(x)) == pytest.approx(law.cdf(x), rel=1e-12)
    assert noise.log_cdf(-x) == pytest.approx(np.log(law.sf(x)), rel=1e-12)
    sample = noise.sample(20_000, np.random.default_rng(0))
    assert stats.kstest(sample, law.cdf).pvalue > 1e-4
    assert stats.kstest(sample, stats.laplace(scale=1.1 * scale).cdf).pvalue < 1e-4


def test_scales_broadcast_and_draws_do_not_depend_on_them():
    scales = np.array([[1.0], [4.0]])
    noise = LaplaceNoise(scales).sample((2, 3), np.random.default_rng(1))
    assert noise / scales == pytest.approx(LaplaceNoise(1.0).sample((2, 3), np.random.default_rng(1)))
    assert LaplaceNoise(scales).log_density(noise).shape == (2, 3)
    # Noise of scale 0 is a point mass.
    assert LaplaceNoise(0.0).sample(2, np.random.default_rng(0)).tolist() == [0, 0]
    assert LaplaceNoise(0.0).log_density([0.0, 1e-9]).tolist() == [0, -np.inf]
