"""Servers on the reader's machine: the interactive page, JupyterLab."""
