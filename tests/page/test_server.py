"""Who gets a page and a kernel of its server: those with the link, under this machine's own names."""

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from jupyter_client.manager import start_new_kernel

from tests.page.serving import serve, wait_until
from workflow.configuration import ROOT
from workflow.explore import main, page_command, page_environment

SOCKET = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "a" * 22}
EVIL = "http://evil.example"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """At most two pages, and three seconds for a kernel without one; its browser keeps what it is given to open."""
    folder = tmp_path_factory.mktemp("server")
    browser = folder / "browser"
    browser.write_text('#!/bin/sh\necho "$@" > "$0.opens"\ncp "${1#file://}" "$0.opened"\n')
    browser.chmod(0o755)
    limits = ["--FewKernels.limit=2", "--FewKernels.cull_idle_timeout=3", "--FewKernels.cull_interval=1"]
    variables = {"BROWSER": f"{browser} %s", "JUPYTER_TOKEN": ""}
    with serve([*page_command(), *limits], folder, **variables) as (process, address, token):
        yield psutil.Process(process.pid), urlsplit(address), token, browser


@pytest.fixture
def ask(server):
    """Status, headers and text of the answer to a request; all kernels of earlier ones have ended."""
    process, address, _, _ = server
    wait_until(lambda: not process.children())

    def ask(path, headers=(), method="GET"):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        connection.putrequest(method, path, skip_host="Host" in headers)
        for header in dict(headers).items():
            connection.putheader(*header)
        connection.endheaders()
        answer = connection.getresponse()
        text = "" if answer.status == 101 else answer.read().decode()
        connection.close()
        return answer.status, answer, text

    return ask


def test_the_link_is_opened_but_stands_in_no_argument_and_without_it_nothing_starts(server, ask):
    process, address, token, browser = server
    opened = browser.with_suffix(".opened")
    wait_until(lambda: opened.exists() and opened.read_text())  # the file exists before it is written
    assert f"url={address.geturl()}?token={token}" in opened.read_text()
    assert token not in browser.with_suffix(".opens").read_text() + " ".join(process.cmdline())
    assert [ask(path)[0] for path in ("/", "/?token=0")] == [302, 302]  # to a form that asks for the token
    rebound = {"Host": "evil.example"}  # a name that was made to point here: DNS rebinding
    assert [ask(path, rebound)[0] for path in (f"/?token={token}", "/login")] == [403, 403]
    assert process.children() == []


def test_another_page_gets_nothing_by_the_cookie_of_this_one(server, ask):
    status, answer, text = ask(f"/?token={server[2]}")
    assert (status, "SameSite=Strict" in answer.getheader("Set-Cookie")) == (200, True)
    own = {"Cookie": answer.getheader("Set-Cookie").partition(";")[0]}
    other, rebound = own | {"Origin": EVIL}, own | {"Origin": EVIL, "Host": "evil.example"}
    kernel = re.search(r'"kernelId": *"([^"]+)"', text)[1]
    for path in (f"/api/kernels/{kernel}/channels", f"/voila/execution/{kernel}"):
        assert [ask(path, SOCKET | headers)[0] for headers in ({}, other, rebound, own)] == [403, 403, 403, 101]
    assert [ask(f"/api/kernels/{kernel}", headers)[0] for headers in ({}, rebound, own)] == [403, 403, 200]
    assert ask("/", other)[0] == 403
    farewell = f"/voila/api/shutdown/{kernel}"
    assert [ask(farewell, headers, "POST")[0] for headers in ({}, other, rebound)] == [403, 404, 403]
    assert len(server[0].children()) == 1
    assert ask(farewell, own, "POST")[0] == 204
    assert server[0].children() == []


def test_kernels_are_few_and_end_when_their_page_is_gone(server, ask):
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(ask, [f"/?token={server[2]}"] * 5))
    assert sorted(status for status, _, _ in answers) == [200, 200, 503, 503, 503]
    assert len(server[0].children()) == 2
    assert any("503: at most 2 pages may be open at once; close one" in text for _, _, text in answers)
    wait_until(lambda: not server[0].children())


def test_the_page_is_served_on_this_machine_alone_and_loads_nothing_from_elsewhere():
    command = page_command(8999, browser=False)
    assert {"--Voila.ip=127.0.0.1", "--port=8999", "--no-browser", "--template=tplrepro"} <= set(command)
    template = page_environment()["JUPYTER_PATH"].split(":")[0]
    assert subprocess.run(["grep", "-rl", "://", template], capture_output=True).stdout == b""


def python_takes_interrupts(process, takes):
    """Whether a handler of Python's receives SIGINT, or not: it does from its start until our first line runs.

    True in either case once the process has become the server, which begins with SIGINT held back.
    """
    status, command = (Path(f"/proc/{process.pid}/{name}").read_text() for name in ("status", "cmdline"))
    caught = int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16) >> (signal.SIGINT - 1) & 1
    return caught == takes or "page_server" in command


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the table of signals in /proc")
@pytest.mark.parametrize("pauses", [(0.0,), (3.0, 0.05)])
def test_ctrl_c_ends_the_server_without_a_word_too_much(pauses, tmp_path):
    """While it loads, and twice when it runs: as a terminal sends it, to the whole group of processes."""
    log = tmp_path / "log.txt"
    command = [sys.executable, "-m", "workflow.explore", "--port=0"]
    with (
        open(log, "w") as out,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=page_environment(tmp_path) | {"BROWSER": "true"},
            stdout=out,
            stderr=out,
            start_new_session=True,
        ) as server,
    ):
        try:
            wait_until(lambda: python_takes_interrupts(server, True), pause=0.001)
            wait_until(lambda: python_takes_interrupts(server, False), pause=0.001)
            for pause in pauses:
                time.sleep(pause)
                with suppress(ProcessLookupError):
                    os.killpg(server.pid, signal.SIGINT)
            server.wait(30)
        finally:
            server.kill()
    assert not re.search("KeyboardInterrupt|Traceback", log.read_text())


def test_ctrl_c_is_held_back_from_one_process_to_the_next(monkeypatch):
    """Else it would end the server without a word, before a handler can take it."""
    blocked = []
    monkeypatch.setattr("os.chdir", lambda folder: None)
    monkeypatch.setattr("os.execve", lambda *command: blocked.extend(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
    main([])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    assert blocked == [signal.SIGINT]


INTERRUPTED = """
def interrupted(*arguments):
    raise KeyboardInterrupt

get_ipython().kernel.shell_handlers["kernel_info_request"] = interrupted
"""


def test_a_kernel_that_is_interrupted_at_its_end_says_nothing(tmp_path, monkeypatch):
    """By a page or a notebook that ends, while the kernel answers a message."""
    environment = page_environment(tmp_path)
    monkeypatch.setenv("JUPYTER_PATH", environment["JUPYTER_PATH"])
    with open(tmp_path / "log.txt", "w+") as log:
        manager, client = start_new_kernel(env=environment, stdout=log, stderr=log)
        client.execute_interactive(INTERRUPTED)
        client.kernel_info()
        client.execute_interactive("print('answers')", timeout=30)  # after the message before
        client.stop_channels()
        manager.shutdown_kernel()
        log.seek(0)
        assert "KeyboardInterrupt" not in log.read()
