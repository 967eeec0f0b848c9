"""Pin the environment: every package with its version and hashes, for every platform and Python from 3.11 on.

uv does the work, in a temporary environment of its own. No address of a package index enters the file.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from workflow.configuration import ROOT

__all__ = ["main"]

HEADER = "# Environment of make figures and make test: names, versions and hashes. Written by make lock.\n"


def main():
    """Write requirements.lock."""
    target = ROOT / "requirements.lock"
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        binaries = Path(folder, "bin")
        subprocess.run([binaries / "python", "-m", "pip", "install", "--quiet", "uv"], check=True)
        resolved = Path(folder, "resolved.txt")
        # uv keeps the versions of an existing output, so only what must change does.
        resolved.write_bytes(target.read_bytes() if target.is_file() else b"")
        subprocess.run(
            [
                *(binaries / "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"),
                *("--extra", "lock", "--generate-hashes", "--no-annotate", "--no-header", "--no-emit-package"),
                *("tplrepro", "--output-file", resolved, "pyproject.toml"),
                *sys.argv[1:],
            ],
            cwd=ROOT,
            check=True,
        )
        pins = [line for line in resolved.read_text().splitlines(keepends=True) if not line.startswith(("#", "-"))]
    target.write_text(HEADER + "".join(pins), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
