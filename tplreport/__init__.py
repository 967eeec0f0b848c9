"""Own data: from tables and logs to sequences, leakages with their uncertainty, budgets, and noisy
releases.

>>> import tplreport as tr
>>> noisy = tr.release_counts([105, 98], [0.5, 0.5], sensitivity=1)
>>> noisy.shape
(2,)
"""

from tplrepro.lazy import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, __file__)
