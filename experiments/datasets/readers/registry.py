"""Sources of the data sets, and where their files are on this machine.

`locate` looks in the folder named by TPLREPRO_DATA, then in the download cache. Only `fetch`
downloads, with pooch, into that cache: a file gets its final name when it is complete and its
checksum, if one is published, is right.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tplreport.reading.text_files import describe_content, file_blocks
from tplrepro.lazy import optional_import
from tplrepro.validation import check_choice

DATA_VARIABLE = "TPLREPRO_DATA"
CACHE_VARIABLE = "TPLREPRO_CACHE"
RETRIES = 5  # of a failed download
TIMEOUT = 30.0  # seconds without an answer


@dataclass(frozen=True)
class Source:
    """One data set: its official file, how to check it, and the names to look for.

    `filename` is its name in the cache, `patterns` are the names below TPLREPRO_DATA, the best
    first; `url` is None if no file can be used as published, and `remark` then says what to do.
    `known_hash` is the published "algorithm:digest"; `content_sha256` is that of the unpacked known
    copy.
    """

    title: str
    url: str | None
    filename: str
    patterns: tuple[str, ...]
    terms: str
    cite: str
    known_hash: str | None = None
    content_sha256: str | None = None
    remark: str = ""


SOURCES = {
    "geolife": Source(
        title="Geolife Trajectories 1.3",
        url="https://download.microsoft.com/download/F/4/8/F4894AA5-FDBC-481E-9285-D5F8C4C4F039/"
        "Geolife%20Trajectories%201.3.zip",
        filename="Geolife Trajectories 1.3.zip",
        patterns=(
            "geolife/Geolife Trajectories 1.3.zip",
            "geolife/Geolife Trajectories 1.3",
            "geolife/*.zip",
            "geolife",
        ),
        terms="Microsoft Research licence agreement, non-commercial use",
        cite="Zheng, Xie, Ma: GeoLife. IEEE Data Engineering Bulletin 33(2), 2010",
    ),
    "gowalla": Source(
        title="Gowalla check-ins",
        url="https://snap.stanford.edu/data/loc-gowalla_totalCheckins.txt.gz",
        filename="loc-gowalla_totalCheckins.txt.gz",
        patterns=("gowalla/loc-gowalla_totalCheckins.txt*", "gowalla/*.txt.gz", "gowalla/*.txt"),
        terms="SNAP, Stanford: cite the owners",
        cite="Cho, Myers, Leskovec: Friendship and Mobility. KDD 2011",
        known_hash="md5:8ebd5ed2dd376d8982987c49429cb9f9",
    ),
    "kosarak": Source(
        title="Kosarak click streams",
        url="https://www.cs.rpi.edu/~zaki/Workshops/FIMI/data/kosarak.dat.gz",
        filename="kosarak.dat.gz",
        patterns=("kosarak/kosarak.dat*", "kosarak/*.dat*"),
        terms="FIMI repository: cite the owner",
        cite="F. Bodon; Frequent Itemset Mining Implementations Repository",
        content_sha256="b7855ba155567d52390aa2a9eb09bb91ca27b5c737d358010501038f42d13dcf",
    ),
    "gaze": Source(
        title="Eye gaze recordings",
        url=None,
        filename="gaze.zip",
        patterns=("gaze/andersson2017", "gaze/gazegraph", "gaze"),
        terms="the recordings' own; Andersson et al.: GPL-3",
        cite="Andersson et al. 2017, doi 10.3758/s13428-016-0738-9; GazeGraph, SenSys 2020",
        remark="the recordings are published in forms of their own: convert them to one CSV a "
        "recording, with columns of time and two coordinates, in the folder gaze/andersson2017 or "
        "gaze/gazegraph",
    ),
}


#: Files that hold a random part of the rows in their area, so that steps between rows are not
#: natural.
THINNED = ("loc-gowalla_LA_merged.txt",)


class DatasetNotFoundError(FileNotFoundError, ValueError):
    """A data set was not found; the message lists the places searched and says how to get it."""


def cache_folder() -> Path:
    """Folder of downloads: TPLREPRO_CACHE, or the user's cache folder of the operating system."""
    with optional_import():
        import pooch

    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("tplrepro")).expanduser()


def data_folder() -> Path | None:
    """The folder named by TPLREPRO_DATA, or None."""
    named = os.environ.get(DATA_VARIABLE)
    if not named:
        return None
    return Path(named).expanduser()


def locate(
    name: str, path: str | Path | None = None, accept: Callable[[Path], bool] | None = None
) -> Path:
    """The file or folder of a data set: `path` if given, else the first that exists.

    Parameters
    ----------
    name : str
        A key of `SOURCES`.
    path : path-like, optional
    accept : callable, optional
        Whether the reader can use an existing path.

    Returns
    -------
    Path

    Raises
    ------
    DatasetNotFoundError
        With the places searched and how to get the set.
    """
    check_choice(name, "name", SOURCES)
    source = SOURCES[name]
    if path is not None:
        return _check_exists(Path(path), source)
    places = _places_of(source)
    for place in places:
        for found in sorted(place.folder.glob(place.pattern)):
            if _is_data(found) and (accept is None or accept(found)):
                return found
    raise DatasetNotFoundError(_not_found_message(name, places))


def _check_exists(path: Path, source: Source) -> Path:
    if not path.exists():
        raise DatasetNotFoundError(
            f"{source.title}: there is no file or folder {path}; "
            f"correct path=, or leave it out to look in {DATA_VARIABLE} and the download cache"
        )
    return path


@dataclass(frozen=True)
class Place:
    """Where a data set may be: the names of a pattern below a folder."""

    folder: Path
    pattern: str


def _places_of(source: Source) -> list[Place]:
    """Where a data set is looked for, in this order."""
    places = []
    folder = data_folder()
    if folder is not None:
        places = [Place(folder, pattern) for pattern in source.patterns]
    return [*places, Place(cache_folder(), source.filename)]


def _is_data(path: Path) -> bool:
    """Whether a file is no unfinished download and no note that marks another as synthetic."""
    return not path.name.endswith((".part", ".synthetic.json"))


def _not_found_message(name: str, places: list[Place]) -> str:
    """Where a data set was looked for, and how to get it."""
    source = SOURCES[name]
    searched = "; ".join(str(place.folder / place.pattern) for place in places)
    if data_folder() is None:
        searched += f" ({DATA_VARIABLE} is not set)"
    if source.url is None:
        remedy = f"{source.remark}, or"
    else:
        remedy = f"registry.fetch({name!r}) downloads it,"
    return (
        f"{source.title} not found; looked for {searched}. To get it: {remedy} set {DATA_VARIABLE} "
        "to the folder that holds it, or pass path=; "
        f"experiments.datasets.{name}.synthetic() makes a stand-in. "
        f"Terms: {source.terms}. Cite: {source.cite}."
    )


def fetch(name: str) -> Path:
    """Download the official file of a data set, a key of `SOURCES`, into the cache if it is not
    there; its path.

    Raises ValueError if there is no file to download, its checksum is wrong or it is no archive,
    and requests.exceptions.RequestException if the download fails repeatedly.
    """
    check_choice(name, "name", SOURCES)
    source = SOURCES[name]
    if source.url is None:
        raise DatasetNotFoundError(
            f"{source.title}: there is no official file to download; "
            f"{source.remark}. Terms: {source.terms}. Cite: {source.cite}."
        )
    path = _download(source)
    with open(path, "rb") as file:
        head = file.read(4096)
    if not head.startswith(ARCHIVE_BEGINS[path.suffix]):
        path.unlink()
        raise ValueError(
            f"{source.title}: a {path.suffix} file was expected from {source.url}, "
            f"found {describe_content(head)}; "
            "nothing was kept: open the address in a browser, or pass path="
        )
    return path


#: The first bytes of an archive by its suffix.
ARCHIVE_BEGINS = {".zip": b"PK\x03\x04", ".gz": b"\x1f\x8b"}


def _download(source: Source) -> Path:
    """The official file in the cache, used again if its checksum is right, or if none is
    published."""
    with optional_import():
        import pooch

    shelf = pooch.create(
        cache_folder(),
        base_url="",
        registry={source.filename: source.known_hash},
        urls={source.filename: source.url},
        retry_if_failed=RETRIES,
    )
    headers = {"Accept-Encoding": "identity"}
    downloader = pooch.HTTPDownloader(progressbar=True, timeout=TIMEOUT, headers=headers)
    return Path(shelf.fetch(source.filename, downloader=downloader))


def is_official(name: str, path: str | Path) -> bool:
    """Whether a file is known to be the whole set: by its published checksum, or by the content of
    the known copy."""
    with optional_import():
        import pooch

    source = SOURCES[name]
    if source.known_hash:
        return Path(path).is_file() and pooch.hashes.hash_matches(str(path), source.known_hash)
    if source.content_sha256 is None:
        return False
    digest = hashlib.sha256()
    for block in file_blocks(path, lambda: 1):
        digest.update(block)
    return digest.hexdigest() == source.content_sha256
