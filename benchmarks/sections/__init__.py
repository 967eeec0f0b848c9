"""The sections of docs/benchmarks.md in order: a module each, whose `measure` yields lines."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A section of the page, and the module that measures it."""

    title: str
    module: str
    is_apart: bool = False  # run by its name only


SECTIONS = {
    "one": Section("One value L(α)", "one_value"),
    "whole": Section("The whole function", "whole_function"),
    "growth": Section("From fifty to ten thousand states", "growth"),
    "kinds": Section("Other dense matrices of a thousand states", "kinds_of_matrices"),
    "programme": Section("Linear programme", "linear_programme"),
    "account": Section("A million releases", "accounting"),
    "promises": Section("Any prior, budgets chosen as one goes, pairs of states", "promises"),
    "cycles": Section("Habits that follow the clock", "cycles"),
    "own": Section("Own data: from a file to recommended budgets", "own_data"),
    "read": Section(
        "Own data: reading alone, beside DuckDB and Polars where they are installed", "reading"
    ),
    "shuffled": Section("Own data: a report on rows in random order", "shuffled_rows"),
    "sparse": Section("Tens of thousands of states", "sparse_matrices"),
    "population": Section("Many users", "population"),
    "users": Section(
        "Ten million users on two workers of Dask, one of them killed",
        "ten_million_users",
        is_apart=True,
    ),
    "dask": Section(
        "A report on many rows by two workers of Dask", "report_on_dask", is_apart=True
    ),
    "page": Section("The interactive page", "interactive_page"),
    "cold": Section("The first call, without cached kernels", "first_calls"),
    "waits": Section("Calculations of the other papers", "other_papers"),
    "batch": Section(
        "The quick batch in a fresh clone, with an existing environment and caches", "quick_batch"
    ),
    "tests": Section("The tests", "tests"),
    "readers": Section(
        "Readers of data sets at the official sizes", "data_set_readers", is_apart=True
    ),
    "nothing": Section("A fresh clone from nothing", "from_nothing", is_apart=True),
    "import": Section("Import", "importing"),
}
