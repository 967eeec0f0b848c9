"""DPHMM [5]: release answers about the state of a Markov chain with differential privacy on a
policy graph.

One module for each concept: `policy_graph` (section 4.2), `constraint` (Definition 4.1, Theorem
4.1), `hull` (section 5.1), `protection` (sections 5.2, 5.3, 6.1), `mechanisms` (sections 3.1,
11.5), `data_release` (6.2).
"""

from tplrepro.lazy import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, __file__)
