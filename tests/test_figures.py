import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from tplrepro import figures


def draw():
    figure, axes = figures.subplots(1, 2)
    for axis in axes:
        axis.plot([1, 2, 3], [0.1, 0.2, 0.3], label="BPL")
        axis.set(xlabel="time", ylabel="leakage (nats)", title="panel")
        axis.legend()
    return figure


def test_picture_document_and_record_stand_side_by_side(figures_folder):
    assert figures.save_figure(draw(), "paper/fig1") is None
    names = sorted(path.name for path in (figures_folder / "paper").glob("fig1*"))
    assert names == ["fig1.json", "fig1.pdf", "fig1.png"]
    assert not list((figures_folder / "paper").glob(".*"))  # nothing half-written is left
    assert (figures_folder / "paper" / "fig1.png").read_bytes().startswith(b"\x89PNG")
    assert (figures_folder / "paper" / "fig1.pdf").read_bytes().startswith(b"%PDF")


def test_same_figure_has_the_same_bytes(figures_folder):
    figure = draw()
    for name, drawn in {"same/a": figure, "same/b": draw(), "same/c": figure}.items():
        figures.save_figure(drawn, name)
    for suffix in (".png", ".pdf"):
        contents = {(figures_folder / "same" / f"{stem}{suffix}").read_bytes() for stem in "abc"}
        assert len(contents) == 1


def test_figure_is_as_wide_as_printed_columns_at_300_dots_an_inch(figures_folder):
    figures.save_figure(draw(), "size/fig1")
    picture = plt.imread(figures_folder / "size" / "fig1.png")
    assert picture.shape[1] == pytest.approx(300 * figures.DOUBLE_COLUMN, abs=1)
    single, _ = figures.subplots()
    assert single.get_figwidth() == figures.SINGLE_COLUMN


def test_columns_are_one_or_two():
    with pytest.raises(ValueError, match="columns must be 1 or 2, got 3; choose one or two printed columns"):
        figures.subplots(columns=3)


def test_no_text_is_below_seven_points():
    figure = draw()
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(plt.Text) if text.get_text()]
    assert texts
    assert min(text.get_fontsize() for text in texts) >= 7


def test_the_users_own_settings_change_nothing():
    with plt.rc_context({"font.size": 30, "lines.linewidth": 9, "axes.prop_cycle": plt.cycler(color=["r"])}):
        figure = draw()
        line = figure.axes[0].lines[0]
        assert line.get_linewidth() < 2
        assert to_rgb(line.get_color()) == to_rgb(figures.PALETTE[0])


def test_colours_differ_in_grey_or_are_told_apart_by_line_and_marker():
    figures.use_style()
    styles = [(entry["linestyle"], entry["marker"]) for entry in plt.rcParams["axes.prop_cycle"]]
    assert len(set(styles)) == len(styles) == len(figures.PALETTE)


def test_synthetic_data_are_called_synthetic_in_the_title(figures_folder):
    figure = draw()
    figures.save_figure(figure, "synthetic/fig1", data="synthetic")
    assert "synthetic data" in figure.get_suptitle().lower()
    assert json.loads((figures_folder / "synthetic" / "fig1.json").read_text())["data"] == "synthetic"


def test_the_authors_own_words_about_synthetic_data_stay():
    figure = draw()
    figure.suptitle("Counts")
    figures.save_figure(figure, "synthetic/fig2", data="synthetic")
    assert figure.get_suptitle() == "Counts (synthetic data)"
    figures.save_figure(figure, "synthetic/fig2", data="synthetic")
    assert figure.get_suptitle() == "Counts (synthetic data)"


def test_title_of_real_data_is_left_alone(tmp_path):
    file = tmp_path / "observations.csv"
    file.write_text("1\n")
    figure = draw()
    figures.save_figure(figure, "real/fig1", data="real", inputs=[file])
    assert figure.get_suptitle() == ""


@pytest.mark.parametrize("name", ["/fig1", "../fig1", "paper/fig1.png", ""])
def test_name_is_paper_and_figure(name):
    with pytest.raises(ValueError, match="name must be a relative path without a suffix, got .*write it like"):
        figures.save_figure(draw(), name)


def test_nothing_is_written_when_the_record_is_wrong(figures_folder):
    with pytest.raises(ValueError, match="data must be one of none, real, synthetic, got 'made up'"):
        figures.save_figure(draw(), "wrong/fig1", data="made up")
    assert not (figures_folder / "wrong").exists()


def test_table_beside_the_figure_and_alone(figures_folder):
    table = pd.DataFrame({"t": [1, 2], "leakage": [0.1, np.log(2)]})
    figures.save_figure(draw(), "table/fig1", table=table)
    figures.save_table(table, "table/alone", results={"rows": 2})
    expected = "t,leakage\n1,0.1\n2,0.693147181\n"
    assert (figures_folder / "table" / "fig1.csv").read_text() == expected
    assert (figures_folder / "table" / "alone.csv").read_text() == expected
    assert json.loads((figures_folder / "table" / "alone.json").read_text())["results"] == {"rows": 2}


def test_without_a_setting_figures_go_to_the_build_folder_of_the_repository(monkeypatch, tmp_path):
    (tmp_path / "Snakefile").touch()
    below = tmp_path / "notebooks" / "paper"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    monkeypatch.delenv("TPLREPRO_FIGURES")
    assert figures.output_folder() == tmp_path / "build" / "figures"
