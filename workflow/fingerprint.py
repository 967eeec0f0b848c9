"""What a notebook's result depends on, as one small file: when its content changes, the notebook runs again.

Snakemake compares the file's time with the result's. It is rewritten only when something in it changed, so that a
fresh checkout, a touched file or new outputs inside the notebook cause no work.
"""

import hashlib
import json
import os

import nbformat

from workflow.check_parameters import declared_parameters, effective_parameters
from workflow.configuration import ROOT

__all__ = ["fingerprint", "fingerprint_changed", "write_fingerprint"]

# Folders of one paper family each; a notebook that does not name one does not depend on it.
FAMILIES = ("dphmm", "eventlog", "sip")


def fingerprint(notebook, profile, root=ROOT):
    """Digests of everything that the result of `notebook` under `profile` depends on.

    Parameters
    ----------
    notebook : workflow.configuration.Notebook
    profile : workflow.configuration.Profile

    Returns
    -------
    dict
        Readable, so that two of them tell what changed.
    """
    content = nbformat.read(notebook.path(root), as_version=4)
    source = "\n\0".join(cell.source for cell in content.cells if cell.cell_type == "code")
    own = profile.notebooks.get(notebook.name, {})
    return {
        "parameters": effective_parameters(declared_parameters(content), profile.common, own),
        "notebook": _digest(source.encode()),
        "package": _digest(*_package(root, source)),
        "environment": _digest((root / "requirements.lock").read_bytes()),
        "data": {name: _data_state(name) for name in notebook.data},
    }


def write_fingerprint(notebook, profile, root=ROOT):
    """Write the fingerprint where it changed; return its path."""
    path, text, changed = _compare(notebook, profile, root)
    if changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".partial{os.getpid()}")
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    return path


def fingerprint_changed(notebook, profile, root=ROOT):
    """Whether the fingerprint differs from the one on disk, which stays as it is."""
    return _compare(notebook, profile, root)[2]


def _compare(notebook, profile, root):
    path = root / "build" / profile.name / "fingerprints" / f"{notebook.name}.json"
    text = json.dumps(fingerprint(notebook, profile, root), indent=2, sort_keys=True) + "\n"
    return path, text, not path.is_file() or path.read_text(encoding="utf-8") != text


def _package(root, source):
    package = root / "tplrepro"
    for path in sorted(package.rglob("*.py")):
        family = path.relative_to(package).parts[0]
        if family not in FAMILIES or family in source:
            yield path.relative_to(root).as_posix().encode()
            yield path.read_bytes()


def _data_state(name):
    """Names, sizes and times of a data set's files; "absent" where the synthetic stand-in takes its place."""
    found = _locate(name)
    if found is None:
        return "absent"
    files = sorted(path for path in found.rglob("*") if path.is_file()) if found.is_dir() else [found]
    states = ((path.relative_to(found.parent).as_posix(), path.stat()) for path in files)
    return _digest(*(f"{label} {stat.st_size} {stat.st_mtime_ns}".encode() for label, stat in states))


def _locate(name):
    """Where the readers would look: the data folder and the downloads; other sets are folders of the former."""
    from tplrepro.datasets.registry import SOURCES, DatasetNotFoundError, data_folder, locate

    if name in SOURCES:
        try:
            return locate(name)
        except DatasetNotFoundError:
            return None
    root = data_folder()
    return root / name if root is not None and (root / name).exists() else None


def _digest(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
