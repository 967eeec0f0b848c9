"""The page: fields on one side; verdict, numbers, plots and tables on the other."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from html import escape
from pathlib import Path

import ipywidgets
import numpy as np

from page import matrices, own_data, plots, tables
from page.analysis import Analysis, Inputs, analyse, budgets_of_schemes
from page.fields import Field, File, Number, dropdown, text
from tplreport.reporting.allocation_schemes import OPTIMAL, SCHEMES
from tplreport.reporting.plans import ESTIMATE
from tplreport.reporting.report import Report
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import loss_functions
from tplrepro.validation import check_choice

FIRST, OBSERVATIONS = "Fig. 8 of TKDE 2019", "my data: a file of observations"
BOTH, BACKWARD, FORWARD = "both sides", "backward only", "forward only"
LABELS = "labels may stand in the first row, or in it and the first column"
STILL_EXAMPLE = "still the example's matrix: replace it by your own, too"
AGAINST_ESTIMATE = (
    "a scheme's budgets hold against the estimate; the table has the recommended ones"
)
EQUAL, USUAL = "ε at each release", "by its usual name"
# seconds without a change until the slow parts begin, and until a figure must have answered
REST, ANSWER = 0.3, 2.0


@lru_cache(maxsize=8)
def loss_of(text: str, reverse: bool = False) -> PrivacyLossFunction:
    """The loss function of a matrix as text, or of its Bayes' reversal; kept while a slider
    moves."""
    matrix = matrices.parse_matrix(text)
    return PrivacyLossFunction(matrix.reverse() if reverse else matrix)


class LeakagePage(ipywidgets.VBox):
    """The page; `analysis` and `schemes` are the last valid results, `problems` says what has been
    wrong since."""

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
        self.backward = text("Backward", "empty: Bayes' reversal of the forward matrix")
        self.data_file = File("a header user,time,state above rows such as 7,1,home")
        self.columns = {
            name: dropdown(name.capitalize(), [USUAL]) for name in ("user", "time", "state")
        }
        self.smoothing = Number("Smoothing", 1.0, (0.001, 100.0))
        self.epsilon = Number("ε (nats)", epsilon, (0.001, 10.0))
        self.horizon = Number("Releases T", horizon, (1, 100), most=1000, whole=True)
        self.alpha = Number("Target α", alpha, (0.01, 10.0))
        self.sensitivity = Number("Sensitivity", more.get("sensitivity", 2.0), (0.1, 10.0))
        self.kind = dropdown("Budgets", [EQUAL, *SCHEMES])
        self.delta = dropdown(
            "δ", [("none: pure ε", 0.0), *((f"1e-{k}", 10.0**-k) for k in range(3, 13))]
        )
        self.status, self.verdict, self.table, self.advice = (ipywidgets.HTML() for _ in range(4))
        self.problems: list[str] = []
        self.analysis: Analysis | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._incomplete = False  # whether what is shown still lacks what is slow
        self._report_of: tuple = ()
        super().__init__(self._layout())
        self.add_class("tplr-page")
        self.chain.entry.observe(self._write_example, "value")
        self.matrix_file.entry.observe(self._take_matrix, "value")
        self.forward.entry.observe(self._forget_example, "value")
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
            if field is not self.matrix_file:  # which acts by the text that it fills
                field.entry.observe(self._changed, "value")
        # no loop: a script. JupyterLab draws before there is a place to measure
        with suppress(RuntimeError):
            asyncio.get_running_loop().call_later(ANSWER, lambda: self._show(self.analysis))

    def _layout(self) -> list[ipywidgets.Widget]:
        chain = [self.chain, self.adversary, self.matrix_file, self.forward, self.backward]
        chain += [self.data_file, *self.columns.values(), self.smoothing]
        releases = [self.epsilon, self.horizon, self.alpha, self.sensitivity, self.kind, self.delta]
        self.fields: list[Field] = [*chain, *releases]
        headings = [
            ipywidgets.HTML(f"<h3>{words}</h3>")
            for words in ("What the adversary knows", "Releases")
        ]
        inputs = ipywidgets.VBox([headings[0], *chain, headings[1], *releases]).add_class(
            "tplr-inputs"
        )
        self.panel = ipywidgets.Box().add_class("tplr-plots")
        self.results = ipywidgets.VBox(
            [self.status, self.verdict, self.panel, self.table, self.advice]
        )
        style = ipywidgets.HTML(
            f"<style>{Path(__file__).with_name('style.css').read_text()}</style>"
        )
        return [
            style,
            ipywidgets.Box([inputs, self.results.add_class("tplr-results")]).add_class(
                "tplr-columns"
            ),
        ]

    def _write_example(self, _=None) -> None:
        self.forward.entry.value, self.backward.entry.value = matrices.EXAMPLES.get(
            self.chain.value, ("", "")
        )

    def _forget_example(self, _) -> None:
        """A forward matrix of one's own has no backward matrix of the example beside it."""
        forward, backward = matrices.EXAMPLES.get(self.chain.value, ("", ""))
        if self.forward.value != forward and self.backward.value == backward:
            self.backward.entry.value = ""

    def _take_matrix(self, _) -> None:
        found = self.matrix_file.attempt(lambda: own_data.text_of(*self.matrix_file.read()), [])
        if found is not None:
            self.backward.entry.value, self.forward.entry.value = "", found

    def _offer_columns(self, _) -> None:
        file = self.data_file.attempt(self.data_file.read, [])
        for column in self.columns.values():
            column.entry.options = [USUAL, *(own_data.columns_of(*file) if file else ())]

    def _show_fields(self) -> None:
        """Show the fields that count."""
        own = self.chain.value == OBSERVATIONS
        shown = dict.fromkeys((self.matrix_file, self.forward, self.backward), not own)
        shown |= dict.fromkeys((self.data_file, *self.columns.values(), self.smoothing), own)
        for field, is_shown in shown.items():
            field.layout.display = None if is_shown else "none"
        self.adversary.entry.disabled = own  # a report is against both sides
        forward, backward = matrices.EXAMPLES.get(self.chain.value, ("", ""))
        is_mixed = self.forward.value == forward and self.backward.value != backward
        self.forward.note.value = STILL_EXAMPLE if is_mixed and not own else LABELS
        self.kind.note.value = AGAINST_ESTIMATE if own else ""

    def _update(self) -> None:
        """Read the fields, and show what is quick unless there are problems."""
        numbers = (self.epsilon, self.horizon, self.alpha, self.sensitivity)
        epsilon, horizon, alpha, sensitivity = (
            field.attempt(field.read, self.problems) for field in numbers
        )
        backward, forward, report = self._source()
        if not self.problems:
            inputs = Inputs(
                backward, forward, horizon, alpha, sensitivity, self.delta.value or None, report
            )
            epsilons = self.kind.attempt(lambda: self._budgets(inputs, epsilon), self.problems)
        if not self.problems:
            self._show(analyse(inputs, epsilons, complete=False))
            self._incomplete = True

    def _source(
        self,
    ) -> tuple[PrivacyLossFunction | None, PrivacyLossFunction | None, Report | None]:
        """The loss functions of both sides, None for what the adversary does not know, and the
        report on a file."""
        if self.chain.value == OBSERVATIONS:
            report = self._read_report()
            return (*report.adversaries[ESTIMATE], report) if report else (None, None, None)
        typed, knows, backward = self.backward.value.strip(), self.adversary.value, None
        forward = self.forward.attempt(lambda: loss_of(self.forward.value), self.problems)
        if typed or not (self.problems or knows == FORWARD):
            given = (typed,) if typed else (self.forward.value, True)
            backward = self.backward.attempt(lambda: loss_of(*given), self.problems)
        sides = None if knows == FORWARD else backward, None if knows == BACKWARD else forward
        # whether their states agree
        self.backward.attempt(lambda: loss_functions(*sides), self.problems)
        return *sides, None

    def _budgets(self, inputs: Inputs, epsilon: float) -> np.ndarray:
        """The chosen budgets; those of the schemes are kept while only ε moves."""
        kept = self.analysis is not None and self.analysis.inputs == inputs
        if not kept or self.kind.value == OPTIMAL:
            self.schemes = budgets_of_schemes(inputs, complete=self.kind.value == OPTIMAL)
        if self.kind.value == EQUAL:
            return np.full(inputs.horizon, epsilon)
        found = self.schemes[self.kind.value]
        if isinstance(found, str):
            raise ValueError(f"{self.kind.value} has no budgets: {found}")
        return found

    def _read_report(self, complete: bool = False) -> Report | None:
        """The report on the file; unless `complete`, an earlier one on the same estimate will
        do."""
        file = self.data_file.attempt(self.data_file.read, self.problems)
        smoothing = self.smoothing.attempt(self.smoothing.read, self.problems)
        if self.problems:
            return None
        columns = tuple(
            (name, one.value) for name, one in self.columns.items() if one.value != USUAL
        )
        if complete or self._report_of != (file, columns, smoothing):
            names = ("alpha", "horizon", "epsilon", "sensitivity", "smoothing")
            settings = (
                ("delta", self.delta.value or None),
                *((name, getattr(self, name).read()) for name in names),
            )
            self.status.value = "<p role='status'>Computing the report on the file ...</p>"
            self.report = self.data_file.attempt(
                lambda: own_data.report_on(*file, columns, settings), self.problems
            )
            self.data_file.note.value = escape(
                own_data.read(*file, columns)[1] if self.report else ""
            )
            self._report_of = (file, columns, smoothing) if self.report else ()
        return self.report

    def _changed(self, *_) -> None:
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

    def _guarded(self, act) -> None:
        """Do something, and say whether all is right; a page must not end in a traceback."""
        said = "Correct the fields that are marked."
        try:
            act()
        except Exception as error:
            said = f"Unexpected {type(error).__name__}: {error}. Undo the last change, and please report this."
            self.problems.append(said)
        words = (
            f"<p class='tplr-bad' role='alert'>{escape(said)} Below is the last valid result.</p>"
        )
        self.status.value = words if self.problems else ""
        (self.results.add_class if self.problems else self.results.remove_class)("tplr-stale")

    def _complete(self) -> None:
        """What is slow: the report, the smallest error, and noise at a δ; with problems, of the
        last valid result."""
        if self.analysis is None or (self.problems and not self._incomplete):
            return
        self._incomplete = False
        inputs, epsilons = self.analysis.inputs, self.analysis.leakage.epsilons
        if inputs.report is not None and not self.problems:
            inputs = replace(inputs, report=self._read_report(complete=True))
        self.schemes = budgets_of_schemes(inputs)
        self._show(
            self.delta.attempt(lambda: analyse(inputs, epsilons), self.problems) or self.analysis
        )
        report = tables.report_html(inputs.report) if inputs.report else ""
        self.advice.value = tables.saved_html(self.analysis) + report
        if self._rest is not None:
            self._rest = asyncio.get_running_loop().call_later(ANSWER, self._renew)

    def _renew(self) -> None:
        """Replace a figure that did not answer: anywidget drops all messages to one that took 2 s
        to load."""
        if self.analysis is not None and self.panel.children[0]._trace_edit_in_process:
            self.panel.children = [plots.draw(self.analysis, self.schemes)]

    def _show(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.verdict.value = tables.verdict_html(analysis)
        self.table.value = tables.schemes_html(analysis, self.schemes)
        for figure in self.panel.children:
            plots.update(figure, analysis, self.schemes)
