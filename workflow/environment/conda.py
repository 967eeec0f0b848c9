"""Render environment.yml, for conda users and Binder: the direct dependencies of requirements.lock,
in the versions that Python 3.11 gets. `make lock` calls it."""

import re
import sys
import tomllib

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from workflow.configuration import ROOT

PYTHON = "3.11"
#: What requirements.lock pins of pyproject.toml beside its dependencies.
PINNED_EXTRAS = ("counts", "dask", "data", "events", "solvers")
PINNED_GROUPS = ("browser", "page", "test", "workflow")


def direct_dependencies() -> list[str]:
    """Canonical names of the packages that pyproject.toml names and requirements.lock pins."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = content["project"]
    groups = content["dependency-groups"]
    lists = [project["optional-dependencies"][extra] for extra in PINNED_EXTRAS]
    lists += [project["dependencies"], *(groups[group] for group in PINNED_GROUPS)]
    return sorted({canonicalize_name(Requirement(line).name) for lines in lists for line in lines})


def pinned_versions(python: str = PYTHON) -> dict[str, str]:
    """Versions by canonical name that requirements.lock gives to one version of Python on Linux."""
    setting = {
        "python_full_version": f"{python}.9",
        "python_version": python,
        "sys_platform": "linux",
    }
    versions: dict[str, str] = {}
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        found = re.match(r"(\S+)==(\S+)(?: ; (.*?))? \\$", line)
        if found and (not found[3] or Marker(found[3]).evaluate(setting)):
            versions[canonicalize_name(found[1])] = found[2]
    return versions


def environment_file() -> str:
    """Text of environment.yml with the pins of today."""
    versions = pinned_versions()
    pins = "".join(f"      - {name}=={versions[name]}\n" for name in direct_dependencies())
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    return re.sub(r"(?<=- pip:\n).*(?=      - --editable)", pins, text, flags=re.DOTALL)


def main() -> int:
    """Write environment.yml."""
    (ROOT / "environment.yml").write_text(environment_file(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
