"""The batch that regenerates every figure: configuration, checks, and one process a notebook.

None of this is part of the package `tplrepro`, which knows nothing of notebooks.
"""
