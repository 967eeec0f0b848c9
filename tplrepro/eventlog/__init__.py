"""Event logs released over time: how much the releases leak together about one case.

A case's trace grows from release to release, and a transition system says how. Its states are the traces seen so far
(or still to come); its probabilities are the temporal correlations that BPL, FPL and TPL need. One room for each step:
`xes` and `csv` read logs, `log` says what a log is, `transition_system` discovers the states and the probabilities of
one event, `correlations` those of one release, `publishing` cuts a log into releases, `quantification` gives the
leakage of each, `published` what the implementation published with [4] reports instead, `witness` says which traces are
behind a leakage, `stand_in` writes synthetic logs.

Submodules are imported on first use.

References
----------
[4] M. Rafiei, G. Elkoumy, W. M. P. van der Aalst: Quantifying Temporal Privacy Leakage in Continuous Event Data
    Publishing. 2022.
"""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "DataFormatError": "tplrepro.datasets.reading",
    "read_xes": "xes",
    "iter_xes": "xes",
    "read_csv": "csv",
    "write_xes": "stand_in",
    "synthetic": "stand_in",
    "recorded_logs": "log",
    "check_log": "log",
    "TransitionSystem": "transition_system",
    "release_step": "correlations",
    "ReleaseStep": "correlations",
    "releases": "publishing",
    "Release": "publishing",
    "quantify_releases": "quantification",
}
_MODULES = (
    "correlations",
    "csv",
    "log",
    "published",
    "publishing",
    "quantification",
    "stand_in",
    "transition_system",
    "witness",
    "xes",
)

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS, _MODULES)
