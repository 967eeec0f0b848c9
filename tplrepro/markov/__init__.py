"""Markov chains: transition matrices, how to estimate them and how to generate them."""
