"""A file of observations as on the command line: the same reader, report and refusals."""

import csv
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tplreport.reading.matrices import read_text
from tplreport.reading.observations import read_sequences
from tplreport.reading.sizes import check_size
from tplreport.reading.table import column_names
from tplreport.reading.text_files import PAGE
from tplreport.reporting.report import Report, report
from tplrepro.markov.sequences import Sequences


@lru_cache(maxsize=2)
def read(content: bytes, name: str, columns: tuple[tuple[str, Any], ...]) -> tuple[Sequences, str]:
    """The sequences of an uploaded file, and what its reader warns of; its refusal is a ValueError.

    `name` is that of the file; `columns` are pairs of an argument of `read_sequences` and its
    value, so that results can be kept.
    """
    with warnings.catch_warnings(record=True) as caught, _on_disk(content, name) as path:
        warnings.simplefilter("always")
        sequences = read_sequences(path, **dict(columns))
        said = ". ".join(str(one.message) for one in caught if one.category is UserWarning)
    return sequences, said.replace(f"{path.parent}{os.sep}", "")


@lru_cache(maxsize=2)
def report_on(
    content: bytes, name: str, columns: tuple, settings: tuple[tuple[str, Any], ...]
) -> Report:
    """The package's report on an uploaded file called `name`.

    `columns` and `settings` are pairs of an argument of `read_sequences`, or of `report`, and its
    value, so that results can be kept.
    """
    return report(read(content, name, columns)[0], title=name, **dict(settings))


def text_of(content: bytes, name: str) -> str:
    """The text of a file; ValueError for others."""
    with _on_disk(content, name) as path:
        return read_text(path)


def columns_of(content: bytes, name: str) -> list[str]:
    """The names of the columns of a file; none if it cannot be read."""
    with suppress(ValueError, csv.Error), _on_disk(content, name) as path:
        return [str(column) for column in column_names(path) if column]
    return []


@contextmanager
def _on_disk(content: bytes, name: str) -> Iterator[Path]:
    """The file in a folder that messages do not name; any error of reading it is a ValueError."""
    with TemporaryDirectory() as folder:
        path = Path(folder, Path(name).name)
        path.write_bytes(content)
        try:
            check_size(path, PAGE)
            yield path
        except (ValueError, OSError, ModuleNotFoundError) as error:
            raise ValueError(str(error).replace(f"{folder}{os.sep}", "")) from None
