"""The rooms of config/mutation.yaml: modules, the tests that guard them, and excused changes."""

from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.measuring import ROOT

CONFIGURATION = ROOT / "config" / "mutation.yaml"


@dataclass(frozen=True)
class Room:
    """Modules whose tests are collected together."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    #: Whether the modules hold kernels, which are then run as plain Python.
    has_kernels: bool = False


@dataclass(frozen=True)
class Excuse:
    """A change that no test need notice, and why."""

    module: str
    place: str
    change: str
    reason: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Module, place and words of the change."""
        return self.module, self.place, self.change


@dataclass(frozen=True)
class Configuration:
    """What is changed, and what is excused."""

    rooms: tuple[Room, ...]
    excuses: tuple[Excuse, ...]

    def excused(self) -> set[tuple[str, str, str]]:
        """Module, place and words of each excused change."""
        return {excuse.key for excuse in self.excuses}


def read_configuration(file: Path = CONFIGURATION) -> Configuration:
    """The rooms and excuses of a file."""
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    rooms = []
    for name, entry in content["rooms"].items():
        room = Room(
            name, tuple(entry["modules"]), tuple(entry["tests"]), entry.get("kernels", False)
        )
        rooms.append(room)
    excuses = []
    for module, places in content["excused"].items():
        for place, changes in places.items():
            excuses += [Excuse(module, place, change, why) for change, why in changes.items()]
    return Configuration(tuple(rooms), tuple(excuses))
