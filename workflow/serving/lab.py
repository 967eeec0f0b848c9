"""Serve the repository in JupyterLab: ``make lab``, on this machine only, with a token, from the
start page on."""

import sys
from typing import Any

from workflow.batch.run_notebook import kernel_environment
from workflow.configuration import METADATA, ROOT
from workflow.publishing.start_page import START
from workflow.serving.explore import become_server


def lab_command(port: int | None = None) -> list[str]:
    """The command that serves the repository; a flag is needed to run as root."""
    command = [sys.executable, "-m", "jupyterlab", "--allow-root", f"--ServerApp.root_dir={ROOT}"]
    command += ["--ServerApp.ip=127.0.0.1", f"--LabApp.default_url=/lab/tree/{START}"]
    command.append("--ContentsManager.pre_save_hook=workflow.serving.lab.keep_version")
    if port is not None:
        command.append(f"--port={port}")
    return command


def keep_version(model: dict[str, Any], **_: Any) -> None:
    """Before a notebook is saved: the version of Python in it is the committed one, lest each
    machine write its own."""
    if model["type"] != "notebook":
        return
    metadata = model["content"]["metadata"]
    if "language_info" in metadata:
        committed: Any = METADATA["language_info"]
        metadata["language_info"]["version"] = committed["version"]


def lab_environment() -> dict[str, str]:
    """What notebooks run in, as if by hand: a record then tells by its parameters whether it may be
    judged."""
    return kernel_environment(ROOT / "build" / "figures", "interactive", "make lab", real_data=True)


if __name__ == "__main__":
    become_server(lab_command, lab_environment())
