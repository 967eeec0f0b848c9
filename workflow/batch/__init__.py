"""Running the notebooks: the batch of `make figures`, one notebook of it, what is up to date."""
