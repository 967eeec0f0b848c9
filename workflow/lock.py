"""Pin the environment: every package with its version and hashes, for every platform and Python from 3.11 on.

uv does the work, in a temporary environment of its own. No address of a package index enters the file. The direct
dependencies go into environment.yml as well, in the versions that Python 3.11 gets.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from workflow.configuration import ROOT

__all__ = ["direct_dependencies", "pinned_versions", "environment_file", "main"]

HEADER = "# Environment of make figures and make test: names, versions and hashes. Written by make lock.\n"
ENVIRONMENT = """\
# For conda users and Binder: the direct dependencies, pinned as in requirements.lock. Written by make lock.
name: tplrepro
channels:
  - conda-forge
dependencies:
  - python={python}
  - make
  - pip
  - pip:
{pins}
      - --editable .[counts,dask,data,events,explore,solvers]
"""
PYTHON = "3.11"
PINNED_EXTRAS = ("attack", "browser", "counts", "dask", "data", "events", "explore", "solvers", "test", "workflow")


def direct_dependencies(root=ROOT):
    """Canonical names of the packages that pyproject.toml names and requirements.lock pins."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = sum((extras[extra] for extra in PINNED_EXTRAS), project["dependencies"])
    return sorted(canonicalize_name(Requirement(line).name) for line in wanted)


def pinned_versions(root=ROOT, python=PYTHON):
    """Versions by canonical name that requirements.lock gives to one version of Python on Linux."""
    setting = {"python_full_version": f"{python}.9", "python_version": python, "sys_platform": "linux"}
    versions = {}
    for line in (root / "requirements.lock").read_text(encoding="utf-8").splitlines():
        found = re.match(r"(\S+)==(\S+)(?: ; (.*?))? \\$", line)
        if found and (not found[3] or Marker(found[3]).evaluate(setting)):
            versions[canonicalize_name(found[1])] = found[2]
    return versions


def environment_file(root=ROOT):
    """Text of environment.yml."""
    versions = pinned_versions(root)
    pins = "\n".join(f"      - {name}=={versions[name]}" for name in direct_dependencies(root))
    return ENVIRONMENT.format(python=PYTHON, pins=pins)


def main():
    """Write requirements.lock and environment.yml."""
    target = ROOT / "requirements.lock"
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        binaries = Path(folder, "bin")
        subprocess.run([binaries / "python", "-m", "pip", "install", "--quiet", "uv"], check=True)
        resolved = Path(folder, "resolved.txt")
        # uv keeps the versions of an existing output, so only what must change does.
        resolved.write_bytes(target.read_bytes() if target.is_file() else b"")
        options = (
            "--quiet --universal --generate-hashes --no-annotate --no-header --no-emit-package tplrepro --extra lock"
        )
        command = [binaries / "uv", "pip", "compile", *options.split(), "--python-version", PYTHON, "--output-file"]
        subprocess.run([*command, resolved, "pyproject.toml", *sys.argv[1:]], cwd=ROOT, check=True)
        pins = [line for line in resolved.read_text().splitlines(keepends=True) if not line.startswith(("#", "-"))]
    target.write_text(HEADER + "".join(pins), encoding="utf-8")
    (ROOT / "environment.yml").write_text(environment_file(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
