"""Pin the environment: every package with its version and hashes, for every platform and Python
from 3.11 on.

uv resolves the versions, in its own temporary environment. No address of a package index enters the
files: requirements.lock is what figures and tests need, requirements-more.lock what the paper
profile and the site need beyond it. The direct dependencies of the first go into environment.yml as
well, in the versions that Python 3.11 gets.
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

HEADERS = {
    "requirements.lock": "# Environment of make figures and make test: names, versions and hashes.",
    "requirements-more.lock": "# What make docs, make article and PROFILE=paper need beyond requirements.lock.",
}
PYTHON = "3.11"
PINNED_EXTRAS = ("counts", "dask", "data", "events", "solvers")
PINNED_GROUPS = ("browser", "page", "test", "workflow")


def direct_dependencies():
    """Canonical names of the packages that pyproject.toml names and requirements.lock pins."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, groups = content["project"], content["dependency-groups"]
    lists = [project["optional-dependencies"][extra] for extra in PINNED_EXTRAS]
    lists += [project["dependencies"], *(groups[group] for group in PINNED_GROUPS)]
    return sorted({canonicalize_name(Requirement(line).name) for lines in lists for line in lines})


def pinned_versions(python=PYTHON):
    """Versions by canonical name that requirements.lock gives to one version of Python on Linux."""
    setting = {
        "python_full_version": f"{python}.9",
        "python_version": python,
        "sys_platform": "linux",
    }
    versions = {}
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        found = re.match(r"(\S+)==(\S+)(?: ; (.*?))? \\$", line)
        if found and (not found[3] or Marker(found[3]).evaluate(setting)):
            versions[canonicalize_name(found[1])] = found[2]
    return versions


def environment_file():
    """Text of environment.yml with the pins of today."""
    versions = pinned_versions()
    pins = "".join(f"      - {name}=={versions[name]}\n" for name in direct_dependencies())
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    return re.sub(r"(?<=- pip:\n).*(?=      - --editable)", pins, text, flags=re.DOTALL)


def main():
    """Write requirements.lock, requirements-more.lock and environment.yml."""
    lock, more = (ROOT / name for name in HEADERS)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        binaries, resolved = Path(folder, "bin"), Path(folder, "resolved.txt")
        subprocess.run([binaries / "python", "-m", "pip", "install", "--quiet", "uv"], check=True)
        # uv keeps the versions of an existing output, so only what must change does.
        resolved.write_text(
            "".join(path.read_text(encoding="utf-8") for path in (lock, more) if path.is_file())
        )
        command = [
            binaries / "uv",
            "pip",
            "compile",
            "--quiet",
            "--universal",
            "--generate-hashes",
            "--no-annotate",
        ]
        command += [
            "--no-header",
            "--no-emit-package",
            "tplrepro",
            "--python-version",
            PYTHON,
            "--group",
            "lock",
        ]
        command += [f"--extra={extra}" for extra in PINNED_EXTRAS]
        command += ["--output-file", resolved, "pyproject.toml", *sys.argv[1:]]
        pins = []
        for groups in (["--group", "more"], []):
            subprocess.run([*command, *groups], cwd=ROOT, check=True)
            pins.append(re.findall(r"^[^\s#-].*\n(?: .*\n)*", resolved.read_text(), re.MULTILINE))
    for path, own in ((lock, pins[1]), (more, [pin for pin in pins[0] if pin not in pins[1]])):
        path.write_text(
            HEADERS[path.name] + " Written by make lock.\n" + "".join(own), encoding="utf-8"
        )
    (ROOT / "environment.yml").write_text(environment_file(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
