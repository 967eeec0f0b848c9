"""Budgets over time that keep the temporal privacy leakage within alpha: published schemes, and better ones."""

from tplrepro.lazy import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, {})  # its public names are those of tplrepro itself
