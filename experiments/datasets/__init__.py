"""The data sets of the experiments: recorded data where they are found, else synthetic stand-ins."""
