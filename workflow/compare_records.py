"""``python -m workflow.compare_records one/figures other/figures`` lists in what two batches differ.

Everything in a record is compared except its date and cost. For notebooks that measure times, fractional
results, tables and pictures are not compared, because they contain times.
"""

import argparse
import json
import math
import sys
from pathlib import Path

from workflow.configuration import owner_of, read_notebooks

NOT_COMPARED = ("cost", "time_utc")
# With a tolerance, numbers that differ by less are equal, such as differences of numbers near 1 that should be 0.
ROUNDING = 1e-12


def differences(one, other, tolerance=0.0):
    """One sentence for each part of a record, and each file, that is not the same in both folders.

    With a tolerance, numbers may differ by that share of the larger one, or by 1e-12, and tables and pictures
    are not compared.
    """
    notebooks, folders = read_notebooks(), (Path(one), Path(other))
    names = [{path.relative_to(folder) for path in folder.rglob("*.*")} for folder in folders]
    found = [f"{name.as_posix()}: only in {one if name in names[0] else other}" for name in sorted(names[0] ^ names[1])]
    for name in sorted(names[0] & names[1]):
        owner = notebooks.get(owner_of(name.with_suffix("").as_posix(), notebooks))
        timing = owner is not None and owner.timing
        contents = [(folder / name).read_bytes() for folder in folders]
        if name.suffix == ".json":
            parts = _differing(*map(json.loads, contents), timing, tolerance)
            found += [f"{name.as_posix()}: {part}" for part in parts]
        elif contents[0] != contents[1] and not timing and not tolerance:
            found.append(f"{name.as_posix()}: other bytes")
    return found


def _differing(one, other, timing, tolerance):
    """Parts of a record that differ, each with its first differing values."""
    leaves, parts = [dict(_leaves(record)) for record in (one, other)], {}
    for path in dict.fromkeys([*leaves[0], *leaves[1]]):
        values = [known.get(path, "nothing") for known in leaves]
        is_time = timing and path[0] == "results" and all(type(value) is float for value in values)
        if path[0] not in NOT_COMPARED and not is_time and not _equal(*values, tolerance):
            parts.setdefault(path[: 1 + (path[0] in ("parameters", "results"))], values)
    return [f"{' / '.join(path)}: {before!r} and {now!r}" for path, (before, now) in parts.items()]


def _equal(one, other, tolerance):
    if tolerance and {type(one), type(other)} <= {int, float}:
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=ROUNDING)
    return one == other


def _leaves(value, path=()):
    """All numbers and strings of a record with the keys that lead there."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not isinstance(value, dict | list) or not value:
        yield path, value
    for key, part in parts:
        yield from _leaves(part, (*path, key))


def main(arguments=None):
    """Compare the records, tables and pictures of two batches; the exit status is 1 if they differ."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("one", help="a folder of figures: build/paper/figures")
    parser.add_argument("other")
    parser.add_argument("--tolerance", type=float, default=0.0, help="relative; tables and pictures are then left out")
    options = parser.parse_args(arguments)
    found = differences(options.one, options.other, tolerance=options.tolerance)
    records = len(list(Path(options.one).rglob("*.json")))
    print(*found, f"{records} records compared, {len(found)} differences", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
