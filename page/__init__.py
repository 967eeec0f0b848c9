"""The interactive page: what a series of releases leaks, and which budgets keep a promise (sections
3 to 5 of [1])."""

from page.leakage_page import LeakagePage

__all__ = ["LeakagePage"]
