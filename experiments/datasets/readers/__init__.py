"""Readers and downloads of the recorded data sets of the papers.

Each of `geolife`, `gowalla`, `kosarak` and `gaze` has `load(path=None)` (the official format into a
tidy DataFrame); `registry.fetch(name)` downloads an official file into a cache, and nothing
downloads by itself.
"""
