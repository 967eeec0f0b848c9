"""Where each data set comes from, and where it is found on this machine.

`locate` looks in the folder that TPLREPRO_DATA names, then in the download cache; only `fetch` downloads, into that
cache, with pooch: a file has its final name only when it is complete and its checksum, where one is published, right.
Address and digest are noted beside it, and a download that is not as noted is never read.
"""

import hashlib
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tplrepro.datasets.reading import DataFormatError, describe_content, file_blocks
from tplrepro.files import write_whole
from tplrepro.lazy import extra
from tplrepro.validation import check_choice

__all__ = ["DatasetNotFoundError", "SOURCES", "Source", "cache_folder", "data_folder", "fetch", "locate"]

DATA_VARIABLE = "TPLREPRO_DATA"
CACHE_VARIABLE = "TPLREPRO_CACHE"
RETRIES, TIMEOUT = 5, 30.0  # after failures of a download; seconds to wait for a server to say something


@dataclass(frozen=True)
class Source:
    """One data set: its official file, how to check it, and under which names it is looked for.

    `filename` is its name in the cache, `patterns` those below TPLREPRO_DATA, the best first; `url` is None where no
    file can be taken as it is, and `remark` then says what to do. `known_hash` is "algorithm:digest" as published,
    `content_sha256` that of the unpacked content of the known copy: a difference is a warning.
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
        remark="the recordings are published in forms of their own: convert them to one CSV a recording, with columns "
        "of time and two coordinates, in the folder gaze/andersson2017 or gaze/gazegraph",
    ),
}


class DatasetNotFoundError(FileNotFoundError, ValueError):
    """A data set is on none of the places looked at; the message lists them and says how to get it."""


def cache_folder() -> Path:
    """Folder of downloads: what TPLREPRO_CACHE names, or the user's cache folder of the operating system."""
    with extra():
        import pooch

    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("tplrepro")).expanduser()


def data_folder() -> Path | None:
    """The folder that TPLREPRO_DATA names, or None."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named).expanduser() if named else None


def locate(name: str, path: str | Path | None = None, accept: Callable[[Path], bool] | None = None) -> Path:
    """The file or folder of a data set, a key of `SOURCES`: `path` if it is given, else the first that is found.

    `accept` says of a path that exists whether it is what the reader can take. DatasetNotFoundError with the places
    looked at, and how to get the set; DataFormatError for a download that changed since.
    """
    check_choice(name, "name", SOURCES)
    source = SOURCES[name]
    if path is not None:
        if not Path(path).exists():
            raise DatasetNotFoundError(
                f"{source.title}: there is no file or folder {path}; "
                f"correct path=, or leave it out to look in {DATA_VARIABLE} and the download cache"
            )
        return Path(path)
    folder, cache = data_folder(), cache_folder()
    places = [(folder, pattern) for pattern in source.patterns] if folder else []
    places.append((cache, source.filename))
    for place, pattern in places:
        for found in sorted(place.glob(pattern)):
            if place == cache and not _as_noted(source, found):
                raise DataFormatError(
                    f"the download is not what {source.url} gave: it changed, or comes from elsewhere; "
                    f"tplrepro.datasets.{name}.fetch() gets it again",
                    found,
                )
            if not found.name.endswith((".part", ".synthetic.json")) and (accept is None or accept(found)):
                return found
    raise DatasetNotFoundError(
        f"{source.title} not found; looked for {'; '.join(str(place / pattern) for place, pattern in places)}"
        + f" ({DATA_VARIABLE} is not set)" * (folder is None)
        + ". To get it: "
        + (f"tplrepro.datasets.{name}.fetch() downloads it, " if source.url else f"{source.remark}, or ")
        + f"set {DATA_VARIABLE} to the folder that holds it, or pass path=; tplrepro.datasets.{name}.synthetic() "
        f"makes a stand-in. Terms: {source.terms}. Cite: {source.cite}."
    )


def fetch(name: str) -> Path:
    """Download the official file of a data set, a key of `SOURCES`, into the cache, unless it is there; gives its path.

    ValueError if there is no file to download, or its checksum is wrong; requests.exceptions.RequestException if the
    download failed again and again.
    """
    with extra():
        import pooch

    check_choice(name, "name", SOURCES)
    source = SOURCES[name]
    if source.url is None:
        raise DatasetNotFoundError(
            f"{source.title}: there is no official file to download; "
            f"{source.remark}. Terms: {source.terms}. Cite: {source.cite}."
        )
    path = cache_folder() / source.filename
    if path.exists() and _as_noted(source, path):
        return path
    path.unlink(missing_ok=True)
    files, urls = {source.filename: source.known_hash}, {source.filename: source.url}
    shelf = pooch.create(path.parent, base_url="", registry=files, urls=urls, retry_if_failed=RETRIES)
    headers = {"Accept-Encoding": "identity"}
    shelf.fetch(source.filename, downloader=pooch.HTTPDownloader(progressbar=True, timeout=TIMEOUT, headers=headers))
    _check_content(source, path)
    write_whole(*_note(source, path))
    return path


def is_official(name: str, path: str | Path) -> bool:
    """Whether a file is known to be the whole set: by its published checksum, or by the content of the known copy."""
    with extra():
        import pooch

    source = SOURCES[name]
    if source.known_hash:
        return Path(path).is_file() and pooch.hashes.hash_matches(str(path), source.known_hash)
    return source.content_sha256 is not None and _content_digest(path) == source.content_sha256


def _content_digest(path: str | Path) -> str:
    digest = hashlib.sha256()
    for block in file_blocks(path, lambda: 1):
        digest.update(block)
    return digest.hexdigest()


def _note(source: Source, path: Path) -> tuple[Path, bytes]:
    """Where a download's digest and address are noted, and the note."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return path.with_name(path.name + ".sha256"), f"{digest}  {source.url}\n".encode()


def _as_noted(source: Source, path: Path) -> bool:
    """Whether a download is what the present address gave, unchanged since."""
    place, note = _note(source, path)
    return place.exists() and place.read_bytes() == note


def _check_content(source: Source, path: Path) -> None:
    """Check what can be told without a published checksum: an archive, with the known content."""
    with open(path, "rb") as file:
        head = file.read(4096)
    if not head.startswith(b"PK\x03\x04" if path.suffix == ".zip" else b"\x1f\x8b"):
        path.unlink()
        raise ValueError(
            f"{source.title}: a {path.suffix} file was expected from {source.url}, found {describe_content(head)}; "
            "nothing was kept: open the address in a browser, or pass path="
        )
    digest = source.content_sha256 and _content_digest(path)
    if digest != source.content_sha256:
        known = f"while the one known copy has {source.content_sha256}; copies in circulation differ"
        warnings.warn(f"{path}: the content has sha256 {digest}, {known}, so cite it", UserWarning, stacklevel=3)
