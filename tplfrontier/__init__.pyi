from tplfrontier.budgets.gaussian_filter import GaussianFilter as GaussianFilter
from tplfrontier.budgets.gaussian_noise import allocate_noise as allocate_noise
from tplfrontier.budgets.linear_gaussian import allocate_linear_noise as allocate_linear_noise
from tplfrontier.budgets.linear_gaussian import linear_gaussian_leakage as linear_gaussian_leakage
from tplfrontier.budgets.linear_mechanisms import event_level_budgets as event_level_budgets
from tplfrontier.budgets.linear_mechanisms import (
    gaussian_event_level_budgets as gaussian_event_level_budgets,
)
from tplfrontier.budgets.several_chains import allocate_for_several as allocate_for_several
from tplfrontier.budgets.stopping import allocate_with_stopping as allocate_with_stopping
from tplfrontier.chains.confidence import loss_from_counts as loss_from_counts
from tplfrontier.chains.higher_order import estimate_higher_order as estimate_higher_order
from tplfrontier.chains.higher_order import every_kth as every_kth
from tplfrontier.chains.one_place import one_place_leakage as one_place_leakage
from tplfrontier.exact.finite_mechanism import mechanism_leakage as mechanism_leakage
from tplfrontier.exact.observed_outputs import measured_leakage as measured_leakage
from tplfrontier.exact.two_states import ExactGaussianProfile as ExactGaussianProfile
from tplfrontier.pairs.leakage import pairwise_leakage as pairwise_leakage
from tplfrontier.profiles.event_accountant import EventAccountant as EventAccountant
from tplfrontier.profiles.gaussian import gaussian_delta as gaussian_delta
from tplfrontier.profiles.gaussian import gaussian_epsilon as gaussian_epsilon
from tplfrontier.profiles.gaussian import gaussian_mu as gaussian_mu
from tplfrontier.profiles.privacy_profile import PrivacyProfile as PrivacyProfile
from tplfrontier.profiles.temporal_profile import (
    temporal_privacy_profile as temporal_privacy_profile,
)
from tplfrontier.series.leakage import gaussian_series_leakage as gaussian_series_leakage
from tplfrontier.series.leakage import gaussian_series_limit as gaussian_series_limit
from tplfrontier.series.noise import allocate_series_noise as allocate_series_noise
from tplfrontier.series.noise import correlate_series_noise as correlate_series_noise
from tplfrontier.series.noise import endless_series_noise as endless_series_noise
from tplfrontier.series.state_space import LinearGaussianSeries as LinearGaussianSeries
