"""Where each data set comes from, and where it is found on this machine.

`locate` looks in the folder that TPLREPRO_DATA names, then in the download cache; `fetch` downloads the official file
into that cache with pooch. An interrupted download goes on where it stopped if the server allows it, or starts afresh;
a file appears under its final name only when it is complete and its checksum, where one is published, is right.
Nothing downloads by itself: only `fetch` does.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

from tplrepro.datasets.reading import line_blocks

__all__ = ["DatasetNotFoundError", "SOURCES", "Source", "cache_folder", "fetch", "locate"]

DATA_VARIABLE = "TPLREPRO_DATA"
CACHE_VARIABLE = "TPLREPRO_CACHE"
CHUNK_BYTES = 1 << 14  # what of a chunk has arrived when a connection breaks is lost


@dataclass(frozen=True)
class Source:
    """One data set: its official file, how to check it, and under which names it is looked for.

    Attributes
    ----------
    name, title : str
    url : str or None
        Official address; None where there is no file that can be taken as it is.
    filename : str
        Name in the cache.
    known_hash : str or None
        "algorithm:digest" of the file as downloaded, where its owner publishes one.
    content_sha256 : str or None
        Digest of the unpacked content that copies in circulation are said to have; a difference is a warning.
    size : int or None
        Bytes of the official file, where known.
    patterns : tuple of str
        Glob patterns below TPLREPRO_DATA, the best first.
    terms, cite, remark : str
    """

    name: str
    title: str
    url: str | None
    filename: str
    patterns: tuple[str, ...]
    known_hash: str | None = None
    content_sha256: str | None = None
    size: int | None = None
    terms: str = ""
    cite: str = ""
    remark: str = ""


SOURCES = {
    source.name: source
    for source in (
        Source(
            name="geolife",
            title="Geolife Trajectories 1.3",
            url=(
                "https://download.microsoft.com/download/F/4/8/F4894AA5-FDBC-481E-9285-D5F8C4C4F039/"
                "Geolife%20Trajectories%201.3.zip"
            ),
            filename="Geolife Trajectories 1.3.zip",
            patterns=(
                "geolife/Geolife Trajectories 1.3.zip",
                "Geolife Trajectories 1.3.zip",
                "geolife/Geolife Trajectories 1.3",
                "Geolife Trajectories 1.3",
                "geolife/*.zip",
                "geolife",
            ),
            terms="Microsoft Research licence agreement, non-commercial use",
            cite="Zheng, Xie, Ma: GeoLife. IEEE Data Engineering Bulletin 33(2), 2010",
        ),
        Source(
            name="gowalla",
            title="Gowalla check-ins",
            url="https://snap.stanford.edu/data/loc-gowalla_totalCheckins.txt.gz",
            filename="loc-gowalla_totalCheckins.txt.gz",
            known_hash="md5:8ebd5ed2dd376d8982987c49429cb9f9",
            size=105_470_044,
            patterns=(
                "gowalla/loc-gowalla_totalCheckins.txt*",
                "loc-gowalla_totalCheckins.txt*",
                "gowalla/*.txt.gz",
                "gowalla/*.txt",
            ),
            terms="SNAP, Stanford: cite the owners",
            cite="Cho, Myers, Leskovec: Friendship and Mobility. KDD 2011",
        ),
        Source(
            name="kosarak",
            title="Kosarak click streams",
            url="https://www.cs.rpi.edu/~zaki/Workshops/FIMI/data/kosarak.dat.gz",
            filename="kosarak.dat.gz",
            content_sha256="b7855ba155567d52390aa2a9eb09bb91ca27b5c737d358010501038f42d13dcf",
            patterns=("kosarak/kosarak.dat*", "kosarak.dat*", "kosarak/*.dat*"),
            terms="FIMI repository: cite the owner",
            cite="F. Bodon; Frequent Itemset Mining Implementations Repository",
        ),
        Source(
            name="gaze",
            title="Eye gaze recordings",
            url=None,
            filename="gaze.zip",
            patterns=("gaze/andersson2017", "gaze/gazegraph", "gaze"),
            terms="the recordings' own; Andersson et al.: GPL-3",
            cite="Andersson et al. 2017, doi 10.3758/s13428-016-0738-9; GazeGraph, SenSys 2020",
            remark=(
                "the recordings are published in forms of their own: convert them to one CSV a recording, with columns "
                "of time and two coordinates, in the folder gaze/andersson2017 or gaze/gazegraph"
            ),
        ),
    )
}


class DatasetNotFoundError(FileNotFoundError, ValueError):
    """A data set is on none of the places looked at; the message lists them and says how to get it."""


def cache_folder() -> Path:
    """Folder of downloads: what TPLREPRO_CACHE names, or the user's cache folder of the operating system."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("tplrepro"))


def data_folder() -> Path | None:
    """The folder that TPLREPRO_DATA names, or None."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named).expanduser() if named else None


def locate(name: str, path=None, accept=None) -> Path:
    """The file or folder of a data set.

    Parameters
    ----------
    name : str
        A key of `SOURCES`.
    path : path-like, optional
        Given, nothing else is looked at.
    accept : callable, optional
        Whether a path that exists is what the reader can take; the first accepted one is it.

    Raises
    ------
    DatasetNotFoundError
        With the places looked at, and how to get the set.
    """
    source = _source(name)
    if path is not None:
        path = Path(path)
        if not path.exists():
            raise DatasetNotFoundError(
                f"{source.title}: there is no file or folder {path}; correct path=, or leave it out to look in "
                f"{DATA_VARIABLE} and the download cache"
            )
        return path
    tried = []
    folder = data_folder()
    if folder is not None:
        for pattern in source.patterns:
            found = sorted(Path(p) for p in glob.glob(str(Path(glob.escape(str(folder))) / pattern)))
            for candidate in found:
                if candidate.name.endswith((".part", ".synthetic.json")) or (accept and not accept(candidate)):
                    continue
                return candidate
            tried.append(str(folder / pattern))
    cached = cache_folder() / source.filename
    if cached.exists():
        return cached
    tried.append(str(cached))
    unset = "" if folder is not None else f" ({DATA_VARIABLE} is not set)"
    get = f"tplrepro.datasets.{name}.fetch() downloads it, " if source.url else f"{source.remark}, or "
    raise DatasetNotFoundError(
        f"{source.title} not found; looked for {'; '.join(tried)}{unset}. "
        f"To get it: {get}set {DATA_VARIABLE} to the folder that holds it, or pass path=; "
        f"tplrepro.datasets.{name}.synthetic() makes a stand-in. Terms: {source.terms}. Cite: {source.cite}."
    )


def fetch(
    name: str,
    *,
    url: str | None = None,
    known_hash: str | None = None,
    retries: int = 5,
    progress: bool = True,
    timeout: float = 30.0,
) -> Path:
    """Download the official file of a data set into the cache, unless it is there, and return its path.

    Parameters
    ----------
    name : str
        A key of `SOURCES`.
    url : str, optional
        A mirror to take the file from.
    known_hash : str, optional
        "algorithm:digest" to check instead of the published one.
    retries : int
        How often to try again after a failure; what has arrived is kept between tries.
    progress : bool
        Show a progress bar.
    timeout : float
        Seconds to wait for the server to say something.

    Raises
    ------
    ValueError
        The name is unknown, there is no address, or the file's checksum is wrong.
    requests.exceptions.RequestException
        The download failed in spite of the retries.
    """
    import pooch

    source = _source(name)
    url = url or source.url
    if url is None:
        raise DatasetNotFoundError(
            f"{source.title}: there is no official file to download; {source.remark}, or pass url= of a zip archive "
            f"of such a folder. Terms: {source.terms}. Cite: {source.cite}."
        )
    if retries < 0:
        raise ValueError(f"retries must be at least 0, found {retries}; give 0 to try once")
    known_hash = known_hash or (source.known_hash if url == source.url else None)
    folder = cache_folder()
    shelf = pooch.create(
        path=folder,
        base_url="",
        registry={source.filename: known_hash},
        urls={source.filename: url},
        retry_if_failed=retries,
    )
    download = _ResumingDownload(folder / f"{source.filename}.part", progress, timeout)
    path = Path(shelf.fetch(source.filename, downloader=download))
    if download.done:
        try:
            _check_content(source, path, url)
        except ValueError:
            path.unlink()
            raise
    return path


def _source(name: str) -> Source:
    try:
        return SOURCES[name]
    except KeyError:
        raise ValueError(f"name must be one of {sorted(SOURCES)}, found {name!r}; choose one of them") from None


def _check_content(source: Source, path: Path, url: str) -> None:
    """Check what can be told without a published checksum: an archive, with the known content."""
    magic = {".zip": b"PK\x03\x04", ".gz": b"\x1f\x8b"}.get(path.suffix)
    with open(path, "rb") as file:
        head = file.read(4)
    if magic and not head.startswith(magic):
        raise ValueError(
            f"{source.title}: a {path.suffix} file was expected from {url}, found content that begins with {head!r}, "
            "perhaps a web page; nothing was kept: open the address in a browser, or pass url= of a mirror"
        )
    if source.content_sha256:
        digest = hashlib.sha256()
        for block, _ in line_blocks(path):
            digest.update(block)
        if digest.hexdigest() != source.content_sha256:
            warnings.warn(
                f"{path}: the unpacked content has sha256 {digest.hexdigest()}, while the one known copy has "
                f"{source.content_sha256}; copies in circulation differ, so give the digest with your results",
                UserWarning,
                stacklevel=3,
            )


class _ResumingDownload:
    """A downloader for pooch that keeps what has arrived and asks for the rest only.

    The part is kept with the entity tag or date of the file it belongs to; the server is asked to send the rest only
    if the file is still that one, and the whole otherwise. After a wrong checksum pooch calls again and all is fetched
    anew, because a completed part has been moved away.
    """

    def __init__(self, part: Path, progress: bool, timeout: float):
        self.part = part
        self.note = part.with_name(part.name + ".json")
        self.progress = progress
        self.timeout = timeout
        self.done = False

    def __call__(self, url, output_file, pooch, check_only=False):
        import requests
        from tqdm import tqdm

        if check_only:
            return requests.head(url, timeout=self.timeout, allow_redirects=True).ok
        start, headers = self._resume_at(url)
        with requests.get(
            url, headers={"Accept-Encoding": "identity", **headers}, stream=True, timeout=self.timeout
        ) as answer:
            if answer.status_code == 416:  # the part is as long as the file or longer: begin again
                self._forget()
                return self(url, output_file, pooch)
            answer.raise_for_status()
            goes_on = answer.status_code == 206 and answer.headers.get("Content-Range", "").startswith(
                f"bytes {start}-"
            )
            if not goes_on:
                start = 0
            length = answer.headers.get("Content-Length")
            expected = None if length is None else start + int(length)
            tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
            self.part.parent.mkdir(parents=True, exist_ok=True)
            self.note.write_text(json.dumps({"url": url, "tag": tag}), encoding="utf-8")
            with (
                open(self.part, "ab" if goes_on else "wb") as out,
                tqdm(
                    total=expected,
                    initial=start,
                    unit="B",
                    unit_scale=True,
                    desc=self.part.stem,
                    disable=not self.progress,
                ) as bar,
            ):
                for chunk in answer.iter_content(CHUNK_BYTES):
                    out.write(chunk)
                    bar.update(len(chunk))
        arrived = self.part.stat().st_size
        if expected is not None and arrived != expected:
            raise requests.exceptions.ConnectionError(
                f"{url}: {expected} bytes were announced and {arrived} arrived; try again, what arrived is kept"
            )
        os.replace(self.part, output_file)
        self._forget()
        self.done = True
        return None

    def _resume_at(self, url) -> tuple[int, dict]:
        try:
            note = json.loads(self.note.read_text(encoding="utf-8"))
            size = self.part.stat().st_size
        except (OSError, ValueError):
            return 0, {}
        tag = note.get("tag")
        # A weak tag does not promise the same bytes (RFC 9110, 13.1.5).
        if note.get("url") != url or not tag or tag.startswith("W/") or not size:
            return 0, {}
        return size, {"Range": f"bytes={size}-", "If-Range": tag}

    def _forget(self):
        self.part.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)
