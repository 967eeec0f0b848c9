"""The data sets of the experiments: recorded data if they are found, otherwise synthetic stand-ins.

>>> from experiments import datasets
>>> datasets.load("geolife", synthetic=True, stand_in={"n_users": 2}, cell_km=4.0)
Prepared(Geolife in Beijing (synthetic data): Sequences(40 sequences, 5328 values, 5 states))
"""

from experiments.datasets.preparation import prepare

load = prepare
