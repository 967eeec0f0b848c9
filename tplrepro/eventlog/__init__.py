"""Event logs released over time ([4]): how much the releases leak together about one case.

The trace of a case grows from release to release. A transition system describes how: its states are the
traces so far (or the traces still to come), and its probabilities are the temporal correlations that BPL, FPL
and TPL need. `log` says what a log is and how it is published;
`transition_system` has states, probabilities of one event and of one release; `quantification` computes the
leakage of each release, also by the rule published with [4].
"""

from tplrepro.lazy import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, __file__)
