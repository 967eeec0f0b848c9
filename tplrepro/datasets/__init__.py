"""Readers and downloads of data sets, grids, time steps: from files and DataFrames to sequences of states.

`read_sequences` reads anybody's files. Each of `geolife`, `gowalla`, `kosarak` and `gaze` has `fetch()` (the
official file into a cache) and `load(path=None)` (the official format into a tidy DataFrame); nothing
downloads by itself. `grid` turns coordinates into cells, `time_steps` turns observations into sequences of
states. In a checkout of the repository, `prepare` does all of this for one data set, and `synthetic(...)` of
a data set makes a stand-in.

Submodules are imported on first use, because pandas and pyarrow are slow to import.
"""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "Box": "grid",
    "Grid": "grid",
    "BEIJING_3RD_RING": "grid",
    "LOS_ANGELES": "grid",
    "DataFormatError": "reading",
    "DatasetNotFoundError": "registry",
    "Sequences": "tplrepro.markov.sequences",
    "fixed_steps": "time_steps",
    "observed_sequences": "time_steps",
    "read_sequences": "observations",
}
_MODULES = ("gaze", "geolife", "gowalla", "grid", "kosarak", "reading", "registry", "time_steps")

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS, _MODULES)
