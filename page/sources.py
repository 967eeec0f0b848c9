"""Where a matrix comes from: example, text, generator, CSV of a matrix, file of observations, or data set.

The backward matrix may also be the counterpart of the forward one (the example's, that of the same sequences
with time reversed, else its Bayesian reversal), or the same matrix.
"""

from functools import lru_cache
from html import escape
from typing import Any, Self

import ipywidgets

from page import matrices, sequences
from page.browser import FileInput
from page.controls import NumberControl, dropdown, note
from page.matrices import SAME
from page.text import decode
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.words import counted, shortened

EXAMPLE, TEXT, GENERATED = "an example", "text", "generated"
MATRIX_FILE, SEQUENCES_FILE, DATASET = "CSV of a matrix", "file of observations", "a data set"
MATCHING = "counterpart of forward"
USUAL = "by its usual name"

# Recent results are kept, so that moving another slider does not read or compute them again.
keep = lru_cache(maxsize=8)
example, parse, generate = keep(matrices.example), keep(matrices.parse_matrix), keep(matrices.generate)
dataset = keep(sequences.from_dataset)
estimated, reversed_matrix = keep(sequences.Observed.matrices), keep(matrices.reverse)


class ObservationFile(ipywidgets.VBox):
    """A file of observations and how to read it; columns are found by their usual names, as on the command line."""

    def __init__(self):
        self.file = FileInput(wanted="a header user,time,state above rows such as 7,1,home")
        self.columns = {thing: dropdown(f"{thing.capitalize()}s", [USUAL]) for thing in ("user", "time", "state")}
        self.options = ipywidgets.Text(
            description="Options", placeholder="step=1D state=mon..sun", continuous_update=False
        )
        self.controls = [self.file, *self.columns.values(), self.options]
        self.file.observe(self._offer_columns, "value")
        super().__init__([self.file, note(self.file.wanted), *self.columns.values(), self.options])

    def observed(self) -> sequences.Observed:
        """The counts of steps in the file, or ValueError."""
        chosen = {thing: choice.value for thing, choice in self.columns.items() if choice.value != USUAL}
        options = chosen | sequences.parse_options(self.options.value)
        return sequences.from_file(self.file.read(), self.file.name, tuple(options.items()))

    def _offer_columns(self, _) -> None:
        names = sequences.columns_of(bytes(self.file.value["content"]), self.file.name)
        for choice in self.columns.values():
            choice.options = [USUAL, *names]


class MatrixSource(ipywidgets.VBox):
    """The controls of one matrix, "forward" or "backward", and the matrix that they describe.

    It begins with the example `chosen`, and may follow `forward`.
    """

    def __init__(self, direction: str, chosen: str, forward: Self | None = None):
        self.direction, self._forward = direction, forward
        self.example = dropdown("Example", matrices.EXAMPLES, chosen)
        self.text = ipywidgets.Textarea(
            value=matrices.format_matrix(self._side(example(chosen))),
            rows=5,
            continuous_update=False,
            tooltip=f"{direction} matrix, one row of probabilities per line",
            placeholder="0.8, 0.2\n0.1, 0.9",
        )
        self.normalize = ipywidgets.Checkbox(description="divide each row by its sum", indent=False)
        self.size = NumberControl("States n", 10, 2, 50, "whole")
        self.spread = NumberControl("Smoothing s", 0.05, 0.0001, 1.0, "logarithmic")
        self.matrix_file = FileInput(wanted="one row of probabilities per line, such as 0.8,0.2")
        self.observations = ObservationFile()
        self.dataset = dropdown("Data set", sequences.DATASETS)
        self.smoothing = NumberControl("Steps added", 1.0, 0.001, 100.0, "logarithmic", zero=True)
        smoothing = note("to each row of counts; 0 leaves out states that are never left or never entered")
        # Kind of source -> the controls that it shows.
        self._forms: dict[str, list] = {
            EXAMPLE: [self.example],
            TEXT: [self.text, self.normalize],
            GENERATED: [self.size, self.spread],
            MATRIX_FILE: [self.matrix_file, note(self.matrix_file.wanted), self.normalize],
            SEQUENCES_FILE: [self.observations, self.smoothing, smoothing],
            DATASET: [self.dataset, self.smoothing, smoothing],
        }
        if forward is not None:
            self._forms = {MATCHING: [], SAME: []} | self._forms
        self.kind = dropdown(direction.capitalize(), self._forms)
        self.kind.tooltip = f"where the {direction} matrix comes from"
        parts = ("example", "text", "normalize", "size", "spread", "dataset", "smoothing")
        controls = {direction: self.kind} | {f"{direction}_{part}": getattr(self, part) for part in parts}
        #: Name in the page's address -> widget with a value.
        self.values = {name: getattr(control, "entry", control) for name, control in controls.items()}
        self.files = [self.matrix_file, *self.observations.controls]
        self.form, self.about = ipywidgets.VBox(), note()
        self.edit = ipywidgets.Button(description=f"Edit the {direction} matrix as text")
        self.edit.on_click(self._edit)
        self.kind.observe(self._show_form, "value")
        self._show_form()
        super().__init__([self.kind, self.form, self.about, self.edit])

    @property
    def followed(self) -> Self | None:
        """The forward source, if this one depends on it."""
        return self._forward if self.kind.value in (MATCHING, SAME) else None

    @property
    def synthetic(self) -> bool:
        """Whether the matrix comes from a synthetic stand-in of a data set."""
        source = self.followed or self
        return source.kind.value == DATASET and dataset(source.dataset.value).synthetic

    @property
    def origin(self) -> str:
        """Where the matrix comes from, in words."""
        details = {
            EXAMPLE: self.example.value,
            MATRIX_FILE: self.matrix_file.name,
            SEQUENCES_FILE: self.observations.file.name,
            DATASET: self.dataset.value,
        }
        detail = details.get(self.kind.value)
        if self.kind.value in (SEQUENCES_FILE, DATASET):
            detail = f"{detail}, {counted(self.smoothing.value, 'step', 'g')} added to each row"
        return f"{self.kind.value} ({detail})" if detail else self.kind.value

    def matrix(self, direction: str | None = None) -> TransitionMatrix:
        """The matrix that the controls describe, or its counterpart in the other direction."""
        direction = direction or self.direction
        kind = self.kind.value
        if self.followed is not None:
            return self.followed.matrix(direction if kind == MATCHING else None)
        if kind == EXAMPLE:
            return self._side(example(self.example.value), direction)
        if kind in (SEQUENCES_FILE, DATASET):
            return self._side(estimated(self._observed(), self.smoothing.value), direction)
        if kind == GENERATED:
            matrix = generate(self.size.value, self.spread.value)
        else:
            text = self.text.value if kind == TEXT else decode(self.matrix_file.read(), self.matrix_file.name)
            matrix = parse(text, self.normalize.value)
        return matrix if direction == self.direction else reversed_matrix(matrix)

    def describe(self, matrix: TransitionMatrix) -> None:
        """Say below the controls which matrix is used."""
        names = ", ".join(shortened(matrix.states[:4], most=30))
        if matrix.n_states > 4:
            names += ", ..."
        title = f"{dataset(self.dataset.value).title}: " if self.kind.value == DATASET else ""
        said = [f"{title}{counted(matrix.n_states, 'state')}: {names}"]
        if self.kind.value == SEQUENCES_FILE:
            said += self._observed().warnings
        self.about.value = escape(". ".join(said))

    def _side(self, pair: tuple[TransitionMatrix, TransitionMatrix], direction: str | None = None) -> Any:
        """The matrix of a direction, by default this one, of a backward and a forward one."""
        backward, forward = pair
        return forward if (direction or self.direction) == "forward" else backward

    def _observed(self) -> sequences.Observed:
        if self.kind.value == SEQUENCES_FILE:
            return self.observations.observed()
        return dataset(self.dataset.value)

    def _show_form(self, _=None) -> None:
        self.form.children = self._forms[self.kind.value]
        self.about.value = "reading the data set" if self.kind.value == DATASET else ""

    def _edit(self, _) -> None:
        try:
            text = matrices.format_matrix(self.matrix())
        except ValueError:
            text = self.text.value  # keep the old text; the page says what is wrong with the source
        self.normalize.value = False
        self.text.value = text
        self.kind.value = TEXT
