"""Servers of the page, as `make explore` starts them, and files for it."""

import re
import subprocess
import time
from contextlib import contextmanager
from datetime import datetime

from workflow.configuration import ROOT
from workflow.serving.explore import page_environment

#: Seconds after which a test takes what it waits for as hung, on any processor.
PATIENCE = 120


def wait_until(holds):
    """What a function returns, once that is true."""
    deadline = time.monotonic() + PATIENCE  # noqa: TID251 (ends what hangs)
    while not (found := holds()):
        assert time.monotonic() < deadline, "hung"  # noqa: TID251
        time.sleep(0.05)
    return found


def upload(field, content, name="file.csv"):
    """Choose a file, as the browser sends it."""
    file = {"name": name, "type": "", "size": len(content), "content": memoryview(content)}
    field.entry.value = (file | {"last_modified": datetime.now()},)


@contextmanager
def serve(command, folder, **variables):
    """(process, address, token) of a server that saves files below a folder and ends with the
    block."""
    environment = page_environment(folder) | variables
    log = folder / "log.txt"
    with (
        open(log, "w") as out,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT
        ) as server,
    ):

        def link():
            assert server.poll() is None, log.read_text()
            return re.search(r"(http://127\.0\.0\.1:\d+/)\S*\?token=(\w+)", log.read_text())

        try:
            yield server, *wait_until(link).groups()
        finally:
            server.terminate()
