"""The notebooks of a batch, the parameters with which a profile runs them, and the records that
they leave.

``config/notebooks.yaml`` lists what a batch makes, by paper and figure, with the parameters of each
profile; ``config/profiles.yaml`` says what a profile asks of a whole batch.
"""

import json
import math
import shutil
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import yaml

from experiments.parameters import literal_assignments, load_yaml
from experiments.provenance import owner_of
from tplreport.files import write_whole

ROOT = Path(__file__).resolve().parents[1]
PROFILES = ("quick", "paper")
PAPERS = {
    "tkde2019": "Quantifying Differential Privacy in Continuous Data Release under Temporal "
    "Correlations (TKDE 2019)",
    "icde2017": "Quantifying Differential Privacy under Temporal Correlations (ICDE 2017)",
    "sip2023": "Online Context-aware Data Release with Sequence Information Privacy (2023)",
    "eventlog2022": "Quantifying Temporal Privacy Leakage in Continuous Event Data Publishing "
    "(2022)",
    "dphmm2016": "DPHMM: Customizable Data Release with Differential Privacy via Hidden Markov "
    "Model (2016)",
    "datasets": "Data sets",
    "explore": "Beyond the papers",
}
#: What JupyterLab writes on the Python of requirements.lock, so that opening and saving changes
#: nothing.
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
        "version": "3.11.7",
    },
}


class ConfigurationError(ValueError):
    """A mistake in a configuration file, or in a notebook's parameters cell."""


@dataclass(frozen=True)
class Notebook:
    """One entry of the batch."""

    name: str  # paper/figure
    notebook: str  # its place under notebooks/
    data: tuple[str, ...] = ()  # folders below TPLREPRO_DATA that it reads
    timing: bool = False  # measures running time, so nothing may run beside it where that counts
    figure: bool = True  # saves a figure or table under its own name
    # by profile, the parameters that differ from those of its parameters cell
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)

    def path(self, root: Path = ROOT) -> Path:
        return root / "notebooks" / f"{self.notebook}.ipynb"

    def declared_parameters(self, root: Path = ROOT) -> dict[str, Any]:
        """Names and default values of the cell tagged ``parameters``, in its order."""
        cells = nbformat.read(self.path(root), as_version=4).cells
        tagged = [cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])]
        if len(tagged) != 1:
            raise ConfigurationError(
                f"must have one cell tagged parameters, found {len(tagged)}; tag the cell"
            )
        return literal_assignments(tagged[0])


@dataclass(frozen=True)
class Profile:
    """What one batch is like, apart from the parameters of its notebooks."""

    name: str
    hours: float = 24.0  # that a notebook may take
    alone: bool = True  # whether nothing runs beside a notebook that measures time


def read_notebooks(root: Path = ROOT) -> dict[str, Notebook]:
    """Entries of the batch by name, in the order of ``config/notebooks.yaml``."""
    profiles = tuple(_read(root / "config" / "profiles.yaml"))
    facts_by_name = _read(root / "config" / "notebooks.yaml")
    return {name: _entry(name, facts or {}, profiles) for name, facts in facts_by_name.items()}


def _entry(name: str, facts: Any, profiles: Collection[str]) -> Notebook:
    """The entry `name` that its `facts` in ``config/notebooks.yaml`` describe; the names of
    profiles are keys of it."""
    where = f"notebooks.yaml: {name}"
    allowed = ("data", "figure", "notebook", "parameters", "timing", *profiles)
    facts = dict(_with_known_keys(_mapping(facts, where), where, *allowed))
    common = _mapping(facts.pop("parameters", {}), f"{where}: parameters")
    parameters = {}
    for profile in profiles:
        own = _mapping(facts.pop(profile, {}), f"{where}: {profile}")
        parameters[profile] = common | own
    data = tuple(facts.pop("data", ()))
    return Notebook(name, **{"notebook": name, **facts}, data=data, parameters=parameters)


def title_of(path: Path) -> str:
    """The heading of a notebook."""
    first = nbformat.read(path, as_version=4).cells[0].source
    return first.split("\n")[0].lstrip("# ")


def sources(root: Path = ROOT) -> dict[str, Notebook]:
    """The notebooks under ``notebooks/`` by name, each with the first entry that runs it."""
    first: dict[str, Notebook] = {}
    for entry in read_notebooks(root).values():
        first.setdefault(entry.notebook, entry)
    return first


def records_in(folder: Path | str) -> dict[str, dict[str, Any]]:
    """The record of each figure in a folder, by name."""
    paths = sorted(Path(folder).rglob("*.json"))
    return {path.relative_to(folder).with_suffix("").as_posix(): read_json(path) for path in paths}


def why_no_evidence(
    name: str, record: Mapping[str, Any], notebooks: Mapping[str, Notebook]
) -> str | None:
    """Why the record of figure `name` may not be published, with the remedy; None if it may."""
    owner = owner_of(name, notebooks)
    needs_data = owner is None or bool(notebooks[owner].data)
    if needs_data and record["data"].startswith("synthetic"):
        return "is from synthetic data; set TPLREPRO_DATA, run again"
    if record["commit"] is None or record["commit"]["modified"]:
        return "is from modified code; commit and run it again"
    return None


def read_json(path: Path) -> dict[str, Any]:
    """The content of a file; empty if there is none."""
    if not path.is_file():
        return {}
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, content: Any) -> None:
    write_whole(path, (json.dumps(content, indent=1) + "\n").encode())


def read_profile(name: str, root: Path = ROOT) -> Profile:
    """The profile of this name in ``config/profiles.yaml``."""
    profiles = _read(root / "config" / "profiles.yaml")
    if name not in profiles:
        known = ", ".join(sorted(profiles))
        raise ConfigurationError(
            f"PROFILE must be one of {known}, found {name!r}; write PROFILE=quick"
        )
    facts = _with_known_keys(profiles[name] or {}, f"profiles.yaml: {name}", "alone", "hours")
    profile = Profile(name, **facts)
    if type(profile.hours) not in (int, float) or not 0 < profile.hours < math.inf:
        raise ConfigurationError(
            f"profiles.yaml: {name}: hours must be a positive number, "
            f"found {profile.hours!r}; correct it"
        )
    return profile


def writing_problems(folder: Path, megabytes: int = 16) -> list[str]:
    """Sentences, none if a folder exists or can be created, and can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        free = shutil.disk_usage(folder).free >> 20
    except OSError as error:
        return [
            f"{folder} must be a folder that can be written to, found: {error.strerror}; "
            "work in a copy elsewhere"
        ]
    if free < megabytes:
        return [
            f"the disk of {folder} must have {megabytes} MB free, found {free} MB; "
            "free some, and try again"
        ]
    return []


def _with_known_keys(facts: dict[str, Any], where: str, *allowed: str) -> dict[str, Any]:
    """The facts as they are; ConfigurationError, which names the place `where`, for a key that is
    not one of those allowed there."""
    unknown = sorted(set(facts) - set(allowed))
    if unknown:
        raise ConfigurationError(
            f"{where} may say {', '.join(allowed)}, found {', '.join(unknown)}; correct it"
        )
    return facts


def _read(path: Path) -> dict[str, Any]:
    """The mapping in a file; ConfigurationError if it holds anything else."""
    try:
        content = load_yaml(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path.name}: must be YAML; {error}") from None
    return _mapping(content, path.name)


def _mapping(content: Any, where: str) -> dict[str, Any]:
    """The content; ConfigurationError if it is no mapping."""
    if not isinstance(content, dict):
        found = type(content).__name__
        raise ConfigurationError(
            f"{where}: must be a mapping, found {found}; see the first lines of that file"
        )
    return content
