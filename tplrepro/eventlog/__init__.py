"""Event logs released over time ([4]): how much the releases leak together about one case.

A case's trace grows from release to release, and a transition system says how. Its states are the traces seen so far
(or still to come); its probabilities are the temporal correlations that BPL, FPL and TPL need. `xes_reader` and
`csv_reader` read logs by way of `events`, `preparation` takes what is there or writes a stand-in, `log` says what a log
is, `transition_system` discovers the states and the probabilities of one event, `correlations` those of one release,
`publishing` cuts a log into releases, `quantification` gives the leakage of each, or what the implementation published
with [4] reports instead.
"""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "DataFormatError": "tplrepro.datasets.reading",
    "read_xes": "xes_reader",
    "read_csv": "csv_reader",
    "check_log": "log",
    "TransitionSystem": "transition_system",
    "ReleaseStep": "correlations",
    "loss_matrix": "correlations",
    "release_step": "correlations",
    "Release": "publishing",
    "releases": "publishing",
    "PublishedLoss": "quantification",
    "quantify_releases": "quantification",
}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
