"""Budgets over time that keep the temporal privacy leakage within alpha: published schemes, and better ones.

The functions are public as ``tplrepro.allocate_...``; this face adds the type of a result.
"""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {"EndlessBudgets": "stopping"}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
