"""The page: controls on one side, leakages, plots and budgets on the other."""

from __future__ import annotations

import base64
from collections import OrderedDict
from html import escape
from pathlib import Path

import ipywidgets
import numpy as np

from tplrepro.explore.analysis import Analysis, Inputs, analyse, check_same_states
from tplrepro.explore.browser import Browser, LivePlots
from tplrepro.explore.budgets import MAX_RELEASES, format_budgets, parse_budgets
from tplrepro.explore.controls import NumberControl, card, dropdown, note
from tplrepro.explore.plots import CURRENT
from tplrepro.explore.saving import MEDIA_TYPES, budgets_of, budgets_table, figure_bytes, file_name, write
from tplrepro.explore.scheduling import Coalescer, run_later
from tplrepro.explore.schemes import SCHEMES
from tplrepro.explore.sources import MatrixSource
from tplrepro.explore.words import problem_html, schemes_html, summary_html
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import check_epsilon, check_horizon

__all__ = ["LeakagePage"]

BOTH, BACKWARD, FORWARD = "both", "backward only", "forward only"
#: Loss functions kept for matrices that a user goes back to.
KEPT = 8


class LeakagePage:
    """An interactive page on the leakage of a series of releases, and on the budgets that bound it.

    Parameters
    ----------
    example : str, the matrices to begin with, a key of `EXAMPLES`
    epsilon : float, the budget of each release, nats
    horizon : int, the number of releases T
    alpha : float, the level of alpha-DP_T to allocate, nats
    sensitivity : float, of the released counts
    later : callable (delay, callback), see `scheduling.Coalescer`

    Attributes
    ----------
    widget : the page, to be displayed
    analysis : Analysis, the last valid result
    problems : list of str, what is wrong with the input; empty if nothing is
    """

    def __init__(self, example="Fig. 8 of TKDE 2019", epsilon=0.1, horizon=10, alpha=1.0, sensitivity=2.0, later=None):
        self._functions: OrderedDict = OrderedDict()
        self.problems: list[str] = []
        self._coalescer = Coalescer(self._update, self._complete, run_later if later is None else later)
        changed = self._coalescer.request
        self.epsilon = NumberControl("ε (nats)", epsilon, 0.001, 10.0, changed, logarithmic=True)
        self.horizon = NumberControl("Releases T", horizon, 1, 100, changed, integer=True)
        self.alpha = NumberControl("Target α (nats)", alpha, 0.01, 10.0, changed, logarithmic=True)
        self.sensitivity = NumberControl("Sensitivity", sensitivity, 1, 10, changed)
        self.adversary = ipywidgets.ToggleButtons(
            description="Adversary knows", options=[BOTH, BACKWARD, FORWARD], tooltip="what the adversary knows"
        )
        self.forward = MatrixSource("forward", changed, example)
        self.backward = MatrixSource("backward", changed, example, self.forward)
        self.unequal = ipywidgets.Checkbox(description="different budgets for each release", indent=False)
        self.budgets = ipywidgets.Textarea(
            rows=4, continuous_update=False, tooltip="budgets of each release in nats", placeholder="0.5, 0.2 x 8, 0.7"
        )
        self.scheme = dropdown("Those of", SCHEMES, list(SCHEMES)[2])
        self.fill = ipywidgets.Button(description="Take these budgets")
        self.reset = ipywidgets.Button(description="Reset to ε")
        self.saved_scheme = dropdown("Budgets of", (CURRENT, *SCHEMES))
        self.save = {
            ".csv": ipywidgets.Button(description="Save budgets (CSV)"),
            ".svg": ipywidgets.Button(description="Save figure (SVG)"),
            ".pdf": ipywidgets.Button(description="Save figure (PDF)"),
        }
        self.saved = note()
        self.status = ipywidgets.HTML()
        self.status.add_class("tplr-status")
        self.title, self.summary, self.table = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self.browser = Browser()
        self.analysis: Analysis = analyse(self._inputs())
        self.plots = LivePlots(self.analysis)
        self._show()
        self.widget = self._layout()
        self._observe(changed)

    def _repr_mimebundle_(self, **options):
        return self.widget._repr_mimebundle_(**options)

    def _layout(self):
        releases = card(
            "Releases", self.epsilon.widget, self.horizon.widget, self.alpha.widget, self.sensitivity.widget
        )
        releases.add_class("tplr-releases")
        self._editor = ipywidgets.VBox([self.budgets, note("nats, separated by commas; 0.2 x 8 is eight times 0.2")])
        self._editor.layout.display = "none"
        adversary = card("What the adversary knows", self.adversary, self.forward.widget, self.backward.widget)
        adversary.add_class("tplr-adversary")
        each = card("Budgets of each release", self.unequal, self._editor, self.scheme, _buttons(self.fill, self.reset))
        saving = card("Save", self.saved_scheme, _buttons(*self.save.values()), self.saved)
        inputs = ipywidgets.VBox([adversary, each, saving])
        inputs.add_class("tplr-inputs")
        plots = ipywidgets.VBox([self.plots])
        plots.add_class("tplr-plots")
        shown = [self.title, self.summary, plots, self.table]
        for part in shown:
            part.add_class("tplr-result")
        results = ipywidgets.VBox([self.status, *shown])
        results.add_class("tplr-results")
        columns = ipywidgets.Box([releases, inputs, results])
        columns.add_class("tplr-columns")
        page = ipywidgets.VBox([self.browser, columns])
        page.add_class("tplr-page")
        return page

    def _observe(self, changed):
        self.adversary.observe(changed, "value")
        self.budgets.observe(changed, "value")
        self.unequal.observe(self._switch_budgets, "value")
        self.fill.on_click(self._fill)
        self.reset.on_click(self._reset)
        for suffix, button in self.save.items():
            button.on_click(lambda _, suffix=suffix: self._save(suffix))

    def _inputs(self) -> Inputs:
        """What the controls say; all that is wrong with it goes into one error, a line a problem."""
        problems: list[str] = []

        def read(what, make):
            try:
                return make()
            except ValueError as error:
                problems.append(f"{what}: {error}")
                return None

        knows = self.adversary.value
        forward = backward = None
        if knows != BACKWARD or self.backward.needs_forward:
            forward = read("forward matrix", self.forward.matrix)
        if knows != FORWARD and not (forward is None and self.backward.needs_forward):
            backward = read("backward matrix", self.backward.matrix)
        if knows == BACKWARD:
            forward = None
        if not problems:
            read("matrices", lambda: check_same_states(backward, forward))
        epsilons = read("budgets", self._epsilons)
        if problems:
            raise ValueError("\n".join(problems))
        functions = [None if matrix is None else self._function(matrix) for matrix in (backward, forward)]
        return Inputs(*functions, epsilons, float(self.alpha.value), float(self.sensitivity.value))

    def _epsilons(self) -> np.ndarray:
        horizon = check_horizon(self.horizon.value, "T")
        if horizon > MAX_RELEASES:
            raise ValueError(f"T must be at most {MAX_RELEASES} releases here, found {horizon}; use tplrepro directly")
        if self.unequal.value:
            return parse_budgets(self.budgets.value, horizon)
        return np.full(horizon, float(check_epsilon(self.epsilon.value)))

    def _function(self, matrix: TransitionMatrix) -> PrivacyLossFunction:
        key = (matrix.toarray().tobytes(), tuple(matrix.states))
        if key not in self._functions:
            self._functions[key] = PrivacyLossFunction(matrix)
            while len(self._functions) > KEPT:
                self._functions.popitem(last=False)
        self._functions.move_to_end(key)
        return self._functions[key]

    def _update(self) -> None:
        """Read the controls, and show the new result or what is wrong; nothing is raised."""
        before = self.analysis
        try:
            inputs = self._inputs()
            if not _same(inputs, before.inputs):
                self.analysis = analyse(inputs, before, complete=False)
            problems = []
        except ValueError as error:
            problems = str(error).split("\n")
        except Exception as error:  # a page must not end in a traceback
            problems = [f"unexpected {type(error).__name__}: {error}; change the input back, and please report this"]
        self._tell(problems)
        if not problems and self.analysis is not before:
            self._show()

    def _complete(self) -> None:
        if self.analysis.pending:
            self.analysis = analyse(self.analysis.inputs, self.analysis)
            self._show()

    def _tell(self, problems: list[str]) -> None:
        if problems != self.problems:
            self.status.value = problem_html(problems)
            (self.widget.add_class if problems else self.widget.remove_class)("tplr-stale")
            for button in self.save.values():
                button.disabled = bool(problems)
        self.problems = problems

    def _show(self) -> None:
        analysis = self.analysis
        synthetic = any(
            source.synthetic
            for source, function in ((self.backward, analysis.inputs.backward), (self.forward, analysis.inputs.forward))
            if function is not None
        )
        self.synthetic = synthetic
        self.title.value = (
            "<p class='tplr-synthetic'>Synthetic data: no conclusion about people may be drawn from these numbers.</p>"
            if synthetic
            else ""
        )
        for source, function in ((self.backward, analysis.inputs.backward), (self.forward, analysis.inputs.forward)):
            if function is None:
                source.about.value = "not known to this adversary"
            else:
                source.describe(function.matrix)
        self.summary.value = summary_html(analysis)
        self.table.value = schemes_html(analysis)
        self.plots.update(analysis)

    def _switch_budgets(self, change) -> None:
        self._editor.layout.display = None if change.new else "none"
        self.epsilon.disabled = change.new
        if change.new and not self.budgets.value.strip():
            self.budgets.value = format_budgets(self.analysis.inputs.epsilons)
        self._coalescer.request()

    def _fill(self, _) -> None:
        self._complete()
        try:
            self.budgets.value = format_budgets(budgets_of(self.analysis, self.scheme.value))
        except ValueError as error:
            self._tell([f"budgets: {error}"])
            return
        self.horizon.value = self.analysis.inputs.epsilons.size
        self.unequal.value = True
        self._coalescer.request()

    def _reset(self, _) -> None:
        self.budgets.value = ""
        self.unequal.value = False
        self._coalescer.request()

    def _save(self, suffix: str) -> None:
        """Write the file below the folder for figures, and have the browser download it as well."""
        self._complete()
        name = self.saved_scheme.value if suffix == ".csv" else CURRENT
        title = "Synthetic data" if self.synthetic else ""
        try:
            if suffix == ".csv":
                content = budgets_table(self.analysis, name)
            else:
                content = figure_bytes(self.analysis, suffix, title)
            file = file_name(self.analysis, name, suffix)
            path = write(file, content)
        except (ValueError, OSError) as error:
            self.saved.value = f"<span class='tplr-bad' role='alert'>{escape(str(error))}</span>"
            return
        self.browser.download(file, MEDIA_TYPES[suffix], content)
        link = f"data:{MEDIA_TYPES[suffix]};base64,{base64.b64encode(content).decode()}"
        self.saved.value = (
            f"saved as {escape(_short(path))}, and "
            f"<a class='tplr-link' download='{escape(file)}' href='{link}'>download {escape(file)}</a>"
        )


def _buttons(*buttons):
    box = ipywidgets.Box(list(buttons))
    box.add_class("tplr-buttons")
    return box


def _same(one: Inputs, other: Inputs) -> bool:
    return (
        one.backward is other.backward
        and one.forward is other.forward
        and one.alpha == other.alpha
        and one.sensitivity == other.sensitivity
        and np.array_equal(one.epsilons, other.epsilons)
    )


def _short(path: Path) -> str:
    """A path as seen from the repository, or from where the page runs."""
    for folder in (Path.cwd(), *Path.cwd().parents[:2]):
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return path.name
