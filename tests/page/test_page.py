"""The page without a browser: what the controls cause, how often, and what is said about mistakes."""

import io
import re
from html import escape
from itertools import product
from unittest.mock import Mock

import nbformat
import numpy as np
import pytest

import tplrepro as tpl
from page import Inputs, analyse, scheduling, sources
from page import leakage_page as module
from page.browser import NAMES
from page.glossary import GLOSSARY, about, glossary_html
from page.leakage_page import LeakagePage
from page.matrices import EXAMPLES, example
from page.plots import CURRENT, PANELS, curves
from page.scheduling import REST
from page.sequences import DATASETS, MOST_VISITED, from_dataset
from page.sources import DATASET, GENERATED, MATCHING, MATRIX_FILE, SAME, SEQUENCES_FILE, TEXT
from tests.page.serving import upload

BACKWARD, FORWARD = example("Fig. 8 of TKDE 2019")


class Clock(dict):
    """Stands in for the event loop: calls back when told to, the calls of one delay."""

    def __call__(self, delay, callback):
        call = Mock(delay=delay)
        self[call] = callback
        call.cancel = lambda: self.pop(call, None)
        return call

    def run(self, delay):
        return sum(self.pop(call)() is None for call in [call for call in self if call.delay == delay])


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(scheduling, "run_later", clock)
    return clock


@pytest.fixture
def page():
    return LeakagePage()


def test_a_burst_of_changes_is_one_computation_and_one_long_one_when_they_cease(clock, monkeypatch, page):
    analyse = Mock(side_effect=module.analyse)
    monkeypatch.setattr(module, "analyse", analyse)
    for step in range(50):
        page.epsilon.slider.value = 0.11 + 0.01 * step
        page.alpha.slider.value = 1.1 + 0.01 * step
    page.horizon.slider.value = 30
    assert analyse.call_count == 0
    assert clock.run(0.0) == 1
    assert analyse.call_count == 1
    assert page.analysis.inputs.epsilons.size == 30
    assert page.analysis.pending
    page.alpha.entry.value = 5.0  # between the update and its rest: the long calculation waits until changes cease
    assert (clock.run(REST), clock.run(0.0), clock.run(REST)) == (0, 1, 1)
    assert not page.analysis.pending


def drawn(page, name):
    return np.asarray(getattr(page.plots, f"curve_{NAMES.index(name)}")[1], dtype=float)


def test_curves_follow_the_controls_and_only_those_that_changed_are_sent(page):
    changed = []
    page.plots.observe(lambda change: changed.append(NAMES[int(change.name.removeprefix("curve_"))]))
    page.sensitivity.entry.value = 3.0
    assert set(changed) == {name for name in curves(page.analysis) if name.startswith("error of")}
    changed.clear()
    page.epsilon.slider.value = 0.3
    series = {"BPL", "FPL", "TPL", "ε", "leakage − ε", "supremum"}
    assert set(changed) == series | {f"budget of {CURRENT}", f"error of {CURRENT}"}
    expected = tpl.temporal_privacy_leakage(np.full(10, page.epsilon.value), BACKWARD, FORWARD)
    assert np.array_equal([drawn(page, name) for name in ("BPL", "TPL")], [expected.bpl, expected.tpl])
    page.alpha.entry.value = 2.0
    best = tpl.allocate_optimally(2.0, BACKWARD, FORWARD, 10)
    assert np.array_equal(drawn(page, "error of smallest error (T known)"), 3.0 / best)
    page.adversary.value = "backward only"
    assert drawn(page, "L forward").size == 0
    assert page.forward.about.value == "not known to this adversary"


def test_each_curve_of_each_example_is_drawn_once_and_has_its_own_look():
    for name in EXAMPLES:
        functions = map(tpl.PrivacyLossFunction, example(name))
        assert sorted(NAMES) == sorted(curves(analyse(Inputs(*functions, np.full(10, 0.1), alpha=1.0))))
    for panel in PANELS:
        looks = [(curve["dashes"], curve["shape"]) for curve in panel["curves"]]
        colours = [curve["colour"] for curve in panel["curves"] if curve["dashes"] is not None]
        assert [len(set(kind)) for kind in (looks, colours)] == [len(looks), len(colours)]


def test_a_typed_number_stays_though_a_slider_rounds_it_and_one_out_of_range_is_said(page):
    page.epsilon.entry.value = 0.123456
    page.epsilon.slider.value = 10 ** (round(np.log10(0.123456) * 100) / 100)  # what a browser sends back
    assert page.epsilon.value == 0.123456
    for control, value in product((page.epsilon, page.alpha, page.sensitivity), (0.0, -1.0, float("inf"))):
        good, before = control.value, page.analysis
        control.entry.value = value
        message = f"{control.label} must be a finite number greater than 0, found {value:g}; move"
        assert [message in problem for problem in page.problems] == [True]
        assert page.analysis is before
        control.entry.value = good
    page.horizon.entry.value = 500  # beyond the slider
    assert (page.horizon.slider.value, page.analysis.inputs.epsilons.size) == (100, 500)
    page.horizon.slider.value = 99
    assert page.horizon.value == 99


def test_matrices_come_from_many_sources_and_are_edited_as_text():
    page = LeakagePage("four places of a weekday")
    forward = example("four places of a weekday")[1]
    assert np.array_equal(page.analysis.inputs.backward.matrix, forward.reverse())
    page.backward.kind.value = SAME
    assert np.array_equal(page.analysis.inputs.backward.matrix, forward)
    page.forward.kind.value = SEQUENCES_FILE
    upload(page.forward.observations.file, b"user,state\n" + b"".join(b"1,%c\n" % one for one in b"abbcbaa"))
    page.backward.kind.value = MATCHING
    expected = tpl.TransitionMatrix.from_sequences([[*"abbcbaa"]], smoothing=1 / 3, direction="backward")
    assert np.array_equal(page.analysis.inputs.backward.matrix, expected)
    assert page.problems == []
    page.forward.kind.value = MATRIX_FILE
    upload(page.forward.matrix_file, b"x,y\n0.75,0.25\n0.5,0.5\n")
    page.forward.edit.click()
    assert page.forward.kind.value == TEXT
    assert page.forward.text.value == ", x, y\nx, 0.75, 0.25\ny, 0.5, 0.5"
    page.forward.text.value = "0.9 0.1\n0.5 0.5"
    assert page.analysis.inputs.forward.matrix.probabilities.tolist() == [[0.9, 0.1], [0.5, 0.5]]
    assert np.array_equal(page.analysis.inputs.backward.matrix, page.analysis.inputs.forward.matrix.reverse())
    page.forward.text.value, page.forward.normalize.value = "3 1\n1 1", True
    assert page.analysis.inputs.forward.matrix.probabilities.tolist() == [[0.75, 0.25], [0.5, 0.5]]


def test_a_synthetic_data_set_is_called_synthetic(page, monkeypatch, tmp_path, figures_folder):
    monkeypatch.delenv("TPLREPRO_DATA", raising=False)
    monkeypatch.setenv("TPLREPRO_CACHE", str(tmp_path))
    monkeypatch.setattr(sources, "dataset", sources.keep(from_dataset))  # nothing read before
    page.forward.kind.value = DATASET
    for name in DATASETS:
        page.forward.dataset.value = name
        assert (page.problems, "Synthetic data" in page.title.value) == ([], True)
        assert "(synthetic data): " in page.forward.about.value
        assert 10 < page.analysis.inputs.forward.matrix.n_states <= MOST_VISITED
    page.browser.download, draw = Mock(), Mock(side_effect=module.draw)
    monkeypatch.setattr(module, "draw", draw)
    for kind, title, named in ((DATASET, "Synthetic data", True), (GENERATED, "", False)):
        page.forward.kind.value = kind
        page.save["figure"].click()
        page.save["notebook"].click()
        assert draw.call_args.args[1] == title
        assert (module.NOT_REAL in page.browser.download.call_args.args[2].decode()) == named
    assert page.title.value == ""


def test_a_bad_file_leaves_the_last_good_result(page):
    before = page.analysis
    page.forward.kind.value = MATRIX_FILE
    row = "one row of probabilities per line, such as 0.8,0.2"
    assert page.problems == [f"forward matrix: no file has been chosen yet; choose one with {row}"]
    too_large = "must be at most 5 MB here, found 5.1 MB; load fewer lines"
    for content, message in {b"": "must be text in UTF-8, found an empty file", b"1" * 5_100_000: too_large}.items():
        upload(page.forward.matrix_file, content)
        (problem,) = page.problems
        assert problem.startswith(f"forward matrix: file.csv {message}")
        assert "role='alert'" in page.status.value
        assert page.analysis is before
        assert all(button.disabled for button in page.save.values())
    upload(page.forward.matrix_file, b"0.8,0.2\n0.1,0.9\n")
    assert (page.problems, page.status.value) == ([], "")
    assert not any(button.disabled for button in page.save.values())


def test_mistakes_are_said_together_and_even_a_fault_of_the_page_is_a_message(page, monkeypatch):
    page.backward.kind.value = GENERATED
    (problem,) = page.problems
    assert problem.startswith("all matrices must have the same states in the same order, found [2, 10]")
    page.backward.kind.value = MATRIX_FILE
    for horizon in (0, 2.5, 2000):  # 2.5 is not taken for 25 or 2
        page.horizon.entry.value = horizon
        message = f"budgets: Releases T must be a whole number greater than 0 and at most 1000, found {horizon}; move"
        assert [problem.startswith(message) for problem in page.problems] == [False, True]
    page.horizon.entry.value = 5
    page.adversary.value = "forward only"
    assert page.problems == []
    page.adversary.value, page.backward.kind.value = "both", MATCHING
    page.forward.text.value, page.forward.kind.value = "0.8 0.2\n0 1", TEXT
    assert page.problems[0].startswith("backward matrix: reversal needs every state to be reached")
    assert page.problems[0].endswith('; give the backward matrix itself, or choose "same as forward"')
    monkeypatch.setattr(module, "analyse", lambda *args, **kwargs: 1 / 0)
    page.backward.kind.value = SAME
    assert page.problems[0].startswith("unexpected ZeroDivisionError: division by zero; ")


def test_budgets_of_each_release_are_typed_or_taken_exactly_from_a_scheme_and_saved(page, figures_folder):
    page.unequal.value = True
    page.budgets.value = "0.5, 0.2 x 8, 0.7"
    assert page.analysis.inputs.epsilons.tolist() == [0.5, *[0.2] * 8, 0.7]
    page.horizon.entry.value = 12
    assert page.problems[0].startswith("budgets: there must be one budget per release, found 10 for T = 12")
    page.reset.click()
    assert page.analysis.inputs.epsilons.tolist() == [0.1] * 12
    for scheme in page.analysis.schemes:
        page.scheme.value = scheme.name
        page.fill.click()
        assert page.problems == []
        assert np.array_equal(page.analysis.inputs.epsilons, scheme.budgets)
    page.browser.download = Mock()
    page.save["budgets"].click()
    name, kind, content = page.browser.download.call_args.args
    assert (name, kind) == ("budgets-alpha-1-T-12.csv", "text/csv")
    assert content.startswith(b"release,epsilon,laplace_scale,bpl,fpl,tpl\n1,")
    assert np.array_equal(np.loadtxt(io.BytesIO(content), delimiter=",", skiprows=1)[:, 1], scheme.budgets)
    assert (figures_folder / "explore" / name).read_bytes() == content


def test_a_scheme_without_budgets_cannot_be_taken_and_a_bad_folder_is_said(monkeypatch):
    page = LeakagePage("strongest correlation")
    page.scheme.value = "Algorithm 7 (any T)"
    page.fill.click()
    assert page.problems[0].startswith("budgets: Algorithm 7 (any T) has no budgets: the backward leakage has no")
    monkeypatch.setenv("TPLREPRO_FIGURES", __file__)
    page.save["budgets"].click()
    assert "Not a directory" in page.saved.value


def executed(notebook, **parameters):
    """The names that a notebook's cells define, run with other parameters as papermill does."""
    names = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            exec(cell.source, names)
        if "parameters" in cell.metadata.get("tags", ()):
            names |= parameters
    return names


def test_a_saved_notebook_computes_what_the_page_shows(page, figures_folder):
    """For a file of observations at a delta."""
    page.forward.kind.value = SEQUENCES_FILE
    rows = [f"u{k},{t},{('home', 'x y', 'bar')[(k * t + k) % 3]}" for k in range(5) for t in range(k, 9)]
    upload(page.forward.observations.file, "\n".join(["user,time,state", *rows]).encode())
    page.horizon.entry.value, page.epsilon.entry.value = 4, 0.15
    page.privacy.value, page.browser.download = module.WITH_DELTA, Mock()
    page.save["notebook"].click()
    name, kind, saved = page.browser.download.call_args.args
    assert (name, kind) == ("notebook-alpha-1-T-4-delta-1e-06.ipynb", "application/x-ipynb+json")
    page.save["notebook"].click()
    assert page.browser.download.call_args.args[2] == saved  # the same bytes again
    notebook = nbformat.reads(saved.decode(), as_version=4)
    nbformat.validate(notebook)
    origin = notebook.cells[0].source
    assert "forward file of observations (file.csv, 1 step added to each row)" in origin
    assert "The address `?epsilon=0.15&horizon=4.0&privacy=" in origin
    result = executed(notebook, alpha=2.0)["result"]
    page.alpha.entry.value = 2.0
    assert (result.supremum, str(result.sides[0])) == (page.analysis.supremum, str(page.analysis.sides[0]))
    shown = curves(page.analysis)  # leakages, budgets of all schemes, and bounds at delta
    assert all(np.array_equal(y, shown[name][1]) for name, (_, y) in curves(result).items())


@pytest.mark.parametrize(
    ("epsilon", "marks"), [(0.1, ["good", "good"]), (0.15, ["good", "bad"]), (1.0, ["bad", "bad"])]
)
def test_a_mark_says_at_which_level_it_holds_and_the_other_level_stands_beside_it(epsilon, marks):
    page = LeakagePage(epsilon=epsilon)
    page.privacy.value = module.WITH_DELTA
    found = re.findall(r"class='tplr-(good|bad)'><abbr title='[^']+'>(event|user) level</abbr>", page.summary.value)
    assert found[:2] == list(zip(marks, ("event", "user"), strict=True))
    assert ("not shown to be within" in page.summary.value) == ("bad" in marks)  # of a bound above α
    assert [level for _, level in found] == ["event", "user"] * 3  # of pure epsilon, Laplace and Gaussian noise
    assert len(re.findall("tplr-good|tplr-bad", page.summary.value)) == len(found)


def test_each_word_is_explained_where_it_stands_and_in_a_list(page):
    shown = page.summary.value + page.table.value
    legend = {curve["label"]: curve["about"] for panel in PANELS for curve in panel["curves"]}
    for word in ("TPL", "Algorithm 7", "Algorithm 8", "Supremum", "event level", "user level", "smallest error"):
        assert f"<abbr title='{escape(about(word))}'>{word}</abbr>" in shown
    assert page.sensitivity.slider.tooltip == GLOSSARY["sensitivity"]
    assert all(legend.values())
    assert [legend[word] for word in ("BPL", "L backward")] == [GLOSSARY[word] for word in ("BPL", "L")]
    assert all(escape(sentence) in glossary_html() for sentence in GLOSSARY.values())
    # The target and the axis of L have names of their own.
    assert not any("α" in panel["x"] + panel["title"] for panel in PANELS)


def opened(query, monkeypatch, **begun):
    """The page as its server opens it by an address."""
    monkeypatch.setenv("QUERY_STRING", query)
    return LeakagePage(**begun)


def test_an_address_opens_the_page_with_the_inputs_that_it_was_taken_from(page, monkeypatch):
    assert page.browser.query == ""
    page.epsilon.entry.value, page.horizon.entry.value = 0.123456789012345, 7
    page.privacy.value, page.cells.entry.value = module.WITH_DELTA, 3
    page.forward.text.value, page.forward.kind.value = ", a b, c&d\na b, 0.7, 0.3\nc&d, 1/8, 7/8", TEXT
    page.backward.kind.value, page.backward.size.entry.value = SAME, 5
    page.unequal.value, page.budgets.value = True, "0.5, 0.2 x 5, 0.7"
    again = opened(f"token=0123&{page.browser.query}&theme=dark", monkeypatch)
    assert again.browser.query == page.browser.query
    for side in ("backward", "forward"):
        first, second = (getattr(one.analysis.inputs, side).matrix for one in (page, again))
        assert (second.states, np.array_equal(first, second)) == (["a b", "c&d"], True)
    for name in ("tpl", "bpl", "fpl"):
        assert np.array_equal(*(getattr(one.analysis.leakage, name) for one in (page, again)))
    assert again.analysis.inputs.cells == 3
    assert (again.epsilon.value, again.unequal.value, again.problems) == (0.123456789012345, True, [])


def test_what_an_address_cannot_ask_for_is_said(monkeypatch):
    query = "epsilon=inf&alpha=much&horizon=20&adversary=nobody&forward_normalize=1&broken=1&sensitivity=<b>&cells=nan"
    page = opened(query, monkeypatch, alpha=2.0)
    assert (page.horizon.value, page.alpha.value, page.epsilon.value, page.problems) == (20, 2.0, 0.1, [])
    left_out = "epsilon=inf, alpha=much, adversary=nobody, forward_normalize=1, sensitivity=<b>, cells=nan"
    assert escape(f"Ignored in the address that was opened: {left_out}.") in page.link.value
    assert page.browser.query == "horizon=20.0"
    page = opened("horizon=0", monkeypatch)  # a value that the control itself would take
    assert page.problems[0].startswith("budgets: Releases T must be a whole number")
    page.horizon.entry.value = 10
    page.forward.text.value = "# " + "long " * 1000
    assert (page.browser.query, "too long for an address" in page.link.value) == ("", True)


def test_an_unknown_example_is_named():
    with pytest.raises(
        ValueError, match="matrices must be one of .*'Fig. 8 of TKDE 2019'.*, found 'Fig. 99'; choose one"
    ):
        LeakagePage("Fig. 99")


@pytest.mark.parametrize("privacy", [module.PURE_EPSILON, module.WITH_DELTA])
def test_one_nat_is_singular(privacy):
    page = LeakagePage("no correlation", epsilon=1.0, horizon=1)
    page.privacy.value, page.cells.entry.value = privacy, 1
    shown = page.summary.value + page.about_delta.value + page.forward.about.value
    assert "<strong data-number='tpl'>1 nat</strong>" in shown
    assert re.findall(r"\b1 (?:nat|cell|state)s\b", shown) == []
