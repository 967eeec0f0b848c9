"""Budgets over time that keep the temporal privacy leakage within alpha: published schemes, and
better ones."""
