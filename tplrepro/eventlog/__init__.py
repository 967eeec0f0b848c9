"""Event logs released over time ([4]): how much the releases leak together about one case, whose
trace grows."""

from tplrepro.lazy import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, __file__)
