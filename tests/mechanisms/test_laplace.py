import numpy as np
import pytest
from scipy import stats

from tplrepro.mechanisms import LaplaceNoise


def test_densities_and_tails_are_scipy_s_and_scales_broadcast():
    scales = np.array([[0.3], [1.0], [25.0]])
    noise, law = LaplaceNoise(scales), stats.laplace(scale=scales)
    x = np.concatenate([-np.geomspace(1e-6, 600, 40), [0], np.geomspace(1e-6, 600, 40)]) * scales
    assert noise.log_density(x) == pytest.approx(law.logpdf(x), rel=1e-13)
    assert noise.mean_square == pytest.approx(law.var())
    assert noise.log_ratio(x, 0.7) == pytest.approx(law.logpdf(x - 0.7) - law.logpdf(x), rel=1e-9, abs=1e-9)
    assert np.exp(noise.log_cdf(x)) == pytest.approx(law.cdf(x), rel=1e-12)
    assert noise.log_cdf(-x) == pytest.approx(np.log(law.sf(x)), rel=1e-12)
    sample = noise.sample((3, 20_000), np.random.default_rng(0))
    for row, scale in zip(sample, scales, strict=True):
        assert stats.kstest(row, stats.laplace(scale=scale).cdf).pvalue > 1e-4
        assert stats.kstest(row, stats.laplace(scale=1.1 * scale).cdf).pvalue < 1e-4
    # Draws do not depend on the scale; noise of scale 0 is a point mass.
    assert sample / scales == pytest.approx(LaplaceNoise(1.0).sample((3, 20_000), np.random.default_rng(0)))
    assert LaplaceNoise(0.0).sample(2, np.random.default_rng(0)).tolist() == [0, 0]
    assert LaplaceNoise(0.0).log_density([0.0, 1e-9]).tolist() == [0, -np.inf]
