"""Beyond the papers: promises at a delta, for pairs of states, for series and for chains that are
estimated.

Takes the matrices, loss functions and results of `tplrepro`; docs/theory proves each promise.

`profiles` has the (epsilon, delta) of releases by any mechanism, `pairs` the leakage of each pair
of states, `series` normal series, `chains` estimated ones, `budgets` plans of budgets and noise,
and `exact` what one given mechanism leaks.

>>> import tplfrontier as tf
>>> P = [[0.8, 0.2], [0.1, 0.9]]
>>> profile = tf.temporal_privacy_profile([(0.1, 5)], backward=P, forward=P)
>>> profile.epsilon(1e-6).round(3).tolist()
[0.281, 0.326, 0.34, 0.326, 0.281]
"""

from tplrepro.lazy import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, __file__)
