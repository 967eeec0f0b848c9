"""Leakages of each ordered pair of states, for releases that separate some pairs less than
others."""
