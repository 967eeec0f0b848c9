"""Change modules, print the changes that survive, and write docs/mutation.md (`make mutate`)."""

import argparse
import fcntl
import importlib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.mutation.changes import Module
from benchmarks.mutation.page import Row, read_rows, write_page
from benchmarks.mutation.rooms import CONFIGURATION, ROOT, Configuration, Room, read_configuration
from benchmarks.mutation.session import Outcome, Session, run_session

#: What all rooms import, once.
LIBRARIES = ("mpmath", "numba", "pandas", "scipy.optimize", "scipy.stats")


def main() -> int:
    """Judge changes of the modules, or of those that are named."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--most", type=int, default=24, help="changes drawn from each module")
    parser.add_argument("--killers", action="store_true", help="print the test that fails, too")
    parser.add_argument("names", nargs="*", help="rooms or modules; all of them by default")
    options = parser.parse_args()
    os.chdir(ROOT)
    configuration = read_configuration()
    rooms = wanted_rooms(configuration.rooms, options.names)
    if not rooms:
        parser.error(f"no room or module is called {' '.join(options.names)}")
    if len(rooms) == 1:
        return judge_room(rooms[0], configuration, options.most, options.killers)
    arguments = ["--most", str(options.most), *(["--killers"] if options.killers else [])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return max(pool.map(lambda room: judge_apart(room, arguments), rooms))


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


def judge_apart(room: Room, arguments: list[str]) -> int:
    """Judge a room in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.mutation", *arguments, *room.modules]
    return subprocess.run(command, check=False).returncode


def judge_room(room: Room, configuration: Configuration, most: int, tells_killers: bool) -> int:
    """Judge the changes of a room's modules, and put their figures on the page."""
    for name in LIBRARIES:
        importlib.import_module(name)
    modules = [Module(ROOT, path) for path in room.modules]
    excused = configuration.excused()
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as out:  # pytest keeps the other one

        def tell(found: Outcome) -> None:
            is_excused = found.change.key in excused
            if tells_killers or (found.survived and not is_excused):
                print(described(found), file=out, flush=True)

        session = Session(modules, most, room.has_kernels, tell)
        run_session(session, [*room.tests, *room.modules])
    if session.failures:
        print(f"{room.name}: left out, since they fail in this process:", *session.failures)
    judged = {module.path: judged_row(module, session, excused) for module in modules}
    for row in judged.values():
        print(f"{row.module}: {row.survived} of {row.drawn} survive, {row.excused} excused")
    with open(CONFIGURATION) as lock:  # other rooms write the page, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_page((read_rows() | judged).values(), configuration.excuses)
    return 0


def described(found: Outcome) -> str:
    """A line about a change: where it is, what it is, and what became of it."""
    change = found.change
    fate = "killed by"
    if found.survived:
        fate = "survives:"
    place = f"{change.module}:{change.line} {change.place}".rstrip()
    return f"{place}: {change.name}  [{fate} {found.by}]"


def judged_row(module: Module, session: Session, excused: set[tuple[str, str, str]]) -> Row:
    """The figures of a module."""
    outcomes = [found for found in session.outcomes if found.change.module == module.path]
    survivors = [found.change for found in outcomes if found.survived]
    forgiven = [change for change in survivors if change.key in excused]
    return Row(
        module=module.path,
        changes=len(module.changes),
        drawn=len(outcomes),
        killed=len(outcomes) - len(survivors),
        excused=len(forgiven),
        survived=len(survivors) - len(forgiven),
        date=time.strftime("%Y-%m-%d"),
    )


if __name__ == "__main__":
    sys.exit(main())
