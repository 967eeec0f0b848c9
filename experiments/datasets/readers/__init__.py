"""Readers and downloads of the recorded data sets of the papers.

Each of `geolife`, `gowalla`, `kosarak` and `gaze` has `fetch()` (the official file into a cache) and
`load(path=None)` (the official format into a tidy DataFrame); nothing downloads by itself.
"""
