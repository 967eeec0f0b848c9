import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from workflow.batch.run_notebook import kernel_environment
from workflow.checks.committed_notebooks import clean, refresh
from workflow.configuration import METADATA, ROOT
from workflow.publishing.start_page import START, write_start_page


def test_cleaning_keeps_tags_and_ids_and_drops_other_metadata_and_widgets():
    widget = new_output(
        "display_data", data={"application/vnd.jupyter.widget-view+json": {"model_id": "1"}}
    )
    text = new_output("display_data", data={"text/plain": "0.5"})
    metadata = {"tags": ["parameters"], "execution": {"started": "now"}}
    cells = [
        new_markdown_cell("# Title", id="first", metadata={"editable": True}),
        new_code_cell("a = 1", id="second", metadata=metadata),
        new_code_cell("page", outputs=[widget, text]),
    ]
    about = {
        "papermill": {"duration": 1.0},
        "language_info": {"name": "python", "version": "3.11.7"},
    }
    cleaned = clean(new_notebook(cells=cells, metadata=about))
    assert [dict(cell.metadata) for cell in cleaned.cells] == [{}, {"tags": ["parameters"]}, {}]
    assert cleaned.cells[2].outputs == [text]
    assert [cell.id for cell in cleaned.cells[:2]] == ["first", "second"]
    assert cleaned.metadata == METADATA


@pytest.mark.notebook
def test_a_second_refresh_changes_nothing_and_warnings_are_not_committed(repository, monkeypatch):
    path = repository.notebook("a/one", "print(value)")
    assert [refresh(path), refresh(path)] == [True, False]
    assert nbformat.read(path, as_version=4).cells[-1].outputs[0].text == "0.5\n"
    before = path.read_bytes()
    warning = new_output("stream", name="stderr", text="careful")
    monkeypatch.setattr(
        "nbclient.NotebookClient.execute", lambda self: self.nb.cells[2].outputs.append(warning)
    )
    with pytest.raises(
        ValueError, match="cell 2 of one.ipynb must not write to stderr, found:\n(.|\n)*careful"
    ):
        refresh(path)
    assert path.read_bytes() == before


def test_stand_ins_hide_the_data_and_kernels_run_the_code_beside_the_notebooks(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("TPLREPRO_DATA", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    hidden = kernel_environment(tmp_path, "quick", "make test", real_data=False, root=tmp_path)
    assert "TPLREPRO_DATA" not in hidden
    # Nothing of the user's own.
    assert (hidden["PYTHONPATH"], hidden["PYTHONNOUSERSITE"]) == (str(ROOT), "1")
    assert hidden["TPLREPRO_CACHE"] == str(tmp_path / "build" / "no-downloads")
    shown = kernel_environment(
        tmp_path, "quick", "make figures", real_data=True, threads=1, root=tmp_path
    )
    assert (shown["TPLREPRO_DATA"], shown["NUMBA_NUM_THREADS"]) == (str(tmp_path), "1")


def test_a_new_notebook_is_listed_on_the_start_page_whose_introduction_stays(repository):
    introduction = new_markdown_cell("# What is where", id="cell-0")
    page = repository.write(START, "")
    nbformat.write(new_notebook(cells=[introduction]), page)
    repository.of("explore/one", "explore/two", "tkde2019/fig1")
    assert write_start_page(repository.root)
    first, *lists = nbformat.read(page, as_version=4).cells
    assert first.source == "# What is where"
    links = ["- [one](explore/one.ipynb): Title", "- [two](explore/two.ipynb): Title"]
    assert lists[0].source.splitlines()[2:] == links
    assert lists[1].source.splitlines()[2:] == ["- [fig1](tkde2019/fig1.ipynb): Title"]
    assert not write_start_page(repository.root)
