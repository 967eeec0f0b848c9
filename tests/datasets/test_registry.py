"""Downloads from a server on this machine that stops half-way, lies and fails; and where sets are looked for."""

import dataclasses
import gzip
import hashlib
import http.server
import threading
import zipfile

import pytest
import requests

from tplrepro.datasets import geolife, gowalla, kosarak, registry
from tplrepro.datasets.registry import DatasetNotFoundError, fetch, locate

CONTENT = gzip.compress(b"".join(b"%d %d\n" % (i, i * i % 977) for i in range(40_000)))
MD5 = "md5:" + hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


class Server:
    """Serves `content`, badly as told: `plan` holds what the next answers do."""

    def __init__(self):
        self.content = CONTENT
        self.plan = []
        self.asked = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = 5

            def do_GET(self):
                outer.answer(self)

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/file"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def answer(self, request):
        self.asked += 1
        what = self.plan.pop(0) if self.plan else "whole"
        if what == "fail":
            request.send_error(503)
            return
        body = self.content
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if what == "stop":  # the connection breaks half-way
            body = body[: len(body) // 2]
        elif what == "other":
            body = bytes(len(body))
        request.wfile.write(body)
        request.wfile.flush()
        request.close_connection = True


@pytest.fixture
def server(monkeypatch):
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    one = Server()
    yield one
    one.http.shutdown()
    one.http.server_close()


@pytest.fixture
def official(server, monkeypatch):
    """The server's file is the official one of Kosarak, whose content and checksum may be given."""

    def give(name="kosarak", **changes):
        known = {"content_sha256": hashlib.sha256(gzip.decompress(CONTENT)).hexdigest(), "known_hash": MD5}
        source = dataclasses.replace(registry.SOURCES[name], url=server.url, **(known | changes))
        monkeypatch.setitem(registry.SOURCES, name, source)

    give()
    monkeypatch.setattr(registry, "TIMEOUT", 5)
    server.give = give
    return server


def left_over():
    return sorted(p.name for p in registry.cache_folder().rglob("*") if p.is_file())


def test_fetch_puts_the_file_into_the_cache_once(official):
    path = fetch("kosarak")
    assert path.read_bytes() == CONTENT
    assert fetch("kosarak") == path
    assert official.asked == 1
    assert left_over() == ["kosarak.dat.gz"]
    assert len(kosarak.load()) == 80_000  # load finds what fetch has put there


@pytest.mark.parametrize("what", ["stop", "fail", "other"])
def test_failures_are_tried_again_then_reported_and_nothing_is_kept(official, monkeypatch, what):
    """A connection that breaks half-way, a server that fails, a file of another checksum."""
    monkeypatch.setattr(registry, "RETRIES", 2)
    official.plan = [what, what]
    assert fetch("kosarak").read_bytes() == CONTENT
    assert official.asked == 3
    registry.cache_folder().joinpath("kosarak.dat.gz").unlink()
    official.plan = [what, what, what]
    expected = ValueError if what == "other" else requests.exceptions.RequestException
    message = {"other": r"hash of downloaded file .* does not match", "fail": "503"}.get(what)
    with pytest.raises(expected, match=message):
        fetch("kosarak")
    assert left_over() == []


def test_a_damaged_file_in_the_cache_is_fetched_again(official):
    fetch("kosarak").write_bytes(b"damaged")
    assert fetch("kosarak").read_bytes() == CONTENT


def test_a_web_page_instead_of_an_archive_is_not_kept(official):
    official.content = b"<html>please sign in</html>"
    official.give("geolife", known_hash=None, content_sha256=None)
    with pytest.raises(ValueError, match=r"a \.zip file was expected from .*, found a web page"):
        fetch("geolife")
    assert left_over() == []


def test_another_copy_of_the_content_is_a_warning(official):
    official.give(content_sha256="b7855ba1", known_hash=None)
    with pytest.warns(UserWarning, match=r"sha256 [0-9a-f]{64}, while the one known copy has b7855ba1"):
        assert fetch("kosarak").exists()


def test_names_are_checked():
    with pytest.raises(ValueError, match=r"name must be one of .*'kosarak'.*, found 'netflix'"):
        fetch("netflix")


@pytest.mark.parametrize("module", [geolife, gowalla, kosarak])
def test_absent_sets_list_what_was_looked_for_and_how_to_get_it(module, tmp_path, monkeypatch):
    name = module.__name__.rpartition(".")[2]
    with pytest.raises(DatasetNotFoundError) as error:
        module.load()
    text = str(error.value)
    for part in (
        "looked for",
        "TPLREPRO_DATA is not set",
        f"{name}.fetch() downloads it",
        "path=",
        "synthetic()",
        "Cite",
    ):
        assert part in text
    monkeypatch.setenv(registry.DATA_VARIABLE, str(tmp_path / "data"))
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "data")):
        module.load()


def test_sets_are_found_where_the_variable_says(tmp_path, monkeypatch):
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


@pytest.mark.real_data
@pytest.mark.parametrize("module", [geolife, gowalla, kosarak])
def test_recorded_sets_are_found(real_data, module):
    name = module.__name__.rpartition(".")[2]
    assert real_data(name) in [locate(name).parent, locate(name)]
