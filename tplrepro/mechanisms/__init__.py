"""The noise of the papers, for a single release (`laplace`, `k_norm`)."""

from tplrepro.lazy import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, __file__)
