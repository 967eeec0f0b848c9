"""The interactive page: choose budgets by hand, and see their leakage and error (sections 3 to 5 of [1]).

`text`, `matrices` and `sequences` read what a user types, uploads or chooses. `analysis` and `noises` compute
everything that is shown, without widgets. `report`, `plots` and `notebook` show and save it, with the terms of
`glossary`. `scheduling` decides when to compute. `controls`, `sources` and `browser` are the parts of
`leakage_page`.
"""

from page.analysis import Inputs, analyse
from page.leakage_page import LeakagePage
from page.matrices import example
from page.plots import draw
from page.report import budgets_table, critical_words, supremum_words
from tplreport.schemes import mean_error

__all__ = [
    "Inputs",
    "LeakagePage",
    "analyse",
    "budgets_table",
    "critical_words",
    "draw",
    "example",
    "mean_error",
    "supremum_words",
]
