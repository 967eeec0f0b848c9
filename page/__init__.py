"""Choose budgets by hand: an interactive page over matrices, leakages and allocation schemes (sections 3 to 5 of [1]).

`text`, `matrices` and `sequences` read what a user types, uploads or chooses; `analysis` and `schemes` compute
everything that is shown, without widgets; `report` and `plots` show and save it, in words of `glossary`; `scheduling`
decides when; `controls`, `sources`, `browser` and `address` are the parts of `leakage_page`.

Public names are imported on first use (PEP 562).
"""

from tplrepro.lazy import lazy_names as _lazy_names

# public name -> module of this folder that defines it
_EXPORTS = {
    "EXAMPLES": "matrices",
    "Inputs": "analysis",
    "LeakagePage": "leakage_page",
    "analyse": "analysis",
    "critical_words": "report",
    "draw": "plots",
    "example": "matrices",
    "mean_error": "schemes",
    "supremum_words": "report",
}

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS)
