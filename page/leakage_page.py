"""The page: controls on one side, leakages, plots and budgets on the other."""

import base64
import mimetypes
import os
from collections.abc import Callable
from functools import lru_cache, partial
from html import escape
from shlex import quote
from typing import Any

import ipywidgets
import numpy as np

import tplrepro as tpl
from experiments.figures import output_folder
from experiments.provenance import repository_folder
from page import report
from page.analysis import Analysis, Inputs, analyse
from page.browser import Browser, LivePlots
from page.controls import NumberControl, card, dropdown, note, read_query, toggle, write_query
from page.glossary import glossary_html
from page.matrices import EXAMPLES
from page.noises import LAPLACE, PURE
from page.notebook import result_notebook
from page.plots import CURRENT
from page.scheduling import Scheduler
from page.sequences import LINES
from page.sources import MATCHING, SEQUENCES_FILE, MatrixSource
from page.text import MAX_RELEASES, format_budgets, parse_budgets
from tplrepro.allocation.schemes import SCHEMES
from tplrepro.files import write_whole
from tplrepro.leakage.temporal import as_loss_function
from tplrepro.reporting.report import Report
from tplrepro.validation import check_choice

PURE_EPSILON, WITH_DELTA = "pure ε", "(ε, δ)"
BOTH, BACKWARD, FORWARD = "both", "backward only", "forward only"
NOT_REAL = "Synthetic data: these numbers say nothing about real people."
ABOUT_CELLS = (
    "The Gaussian noise has the variance of the Laplace noise. A change of one user's value changes this many "
    "cells of the answer, by equal parts of the sensitivity: 2 if users move between counts; 1 is the worst case."
)
#: What can be saved, and how.
SAVED = (("budgets", ".csv"), ("figure", ".svg"), ("figure", ".pdf"), ("notebook", ".ipynb"), ("report", ".html"))
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
        self._changed = Scheduler(self._update, self._complete).request
        self.epsilon = NumberControl("ε (nats)", epsilon, 0.001, 10.0, "logarithmic")
        self.horizon = NumberControl("Releases T", horizon, 1, 100, "whole")
        self.alpha = NumberControl("Target α (nats)", alpha, 0.01, 10.0, "logarithmic")
        self.sensitivity = NumberControl("Sensitivity", sensitivity, 1, 10)
        self.privacy = toggle("Leakage in", [PURE_EPSILON, WITH_DELTA], "pure ε, or ε at a δ")
        self.delta = NumberControl("Probability δ", 1e-6, 1e-12, 0.1, "logarithmic")
        self.mechanism = dropdown("Mechanism", (LAPLACE, PURE))
        self.cells = NumberControl("Cells changed", 2, 1, 10, "whole")
        self.adversary = toggle("Adversary knows", [BOTH, BACKWARD, FORWARD], "what the adversary knows")
        self.forward = MatrixSource("forward", self._changed, example)
        self.backward = MatrixSource("backward", self._changed, example, self.forward)
        self.unequal = ipywidgets.Checkbox(description="a different budget for each release", indent=False)
        self.budgets = ipywidgets.Textarea(
            rows=4, continuous_update=False, tooltip="budget of each release in nats", placeholder="0.5, 0.2 x 8, 0.7"
        )
        self.scheme = dropdown("Copy from", SCHEMES, "Algorithm 8 (T known)")
        self.fill = ipywidgets.Button(description="Use these budgets")
        self.reset = ipywidgets.Button(description="Reset to ε")
        self.saved_scheme = dropdown("Budgets of", (CURRENT, *SCHEMES))
        self.save = {
            suffix: ipywidgets.Button(description=f"Save {what} ({suffix[1:].upper()})") for what, suffix in SAVED
        }
        self.saved, self.link = note(), note().add_class("tplr-address")
        self.status = ipywidgets.HTML().add_class("tplr-status")
        self.about_delta = note()
        self.title, self.summary, self.table = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self.browser = Browser()
        self.analysis: Analysis = analyse(self._inputs())
        self.plots = LivePlots(self.analysis)
        self._show()
        super().__init__([self.browser, self._columns()])
        self.add_class("tplr-page")
        # Name in the page's address -> widget with a value.
        numbers = ("epsilon", "horizon", "alpha", "sensitivity", "delta", "cells")
        self._values = {name: getattr(self, name).entry for name in numbers}
        self._values |= self.forward.values | self.backward.values
        others = ("privacy", "mechanism", "adversary", "budgets", "unequal")
        self._values |= {name: getattr(self, name) for name in others}
        for name in (*numbers, "mechanism", "adversary", "budgets"):
            getattr(self, name).observe(self._changed, "value")
        self.privacy.observe(self._switch_privacy, "value")
        self.unequal.observe(self._switch_budgets, "value")
        self.fill.on_click(self._fill)
        self.reset.on_click(self._reset)
        for suffix, button in self.save.items():
            button.on_click(partial(self._save, suffix))
        self._initial = {name: control.value for name, control in self._values.items()}
        self._refused = read_query(os.environ.get("QUERY_STRING", ""), self._values)
        self._write_address()

    def _columns(self) -> ipywidgets.Box:
        self._editor = ipywidgets.VBox(
            [self.budgets, note("in nats, separated by commas; 0.2 x 8 means 0.2 eight times")]
        )
        self.at_delta = ipywidgets.VBox([self.delta, self.mechanism, self.cells, note(ABOUT_CELLS)])
        self._editor.layout.display = self.at_delta.layout.display = "none"
        filling = ipywidgets.Box([self.fill, self.reset]).add_class("tplr-buttons")
        saving = ipywidgets.Box([*self.save.values()]).add_class("tplr-buttons")
        inputs = [
            card("Pure ε or (ε, δ)", self.privacy, self.at_delta),
            card("What the adversary knows", self.adversary, self.forward, self.backward).add_class("tplr-adversary"),
            card("Budget of each release", self.unequal, self._editor, self.scheme, filling),
            card("Save", self.saved_scheme, saving, self.saved, self.link),
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
        alpha = read("releases", self.alpha.checked)
        sensitivity = read("releases", self.sensitivity.checked)
        cells, delta = 1, None
        if self.privacy.value == WITH_DELTA:
            cells = read("noise", self.cells.checked)
            delta = read("noise", partial(self.delta.checked, 0.5))
        if problems:
            raise ValueError("\n".join(problems))
        noise = {"delta": delta, "mechanism": self.mechanism.value, "cells": cells}
        return Inputs(loss_function(backward), loss_function(forward), epsilons, alpha, sensitivity, **noise)

    def _epsilons(self) -> np.ndarray:
        horizon = self.horizon.checked(MAX_RELEASES)
        if self.unequal.value:
            return parse_budgets(self.budgets.value, horizon)
        return np.full(horizon, self.epsilon.checked())

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
        if self.synthetic:
            words = f"{NOT_REAL}\n\n{words}"
        if self.browser.query:
            words += f" The address `?{self.browser.query}` opens the page with the same inputs, but without files."
        if self._has_report():
            file = self.forward.observations
            options = {"FILE": file.file.name, **file.chosen(), **self._settings()}
            if LINES not in options.values():
                named = (f"{name.upper()}={quote(str(value))}" for name, value in options.items())
                words += f" A report on the same file: `{' '.join(['make own-data', *named])}`."
        return words

    def _has_report(self) -> bool:
        """Whether the matrices are those of a file, and all budgets are equal: a report says more about them."""
        is_file = self.forward.kind.value == SEQUENCES_FILE and self.backward.kind.value == MATCHING
        return is_file and self.adversary.value == BOTH and not self.unequal.value

    def _settings(self) -> dict[str, Any]:
        """What a report depends on, beside the file."""
        names = ("alpha", "horizon", "epsilon", "sensitivity")
        settings = {name: getattr(self, name).value for name in names} | {"smoothing": self.forward.smoothing.value}
        return settings | ({"delta": self.delta.value} if self.privacy.value == WITH_DELTA else {})

    def _report(self) -> Report:
        """The package's report on the file of observations, as on the command line."""
        if not self._has_report():
            raise ValueError(
                f"a report needs a {SEQUENCES_FILE} as forward matrix, its counterpart, both known to the adversary, "
                "and equal budgets; choose them"
            )
        file = self.forward.observations
        return tpl.report(file.observed().sequences, **self._settings(), title=file.file.name)

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
        self._changed()

    def _switch_budgets(self, change) -> None:
        self._editor.layout.display = None if change.new else "none"
        self.epsilon.slider.disabled = self.epsilon.entry.disabled = change.new
        if change.new and not self.budgets.value.strip():
            self.budgets.value = format_budgets(self.analysis.inputs.epsilons)
        self._changed()

    def _fill(self, _) -> None:
        self._complete()
        try:
            self.budgets.value = format_budgets(report.budgets_of(self.analysis, self.scheme.value))
        except ValueError as error:
            return self._show_problems([f"budgets: {error}"])
        self.horizon.entry.value = self.analysis.inputs.epsilons.size
        self.unequal.value = True
        self._changed()

    def _reset(self, _) -> None:
        self.budgets.value = ""
        self.unequal.value = False
        self._changed()

    def _save(self, suffix: str, _) -> None:
        """Write the file below the folder for figures, and make the browser download it as well."""
        self._complete()
        name, said = self.saved_scheme.value if suffix == ".csv" else CURRENT, list[str]()
        try:
            if suffix == ".csv":
                content = report.budgets_table(self.analysis, name).to_csv(lineterminator="\n").encode()
            elif suffix == ".html":
                advice = self._report()
                content, said = advice.to_html().encode(), [*advice.warnings, *advice.sentences]
            elif suffix == ".ipynb":
                content = result_notebook(self.analysis, self._origin())
            else:
                content = report.saved_figure(self.analysis, suffix, "Synthetic data" if self.synthetic else "")
            file = report.file_name(self.analysis, name, suffix)
            path = output_folder() / "explore" / file
            write_whole(path, content)
        except (ValueError, OSError) as error:
            self.saved.value = f"<span class='tplr-bad' role='alert'>{escape(str(error))}</span>"
            return
        media_type = mimetypes.guess_type(file)[0] or "application/x-ipynb+json"
        self.browser.download(file, media_type, content)
        link = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
        download = f"<a class='tplr-link' download='{escape(file)}' href='{link}'>download {escape(file)}</a>"
        verdict = "".join(f"<p>{escape(sentence)}</p>" for sentence in said)
        self.saved.value = f"saved as {escape(os.path.relpath(path, repository_folder()))}, and {download}{verdict}"
