"""Readers, downloads, grids and synthetic stand-ins: the files that the experiments start from.

Each of `geolife`, `gowalla`, `kosarak` and `gaze` has `fetch()` (official file into a cache), `load(path=None)`
(official format into a tidy DataFrame) and `synthetic(...)` (a stand-in written in the official format and read back by
the same reader). `grid` turns coordinates into cells, `time_steps` turns observations into sequences of states, and
`prepare` does all of it: a data set's name in, sequences with their provenance out; `read_sequences` does it
for anybody's files. Nothing downloads by itself.

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
    "Prepared": "preparation",
    "Sequences": "tplrepro.markov.sequences",
    "fixed_steps": "time_steps",
    "joint_record": "preparation",
    "observed_sequences": "time_steps",
    "prepare": "preparation",
    "read_sequences": "observations",
}
_MODULES = ("gaze", "geolife", "gowalla", "grid", "kosarak", "preparation", "reading", "registry", "time_steps")

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS, _MODULES)
