"""Estimates of true counts from noisy ones, by what is public.

`smooth` is what users call, `smoothed` its result. `model` says what is assumed, `starts` how it
begins, `chain_over_time` which matrix each step has, and `noise` how large the noise is. `joint`
and `separate` filter and smooth by a chain, `random_walk` without one; `filtering` is what they
have in common, `tuning` chooses their settings, and `methods` puts both together.
"""
