"""The data sets of the experiments: recorded data if they are found, otherwise synthetic stand-ins."""
