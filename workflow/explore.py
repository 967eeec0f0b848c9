"""Serve the interactive notebook as a page (Voilà), on this machine only, with a token."""

import argparse
import os
import signal
import sys

if __name__ == "__main__":  # Ctrl-C while the rest loads ends without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from workflow.configuration import ROOT
from workflow.run_notebook import kernel_environment

NOTEBOOK = ROOT / "notebooks" / "explore" / "leakage.ipynb"


def page_command(port=None, browser=True):
    """The command that serves the page, by default at the first free port from 8866 on.

    The theme follows the reader's system; ``?theme=`` in the address sets either one.
    """
    command = [sys.executable, "-m", "workflow.page_server", str(NOTEBOOK), "--template=tplrepro", "--theme=light"]
    # Show the controls as soon as their cell has run.
    command += ["--Voila.ip=127.0.0.1", "--progressive_rendering=True"]
    if port is not None:
        command += [f"--port={port}", "--Voila.port_retries=0"]
    return command if browser else [*command, "--no-browser"]


def page_environment(figures=ROOT / "build" / "figures"):
    """The environment of the server and its kernels, which save files below `figures`."""
    environment = kernel_environment(figures, "quick", "make explore", real_data=True)
    ours = str(ROOT / "workflow" / "jupyter")
    environment["JUPYTER_PATH"] = os.pathsep.join([ours, environment["JUPYTER_PATH"]])
    return environment


def main(arguments=None):
    """Become the server, which runs until interrupted."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int)
    command = page_command(parser.parse_args(arguments).port)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the server can take it
    os.chdir(ROOT)
    os.execve(command[0], command, page_environment())  # signals reach the server itself


if __name__ == "__main__":
    main()
