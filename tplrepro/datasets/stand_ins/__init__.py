"""Synthetic stand-ins: one module a data set writes the official format, at any size in bounded memory."""
