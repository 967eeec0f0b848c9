"""Who gets a page and a kernel of its server: those with the link, under this machine's own
names."""

import asyncio
import http.client
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from urllib.parse import quote, urlencode, urlsplit

import psutil
import pytest

from tests.page.serving import PATIENCE, serve, wait_until
from workflow.serving.explore import page_command
from workflow.serving.page_server import FewKernels, is_known

pytestmark = pytest.mark.notebook

SOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "a" * 22,
}
EVIL = "http://evil.example"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """At most two pages, and ten seconds for a kernel without one, in which it can start on a busy
    machine, too; its browser keeps what it is given to open."""
    folder = tmp_path_factory.mktemp("server")
    browser = folder / "browser"
    browser.write_text('#!/bin/sh\necho "$@" > "$0.opens"\ncp "${1#file://}" "$0.opened"\n')
    browser.chmod(0o755)
    limits = [
        "--FewKernels.limit=2",
        "--FewKernels.cull_idle_timeout=10",
        "--FewKernels.cull_interval=1",
    ]
    with serve(
        [*page_command(), *limits], folder, BROWSER=f"{browser} %s", JUPYTER_TOKEN=""
    ) as started:
        process, address, token = started
        yield psutil.Process(process.pid), urlsplit(address), token, browser


@pytest.fixture
def ask(server):
    """Status, headers and text of the answer to a request; all kernels of earlier ones have
    ended."""
    process, address, _, _ = server
    wait_until(lambda: not process.children())

    def ask(path, headers=(), method="GET", body=b""):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE)
        connection.putrequest(method, path, skip_host="Host" in headers)
        for header in dict(headers).items():
            connection.putheader(*header)
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body or None)
        answer = connection.getresponse()
        text = "" if answer.status == 101 else answer.read().decode()
        connection.close()
        return answer.status, answer, text

    return ask


def cookie_of(answer):
    """The headers by which a browser that has had this answer is known."""
    return {"Cookie": answer.getheader("Set-Cookie").partition(";")[0]}


def kernel_of(text):
    """The name of a page's kernel."""
    return re.search(r'"kernelId": *"([^"]+)"', text)[1]


SCRIPT = '"><script src=//evil.example></script>'
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_the_link_is_opened_but_stands_in_no_argument_and_without_it_nothing_starts(server, ask):
    process, address, token, browser = server
    listening = {
        one.laddr.ip for one in process.net_connections() if one.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}
    opened = browser.with_suffix(".opened")
    # the file exists before it is written
    wait_until(lambda: opened.exists() and opened.read_text())
    assert f"url={address.geturl()}?token={token}" in opened.read_text()
    assert token not in browser.with_suffix(".opens").read_text() + " ".join(process.cmdline())
    # to a form that asks for the token
    assert [ask(path)[0] for path in ("/", "/?token=0")] == [302, 302]
    rebound = {"Host": "evil.example"}  # a name that was made to point here: DNS rebinding
    assert [ask(path, rebound)[0] for path in (f"/?token={token}", "/login")] == [403, 403]
    assert process.children() == []


def test_another_page_gets_nothing_by_the_cookie_of_this_one(server, ask):
    """This one has the dark theme, as its address asks for it."""
    status, answer, text = ask(f"/?token={server[2]}&theme=dark")
    assert '"jupyterLabTheme": "dark"' in text
    assert (status, "SameSite=Strict" in answer.getheader("Set-Cookie")) == (200, True)
    own = cookie_of(answer)
    other, rebound = own | {"Origin": EVIL}, own | {"Origin": EVIL, "Host": "evil.example"}
    kernel = kernel_of(text)
    path = f"/api/kernels/{kernel}/channels"
    assert [ask(path, SOCKET | headers)[0] for headers in ({}, other, rebound, own)] == [
        403,
        403,
        403,
        101,
    ]
    assert [ask(f"/api/kernels/{kernel}", headers)[0] for headers in ({}, rebound, own)] == [
        403,
        403,
        200,
    ]
    assert ask("/", other)[0] == 403
    farewell = f"/voila/api/shutdown/{kernel}"
    assert [ask(farewell, headers, "POST")[0] for headers in ({}, other, rebound)] == [
        403,
        404,
        403,
    ]
    assert len(server[0].children()) == 1
    assert ask(farewell, own, "POST")[0] == 204
    assert server[0].children() == []


def test_kernels_are_few_end_when_their_page_is_gone_and_hold_no_parameter_of_its_address(
    server, ask
):
    names = ("theme", "template", "next", "v", "session_id", "anything")
    address = urlencode({"token": server[2]} | dict.fromkeys(names, SCRIPT))
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(ask, [f"/?{address}"] * 5))
    assert sorted(status for status, _, _ in answers) == [200, 200, 503, 503, 503]
    assert len(server[0].children()) == 2
    assert any(
        "503: at most 2 pages may be open at once; close one" in text for _, _, text in answers
    )
    for status, _, text in answers:
        assert "evil.example" not in text
        assert status == 503 or '"jupyterLabTheme": "light"' in text
    wait_until(lambda: not server[0].children())


@pytest.mark.parametrize("theme", ["../../other", "lights", "Dark", ""])
def test_a_theme_is_light_or_dark(theme):
    assert not is_known("theme", theme.encode())


def test_pages_of_errors_and_the_form_load_nothing_and_show_nothing_of_the_request(server, ask):
    token = server[2]
    status, answer, _ = ask("/login", FORM, "POST", urlencode({"password": token}).encode())
    assert status == 302
    own = cookie_of(answer)
    bad = urlencode({"theme": SCRIPT, "template": SCRIPT, "next": SCRIPT})
    form = bad.encode()
    answers = [
        ask(f"/voila/static/none?{bad}", own),
        ask(f"/voila/files/{quote(SCRIPT)}?{bad}", own),
        ask(f"/voila/templates/{quote(SCRIPT)}?{bad}", own),
        ask(f"/{quote(SCRIPT)}?{bad}", own | {"Origin": EVIL}),
        ask(f"/?{bad}", own | {"Origin": EVIL}),
        ask(f"/?{bad}", own, "PROPFIND"),
        ask("/", own | FORM, "POST", form),
        ask(f"/voila/api/shutdown/{quote(SCRIPT)}?{bad}", own, "POST"),
        ask(f"/login?{bad}"),
        ask("/login", FORM, "POST", form),
        ask(f"/?token={SCRIPT.encode().hex()}&{bad}"),
        ask(f"/?token={token}&{bad}", {"Host": "evil.example"}),
    ]
    for status, answer, text in answers:
        assert status >= 302 or "<form" in text
        assert re.match(r"/(?!/)", answer.getheader("Location", "/"))
        if answer.getheader("Content-Type").startswith("application/json"):
            assert answer.getheader("X-Content-Type-Options") == "nosniff"
            continue
        assert "evil.example" not in text
        assert re.findall(r"""(?:src|href)=["']?(?:https?:)?//(?!jupyter-server\.)""", text) == []
        assert not re.search(r"\burl\(", text)
        assert "@import" not in text
    assert sum("<h1>4" in text for _, _, text in answers) >= 3
    assert server[0].children() == []


@pytest.mark.parametrize(
    ("state", "seconds", "is_ended"),
    [
        ("starting", 45, False),
        ("starting", 75, True),
        ("idle", 15, False),
        ("idle", 45, True),
        ("busy", 75, False),
        ("dead", 1, True),
    ],
)
def test_a_kernel_that_may_be_starting_is_not_ended(state, seconds, is_ended, monkeypatch):
    """It has the minute that any kernel may take, where one may be idle for 20 seconds."""
    ended = []
    pool = FewKernels()
    pool._kernels["one"] = SimpleNamespace(
        execution_state=state,
        last_activity=datetime.now(UTC) - timedelta(seconds=seconds),
        kernel_name="python3",
        kernel_spec=SimpleNamespace(metadata={}),
    )
    monkeypatch.setattr(pool, "shutdown_kernel", ended.append)
    asyncio.run(pool.cull_kernel_if_idle("one"))
    assert (ended == ["one"]) == is_ended
    pool._kernels.clear()
