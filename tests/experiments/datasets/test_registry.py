"""Downloads from a server on this machine, and where sets are looked for."""

import dataclasses
import gzip
import hashlib
import http.server
import threading
import zipfile

import pytest

from experiments.datasets.preparation import prepare
from experiments.datasets.readers import geolife, gowalla, kosarak, registry
from experiments.datasets.readers.registry import DatasetNotFoundError, fetch, locate

CONTENT = gzip.compress(b"".join(b"%d %d\n" % (i, i * i % 977) for i in range(40_000)), mtime=0)
MD5 = "md5:" + hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the server's `content`, and counts how often."""

    def do_GET(self):
        self.server.asked += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, *args):
        pass


@pytest.fixture
def official(monkeypatch):
    """A server whose file is the official one of Kosarak; its content and checksum may be given."""
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)

    def give(name="kosarak", **changes):
        known = {
            "content_sha256": hashlib.sha256(gzip.decompress(CONTENT)).hexdigest(),
            "known_hash": MD5,
        }
        url = f"http://127.0.0.1:{server.server_address[1]}/file"
        source = dataclasses.replace(registry.SOURCES[name], **({"url": url} | known | changes))
        monkeypatch.setitem(registry.SOURCES, name, source)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.content, server.asked, server.give = CONTENT, 0, give
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        give()
        yield server
        server.shutdown()


def left_over():
    return sorted(p.name for p in registry.cache_folder().rglob("*") if p.is_file())


def test_fetch_puts_the_file_into_the_cache_once_unless_it_is_damaged(official):
    with pytest.raises(ValueError, match=r"name must be one of .*'kosarak'.*, found 'netflix'"):
        fetch("netflix")
    path = fetch("kosarak")
    assert path.read_bytes() == CONTENT
    assert fetch("kosarak") == path
    assert official.asked == 1
    assert left_over() == ["kosarak.dat.gz"]
    assert prepare("kosarak").record == {"data": "real", "inputs": [path]}  # finds the download
    path.write_bytes(gzip.compress(b"1 2\n", mtime=0))
    assert prepare("kosarak").record == {"data": "real (unverified)", "inputs": [path]}
    assert fetch("kosarak").read_bytes() == CONTENT  # pooch checks the published checksum


def test_a_web_page_instead_of_an_archive_is_not_kept(official):
    official.content = b"<html>please sign in</html>"
    official.give("geolife", known_hash=None, content_sha256=None)
    with pytest.raises(ValueError, match=r"a \.zip file was expected from .*, found a web page"):
        fetch("geolife")
    assert left_over() == []


@pytest.mark.parametrize("module", [geolife, gowalla, kosarak])
def test_the_error_for_an_absent_set_lists_places_searched_and_how_to_get_it(
    module, tmp_path, monkeypatch
):
    name = module.__name__.rpartition(".")[2]
    with pytest.raises(DatasetNotFoundError) as error:
        module.load()
    text = str(error.value)
    parts = (
        "looked for",
        "TPLREPRO_DATA is not set",
        f"registry.fetch({name!r}) downloads it",
        "path=",
        "synthetic()",
        "Cite",
    )
    assert all(part in text for part in parts), text
    monkeypatch.setenv(registry.DATA_VARIABLE, str(tmp_path / "data"))
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "data")):
        module.load()


def test_sets_are_found_in_the_folder_that_the_environment_variable_names(tmp_path, monkeypatch):
    data = tmp_path / "da[t]a"  # a name that would be a pattern
    (data / "kosarak").mkdir(parents=True)
    monkeypatch.setenv(registry.DATA_VARIABLE, str(data))
    (data / "kosarak" / "kosarak.dat.gz.synthetic.json").write_text("{}")
    (data / "kosarak" / "kosarak.dat.part").write_text("")
    with pytest.raises(DatasetNotFoundError):
        locate("kosarak")
    (data / "kosarak" / "kosarak.dat").write_text("1 2\n")
    assert locate("kosarak") == data / "kosarak" / "kosarak.dat"
    assert len(kosarak.load()) == 2


def test_the_official_file_is_preferred_to_others(tmp_path, monkeypatch):
    monkeypatch.setenv(registry.DATA_VARIABLE, str(tmp_path))
    folder = tmp_path / "geolife"
    (folder / "Data" / "000" / "Trajectory").mkdir(parents=True)
    (folder / "Data" / "000" / "Trajectory" / "1.plt").write_bytes(b"")
    assert locate("geolife", accept=geolife._holds_trajectories) == folder
    for name in ("subset.zip", "Geolife Trajectories 1.3.zip"):
        with zipfile.ZipFile(folder / name, "w"):
            pass
        assert locate("geolife", accept=geolife._holds_trajectories).name == name
