"""Chains beyond one known matrix of order 1: the uncertainty of counts, and higher orders."""
