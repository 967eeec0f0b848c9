"""Whether the environment of this interpreter can be used as it is.

It must belong to this folder, since another runs other code, and have what a target of ``make``
needs. ``make`` asks before anything is installed, so only the standard library is imported.
"""

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname


def folder_of(name: str = "tplrepro") -> Path | None:
    """The folder from which a package is installed as editable (Path); None if it is not, or not
    yet."""
    try:
        origin = json.loads(distribution(name).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return None
    editable = origin.get("dir_info", {}).get("editable", False)
    return Path(url2pathname(urlsplit(origin["url"]).path)).resolve() if editable else None


def packages_of(group: str, groups: Mapping[str, Any]) -> list[str]:
    """Names of the packages of a dependency group, with those of the groups that it includes."""
    names = []
    for entry in groups[group]:
        if isinstance(entry, dict):
            names += packages_of(entry["include-group"], groups)
        else:
            names.append(re.split(r"[^\w.-]", entry)[0])
    return sorted(set(names))


def is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def problem_of_folder(given: str | None) -> str | None:
    """Why the environment is not this folder's, and the remedy; None if it is."""
    here = Path.cwd().resolve()
    installed = folder_of()
    if installed == here or (installed is None and not given):  # make installs it
        return None
    remedy = "remove it (if .venv is a link, only the link goes): rm -rf .venv"
    if given:
        remedy = "install this folder there: pip install --editable ."
    return f"The environment {sys.prefix} must be made for {here}, found {installed}; {remedy}"


def problem_of_group(group: str) -> str | None:
    """Which packages of a dependency group are missing, and the remedy; None if none is."""
    groups = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    missing = [name for name in packages_of(group, groups) if not is_installed(name)]
    if not missing:
        return None
    return (
        f"The environment {sys.prefix} must have what this target needs, found no "
        f"{', '.join(missing)}; install it there: pip install -r requirements-{group}.lock"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print why the environment cannot be used; the exit status is 0 if it can."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("given", nargs="?", help="any word: make did not make the environment")
    parser.add_argument("--group", help="a dependency group that must be installed")
    options = parser.parse_args(arguments)
    if options.group:
        problem = problem_of_group(options.group)
    else:
        problem = problem_of_folder(options.given)
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
