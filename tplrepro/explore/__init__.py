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

from tplrepro.lazy import lazy_names as _lazy_names

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

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
