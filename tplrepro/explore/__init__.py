"""Choose budgets by hand: an interactive page over matrices, leakages and allocation schemes (sections 3 to 5 of [1]).

`inputs`, `sequences`, `budgets`, `observed` and `examples` read what a user types, uploads or chooses; `analysis` and
`schemes` compute everything that is shown, without widgets; `words`, `plots` and `saving` show and save it;
`scheduling` decides when; `controls`, `sources` and `browser` are the parts of `page`. Nothing else in the package
imports this folder.

Public names are imported on first use (PEP 562).

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
"""

from importlib import import_module as _import_module

# public name -> module of this folder that defines it
_EXPORTS = {
    "Analysis": "analysis",
    "Inputs": "analysis",
    "analyse": "analysis",
    "critical_budget": "analysis",
    "example": "examples",
    "critical_words": "words",
    "draw": "saving",
    "mean_error": "schemes",
    "supremum_words": "words",
    "witness_words": "words",
    "EXAMPLES": "examples",
    "LeakagePage": "page",
    "parse_budgets": "budgets",
    "parse_matrix": "inputs",
    "parse_sequences": "sequences",
}

__all__ = list(_EXPORTS)


def __getattr__(name):
    if name in _EXPORTS:
        value = getattr(_import_module(f"{__name__}.{_EXPORTS[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
