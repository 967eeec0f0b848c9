"""Whether the environment of this interpreter belongs to this folder; ``make`` uses no other, which
runs other code.

``make`` asks before anything is installed, so only the standard library is imported.
"""

import json
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname


def folder_of(name="tplrepro"):
    """The folder from which a package is installed as editable (Path); None if it is not, or not
    yet."""
    try:
        origin = json.loads(distribution(name).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return None
    editable = origin.get("dir_info", {}).get("editable", False)
    return Path(url2pathname(urlsplit(origin["url"]).path)).resolve() if editable else None


def main(given):
    """Print why the environment cannot be used; the exit status is 0 if it can."""
    here, installed = Path.cwd().resolve(), folder_of()
    if installed == here or (installed is None and not given):  # make installs it
        return 0
    if given:
        remedy = "install this folder there: pip install --editable ."
    else:
        remedy = "remove it (if .venv is a link, only the link goes): rm -rf .venv"
    print(
        f"The environment {sys.prefix} must be made for {here}, found {installed}; {remedy}",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
