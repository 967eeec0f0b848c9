"""Temporal privacy leakage: the loss function L(alpha), the leakages over time, and the published
algorithms."""
