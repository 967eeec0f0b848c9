"""The batch that regenerates every figure; the package `tplrepro` knows nothing of it, nor of notebooks."""
