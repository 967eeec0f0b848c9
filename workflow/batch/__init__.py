"""Running the notebooks: the batch that `make figures` runs, one notebook of it, what is up to date."""
