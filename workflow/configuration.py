"""Which notebooks there are, and with which parameters a profile runs them.

``config/notebooks.yaml`` lists the notebooks: the data sets each reads and whether it measures time (and must
then run alone). ``config/quick.yaml`` and ``config/paper.yaml`` are profiles: parameters for each notebook, and
common ones for all that declare them.
"""

from dataclasses import dataclass, field
from pathlib import Path

import yaml

__all__ = ["ROOT", "PROFILES", "ConfigurationError", "Notebook", "Profile", "read_notebooks", "read_profile"]

ROOT = Path(__file__).resolve().parents[1]
PROFILES = ("quick", "paper")


class ConfigurationError(ValueError):
    """A configuration file that does not say what it must."""


@dataclass(frozen=True)
class Notebook:
    """One registered notebook."""

    name: str  # paper/figure
    data: tuple = ()  # folders below TPLREPRO_DATA that it reads
    timing: bool = False  # measures running time, so nothing may run beside it
    figure: bool = True  # saves a figure or table under its own name

    def path(self, root=ROOT):
        return root / "notebooks" / f"{self.name}.ipynb"


@dataclass(frozen=True)
class Profile:
    """Parameters of one batch."""

    name: str
    common: dict = field(default_factory=dict)
    notebooks: dict = field(default_factory=dict)


def read_notebooks(root=ROOT):
    """Registered notebooks by name, in the order of ``config/notebooks.yaml``."""
    path = root / "config" / "notebooks.yaml"
    allowed = {"data", "timing", "figure"}
    found = {}
    for name, facts in _read(path).items():
        facts = facts or {}
        unknown = sorted(set(facts) - allowed)
        if unknown:
            raise ConfigurationError(
                f"{path.name}: {name} may say {', '.join(sorted(allowed))}, got {', '.join(unknown)}; correct it"
            )
        found[name] = Notebook(name, **{**facts, "data": tuple(facts.get("data", ()))})
    return found


def read_profile(profile, root=ROOT):
    """The profile in ``config/<profile>.yaml``."""
    path = root / "config" / f"{profile}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml") if p.stem != "notebooks"))
        raise ConfigurationError(f"PROFILE must be one of {known}, got {profile!r}; write PROFILE=quick")
    content = _read(path)
    unknown = sorted(set(content) - {"common", "notebooks"})
    if unknown:
        raise ConfigurationError(
            f"{path.name}: only the keys common and notebooks are read, got {', '.join(unknown)}; correct it"
        )
    notebooks = {name: parameters or {} for name, parameters in (content.get("notebooks") or {}).items()}
    return Profile(profile, content.get("common") or {}, notebooks)


def _read(path):
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path.name}: must be YAML; {error}") from None
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path.name}: must be a mapping, got {type(content).__name__}; see its first lines")
    return content
