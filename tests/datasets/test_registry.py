"""Downloads from a server on this machine that stops half-way, lies and fails; and where sets are looked for."""

import dataclasses
import gzip
import hashlib
import http.server
import threading
import time
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


def quiet(**options):
    return {"progress": False, "timeout": 5, **options}


@pytest.fixture
def official(server, monkeypatch):
    """The server's file is the official one of Kosarak."""
    digest = hashlib.sha256(gzip.decompress(CONTENT)).hexdigest()
    source = dataclasses.replace(registry.SOURCES["kosarak"], url=server.url, content_sha256=digest, known_hash=MD5)
    monkeypatch.setitem(registry.SOURCES, "kosarak", source)
    return server


def left_over():
    return sorted(p.name for p in registry.cache_folder().rglob("*") if p.is_file())


def test_fetch_puts_the_file_into_the_cache_once(official):
    path = fetch("kosarak", **quiet())
    assert path.read_bytes() == CONTENT
    assert fetch("kosarak", **quiet()) == path
    assert official.asked == 1
    assert left_over() == ["kosarak.dat.gz"]
    assert len(kosarak.load()) == 80_000  # load finds what fetch has put there


def test_progress_is_shown_on_request(official, capsys):
    fetch("kosarak", **quiet(progress=True))
    assert "100%" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["stop", "fail", "other"])
def test_failures_are_tried_again_then_reported_and_nothing_is_kept(official, what):
    """A connection that breaks half-way, a server that fails, a file of another checksum."""
    official.plan = [what, what]
    assert fetch("kosarak", **quiet(retries=2)).read_bytes() == CONTENT
    assert official.asked == 3
    registry.cache_folder().joinpath("kosarak.dat.gz").unlink()
    official.plan = [what, what]
    expected = ValueError if what == "other" else requests.exceptions.RequestException
    with pytest.raises(
        expected, match={"other": r"hash of downloaded file .* does not match", "fail": "503"}.get(what)
    ):
        fetch("kosarak", **quiet(retries=1))
    assert left_over() == []


def test_a_damaged_file_in_the_cache_is_fetched_again(official):
    fetch("kosarak", **quiet()).write_bytes(b"damaged")
    assert fetch("kosarak", **quiet()).read_bytes() == CONTENT


def test_a_web_page_instead_of_an_archive_is_not_kept(server):
    server.content = b"<html>please sign in</html>"
    with pytest.raises(ValueError, match=r"a \.zip file was expected from .*perhaps a web page"):
        fetch("geolife", url=server.url, **quiet(retries=0))
    assert left_over() == []


def test_another_copy_of_the_content_is_a_warning(server):
    with pytest.warns(UserWarning, match=r"sha256 [0-9a-f]{64}, while the one known copy has b7855ba1"):
        path = fetch("kosarak", url=server.url, **quiet())
    assert path.exists()


def test_a_mirrors_file_is_never_taken_for_the_official_one(server):
    """It is checked against what the caller gives, nothing published being known of it, and kept by its address."""
    path = fetch("gowalla", url=server.url, **quiet(retries=0))
    assert path.read_bytes() == CONTENT
    assert (
        path
        == fetch("gowalla", url=server.url, **quiet(retries=0))
        != fetch("gowalla", url=server.url + "?", **quiet())
    )
    assert server.asked == 2
    with pytest.raises(DatasetNotFoundError):
        locate("gowalla")
    with pytest.raises(ValueError, match="does not match"):
        fetch("gowalla", url=server.url + "?2", known_hash="md5:" + "0" * 32, **quiet(retries=0))
    assert registry.SOURCES["gowalla"].known_hash == "md5:8ebd5ed2dd376d8982987c49429cb9f9"


def test_no_server_is_an_error_soon():
    begin = time.monotonic()
    with pytest.raises(requests.exceptions.ConnectionError):
        fetch("kosarak", url="http://127.0.0.1:9/file", **quiet(retries=0, timeout=2))
    assert time.monotonic() - begin < 10


def test_published_checksums_belong_to_the_official_address_only(server):
    """A mirror's file is checked against what the caller gives: nothing published is known of it."""
    path = fetch("gowalla", url=server.url, **quiet(retries=0))
    assert path.read_bytes() == CONTENT
    assert registry.SOURCES["gowalla"].known_hash == "md5:8ebd5ed2dd376d8982987c49429cb9f9"


def test_arguments_are_checked():
    with pytest.raises(ValueError, match=r"name must be one of .*'kosarak'.*, found 'netflix'"):
        fetch("netflix")
    with pytest.raises(ValueError, match="retries must be at least 0, found -1"):
        fetch("kosarak", retries=-1)


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
