"""Run the committed notebooks under nbval: what they print must be what is committed.

They read the synthetic stand-ins whatever ``TPLREPRO_DATA`` names, because their committed outputs do.
"""

import os
import subprocess
import sys

from workflow.configuration import ROOT, sources
from workflow.kernel_environment import kernel_environment

__all__ = ["main"]


def main(arguments=None):
    """Run nbval on all notebooks, or on those named (``tkde2019/fig3``); options go to pytest."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = [word for word in arguments if word.startswith("-")]
    names = [word for word in arguments if not word.startswith("-")] or list(sources())
    command = [
        *(sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env"),
        f"--nbval-sanitize-with={ROOT / 'tests' / 'notebooks' / 'sanitize.cfg'}",
        # Several notebooks at once, but each in one process: its cells come one after the other.
        *("--numprocesses", str(min(os.cpu_count() or 1, len(names), 4)), "--dist", "loadscope"),
        *("-p", "no:cacheprovider", *options),
        *(f"notebooks/{name}.ipynb" for name in names),
    ]
    figures = ROOT / "build" / "nbval" / "figures"
    environment = kernel_environment(figures, "quick", "make test", real_data=False)
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
