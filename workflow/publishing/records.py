"""In what the records, tables and pictures of two batches differ.

``python -m workflow.publishing.records one/figures other/figures`` lists it, without dates, costs
and, of notebooks that measure times, fractional results, tables and pictures. With ``--changed
"another seed"`` the other batch is one of the paper profile in which that was changed:
`workflow.publishing.other_runs` then notes how far the numbers of the claims moved.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workflow.configuration import Notebook, owner_of, read_notebooks
from workflow.publishing.other_runs import SEED, add_run, summarise_runs

NOT_COMPARED = ("cost", "time_utc")
# Parts of a record that are compared one by one.
DIVIDED = ("parameters", "results")
# With a tolerance, numbers that differ by less are equal, such as differences of numbers near 1
# that should be 0.
ROUNDING = 1e-12
ABSENT = "nothing"
#: The keys that lead to a number or a string of a record.
Keys = tuple[Any, ...]


def find_differences(one: Path | str, other: Path | str, tolerance: float = 0.0) -> list[str]:
    """One sentence for each part of a record, and each file, that is not the same in both folders.

    With a tolerance, numbers may differ by that share of the larger one, or by 1e-12, and tables
    and pictures are not compared.
    """
    notebooks = read_notebooks()
    here = names_in(one)
    there = names_in(other)
    sentences = []
    for name in sorted(here ^ there):
        folder = other
        if name in here:
            folder = one
        sentences.append(f"{name.as_posix()}: only in {folder}")
    for name in sorted(here & there):
        is_timing = measures_time(name, notebooks)
        before = (Path(one) / name).read_bytes()
        now = (Path(other) / name).read_bytes()
        if name.suffix == ".json":
            parts = differing_parts(json.loads(before), json.loads(now), is_timing, tolerance)
            sentences += [f"{name.as_posix()}: {part}" for part in parts]
        elif before != now and not is_timing and not tolerance:
            sentences.append(f"{name.as_posix()}: other bytes")
    return sentences


def names_in(folder: Path | str) -> set[Path]:
    """The files of a folder, relative to it."""
    return {path.relative_to(folder) for path in Path(folder).rglob("*.*")}


def measures_time(name: Path, notebooks: Mapping[str, Notebook]) -> bool:
    """Whether a file is of a notebook that measures time."""
    owner = owner_of(name.with_suffix("").as_posix(), notebooks)
    return owner is not None and notebooks[owner].timing


def differing_parts(
    one: Mapping[str, Any], other: Mapping[str, Any], is_timing: bool, tolerance: float
) -> list[str]:
    """Parts of two records that differ, each with its first differing values.

    Of a notebook that measures time (`is_timing`), floats in the results are not compared.
    `tolerance` is relative.
    """
    before = dict(leaves_of(one))
    now = dict(leaves_of(other))
    parts: dict[Keys, tuple[Any, Any]] = {}
    for path in dict.fromkeys([*before, *now]):
        values = (before.get(path, ABSENT), now.get(path, ABSENT))
        is_time = is_timing and path[0] == "results" and {*map(type, values)} == {float}
        if path[0] in NOT_COMPARED or is_time or are_equal(*values, tolerance):
            continue
        parts.setdefault(part_of(path), values)
    return [f"{' / '.join(path)}: {before!r} and {now!r}" for path, (before, now) in parts.items()]


def part_of(path: Keys) -> Keys:
    """The keys that lead to the part of a record to which a value belongs."""
    if path[0] in DIVIDED:
        return path[:2]
    return path[:1]


def are_equal(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two values are the same; numbers up to the relative tolerance, if it is not 0, or up
    to `ROUNDING`."""
    are_numbers = {type(one), type(other)} <= {int, float}
    if tolerance and are_numbers:
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=ROUNDING)
    return one == other


def leaves_of(value: Any, path: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """All numbers and strings of a record, and what is empty, with the keys that lead there."""
    parts: Any = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    if not parts or not value:
        yield path, value
    for key, part in parts:
        yield from leaves_of(part, (*path, key))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the records, tables and pictures of two batches; the exit status is 1 if they
    differ."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("one", help="a folder of figures: figures, or build/paper/figures")
    parser.add_argument("other")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.0,
        help="relative; tables and pictures are then left out",
    )
    parser.add_argument(
        "--changed", help=f'what was changed on purpose ("{SEED}"): note how far claims moved'
    )
    options = parser.parse_args(arguments)
    if options.changed:
        print(summarise_runs(add_run(options.changed, options.one, options.other)))
        return 0
    found = find_differences(options.one, options.other, tolerance=options.tolerance)
    records = len(list(Path(options.one).rglob("*.json")))
    print(*found, f"{records} records compared, {len(found)} differences", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
