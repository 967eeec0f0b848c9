"""Serve the repository in JupyterLab: ``make lab``, on this machine only, with a token, from the start page on."""

import argparse
import os
import sys

from workflow.configuration import ROOT
from workflow.run_notebook import kernel_environment

START = "notebooks/index.ipynb"


def lab_command(port=None):
    """The command that serves the repository; a flag is needed to run as root."""
    command = [sys.executable, "-m", "jupyterlab", "--allow-root", f"--ServerApp.root_dir={ROOT}"]
    command += ["--ServerApp.ip=127.0.0.1", f"--LabApp.default_url=/lab/tree/{START}"]
    return [*command, f"--port={port}"] if port is not None else command


def lab_environment():
    """What notebooks run in, as if by hand: a record then tells by its parameters whether it may be judged."""
    return kernel_environment(ROOT / "build" / "figures", "interactive", "make lab", real_data=True)


def main(arguments=None):
    """Become the server, which runs until interrupted."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int)
    command = lab_command(parser.parse_args(arguments).port)
    os.chdir(ROOT)
    os.execve(command[0], command, lab_environment())  # signals reach the server itself


if __name__ == "__main__":
    main()
