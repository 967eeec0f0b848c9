"""Serve the interactive notebook as a page (Voilà), on this machine only, with a token."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from workflow.batch.run_notebook import kernel_environment
from workflow.configuration import ROOT

NOTEBOOK = ROOT / "notebooks" / "explore" / "leakage.ipynb"


def page_command(port: int | None = None, browser: bool = True) -> list[str]:
    """The command that serves the page, by default at the first free port from 8866 on.

    The theme follows the reader's system; ``?theme=dark`` in the address asks for the dark one.
    """
    command = [
        sys.executable,
        "-m",
        "workflow.serving.page_server",
        str(NOTEBOOK),
        "--template=tplrepro",
        "--theme=light",
    ]
    # The extension would load Plotly a second time: figures that are widgets bring it along.
    unused = '["jupyterlab-plotly", "jupyterlab_pygments"]'
    command += ["--Voila.ip=127.0.0.1", f"--VoilaConfiguration.extension_denylist={unused}"]
    if port is not None:
        command += [f"--port={port}", "--Voila.port_retries=0"]
    if not browser:
        command.append("--no-browser")
    return command


def page_environment(figures: Path = ROOT / "build" / "figures") -> dict[str, str]:
    """The environment of the server and its kernels, which save files below `figures`."""
    environment = kernel_environment(figures, "quick", "make explore", real_data=True)
    ours = str(ROOT / "workflow" / "serving" / "jupyter")
    environment["JUPYTER_PATH"] = os.pathsep.join([ours, environment["JUPYTER_PATH"]])
    return environment


def become_server(
    command_at: Callable[[int | None], list[str]], environment: Mapping[str, str]
) -> None:
    """Become the server that `command_at` gives for a port, which runs until interrupted."""
    parser = argparse.ArgumentParser(description="Become the server, which runs until interrupted.")
    parser.add_argument("--port", type=int)
    command = command_at(parser.parse_args().port)
    os.chdir(ROOT)
    os.execve(command[0], command, environment)  # signals reach the server itself


if __name__ == "__main__":
    become_server(page_command, page_environment())
