"""Distributions are tested at p > 1e-4 with fixed seeds: a wrong sampler fails by far, a right one never."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from tplrepro import dphmm
from tplrepro.dphmm import SensitivityHull, cross_polytope
from tplrepro.mechanisms import KNormNoise, LaplaceNoise, uniform_points

SIZE = 20_000
LEVEL = 1e-4


def _hull(d):
    return SensitivityHull(np.random.default_rng(0).normal(size=(6, d)) * [4, 1, 0.3][:d])


def _noise(K, epsilon):
    return KNormNoise(K, epsilon).sample(SIZE, np.random.default_rng(5))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_uniform_points_against_rejection(d):
    K, rng = _hull(d), np.random.default_rng(d)
    exact = uniform_points(K, SIZE, rng)
    box = np.abs(K.vertices).max(axis=0)
    proposals = rng.uniform(-box, box, (SIZE * 20, d))
    rejection = proposals[K.contains(proposals)][:SIZE]
    assert len(rejection) == SIZE
    for direction in np.vstack([np.eye(d), rng.normal(size=(4, d))]):
        assert stats.ks_2samp(exact @ direction, rejection @ direction).pvalue > LEVEL
    # ||u||^d of a uniform point is uniform in [0, 1].
    assert stats.kstest(K.norm(exact) ** d, "uniform").pvalue > LEVEL
    assert exact.T @ exact / SIZE == pytest.approx(K.second_moment(), rel=0.1, abs=0.05 * K.second_moment().max())


# The last is so thin that it is widened by a tenth, which the noise must follow.
@pytest.mark.parametrize("K", [_hull(1), _hull(2), _hull(3), SensitivityHull([[1, 1], [1, 1 + 2e-12]])])
def test_the_norm_of_the_noise_has_a_gamma_distribution_of_shape_d(K):
    d, epsilon = K.dimension, 0.7
    noise = _noise(K, epsilon)
    norms = K.norm(noise)
    assert stats.kstest(norms, stats.gamma(d, scale=1 / epsilon).cdf).pvalue > LEVEL
    # The mistake that is easily made, shape d + 1 for the norm, is far off.
    assert stats.kstest(norms, stats.gamma(d + 1, scale=1 / epsilon).cdf).pvalue < 1e-100
    uniform = uniform_points(K, SIZE, np.random.default_rng(2))  # of the same directions
    assert stats.ks_2samp(noise[:, 0] / norms, uniform[:, 0] / K.norm(uniform)).pvalue > LEVEL


@pytest.mark.parametrize("d", [1, 2, 3])
def test_on_a_cross_polytope_the_noise_is_laplace(d):
    noise = _noise(cross_polytope(d, radius=3.0), epsilon=0.5)
    assert all(stats.kstest(column, stats.laplace(scale=6.0).cdf).pvalue > LEVEL for column in noise.T)
    # Independent coordinates: the ranks are uncorrelated, and so are those of the absolute values.
    for first, second in combinations(noise.T, 2):
        assert stats.spearmanr(first, second).pvalue > LEVEL
        assert stats.spearmanr(np.abs(first), np.abs(second)).pvalue > LEVEL


def test_noise_on_a_segment_is_laplace_along_it_and_on_a_point_none():
    end = np.array([3.0, -4.0])
    noise = _noise(SensitivityHull([end]), 2.0)
    along = noise @ end / 25
    assert noise == pytest.approx(along[:, None] * end)
    assert stats.kstest(along, stats.laplace(scale=0.5).cdf).pvalue > LEVEL
    assert not _noise(SensitivityHull(np.zeros((1, 2))), 1.0).any()


def test_densities_and_tails_are_scipy_s_and_scales_broadcast():
    scales = np.array([[0.3], [1.0], [25.0]])
    noise, law = LaplaceNoise(scales), stats.laplace(scale=scales)
    x = np.concatenate([-np.geomspace(1e-6, 600, 40), [0], np.geomspace(1e-6, 600, 40)]) * scales
    assert noise.log_density(x) == pytest.approx(law.logpdf(x), rel=1e-13)
    assert noise.mean_square == pytest.approx(law.var())
    assert noise.log_ratio(x, 0.7) == pytest.approx(law.logpdf(x - 0.7) - law.logpdf(x), rel=1e-9, abs=1e-9)
    assert np.exp(noise.log_cdf(x)) == pytest.approx(law.cdf(x), rel=1e-12)
    assert noise.log_cdf(-x) == pytest.approx(np.log(law.sf(x)), rel=1e-12)
    sample = noise.sample((3, SIZE), np.random.default_rng(0))
    for row, scale in zip(sample, scales, strict=True):
        assert stats.kstest(row, stats.laplace(scale=scale).cdf).pvalue > LEVEL
        assert stats.kstest(row, stats.laplace(scale=1.1 * scale).cdf).pvalue < LEVEL
    # Draws do not depend on the scale; noise of scale 0 is a point mass.
    assert sample / scales == pytest.approx(LaplaceNoise(1.0).sample((3, SIZE), np.random.default_rng(0)))
    assert LaplaceNoise(0.0).sample(2, np.random.default_rng(0)).tolist() == [0, 0]
    assert LaplaceNoise(0.0).log_density([0.0, 1e-9]).tolist() == [0, -np.inf]
    for bad in (-1.0, [1.0, np.nan], np.inf, "1"):
        with pytest.raises(ValueError, match="scale"):
            LaplaceNoise(bad)


THIN = [
    [[1.7e18], [1.7e18 + 1e5]],
    [[0, 0], [1e9, 0], [5e8, 1e-20]],
    [[0, 0], [1e9, 1e9], [5e8, 5e8 + 1e-4]],
    [[1.7e18, 0], [1.7e18 + 1e5, 0], [1.7e18, 1]],
    [[0, 0, 7], [1e9, 0, 7], [5e8, 1e-20, 7]],
]


@pytest.mark.parametrize("answers", THIN)
def test_noise_has_every_direction_in_which_answers_differ(answers):
    f = np.array(answers)
    policy = dphmm.PolicyGraph.complete(len(f))
    directions = np.vstack([np.eye(f.shape[1]), np.resize([1, -1], f.shape[1])])
    noise = _noise(dphmm.sensitivity_hull(policy, f), 1.0) @ directions.T
    width = np.abs(policy.differences(f) @ directions.T).max(axis=0)
    assert (np.abs(noise).mean(axis=0)[width > 0] > 0.3 * width[width > 0]).all()
    assert not noise[:, width == 0].any()
