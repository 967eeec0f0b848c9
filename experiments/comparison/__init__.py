"""One comparison of all notions: the same data, the same adversary, the same task, at equal
measured leakage.

`setting` holds the true locations and what the adversary knows; `central` and `local` hold the
mechanisms with and without a trusted server; `catalogue` says what each notion promises;
`calibration` measures what releases leak and finds the parameters at which mechanisms leak equally.
"""

from experiments.comparison.calibration import at_equal_leakage, simulate, sweep
from experiments.comparison.catalogue import at_guarantee, mechanisms, notions
from experiments.comparison.setting import setting_from_sequences

__all__ = [
    "at_equal_leakage",
    "at_guarantee",
    "mechanisms",
    "notions",
    "setting_from_sequences",
    "simulate",
    "sweep",
]
