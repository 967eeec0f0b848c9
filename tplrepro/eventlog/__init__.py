"""Event logs released over time ([4]): how much the releases leak together about one case.

The trace of a case grows from release to release. A transition system describes how: its states are the
traces so far (or the traces still to come), and its probabilities are the temporal correlations that BPL, FPL
and TPL need. `xes_reader` and `csv_reader` read logs with the help of `events`; `log` defines what a log is;
`transition_system` discovers the states and the probabilities of one event; `correlations` derives those of
one release; `publishing` divides a log into releases; `quantification` computes the leakage of each release,
also by the rule published with [4].
"""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "DataFormatError": "tplrepro.datasets.reading",
    "read_xes": "xes_reader",
    "read_csv": "csv_reader",
    "check_log": "log",
    "TransitionSystem": "transition_system",
    "StepMatrices": "correlations",
    "loss_matrix": "correlations",
    "release_step": "correlations",
    "Release": "publishing",
    "releases": "publishing",
    "PublishedLoss": "quantification",
    "quantify_releases": "quantification",
}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
