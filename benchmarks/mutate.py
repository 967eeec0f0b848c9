"""Mutation run over the core rooms: change one operator, constant or margin at a time; a test must
then fail.

Each mutant is tested in a fork of a process that has the libraries loaded, which saves several
seconds of imports; the tools on the package index start Python anew for each.
"""

import argparse
import ast
import importlib.abc
import importlib.util
import multiprocessing
import os
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
# A module and the tests that must notice a change of it.
ROOMS = {
    "tplrepro/leakage/loss_function.py": [
        *("tests/tplrepro/leakage/test_loss_function.py", "tests/tplrepro/leakage/test_errors.py"),
        *("tests/tplrepro/leakage/test_filter.py", "tests/tplrepro/leakage/test_prior_free.py"),
        "tests/tplrepro/leakage/test_kernels.py::test_the_compiled_recursion_is_the_plain_one_bit_for_bit",
        "tests/tplfrontier/chains/test_confidence.py::test_a_state_that_was_never_left_may_lead_to_any_state",
    ],
    "tplrepro/leakage/vertex.py": [
        "tests/tplrepro/leakage/test_loss_function.py",
        "tests/tplrepro/leakage/test_kernels.py::test_the_compiled_recursion_is_the_plain_one_bit_for_bit",
        "tests/tplrepro/leakage/test_kernels.py::test_a_long_array_of_budgets_has_the_leakages_of_single_steps",
    ],
    "tplrepro/leakage/envelope/recursion.py": [
        "tests/tplrepro/leakage/test_kernels.py::test_the_compiled_recursion_is_the_plain_one_bit_for_bit",
        "tests/tplrepro/leakage/test_kernels.py::test_a_long_array_of_budgets_has_the_leakages_of_single_steps",
        "tests/tplreport/people/test_population.py::test_many_users_at_a_time_have_the_bits_of_one_at_a_time",
    ],
    "tplrepro/leakage/temporal.py": [
        *("tests/tplrepro/leakage/test_temporal.py", "tests/tplrepro/allocation/test_safety.py")
    ],
    "tplrepro/leakage/accumulation.py": [
        "tests/tplrepro/leakage/test_temporal.py",
        "tests/tplrepro/leakage/test_kernels.py::test_a_long_array_of_budgets_has_the_leakages_of_single_steps",
        "tests/tplrepro/leakage/test_kernels.py::test_leakages_are_recomputed_only_up_to_the_first_known_one",
        "tests/tplfrontier/profiles/test_event_accountant.py::test_no_pure_leakage_is_finite_at_an_event_without_one_and_none_is_infinite_elsewhere",
    ],
    "tplrepro/allocation/published.py": [
        "tests/tplrepro/allocation/test_published.py",
        "tests/tplrepro/allocation/test_phases.py",
        "tests/tplrepro/allocation/test_safety.py",
    ],
    "tplreport/publishing/counts.py": ["tests/tplreport/publishing/test_counts.py"],
    "tplrepro/search.py": ["tests/test_search.py"],
    "tplrepro/validation.py": [
        *(
            "tests/test_validation.py",
            "tests/tplrepro/leakage/test_errors.py",
            "tests/tplrepro/markov/test_errors.py",
        ),
        *(
            "tests/tplrepro/leakage/test_temporal.py::test_results_are_frozen_copies",
            "tests/test_states.py",
        ),
        "tests/tplrepro/leakage/test_temporal.py::test_both_sides_have_the_same_states",
        "tests/tplfrontier/series/test_leakage.py",
    ],
}
LIBRARIES = ("mpmath", "numba", "pandas", "scipy.optimize", "scipy.stats")
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
SECONDS = 180


def mutants(source: str) -> Iterator[tuple[int, str, str]]:
    """Line, words and source of each mutant of a module; messages stay as they are."""
    tree = ast.parse(source)
    messages = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
    }
    nodes: list[Any] = [node for node in ast.walk(tree) if id(node) not in messages]
    for node in nodes:
        for field, old, new in changes(node):
            original = ast.unparse(node)
            setattr(node, field, new)
            yield (
                node.lineno,
                f"column {node.col_offset}: {original} -> {ast.unparse(node)}",
                ast.unparse(tree),
            )
            setattr(node, field, old)


def changes(node: Any) -> Iterator[tuple[str, Any, Any]]:
    """Fields of a node of the syntax tree, each with its value and another one."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            yield "ops", node.ops, [COMPARISONS[type(operator)]()]
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in OPERATORS:
            yield "op", operator, OPERATORS[type(operator)]()
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            yield "value", number, number + 1
        case ast.Call(func=ast.Name("nextafter") | ast.Attribute(attr="nextafter")):
            yield "args", node.args, [node.args[0], node.args[0]]  # no margin


class Loader(importlib.abc.MetaPathFinder, importlib.abc.ExecutionLoader):
    """Imports one module from changed source."""

    def __init__(self, path: str, source: str):
        self.name, self.path, self.source = (
            path.removesuffix(".py").replace("/", "."),
            ROOT / path,
            source,
        )

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """The spec of the changed module; None for every other name. Arguments are those of
        Python's finders."""
        return (
            importlib.util.spec_from_file_location(name, self.path, loader=self)
            if name == self.name
            else None
        )

    def get_source(self, name: str) -> str:
        return self.source

    def get_filename(
        self, name: str
    ) -> str:  # under which Numba finds the unchanged module's compiled kernels
        return str(self.path)


def run_tests(path: str, source: str) -> None:
    """Run a module's tests with this source in place of its own, and end the process with their
    result."""
    with open(os.devnull, "w") as nowhere:
        for number in (1, 2):
            os.dup2(nowhere.fileno(), number)
    os.environ["HYPOTHESIS_PROFILE"] = "first failure"
    sys.meta_path.insert(0, Loader(path, source))
    status = pytest.main(
        ["-x", "-q", "-p", "no:nbval", "-p", "no:cacheprovider", "-p", "no:xdist", *ROOMS[path]]
    )
    os._exit(status)


def survives(path: str, source: str) -> bool:
    """Whether all tests pass; one that takes far too long counts as failed."""
    process = multiprocessing.get_context("fork").Process(target=run_tests, args=(path, source))
    process.start()
    process.join(SECONDS)
    process.kill()
    process.join()
    return process.exitcode == pytest.ExitCode.OK


def main() -> int:
    """Print the survivors; 1 if the tests fail without a change."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--most", type=int, default=40, help="mutants of each module, drawn at random"
    )
    parser.add_argument("modules", nargs="*", default=list(ROOMS))
    options = parser.parse_args()
    os.chdir(ROOT)
    for name in LIBRARIES:
        importlib.import_module(name)
    for path in options.modules:
        source = (ROOT / path).read_text(encoding="utf-8")
        if not survives(path, source):
            message = (
                f"{path}: its tests must pass without a change, found a failure; repair them first"
            )
            print(message, file=sys.stderr)
            return 1
        every = list(mutants(source))
        drawn = sorted(
            random.Random(0).sample(every, min(options.most, len(every))),
            key=lambda mutant: mutant[0],
        )
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            alive = list(pool.map(lambda mutant, path=path: survives(path, mutant[2]), drawn))
        print(f"{path}: {len(drawn)} of {len(every)} mutants, {sum(alive)} survived", flush=True)
        for (line, words, _), survived in zip(drawn, alive, strict=True):
            if survived:
                print(f"  line {line}: {words}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
