"""Where a matrix comes from: example, text, generator, CSV of a matrix, CSV of sequences, or data set.

One panel serves each side. The backward one may also follow the forward one: its own counterpart (the example's, or the
same sequences with time reversed), its Bayesian reversal, or the same matrix.
"""

from collections.abc import Callable
from functools import lru_cache
from html import escape
from typing import Self

import ipywidgets

from page import matrices, sequences
from page.browser import FileInput
from page.controls import NumberControl, dropdown, note
from page.matrices import SAME
from tplrepro.markov.transition import TransitionMatrix

__all__ = ["MatrixSource"]

EXAMPLE, TEXT, GENERATED = "an example", "text", "generated"
MATRIX_FILE, SEQUENCES_FILE, DATASET = "CSV of a matrix", "CSV of sequences", "a data set"
MATCHING, REVERSED = "matching the forward", "Bayesian reversal"

# What was read or computed last is kept, so that the slider of another quantity does not repeat it.
keep = lru_cache(maxsize=8)
example, parse, generate = keep(matrices.example), keep(matrices.parse_matrix), keep(matrices.generate)
dataset, observed = keep(sequences.from_dataset), keep(sequences.from_text)
estimated, reversed_matrix = keep(sequences.Observed.matrices), keep(matrices.reverse)


class MatrixSource(ipywidgets.VBox):
    """The controls of one matrix, "forward" or "backward", and the matrix that they describe.

    It begins with the example `chosen`; `changed` is called with each change. The backward source may follow `forward`.
    """

    def __init__(self, direction: str, changed: Callable, chosen: str, forward: Self | None = None):
        self.direction, self._followed = direction, forward
        self.example = dropdown("Example", matrices.EXAMPLES, chosen)
        self.text = ipywidgets.Textarea(
            value=matrices.format_matrix(example(chosen)[direction == "forward"]),
            rows=5,
            continuous_update=False,
            tooltip=f"{direction} matrix, one row of probabilities a line",
            placeholder="0.8, 0.2\n0.1, 0.9",
        )
        self.normalize = ipywidgets.Checkbox(description="divide each row by its sum", indent=False)
        self.model = dropdown("Kind", matrices.KINDS)
        self.size = NumberControl("States n", 10, 2, 50, "whole")
        self.spread = NumberControl("Smoothing s", 0.05, 0.0001, 1.0, "logarithmic")
        self.seed = NumberControl("Seed", 0, 0, 100, "whole")
        self.matrix_file = FileInput(label="Matrix file", wanted="one row of probabilities a line, such as 0.8,0.2")
        self.sequence_file = FileInput(label="Sequences file", wanted=sequences.WANTED)
        self.dataset = dropdown("Data set", sequences.DATASETS)
        self.smoothing = NumberControl("Added to counts", 1.0, 0.001, 10.0, "logarithmic")
        self.drop = ipywidgets.Checkbox(description="leave out states never left or never entered", indent=False)
        recipe = [self.model, self.size, self.spread, self.seed]
        # What is shown for each kind, and the matrix that it gives for a direction.
        self._kinds: dict[str, tuple[list, Callable[[str], TransitionMatrix]]] = {}
        if forward is not None:
            self._kinds |= {
                MATCHING: ([], forward.matrix),
                REVERSED: ([], lambda _: reversed_matrix(forward.matrix("forward"))),
                SAME: ([], lambda _: forward.matrix("forward")),
            }
        self._kinds |= {
            EXAMPLE: ([self.example], lambda to: example(self.example.value)[to == "forward"]),
            TEXT: ([self.text, self.normalize], lambda to: self._parsed(self.text.value, to)),
            GENERATED: (recipe, lambda to: self._turned(generate(*(part.value for part in recipe)), to)),
            MATRIX_FILE: (
                [self.matrix_file, note(self.matrix_file.wanted), self.normalize],
                lambda to: self._parsed(self.matrix_file.text(), to),
            ),
            SEQUENCES_FILE: (
                [self.sequence_file, note(self.sequence_file.wanted), self.smoothing, self.drop],
                self._estimated,
            ),
            DATASET: ([self.dataset, self.smoothing, self.drop], self._estimated),
        }
        self.kind = dropdown(direction.capitalize(), self._kinds)
        parts = "example text normalize model size spread seed dataset smoothing drop".split()
        #: What the address of the page holds: name -> widget with a value.
        self.values = {direction: self.kind} | {f"{direction}_{part}": getattr(self, part) for part in parts}
        self.values |= {name: part.entry for name, part in self.values.items() if isinstance(part, NumberControl)}
        self.kind.tooltip = f"where the {direction} matrix comes from"
        self.form, self.about = ipywidgets.VBox(), note()
        self.edit = ipywidgets.Button(description=f"Edit the {direction} matrix as text")
        self.edit.on_click(self._edit)
        self.kind.observe(self._show_form, "value")
        self._show_form()
        for control in (self.kind, *(control for controls, _ in self._kinds.values() for control in controls)):
            control.observe(changed, "value")
        super().__init__([self.kind, self.form, self.about, self.edit])

    @property
    def followed(self) -> Self | None:
        """The forward source, if this one depends on it."""
        return self._followed if self.kind.value in (MATCHING, REVERSED, SAME) else None

    @property
    def synthetic(self) -> bool:
        """Whether the matrix comes from a synthetic stand-in of a data set."""
        source = self.followed or self
        return source.kind.value == DATASET and dataset(source.dataset.value).synthetic

    @property
    def origin(self) -> str:
        """Where the matrix comes from, in words."""
        smoothing, kind = f", {self.smoothing.value:g} added to counts", self.kind.value
        more = {
            EXAMPLE: self.example.value,
            MATRIX_FILE: self.matrix_file.name,
            SEQUENCES_FILE: self.sequence_file.name + smoothing,
            DATASET: self.dataset.value + smoothing,
        }
        return f"{kind} ({more[kind]})" if kind in more else kind

    def matrix(self, direction: str | None = None) -> TransitionMatrix:
        """The matrix that the controls describe, or its counterpart in the other direction; a ValueError if none."""
        _, make = self._kinds[self.kind.value]
        return make(direction or self.direction)

    def describe(self, matrix: TransitionMatrix) -> None:
        """Say below the controls what is used."""
        names = ", ".join([str(state) for state in list(matrix.states)[:4]] + ["..."] * (matrix.n_states > 4))
        origin = f"{dataset(self.dataset.value).title}: " if self.kind.value == DATASET else ""
        self.about.value = escape(f"{origin}{matrix.n_states} states: {names}")

    def _turned(self, matrix: TransitionMatrix, direction: str) -> TransitionMatrix:
        """This panel's own matrix, or what Bayes' rule gives for the other direction."""
        return matrix if direction == self.direction else reversed_matrix(matrix)

    def _parsed(self, text: str, direction: str) -> TransitionMatrix:
        return self._turned(parse(text, self.normalize.value), direction)

    def _estimated(self, direction: str) -> TransitionMatrix:
        if self.kind.value == DATASET:
            self.about.value = self.about.value or "reading the data set"
            steps = dataset(self.dataset.value)
        else:
            steps = observed(self.sequence_file.text(), self.sequence_file.name)
        return estimated(steps, self.smoothing.value, self.drop.value)[direction == "forward"]

    def _show_form(self, _=None) -> None:
        self.form.children, _ = self._kinds[self.kind.value]
        self.about.value = ""

    def _edit(self, _) -> None:
        try:
            text = matrices.format_matrix(self.matrix())
        except ValueError:
            text = self.text.value  # begin with the text as it was; the page says what is wrong with the source
        self.normalize.value = False
        self.text.value = text
        self.kind.value = TEXT
