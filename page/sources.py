"""Where a matrix comes from: example, text, generator, CSV of a matrix, CSV of sequences, or data set.

The backward source may also follow the forward one: its counterpart (the example's, or that of the same
sequences with time reversed), its Bayesian reversal, or the same matrix.
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

EXAMPLE, TEXT, GENERATED = "an example", "text", "generated"
MATRIX_FILE, SEQUENCES_FILE, DATASET = "CSV of a matrix", "CSV of sequences", "a data set"
MATCHING, REVERSED = "counterpart of forward", "Bayesian reversal"

# Recent results are kept, so that moving another slider does not read or compute them again.
keep = lru_cache(maxsize=8)
example, parse, generate = keep(matrices.example), keep(matrices.parse_matrix), keep(matrices.generate)
dataset, observed = keep(sequences.from_dataset), keep(sequences.from_text)
estimated, reversed_matrix = keep(sequences.Observed.matrices), keep(matrices.reverse)


def side_of(pair: tuple[TransitionMatrix, TransitionMatrix], direction: str) -> TransitionMatrix:
    """The matrix of a direction, of a backward and a forward one."""
    backward, forward = pair
    return forward if direction == "forward" else backward


class MatrixSource(ipywidgets.VBox):
    """The controls of one matrix, "forward" or "backward", and the matrix that they describe.

    It begins with the example `chosen` and calls `changed` on each change; it may follow `forward`.
    """

    def __init__(self, direction: str, changed: Callable, chosen: str, forward: Self | None = None):
        self.direction, self._forward = direction, forward
        self.example = dropdown("Example", matrices.EXAMPLES, chosen)
        self.text = ipywidgets.Textarea(
            value=matrices.format_matrix(side_of(example(chosen), direction)),
            rows=5,
            continuous_update=False,
            tooltip=f"{direction} matrix, one row of probabilities per line",
            placeholder="0.8, 0.2\n0.1, 0.9",
        )
        self.normalize = ipywidgets.Checkbox(description="divide each row by its sum", indent=False)
        self.model = dropdown("Kind", matrices.KINDS)
        self.size = NumberControl("States n", 10, 2, 50, "whole")
        self.spread = NumberControl("Smoothing s", 0.05, 0.0001, 1.0, "logarithmic")
        self.seed = NumberControl("Seed", 0, 0, 100, "whole")
        self.matrix_file = FileInput(label="Matrix file", wanted="one row of probabilities per line, such as 0.8,0.2")
        self.sequence_file = FileInput(label="Sequences file", wanted=sequences.WANTED)
        self.dataset = dropdown("Data set", sequences.DATASETS)
        self.smoothing = NumberControl("Added to counts", 1.0, 0.001, 10.0, "logarithmic")
        self.drop = ipywidgets.Checkbox(description="drop states that are never left or never entered", indent=False)
        # Kind of source -> the controls that it shows.
        self._forms: dict[str, list] = {
            EXAMPLE: [self.example],
            TEXT: [self.text, self.normalize],
            GENERATED: [self.model, self.size, self.spread, self.seed],
            MATRIX_FILE: [self.matrix_file, note(self.matrix_file.wanted), self.normalize],
            SEQUENCES_FILE: [self.sequence_file, note(self.sequence_file.wanted), self.smoothing, self.drop],
            DATASET: [self.dataset, self.smoothing, self.drop],
        }
        if forward is not None:
            self._forms = {MATCHING: [], REVERSED: [], SAME: []} | self._forms
        self.kind = dropdown(direction.capitalize(), self._forms)
        self.kind.tooltip = f"where the {direction} matrix comes from"
        parts = ("example", "text", "normalize", "model", "size", "spread", "seed", "dataset", "smoothing", "drop")
        #: Name in the page's address -> widget with a value.
        self.values = {direction: self.kind} | {f"{direction}_{part}": getattr(self, part) for part in parts}
        self.values |= {name: part.entry for name, part in self.values.items() if isinstance(part, NumberControl)}
        self.form, self.about = ipywidgets.VBox(), note()
        self.edit = ipywidgets.Button(description=f"Edit the {direction} matrix as text")
        self.edit.on_click(self._edit)
        self.kind.observe(self._show_form, "value")
        self._show_form()
        for control in (self.kind, *(control for form in self._forms.values() for control in form)):
            control.observe(changed, "value")
        super().__init__([self.kind, self.form, self.about, self.edit])

    @property
    def followed(self) -> Self | None:
        """The forward source, if this one depends on it."""
        return self._forward if self.kind.value in (MATCHING, REVERSED, SAME) else None

    @property
    def synthetic(self) -> bool:
        """Whether the matrix comes from a synthetic stand-in of a data set."""
        source = self.followed or self
        return source.kind.value == DATASET and dataset(source.dataset.value).synthetic

    @property
    def origin(self) -> str:
        """Where the matrix comes from, in words."""
        kind = self.kind.value
        smoothing = f", {self.smoothing.value:g} added to counts"
        details = {
            EXAMPLE: self.example.value,
            MATRIX_FILE: self.matrix_file.name,
            SEQUENCES_FILE: self.sequence_file.name + smoothing,
            DATASET: self.dataset.value + smoothing,
        }
        return f"{kind} ({details[kind]})" if kind in details else kind

    def matrix(self, direction: str | None = None) -> TransitionMatrix:
        """The matrix that the controls describe, or its counterpart in the other direction."""
        direction = direction or self.direction
        kind = self.kind.value
        if self.followed is not None:
            if kind == MATCHING:
                return self.followed.matrix(direction)
            forward = self.followed.matrix()
            return forward if kind == SAME else reversed_matrix(forward)
        if kind == EXAMPLE:
            return side_of(example(self.example.value), direction)
        if kind in (SEQUENCES_FILE, DATASET):
            return side_of(estimated(self._observed(), self.smoothing.value, self.drop.value), direction)
        if kind == GENERATED:
            matrix = generate(self.model.value, self.size.value, self.spread.value, self.seed.value)
        else:
            text = self.text.value if kind == TEXT else self.matrix_file.text()
            matrix = parse(text, self.normalize.value)
        return matrix if direction == self.direction else reversed_matrix(matrix)

    def describe(self, matrix: TransitionMatrix) -> None:
        """Say below the controls which matrix is used."""
        names = ", ".join(str(state) for state in list(matrix.states)[:4])
        if matrix.n_states > 4:
            names += ", ..."
        title = f"{dataset(self.dataset.value).title}: " if self.kind.value == DATASET else ""
        self.about.value = escape(f"{title}{matrix.n_states} states: {names}")

    def _observed(self) -> sequences.Observed:
        if self.kind.value == SEQUENCES_FILE:
            return observed(self.sequence_file.text(), self.sequence_file.name)
        self.about.value = self.about.value or "reading the data set"
        return dataset(self.dataset.value)

    def _show_form(self, _=None) -> None:
        self.form.children = self._forms[self.kind.value]
        self.about.value = ""

    def _edit(self, _) -> None:
        try:
            text = matrices.format_matrix(self.matrix())
        except ValueError:
            text = self.text.value  # keep the old text; the page says what is wrong with the source
        self.normalize.value = False
        self.text.value = text
        self.kind.value = TEXT
