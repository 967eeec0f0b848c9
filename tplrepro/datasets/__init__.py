"""Readers, downloads, grids and synthetic stand-ins: the files that the experiments start from.

Each of `geolife`, `gowalla`, `kosarak` and `gaze` has `fetch()` (official file into a cache), `load(path=None)`
(official format into a tidy DataFrame) and `synthetic(...)` (a stand-in written in the official format and read back by
the same reader). `grid` turns coordinates into cells, `resample` turns observations into sequences of states, and
`sequences` holds them in the ragged form from which transition matrices are estimated. Nothing downloads by itself.

Submodules are imported on first use, because pandas and pyarrow are slow to import.
"""

from __future__ import annotations

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "Box": "grid",
    "Grid": "grid",
    "BEIJING_3RD_RING": "grid",
    "LOS_ANGELES": "grid",
    "beijing_3rd_ring": "grid",
    "los_angeles": "grid",
    "DataFormatError": "reading",
    "DatasetNotFoundError": "registry",
    "Prepared": "preparation",
    "Sequences": "tplrepro.markov.sequences",
    "fixed_steps": "resample",
    "joint_record": "preparation",
    "observed_sequences": "resample",
    "prepare": "preparation",
}
_MODULES = (
    "gaze",
    "geolife",
    "gowalla",
    "grid",
    "kosarak",
    "preparation",
    "reading",
    "registry",
    "resample",
    "stand_ins",
    "writing",
)

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS, _MODULES)
