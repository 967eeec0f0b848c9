"""What every committed notebook looks like; whether it still prints what it printed is checked by nbval."""

import ast
import re

import nbformat
import pytest

from workflow.committed_notebooks import clean
from workflow.configuration import sources

NOTEBOOKS = sources()


@pytest.fixture(params=list(NOTEBOOKS), scope="module")
def committed(request):
    """A notebook's entry, the notebook and its cells of code."""
    notebook = nbformat.read(NOTEBOOKS[request.param].path(), as_version=4)
    return NOTEBOOKS[request.param], notebook, [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_is_valid_named_short_and_free_of_algorithms_and_of_what_changes_from_run_to_run(committed):
    """Functions of more than a few lines, and classes, belong in the package."""
    _, notebook, code = committed
    nbformat.validate(notebook)
    assert notebook == clean(nbformat.from_dict(notebook)), "run make notebooks"
    assert notebook.cells[0].cell_type == "markdown"
    assert re.match(r"# .{10,}", notebook.cells[0].source)
    assert len(notebook.cells) <= 30
    for cell in code:
        assert len(cell.source.splitlines()) <= 30
        for node in ast.walk(ast.parse(re.sub(r"(?m)^%.*$", "", cell.source))):
            assert not isinstance(node, ast.ClassDef)
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno <= 12, node.name


def test_was_run_from_top_to_bottom_without_errors_warnings_and_names_of_machines(committed):
    *_, code = committed
    filled = [cell for cell in code if cell.source.strip()]
    assert [cell.execution_count for cell in filled] == list(range(1, len(filled) + 1)), "run make notebooks"
    for output in (output for cell in code for output in cell.outputs):
        assert output.output_type != "error"
        assert output.get("name") != "stderr"
        text = output.get("text", "") + "".join(map(str, output.get("data", {}).get("text/plain", "")))
        assert not re.search(r"/(tmp|home|root|Users|work)/", text)


def test_has_a_seed_saves_under_its_own_name_and_reads_no_settings_of_the_machine(committed):
    entry, _, code = committed
    assert isinstance(entry.declared_parameters().get("seed"), int)
    source = "\n".join(cell.source for cell in code)
    if entry.figure:
        assert f'"{entry.name}"' in source or entry.notebook != entry.name  # then the batch looks
        assert re.search(r"save_(figure|table)\(", source)
    assert not re.search(r"os\.environ|getenv|TPLREPRO_DATA|np\.random\.seed|filterwarnings", source)
