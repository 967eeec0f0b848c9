"""Synthetic stand-ins: one module per data set writes its official format, at any size in bounded memory."""
