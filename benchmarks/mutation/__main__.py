"""Change modules, print the changes that survive, and write docs/mutation.md (`make mutate`)."""

import argparse
import fcntl
import importlib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from benchmarks.mutation.changes import Change, Module
from benchmarks.mutation.page import Key, Page, Row
from benchmarks.mutation.rooms import CONFIGURATION, ROOT, Configuration, Room, read_configuration
from benchmarks.mutation.session import Outcome, Session, run_session

#: What all rooms import, once.
LIBRARIES = ("mpmath", "numba", "pandas", "scipy.optimize", "scipy.stats")


def main() -> int:
    """Judge changes of the modules, or of those that are named."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--most", type=int, default=24, help="changes drawn from each module")
    parser.add_argument("--killers", action="store_true", help="print the test that fails, too")
    parser.add_argument(
        "--survivors", action="store_true", help="judge only what survives by docs/mutation.md"
    )
    parser.add_argument("names", nargs="*", help="rooms or modules; all of them by default")
    options = parser.parse_args()
    os.chdir(ROOT)
    configuration = read_configuration()
    rooms = wanted_rooms(configuration.rooms, options.names)
    if not rooms:
        parser.error(f"no room or module is called {' '.join(options.names)}")
    if len(rooms) == 1:
        judge_room(rooms[0], configuration, options)
        return 0
    words = ["--most", str(options.most)]
    words += [f"--{name}" for name in ("killers", "survivors") if getattr(options, name)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return max(pool.map(lambda room: judge_apart(room, words), rooms))


def wanted_rooms(rooms: tuple[Room, ...], names: list[str]) -> list[Room]:
    """The rooms that are named, or of which a module is, with these modules only."""
    wanted = []
    for room in rooms:
        modules = room.modules
        if names and room.name not in names:
            modules = tuple(module for module in modules if module in names)
        if modules:
            wanted.append(Room(room.name, modules, room.tests, room.has_kernels))
    return wanted


def judge_apart(room: Room, words: list[str]) -> int:
    """Judge a room in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.mutation", *words, *room.modules]
    return subprocess.run(command, check=False).returncode


def judge_room(room: Room, configuration: Configuration, options: argparse.Namespace) -> None:
    """Judge the changes of a room's modules, and put their figures on the page."""
    for name in LIBRARIES:
        importlib.import_module(name)
    excused = configuration.excused()
    drawn = drawn_changes(room, options)
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as out:  # pytest keeps the other one

        def tell(found: Outcome) -> None:
            is_excused = found.change.key in excused
            if options.killers or (found.survived and not is_excused):
                print(described(found), file=out, flush=True)

        session = Session(drawn, room.has_kernels, tell)
        if drawn:
            run_session(session, [*room.tests, *room.modules])
    if session.failures:
        print(f"{room.name}: left out, since they fail in this process:", *session.failures)
    with open(CONFIGURATION) as lock:  # other rooms write the page, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        page = Page.read()
        for module in drawn:
            page.rows[module.path] = judged_row(module, session, page, options.survivors)
        for path, row in page.rows.items():
            page.rows[path] = row.excusing(excused)
        page.write(configuration)
    for module in drawn:
        row = page.rows[module.path]
        print(f"{row.module}: {len(row.survivors)} of {row.drawn} survive, {row.n_excused} excused")


def drawn_changes(room: Room, options: argparse.Namespace) -> dict[Module, list[Change]]:
    """The changes to be judged, of each module that has some."""
    modules = [Module(ROOT, path) for path in room.modules]
    if not options.survivors:
        return {module: module.draw(options.most) for module in modules}
    rows = Page.read().rows
    drawn = {}
    for module in modules:
        survivors: tuple[Key, ...] = ()
        if module.path in rows:
            survivors = rows[module.path].survivors
        changes = [change for change in module.changes if change.key in survivors]
        if changes:
            drawn[module] = changes
    return drawn


def described(found: Outcome) -> str:
    """A line about a change: where it is, what it is, and what became of it."""
    change = found.change
    fate = "killed by"
    if found.survived:
        fate = "survives:"
    place = f"{change.module}:{change.line} {change.place}".rstrip()
    return f"{place}: {change.name}  [{fate} {found.by}]"


def judged_row(module: Module, session: Session, page: Page, is_again: bool) -> Row:
    """The figures of a module; if only survivors were judged again, of the others as before."""
    outcomes = [found for found in session.outcomes if found.change.module == module.path]
    survivors = tuple(found.change.key for found in outcomes if found.survived)
    killed = len(outcomes) - len(survivors)
    if is_again:
        return replace(
            page.rows[module.path],
            killed=page.rows[module.path].killed + killed,
            survivors=survivors,
        )
    return Row(
        module=module.path,
        changes=len(module.changes),
        drawn=len(outcomes),
        killed=killed,
        date=time.strftime("%Y-%m-%d"),
        survivors=survivors,
    )


if __name__ == "__main__":
    sys.exit(main())
