"""Code that the notebooks share beyond the package: set-ups of the papers, comparison, figures,
records, claims."""
