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

from importlib import import_module as _import_module

_EXPORTS = {
    "DataFormatError": "tplrepro.datasets.reading",
    "read_xes": "tplrepro.eventlog.xes",
    "iter_xes": "tplrepro.eventlog.xes",
    "read_csv": "tplrepro.eventlog.csv",
    "write_xes": "tplrepro.eventlog.stand_in",
    "synthetic": "tplrepro.eventlog.stand_in",
    "recorded_logs": "tplrepro.eventlog.log",
    "check_log": "tplrepro.eventlog.log",
    "TransitionSystem": "tplrepro.eventlog.transition_system",
    "release_step": "tplrepro.eventlog.correlations",
    "ReleaseStep": "tplrepro.eventlog.correlations",
    "releases": "tplrepro.eventlog.publishing",
    "Release": "tplrepro.eventlog.publishing",
    "quantify_releases": "tplrepro.eventlog.quantification",
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

__all__ = [*_EXPORTS, *_MODULES]


def __getattr__(name):
    if name in _EXPORTS:
        value = getattr(_import_module(_EXPORTS[name]), name)
    elif name in _MODULES:
        value = _import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
