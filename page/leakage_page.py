"""The page: controls on one side, leakages, plots and budgets on the other."""

import mimetypes
import os
from collections.abc import Callable
from functools import lru_cache, partial
from html import escape
from typing import Any

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np

import tplreport as tr
from experiments.figures import figure_bytes, output_folder
from experiments.provenance import repository_folder
from page import report
from page.analysis import Analysis, Inputs, analyse
from page.browser import Browser, LivePlots
from page.controls import NumberControl, card, dropdown, note, read_query, toggle, write_query
from page.glossary import glossary_html
from page.matrices import EXAMPLES
from page.notebook import result_notebook
from page.plots import draw
from page.scheduling import Scheduler
from page.sources import MATCHING, SEQUENCES_FILE, MatrixSource
from page.text import MAX_RELEASES, format_budgets, parse_budgets
from tplreport.files import write_whole
from tplreport.reporting.report import Report
from tplreport.schemes import SCHEMES
from tplrepro.leakage.temporal import as_loss_function
from tplrepro.validation import check_choice

PURE_EPSILON, WITH_DELTA = "pure ε", "(ε, δ)"
BOTH, BACKWARD, FORWARD = "both", "backward only", "forward only"
NOT_REAL = "Synthetic data: these numbers say nothing about real people."
ABOUT_CELLS = (
    "The Gaussian noise has the variance of the Laplace noise. A change of one user's value changes this many "
    "cells of the answer, by equal parts of the sensitivity: 2 if users move between counts; 1 is the worst case."
)
#: How each of what can be saved is saved.
SAVED = {"budgets": ".csv", "figure": ".svg", "notebook": ".ipynb", "report": ".html"}
LONGEST_QUERY = 4000  # characters; servers refuse longer addresses
FIRST = "Fig. 8 of TKDE 2019"
# Recent loss functions are kept for users who go back to a matrix.
loss_function = lru_cache(maxsize=8)(as_loss_function)


class LeakagePage(ipywidgets.VBox):
    """An interactive page on the leakage of a series of releases, and on the budgets that bound it.

    It begins with the matrices of an `example`; inputs in the page's address replace the arguments.
    `analysis` is the last valid result, and `problems` says what has been wrong since.
    """

    def __init__(
        self, example: str = FIRST, epsilon: float = 0.1, horizon: int = 10, alpha: float = 1.0, sensitivity: float = 2
    ):
        check_choice(example, "matrices", EXAMPLES)
        self.problems: list[str] = []
        self._refused: list[str] = []  # of the address
        self.epsilon = NumberControl("ε (nats)", epsilon, 0.001, 10.0, "logarithmic")
        self.horizon = NumberControl("Releases T", horizon, 1, 100, "whole", most=MAX_RELEASES)
        self.alpha = NumberControl("Target α (nats)", alpha, 0.01, 10.0, "logarithmic")
        self.sensitivity = NumberControl("Sensitivity", sensitivity, 1, 10)
        self.privacy = toggle("Leakage in", [PURE_EPSILON, WITH_DELTA], "pure ε, or ε at a δ")
        self.delta = NumberControl("Probability δ", 1e-6, 1e-12, 0.1, "logarithmic", most=0.5)
        self.cells = NumberControl("Cells changed", 2, 1, 10, "whole")
        self.adversary = toggle("Adversary knows", [BOTH, BACKWARD, FORWARD], "what the adversary knows")
        self.forward = MatrixSource("forward", example)
        self.backward = MatrixSource("backward", example, self.forward)
        self.unequal = ipywidgets.Checkbox(description="a different budget for each release", indent=False)
        self.budgets = ipywidgets.Textarea(
            rows=4, continuous_update=False, tooltip="budget of each release in nats", placeholder="0.5, 0.2 x 8, 0.7"
        )
        self.scheme = dropdown("Copy from", SCHEMES, "Algorithm 8 (T known)")
        self.fill = ipywidgets.Button(description="Use these budgets")
        self.reset = ipywidgets.Button(description="Reset to ε")
        self.save = {
            what: ipywidgets.Button(description=f"Save {what} ({suffix[1:].upper()})") for what, suffix in SAVED.items()
        }
        self.saved, self.link, self.about_delta = note(), note().add_class("tplr-address"), note()
        self.status = ipywidgets.HTML().add_class("tplr-status")
        self.title, self.summary, self.table = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self.browser, self.plots = Browser(), LivePlots()
        super().__init__([self.browser, self._columns()])
        self.add_class("tplr-page")
        self.analysis: Analysis = analyse(self._inputs())
        self._show()
        # Name in the page's address -> widget with a value.
        names = ["epsilon", "horizon", "alpha", "sensitivity", "delta", "cells"]
        names += ["privacy", "adversary", "budgets", "unequal"]
        self._values = {name: getattr(getattr(self, name), "entry", getattr(self, name)) for name in names}
        self._values |= self.forward.values | self.backward.values
        self._initial = {name: control.value for name, control in self._values.items()}
        self._changed = Scheduler(self._update, self._complete).request
        self.privacy.observe(self._switch_privacy, "value")
        self.unequal.observe(self._switch_budgets, "value")
        for control in (*self._values.values(), *self.forward.files, *self.backward.files):
            control.observe(self._changed, "value")
        self.fill.on_click(self._fill)
        self.reset.on_click(self._reset)
        for what, button in self.save.items():
            button.on_click(partial(self._save, what))
        self._refused = read_query(os.environ.get("QUERY_STRING", ""), self._values)
        self._write_address()

    def _columns(self) -> ipywidgets.Box:
        about_budgets = note("in nats, separated by commas; 0.2 x 8 means 0.2 eight times")
        self._editor = ipywidgets.VBox([self.budgets, about_budgets])
        self.at_delta = ipywidgets.VBox([self.delta, self.cells, note(ABOUT_CELLS)])
        self._editor.layout.display = self.at_delta.layout.display = "none"
        filling = ipywidgets.Box([self.fill, self.reset]).add_class("tplr-buttons")
        saving = ipywidgets.Box([*self.save.values()]).add_class("tplr-buttons")
        inputs = [
            card("Pure ε or (ε, δ)", self.privacy, self.at_delta),
            card("What the adversary knows", self.adversary, self.forward, self.backward).add_class("tplr-adversary"),
            card("Budget of each release", self.unequal, self._editor, self.scheme, filling),
            card("Save", saving, self.saved, self.link),
        ]
        plots = ipywidgets.VBox([self.plots]).add_class("tplr-plots")
        shown = self.title, self.summary, plots, self.about_delta, self.table
        results = [*(part.add_class("tplr-result") for part in shown), ipywidgets.HTML(glossary_html())]
        columns = [
            card("Releases", self.epsilon, self.horizon, self.alpha, self.sensitivity).add_class("tplr-releases"),
            ipywidgets.VBox(inputs).add_class("tplr-inputs"),
            ipywidgets.VBox([self.status, *results]).add_class("tplr-results"),
        ]
        return ipywidgets.Box(columns).add_class("tplr-columns")

    def _inputs(self) -> Inputs:
        """What the controls say; one ValueError holds all problems, one per line."""
        problems: list[str] = []

        def read(what: str, make: Callable) -> Any:
            try:
                return make()
            except ValueError as error:
                problems.append(f"{what}: {error}")
                return None

        adversary, follows = self.adversary.value, self.backward.followed
        backward, forward = None, None
        if adversary != BACKWARD or follows:
            forward = read("forward matrix", self.forward.matrix)
        if adversary != FORWARD and not (follows and problems):  # the forward problem would be repeated
            backward = read("backward matrix", self.backward.matrix)
        if adversary == BACKWARD:
            forward = None
        epsilons = read("budgets", self._epsilons)
        alpha = read("releases", lambda: self.alpha.value)
        sensitivity = read("releases", lambda: self.sensitivity.value)
        noise = {}
        if self.privacy.value == WITH_DELTA:
            noise = read("noise", lambda: {"delta": self.delta.value, "cells": self.cells.value})
        if problems:
            raise ValueError("\n".join(problems))
        return Inputs(loss_function(backward), loss_function(forward), epsilons, alpha, sensitivity, **noise)

    def _epsilons(self) -> np.ndarray:
        if self.unequal.value:
            return parse_budgets(self.budgets.value, self.horizon.value)
        return np.full(self.horizon.value, self.epsilon.value)

    def _update(self) -> None:
        """Read the controls, and show the new result or what is wrong; nothing is raised."""
        problems = []
        try:
            self.analysis = analyse(self._inputs(), self.analysis, complete=False)
        except ValueError as error:
            problems = str(error).split("\n")
        except Exception as error:  # a page must not end in a traceback
            problems = [f"unexpected {type(error).__name__}: {error}; undo the last change, and please report this"]
        self._show_problems(problems)
        if not problems:
            self._show()

    def _complete(self) -> None:
        if self.analysis.pending:
            self.analysis = analyse(self.analysis.inputs, self.analysis)
            self._show()
        self._write_address()

    def _write_address(self) -> None:
        """Put the inputs into the address of the page, and say so."""
        query = write_query(self._values, self._initial)
        message = "The address of this page contains these inputs, but no files."
        if len(query) > LONGEST_QUERY:
            query, message = "", "These inputs are too long for an address: save them as a notebook."
        if self._refused:
            message += f" Ignored in the address that was opened: {', '.join(self._refused)}."
        self.browser.query = query
        self.link.value = escape(message)

    def _origin(self) -> str:
        """Where the inputs of a saved notebook come from, in Markdown."""
        words = f"Saved by `make explore`. Matrices: forward {self.forward.origin}, backward {self.backward.origin}."
        if self.browser.query:
            words += f" The address `?{self.browser.query}` opens the page with the same inputs, but without files."
        return f"{NOT_REAL}\n\n{words}" if self.synthetic else words

    def _report(self) -> Report:
        """The package's report on the file of observations, as on the command line."""
        is_file = self.forward.kind.value == SEQUENCES_FILE and self.backward.kind.value == MATCHING
        if not is_file or self.adversary.value != BOTH or self.unequal.value:
            raise ValueError(
                f"a report needs a {SEQUENCES_FILE} as forward matrix, its counterpart, both known to the adversary, "
                "and equal budgets; choose them"
            )
        settings = {name: getattr(self, name).value for name in ("alpha", "horizon", "epsilon", "sensitivity")}
        if self.privacy.value == WITH_DELTA:
            settings["delta"] = self.delta.value
        observed = self.forward.observations.observed()
        return tr.report(observed.sequences, **settings, smoothing=self.forward.smoothing.value, title=observed.title)

    def _show_problems(self, problems: list[str]) -> None:
        self.problems = problems
        self.status.value = report.problem_html(problems)
        if problems:
            self.add_class("tplr-stale")
        else:
            self.remove_class("tplr-stale")
        for button in self.save.values():
            button.disabled = bool(problems)

    def _show(self) -> None:
        analysis = self.analysis
        self.synthetic = False
        for source, function in zip((self.backward, self.forward), analysis.inputs.functions, strict=True):
            if function is None:
                source.about.value = "not known to this adversary"
            else:
                source.describe(function.matrix)
                self.synthetic |= source.synthetic
        self.title.value = f"<p class='tplr-synthetic'>{NOT_REAL}</p>" if self.synthetic else ""
        self.summary.value = report.summary_html(analysis)
        self.table.value = report.schemes_html(analysis)
        self.about_delta.value = report.delta_html(analysis)
        self.plots.update(analysis)

    def _switch_privacy(self, change) -> None:
        self.at_delta.layout.display = None if change.new == WITH_DELTA else "none"

    def _switch_budgets(self, change) -> None:
        self._editor.layout.display = None if change.new else "none"
        self.epsilon.slider.disabled = self.epsilon.entry.disabled = change.new
        if change.new and not self.budgets.value.strip():
            self.budgets.value = format_budgets(self.analysis.inputs.epsilons)

    def _fill(self, _) -> None:
        self._complete()
        scheme = next(scheme for scheme in self.analysis.schemes if scheme.name == self.scheme.value)
        if scheme.budgets is None:
            return self._show_problems([f"budgets: {scheme.name} has no budgets: {scheme.message}"])
        self.budgets.value = format_budgets(scheme.budgets)
        self.horizon.entry.value = scheme.budgets.size
        self.unequal.value = True
        self._changed()

    def _reset(self, _) -> None:
        self.budgets.value = ""
        self.unequal.value = False

    def _save(self, what: str, _) -> None:
        """Write the file below the folder for figures, and make the browser download it as well."""
        self._complete()
        try:
            content, said = self._content(what)
            file = report.file_name(self.analysis, what, SAVED[what])
            path = output_folder() / "explore" / file
            write_whole(path, content)
        except (ValueError, OSError) as error:
            self.saved.value = f"<span class='tplr-bad' role='alert'>{escape(str(error))}</span>"
            return
        self.browser.download(file, mimetypes.guess_type(file)[0] or "application/x-ipynb+json", content)
        sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in said)
        self.saved.value = f"saved as {escape(os.path.relpath(path, repository_folder()))}{sentences}"

    def _content(self, what: str) -> tuple[bytes, list[str]]:
        """A file to save, and sentences that say what is in it."""
        if what == "budgets":
            return report.budgets_table(self.analysis).to_csv(lineterminator="\n").encode(), []
        if what == "notebook":
            return result_notebook(self.analysis, self._origin()), []
        if what == "report":
            advice = self._report()
            return advice.to_html().encode(), [*advice.warnings, *advice.sentences]
        figure = draw(self.analysis, "Synthetic data" if self.synthetic else "")
        content = figure_bytes(figure, SAVED[what])
        plt.close(figure)
        return content, []
