"""Differential privacy under temporal correlations: quantify the leakage, bound it, reproduce five papers.

Every public name is imported on first use (PEP 562), so that ``import tplrepro`` loads neither Numba nor
pandas.

>>> import tplrepro as tpl
>>> tpl.__version__
'0.3.0'

References
----------
Numbers in brackets stand for these papers throughout.

[1] Y. Cao, M. Yoshikawa, Y. Xiao, L. Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
    Correlations. IEEE TKDE 31(7), 2019.
[2] Y. Cao, M. Yoshikawa, Y. Xiao, L. Xiong: Quantifying Differential Privacy under Temporal Correlations. ICDE 2017.
[3] B. Jiang, M. Li, R. Tandon: Online Context-aware Data Release with Sequence Information Privacy. 2023.
[4] M. Rafiei, G. Elkoumy, W. M. P. van der Aalst: Quantifying Temporal Privacy Leakage in Continuous Event Data
    Publishing. 2022.
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from tplrepro.lazy import lazy_names as _lazy_names

__version__ = "0.3.0"

# public name -> module that defines it
_EXPORTS = {
    "TransitionMatrix": "markov.transition",
    "condition_on": "markov.conditioning",
    "strongest": "markov.generators",
    "smoothed": "markov.generators",
    "PrivacyLossFunction": "leakage.loss_function",
    "privacy_loss": "leakage.loss_function",
    "PriorFreeLoss": "leakage.prior_free",
    "temporal_privacy_leakage": "leakage.temporal",
    "pairwise_leakage": "leakage.pairwise",
    "leakage_at_all_times": "leakage.partial",
    "population_leakage": "leakage.population",
    "exact_leakage": "leakage.exact",
    "worst_outputs": "leakage.exact",
    "mechanism_leakage": "leakage.exact_finite",
    "ExactGaussianProfile": "leakage.exact_gaussian",
    "measured_leakage": "leakage.measured",
    "PrivacyProfile": "leakage.profile",
    "temporal_privacy_profile": "leakage.temporal_profile",
    "TemporalAccountant": "leakage.accountant",
    "TemporalFilter": "leakage.filter",
    "NoFiniteSupremumError": "allocation.published",
    "allocate_by_upper_bound": "allocation.published",
    "allocate_for_several": "allocation.several",
    "allocate_by_quantification": "allocation.published",
    "allocate_by_exact_leakage": "allocation.exact",
    "allocate_optimally": "allocation.optimal",
    "allocate_noise": "allocation.noise",
    "allocate_with_stopping": "allocation.stopping",
    "release_counts": "mechanisms.counts",
    "report": "reporting.report",
    "LinearGaussianSeries": "markov.linear_gaussian",
    "gaussian_series_leakage": "leakage.gaussian_series",
    "gaussian_series_limit": "leakage.gaussian_series",
    "allocate_series_noise": "allocation.gaussian_series",
    "correlate_series_noise": "allocation.gaussian_series",
    "endless_series_noise": "allocation.gaussian_series",
    "gaussian_delta": "mechanisms.gaussian",
    "gaussian_epsilon": "mechanisms.gaussian",
    "gaussian_mu": "mechanisms.gaussian",
}

# public submodules, reached as attributes
_MODULES = {
    "allocation": "allocation",
    "datasets": "datasets",
    "dphmm": "dphmm",
    "eventlog": "eventlog",
    "leakage": "leakage",
    "linear_program": "leakage.linear_program",
    "markov": "markov",
    "mechanisms": "mechanisms",
    "published": "leakage.published",
    "sip": "sip",
}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS, _MODULES)
