"""The interactive page: what a series of releases leaks, and which budgets keep a promise (sections 3 to 5 of [1]).

`matrices` and `own_data` read what is typed or uploaded, `analysis` computes what is shown, without widgets, and
`fields`, `plots` and `tables` are the parts of `leakage_page`.
"""

from page.leakage_page import LeakagePage

__all__ = ["LeakagePage"]
