"""Markov chains: transition matrices, their estimation from sequences, and filtering by them."""

from tplrepro.lazy import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, __file__)
