"""Temporal privacy leakage: the loss function L(alpha), the leakages over time, and the published algorithms."""

from tplrepro.lazy import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, {})  # its public names are those of tplrepro itself
