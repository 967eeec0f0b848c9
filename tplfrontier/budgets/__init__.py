"""Budgets and noise over time: under a delta, for a series that may end, for several chains, of
linear mechanisms."""
