import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from experiments import figures
from workflow.configuration import ROOT


def draw():
    figure, axes = figures.subplots(1, 2)
    for axis in axes:
        axis.plot([1, 2, 3], [0.1, 0.2, 0.3], label="BPL")
        axis.set(xlabel="time", ylabel="leakage (nats)", title="panel")
        axis.legend()
    return figure


def test_picture_document_and_record_stand_side_by_side_and_the_same_figure_has_the_same_bytes(
    figures_folder,
):
    figure = draw()
    others = [figures.figure_bytes(draw(), suffix) for suffix in (".pdf", ".png")]
    figures.save_figure(figure, "paper/fig1")
    paths = sorted((figures_folder / "paper").iterdir())  # nothing half-written is left
    assert [path.name for path in paths] == ["fig1.json", "fig1.pdf", "fig1.png"]
    _, document, picture = (path.read_bytes() for path in paths)
    assert (
        [document, picture]
        == others
        == [figures.figure_bytes(figure, suffix) for suffix in (".pdf", ".png")]
    )
    assert (document[:4], picture[:4]) == (b"%PDF", b"\x89PNG")
    # As wide as printed columns at 300 dots an inch.
    assert plt.imread(paths[2]).shape[1] == pytest.approx(300 * figures.DOUBLE_COLUMN, abs=1)
    assert figures.subplots()[0].get_figwidth() == figures.SINGLE_COLUMN


def test_text_has_seven_points_and_lines_differ_in_grey_whatever_the_users_own_settings():
    with plt.rc_context(
        {"font.size": 30, "lines.linewidth": 9, "axes.prop_cycle": plt.cycler(color=["r"])}
    ):
        figure = draw()
        figure.draw_without_rendering()
        assert (
            7
            <= min(text.get_fontsize() for text in figure.findobj(plt.Text) if text.get_text())
            < 10
        )
        line = figure.axes[0].lines[0]
        assert line.get_linewidth() < 2
        assert to_rgb(line.get_color()) == to_rgb(figures.PALETTE[0])
        styles = [
            (entry["linestyle"], entry["marker"]) for entry in plt.rcParams["axes.prop_cycle"]
        ]
        assert len(set(styles)) == len(styles) == len(figures.PALETTE)


def test_each_of_many_lines_has_a_style_of_its_own():
    styles = figures.line_styles(range(12))  # the figures of SIP have nine
    assert len({(own["color"], own["linestyle"], own["marker"]) for own in styles.values()}) == 12


def test_zeros_on_a_logarithmic_axis_are_marked_at_its_lower_edge():
    axis = figures.subplots()[1]
    axis.set_yscale("log", nonpositive="mask")
    assert figures.mark_zeros(axis, [1, 2, 8], [0.5, 0.0, 0.0], marker="s", label="exact") == 2
    (line,) = axis.lines
    assert line.get_xdata().tolist() == [2, 8]
    (at_edge, _) = axis.transData.inverted().transform(line.get_transform().transform([[2, 0]]))[0]
    assert at_edge == pytest.approx(2)
    assert line.get_transform().transform([2, 0])[1] == pytest.approx(axis.bbox.y0)
    assert axis.get_legend_handles_labels() == ([], [])
    assert figures.mark_zeros(axis, [1, 2], [0.5, 0.1]) == 0
    assert axis.lines[:] == [line]


def test_synthetic_data_alone_are_called_synthetic_in_the_title(
    figures_folder, tmp_path, monkeypatch
):
    monkeypatch.setenv("TPLREPRO_PICTURES", "no")
    file = tmp_path / "observations.csv"
    file.write_text("1\n")
    figure = draw()
    figures.save_figure(figure, "real/fig1", data="real", inputs=[file])
    assert figure.get_suptitle() == ""
    figures.save_figure(figure, "synthetic/fig1", data="synthetic")
    assert "synthetic data" in figure.get_suptitle().lower()
    for data, part in (("synthetic", ""), ("synthetic in part: Gowalla", ": Gowalla")):
        figure.suptitle("Counts")
        for _ in range(2):  # the author's own words stay, and what is said is said once
            figures.save_figure(figure, "synthetic/fig1", data=data, inputs=[file])
            assert figure.get_suptitle() == f"Counts (synthetic data{part})"
        assert json.loads((figures_folder / "synthetic" / "fig1.json").read_text())["data"] == data


def test_a_wrong_name_or_record_is_refused_before_anything_is_written(figures_folder):
    for name in ("/fig1", "../fig1", "paper/fig1.png", ""):
        with pytest.raises(
            ValueError, match="name must be a relative path without a suffix, found .*write it like"
        ):
            figures.save_figure(draw(), name)
    with pytest.raises(
        ValueError,
        match=r"one of none, real, real \(unverified\), synthetic, synthetic in part, "
        "found 'made up'",
    ):
        figures.save_figure(draw(), "wrong/fig1", data="made up")
    assert not (figures_folder / "wrong").exists()


def test_tables_are_written_with_nine_digits_beside_the_figure_and_alone(
    figures_folder, monkeypatch, tmp_path
):
    monkeypatch.setenv("TPLREPRO_PICTURES", "no")
    table = pd.DataFrame({"t": [1, 2], "leakage": [0.1, np.log(2)]})
    figures.save_figure(draw(), "table/fig1", table=table)
    figures.save_table(table, "table/alone", results={"rows": 2})
    expected = "t,leakage\n1,0.1\n2,0.693147181\n"
    assert all(
        (figures_folder / "table" / f"{name}.csv").read_text() == expected
        for name in ("fig1", "alone")
    )
    assert json.loads((figures_folder / "table" / "alone.json").read_text())["results"] == {
        "rows": 2
    }
    # Without a setting they go to the build folder of the repository.
    (tmp_path / "Snakefile").touch()
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    monkeypatch.delenv("TPLREPRO_FIGURES")
    assert figures.output_folder() == tmp_path / "build" / "figures"


def test_nothing_is_cut_off_at_the_edges_of_the_published_pictures():
    paths = [*(ROOT / "figures").rglob("*.png")]
    assert paths
    for path in paths:
        with Image.open(path) as opened:
            picture = np.asarray(opened)[..., :3]  # eight bits a colour, where a float takes 32
        edges = (picture[0], picture[-1], picture[:, 0], picture[:, -1])
        assert min(edge.min() for edge in edges) > 0.98 * 255, path.name
