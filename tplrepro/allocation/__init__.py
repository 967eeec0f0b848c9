"""Budgets over time that keep the temporal privacy leakage within alpha: the schemes of the papers,
and better ones."""
