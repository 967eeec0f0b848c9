"""The page: fields on one side; verdict, numbers, plots and tables on the other."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets
import numpy as np

from page import matrices, own_data, plots, schedules, tables
from page.analysis import Analysis, Inputs, analyse, budgets_of_schemes, is_slow
from page.fields import Field, File, Number, Upload, dropdown, text
from tplreport.reporting.allocation_schemes import SCHEMES
from tplreport.reporting.plans import ESTIMATE
from tplreport.reporting.report import Report
from tplrepro.validation import check_choice

FIRST = "Fig. 8 of TKDE 2019"
OBSERVATIONS = "my data: a file of observations"
BOTH = "both sides"
BACKWARD = "backward only"
FORWARD = "forward only"
LABELS = (
    "labels may stand in the first row, or in it and the first column; a cycle has a column phase "
    "before the others, and the rows of all its matrices"
)
STILL_EXAMPLE = "still the example's matrix: replace it by your own, too"
AGAINST_ESTIMATE = (
    "a scheme's budgets hold against the estimate; the table has the recommended ones"
)
EQUAL = "ε at each release"
SCHEDULE = "a schedule: ε of each phase"
#: How the users began, by what it is called on the page.
STARTS = [("in the habit", "habit"), ("anywhere: not known", "any")]
#: For whom the backward side holds.
HOLDS_FOR = {
    "habit": "users who start in the habit, the law that repeats itself",
    "any": "all users, wherever they start",
}
OF_BACKWARD = "users whose first states have the law that the backward side assumes"
USUAL = "by its usual name"
DELTAS = [("none: pure ε", 0.0), *((f"1e-{digits}", 10.0**-digits) for digits in range(3, 13))]
# that a report has beside δ, by the names of the fields
SETTINGS = ("alpha", "horizon", "epsilon", "sensitivity", "smoothing")
REST = 0.3  # seconds without a change until the slow parts begin
ANSWER = 2.0  # seconds within which a figure must have answered


@dataclass(frozen=True, eq=False)
class Source:
    """What the adversary knows: a loss function for each side, None for one that it does not."""

    backward: matrices.Side = None
    forward: matrices.Side = None
    report: Report | None = None  # on the file from which they are estimated
    start: str = ""  # how users begin, of whom the backward side holds


class LeakagePage(ipywidgets.VBox):
    """The page; `analysis` and `schemes` are the last valid results, `problems` says what has been
    wrong since.

    `example` is the name of matrices in `matrices.EXAMPLES`; `epsilon` (nats), `horizon`, `alpha`
    (nats) and `sensitivity` are what the entries hold at first.
    """

    def __init__(
        self,
        example: str = FIRST,
        epsilon: float = 0.1,
        horizon: int = 10,
        alpha: float = 1.0,
        **more: float,
    ):
        check_choice(example, "matrices", matrices.EXAMPLES)
        self.chain = dropdown("Begin with", [*matrices.EXAMPLES, OBSERVATIONS])
        self.adversary = dropdown("Adversary", [BOTH, BACKWARD, FORWARD])
        self.matrix_file = File(
            "a row of probabilities per line, such as 0.8,0.2; or edit it below"
        )
        self.forward = text("Forward", LABELS)
        self.backward_file = File("the same of the backward side; or leave it empty")
        self.backward = text("Backward", "empty: Bayes' reversal of the forward matrix or cycle")
        self.start = dropdown("Users start", STARTS)
        self.data_file = File("a header user,time,state above rows such as 7,1,home")
        self.columns = {
            name: dropdown(name.capitalize(), [USUAL]) for name in ("user", "time", "state")
        }
        self.smoothing = Number("Smoothing", 1.0, (0.001, 100.0))
        self.epsilon = Number("ε (nats)", epsilon, (0.001, 10.0))
        self.horizon = Number("Releases T", horizon, (1, 100), most=1000, whole=True)
        self.alpha = Number("Target α", alpha, (0.01, 10.0))
        self.sensitivity = Number("Sensitivity", more.get("sensitivity", 2.0), (0.1, 10.0))
        self.kind = dropdown("Budgets", [EQUAL, SCHEDULE, *SCHEMES])
        self.schedule = text("Schedule", "a line per phase; it returns with each period")
        self.delta = dropdown("δ", DELTAS)
        self.status = ipywidgets.HTML()
        self.verdict = ipywidgets.HTML()
        self.table = ipywidgets.HTML()
        self.advice = ipywidgets.HTML()
        self.problems: list[str] = []
        self.analysis: Analysis | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._incomplete = False  # whether what is shown still lacks what is slow
        self._report_of: tuple = ()
        self._phases: list = [0]  # of the cycle, or the one matrix, that was typed
        self._releases_of_matrix = horizon
        super().__init__(self._layout())
        self.add_class("tplr-page")
        self.chain.entry.observe(self._write_example, "value")
        self.matrix_file.entry.observe(self._take_matrix, "value")
        self.backward_file.entry.observe(self._take_backward, "value")
        self.forward.entry.observe(self._forget_example, "value")
        self.forward.entry.observe(self._follow_phases, "value")
        self.kind.entry.observe(self._offer_schedule, "value")
        self.data_file.entry.observe(self._offer_columns, "value")
        self.chain.entry.value = example
        self._write_example()
        self._show_fields()
        self._update()
        if self.problems or self.analysis is None:
            raise ValueError(self.problems[0])
        self._complete()
        self.panel.children = [plots.draw(self.analysis, self.schemes)]
        for field in self.fields:
            if field not in (self.matrix_file, self.backward_file):  # they act by texts
                field.entry.observe(self._changed, "value")
        # no loop: a script. JupyterLab draws before there is a place to measure
        with suppress(RuntimeError):
            asyncio.get_running_loop().call_later(ANSWER, lambda: self._show(self.analysis))

    def _layout(self) -> list[ipywidgets.Widget]:
        """The widgets of the page from top to bottom; makes `fields`, `panel` and `results`."""
        chain = [self.chain, self.adversary, self.matrix_file, self.forward]
        chain += [self.backward_file, self.backward, self.start]
        chain += [self.data_file, *self.columns.values(), self.smoothing]
        releases = [self.epsilon, self.horizon, self.alpha, self.sensitivity]
        releases += [self.kind, self.schedule, self.delta]
        self.fields: list[Field] = [*chain, *releases]
        knowledge = ipywidgets.HTML("<h3>What the adversary knows</h3>")
        series = ipywidgets.HTML("<h3>Releases</h3>")
        inputs = ipywidgets.VBox([knowledge, *chain, series, *releases])
        inputs.add_class("tplr-inputs")
        self.panel = ipywidgets.Box().add_class("tplr-plots")
        shown = [self.status, self.verdict, self.panel, self.table, self.advice]
        self.results = ipywidgets.VBox(shown).add_class("tplr-results")
        css = Path(__file__).with_name("style.css").read_text()
        style = ipywidgets.HTML(f"<style>{css}</style>")
        columns = ipywidgets.Box([inputs, self.results]).add_class("tplr-columns")
        return [style, columns]

    def _example(self) -> tuple[str, str]:
        """Forward and backward matrix of the example that the fields began with."""
        return matrices.EXAMPLES.get(self.chain.value, ("", ""))

    def _write_example(self, _: Any = None) -> None:
        forward, backward = self._example()
        self.forward.entry.value = forward
        self.backward.entry.value = backward

    def _forget_example(self, _: Any) -> None:
        """A forward matrix of one's own has no backward matrix of the example beside it."""
        forward, backward = self._example()
        if self.forward.value != forward and self.backward.value == backward:
            self.backward.entry.value = ""

    def _take_matrix(self, _: Any) -> None:
        matrix = self.matrix_file.attempt(lambda: own_data.text_of(*self.matrix_file.read()), [])
        if matrix is not None:
            self.backward.entry.value = ""
            self.forward.entry.value = matrix

    def _take_backward(self, _: Any) -> None:
        file = self.backward_file
        matrix = file.attempt(lambda: own_data.text_of(*file.read()), [])
        if matrix is not None:
            self.backward.entry.value = matrix

    def _follow_phases(self, _: Any) -> None:
        """Show two periods of another cycle, and of one matrix what was asked for at first."""
        try:
            phases = matrices.parse_cycle(self.forward.value).phases
        except ValueError:  # which `_update` says
            return
        if phases == self._phases:
            return
        self._phases = phases
        self.schedule.entry.value = schedules.equal_schedule(phases, self.epsilon.value)
        releases = 2 * len(phases)
        if len(phases) == 1:
            releases = self._releases_of_matrix
        self.horizon.entry.value = releases
        if len(phases) == 1 and self.kind.value == SCHEDULE:
            self.kind.entry.value = EQUAL

    def _offer_schedule(self, _: Any) -> None:
        """Begin a schedule for the phases that are shown with equal budgets, to be edited."""
        if self.kind.value != SCHEDULE or self.analysis is None:
            return
        phases = self.analysis.inputs.losses.phases
        try:
            schedules.read_schedule(self.schedule.value, phases)
        except ValueError:
            template = schedules.equal_schedule(phases, self.epsilon.value)
            self.schedule.entry.value = template

    def _offer_columns(self, _: Any) -> None:
        file = self.data_file.attempt(self.data_file.read, [])
        names = own_data.columns_of(*file) if file else []
        for column in self.columns.values():
            column.entry.options = [USUAL, *names]

    def _show_fields(self) -> None:
        """Show the fields that count."""
        is_own = self.chain.value == OBSERVATIONS
        typed = (self.matrix_file, self.forward, self.backward_file, self.backward, self.start)
        for field in typed:
            field.layout.display = "none" if is_own else None
        for field in (self.data_file, *self.columns.values(), self.smoothing):
            field.layout.display = None if is_own else "none"
        self.schedule.layout.display = None if self.kind.value == SCHEDULE else "none"
        self.adversary.entry.disabled = is_own  # a report is against both sides
        has_backward = self.backward.value.strip() != ""
        self.start.entry.disabled = has_backward or self.adversary.value == FORWARD
        forward, backward = self._example()
        is_mixed = self.forward.value == forward and self.backward.value != backward
        self.forward.note.value = STILL_EXAMPLE if is_mixed and not is_own else LABELS
        self.kind.note.value = AGAINST_ESTIMATE if is_own else ""

    def _update(self) -> None:
        """Read the fields, and show what is quick unless there are problems."""
        epsilon = self._read(self.epsilon)
        horizon = self._read(self.horizon)
        alpha = self._read(self.alpha)
        sensitivity = self._read(self.sensitivity)
        source = self._source()
        if self.problems:
            return
        inputs = Inputs(
            source.backward,
            source.forward,
            horizon,
            alpha,
            sensitivity,
            self.delta.value or None,
            source.report,
            start=source.start,
        )
        if self.kind.value == SCHEDULE:
            inputs = replace(inputs, schedule=self._read_schedule(inputs.losses.phases))
            if self.problems:
                return
        epsilons = self.kind.attempt(lambda: self._budgets(inputs, epsilon), self.problems)
        if not self.problems:
            self._show(analyse(inputs, epsilons, complete=False))
            self._incomplete = True

    def _read(self, field: Number | File) -> Any:
        """What a field holds; None, and one more problem, if that is not allowed."""
        return field.attempt(field.read, self.problems)

    def _read_schedule(self, phases: list) -> tuple[float, ...] | None:
        """The budgets of the phases, in their order; None, and one more problem, for others."""
        return self.schedule.attempt(
            lambda: schedules.read_schedule(self.schedule.value, phases), self.problems
        )

    def _source(self) -> Source:
        """What the adversary knows, by the fields."""
        if self.chain.value == OBSERVATIONS:
            report = self._read_report()
            if report is None:
                return Source()
            return Source(*report.adversaries[ESTIMATE], report)
        forward = self.forward.attempt(
            lambda: matrices.losses_of(self.forward.value), self.problems
        )
        backward = self._read_backward()
        if self.adversary.value == FORWARD:
            backward = None
        if self.adversary.value == BACKWARD:
            forward = None
        # whether their states and phases agree
        self.backward.attempt(lambda: matrices.check_sides(backward, forward), self.problems)
        return Source(backward, forward, start=self._assumed_start())

    def _assumed_start(self) -> str:
        """For whom the backward side holds, in words; none where it does not count."""
        if self.adversary.value == FORWARD:
            return ""
        if self.backward.value.strip():
            return OF_BACKWARD
        return HOLDS_FOR[self.start.value]

    def _read_backward(self) -> matrices.Side:
        """The loss functions of the backward side that was typed, or else, where it counts, of the
        reversal."""
        typed = self.backward.value.strip()
        if typed:
            return self.backward.attempt(lambda: matrices.losses_of(typed), self.problems)
        if self.problems or self.adversary.value == FORWARD:
            return None
        return self.backward.attempt(
            lambda: matrices.losses_of_reversal(self.forward.value, self.start.value), self.problems
        )

    def _budgets(self, inputs: Inputs, epsilon: float) -> np.ndarray:
        """The chosen budgets; those of the schemes are kept while only ε moves."""
        needs_slow_scheme = is_slow(self.kind.value, inputs)
        is_kept = self.analysis is not None and self.analysis.inputs == inputs
        if needs_slow_scheme or not is_kept:
            self.schemes = budgets_of_schemes(inputs, complete=needs_slow_scheme)
        if self.kind.value == EQUAL:
            return np.full(inputs.horizon, epsilon)
        if inputs.schedule is not None:
            return np.resize(inputs.schedule, inputs.horizon)
        budgets = self.schemes[self.kind.value]
        if isinstance(budgets, str):
            raise ValueError(f"{self.kind.value} has no budgets: {budgets}")
        return budgets

    def _read_report(self, complete: bool = False) -> Report | None:
        """The report on the file; unless `complete`, an earlier one on the same estimate will
        do."""
        file = self._read(self.data_file)
        smoothing = self._read(self.smoothing)
        if self.problems:
            return None
        columns = tuple(
            (name, field.value) for name, field in self.columns.items() if field.value != USUAL
        )
        if complete or self._report_of != (file, columns, smoothing):
            self._compute_report(file, columns)
            self._report_of = (file, columns, smoothing) if self.report else ()
        return self.report

    def _compute_report(self, file: Upload, columns: tuple) -> None:
        """Set `report` to that on a file, None if it has no report, and show its warnings;
        `columns` are pairs of an argument of `read_sequences` and the name of a column."""
        others = [(name, getattr(self, name).read()) for name in SETTINGS]
        settings = (("delta", self.delta.value or None), *others)
        self.status.value = "<p role='status'>Computing the report on the file ...</p>"
        self.report = self.data_file.attempt(
            lambda: own_data.report_on(*file, columns, settings), self.problems
        )
        warning = ""
        if self.report is not None:
            _, warning = own_data.read(*file, columns)
        self.data_file.note.value = escape(warning)

    def _changed(self, *_: Any) -> None:
        """Show what is quick at once, and what is slow when the changes rest; nothing is raised."""
        if self._rest is not None:
            self._rest.cancel()
        self.problems = []
        self._show_fields()
        for field in self.fields:
            field.say("")
        self._guarded(self._update)
        try:
            self._rest = asyncio.get_running_loop().call_later(REST, self._guarded, self._complete)
        except RuntimeError:  # no loop: a script
            self._guarded(self._complete)

    def _guarded(self, act: Callable[[], None]) -> None:
        """Do something, and say whether all is right; a page must not end in a traceback."""
        remedy = "Correct the fields that are marked."
        try:
            act()
        except Exception as error:
            remedy = (
                f"Unexpected {type(error).__name__}: {error}. Undo the last change, "
                "and please report this."
            )
            self.problems.append(remedy)
        if self.problems:
            words = f"{escape(remedy)} Below is the last valid result."
            self.status.value = f"<p class='tplr-bad' role='alert'>{words}</p>"
            self.results.add_class("tplr-stale")
        else:
            self.status.value = ""
            self.results.remove_class("tplr-stale")

    def _complete(self) -> None:
        """What is slow: the report, the smallest error, and noise at a δ; with problems, of the
        last valid result."""
        if self.analysis is None or (self.problems and not self._incomplete):
            return
        self._incomplete = False
        inputs = self.analysis.inputs
        epsilons = self.analysis.leakage.epsilons
        if inputs.report is not None and not self.problems:
            inputs = replace(inputs, report=self._read_report(complete=True))
        self.schemes = budgets_of_schemes(inputs)
        analysis = self.delta.attempt(lambda: analyse(inputs, epsilons), self.problems)
        self._show(analysis or self.analysis)
        advice = tables.saved_html(self.analysis)
        if inputs.report is not None:
            advice += tables.report_html(inputs.report)
        self.advice.value = advice
        if self._rest is not None:
            self._rest = asyncio.get_running_loop().call_later(ANSWER, self._renew)

    def _renew(self) -> None:
        """Replace a figure that did not answer: anywidget drops all messages to one that took 2 s
        to load."""
        if self.analysis is not None and self.panel.children[0]._trace_edit_in_process:
            self.panel.children = [plots.draw(self.analysis, self.schemes)]

    def _show(self, analysis: Analysis) -> None:
        """Show a result in the verdict, the table and the figures."""
        self.analysis = analysis
        self.verdict.value = tables.verdict_html(analysis)
        self.table.value = tables.schemes_html(analysis, self.schemes)
        for figure in self.panel.children:
            plots.update(figure, analysis, self.schemes)
