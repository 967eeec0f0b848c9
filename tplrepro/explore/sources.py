"""Where a matrix comes from: example, text, generator, CSV of a matrix, CSV of sequences, or data set.

One panel serves each side. The backward one may also follow the forward one: its own counterpart (the example's, or the
same sequences with time reversed), its Bayesian reversal, or the same matrix.
"""

from __future__ import annotations

from functools import lru_cache
from html import escape

import ipywidgets

from tplrepro.explore.browser import FileInput
from tplrepro.explore.controls import NumberControl, dropdown, note
from tplrepro.explore.examples import EXAMPLES, KINDS, example, generate
from tplrepro.explore.inputs import MAX_BYTES, decode, format_matrix, parse_matrix
from tplrepro.explore.observed import DATASETS, Observed, from_dataset, from_sequences
from tplrepro.explore.sequences import parse_sequences
from tplrepro.markov.transition import TransitionMatrix

__all__ = ["MatrixSource"]

EXAMPLE, TEXT, GENERATED = "an example", "text", "generated"
MATRIX_FILE, SEQUENCES_FILE, DATASET = "CSV of a matrix", "CSV of sequences", "a data set"
MATCHING, REVERSED, SAME = "what belongs to the forward matrix", "Bayesian reversal of the forward", "same as forward"
OWN = (EXAMPLE, TEXT, GENERATED, MATRIX_FILE, SEQUENCES_FILE, DATASET)

dataset = lru_cache(maxsize=None)(from_dataset)


class MatrixSource:
    """The controls of one matrix, and the matrix that they describe.

    Parameters
    ----------
    direction : "forward" or "backward"
    changed : callable without arguments
    chosen : str, the example to begin with
    forward : MatrixSource, only for "backward": the one it may follow
    """

    def __init__(self, direction: str, changed, chosen: str, forward: MatrixSource | None = None):
        self.direction, self._changed, self.forward = direction, changed, forward
        self._kept: dict = {}
        options = OWN if forward is None else (MATCHING, REVERSED, SAME, *OWN)
        self.kind = dropdown(f"{direction.capitalize()}", options)
        self.kind.tooltip = f"where the {direction} matrix comes from"
        self.example = dropdown("Example", EXAMPLES, chosen)
        self.text = ipywidgets.Textarea(
            value=format_matrix(example(chosen)[direction == "forward"]),
            rows=5,
            continuous_update=False,
            tooltip=f"{direction} matrix, one row of probabilities a line",
            placeholder="0.8, 0.2\n0.1, 0.9",
        )
        self.normalize = ipywidgets.Checkbox(description="divide each row by its sum", indent=False)
        self.model = dropdown("Kind", KINDS)
        self.size = NumberControl("States n", 10, 2, 50, changed, integer=True)
        self.spread = NumberControl("Smoothing s", 0.05, 0.0001, 1.0, changed, logarithmic=True)
        self.seed = ipywidgets.IntText(description="Seed", value=0, tooltip="seed of a random matrix")
        self.matrix_file = FileInput(label="Matrix file")
        self.sequence_file = FileInput(label="Sequences file")
        self.dataset = dropdown("Data set", DATASETS)
        self.smoothing = NumberControl("Added to counts", 1.0, 0.001, 10.0, changed, logarithmic=True)
        self.drop = ipywidgets.Checkbox(description="leave out states never left or never entered", indent=False)
        self.edit = ipywidgets.Button(description=f"Edit the {direction} matrix as text")
        self.edit.on_click(self._edit)
        self.about = note()
        self._forms = {
            EXAMPLE: [self.example],
            TEXT: [self.text, self.normalize],
            GENERATED: [self.model, self.size.widget, self.spread.widget, self.seed],
            MATRIX_FILE: [self.matrix_file, self.normalize],
            SEQUENCES_FILE: [self.sequence_file, self.smoothing.widget, self.drop],
            DATASET: [self.dataset, self.smoothing.widget, self.drop],
        }
        self.form = ipywidgets.VBox()
        self.widget = ipywidgets.VBox([self.kind, self.form, self.about, self.edit])
        for control in (self.example, self.text, self.normalize, self.model, self.seed, self.dataset, self.drop):
            control.observe(self._observed, "value")
        for upload in (self.matrix_file, self.sequence_file):
            upload.observe(self._observed, "count")
        self.kind.observe(self._switched, "value")
        self._show_form()

    @property
    def needs_forward(self) -> bool:
        return self.kind.value in (MATCHING, REVERSED, SAME)

    @property
    def synthetic(self) -> bool:
        """Whether the matrix comes from a synthetic stand-in of a data set."""
        source = self.forward if self.needs_forward else self
        return source.kind.value == DATASET and dataset(source.dataset.value).synthetic

    def matrix(self, direction: str | None = None) -> TransitionMatrix:
        """The matrix that the controls describe, or its counterpart in the other direction.

        Raises
        ------
        ValueError
            If the text, the file or the numbers do not make one.
        """
        direction = direction or self.direction
        if self.kind.value == MATCHING:
            return self.forward.matrix("backward")
        if self.kind.value == REVERSED:
            return self._once((REVERSED, self.forward.matrix()), lambda: self.forward.matrix().reverse())
        if self.kind.value == SAME:
            return self.forward.matrix()
        pair = self._pair()
        matrix = pair[direction == "forward"]
        if matrix is not None:
            return matrix
        return self._once((direction, pair), lambda: pair[direction != "forward"].reverse())

    def describe(self, matrix: TransitionMatrix) -> None:
        """Say below the controls what is used."""
        names = [str(state) for state in list(matrix.states)[:4]]
        more = ", ..." if matrix.n_states > len(names) else ""
        origin = f"{dataset(self.dataset.value).title}: " if self.kind.value == DATASET else ""
        self.about.value = escape(f"{origin}{matrix.n_states} states: {', '.join(names)}{more}")

    def _pair(self) -> tuple[TransitionMatrix | None, TransitionMatrix | None]:
        """(backward, forward), with None for a side that only Bayes' rule gives."""
        kind = self.kind.value
        if kind == EXAMPLE:
            return self._once((kind, self.example.value), lambda: example(self.example.value))
        if kind == TEXT:
            text, normalize = self.text.value, self.normalize.value
            return self._once((kind, text, normalize), lambda: self._alone(parse_matrix(text, normalize)))
        if kind == GENERATED:
            recipe = (self.model.value, self.size.value, self.spread.value, self.seed.value)
            return self._once((kind, *recipe), lambda: self._alone(generate(*recipe)))
        if kind == MATRIX_FILE:
            text, normalize = self._content(self.matrix_file), self.normalize.value
            return self._once((kind, text, normalize), lambda: self._alone(parse_matrix(text, normalize)))
        observed = self._observed_steps()
        smoothing, drop = self.smoothing.value, self.drop.value
        return self._once((kind, observed, smoothing, drop), lambda: observed.matrices(smoothing, drop))

    def _observed_steps(self) -> Observed:
        if self.kind.value == DATASET:
            if self.about.value == "":
                self.about.value = "reading the data set"
            return dataset(self.dataset.value)
        text = self._content(self.sequence_file)
        return self._once(("steps", text), lambda: from_sequences(parse_sequences(text), self.sequence_file.name))

    def _alone(self, matrix: TransitionMatrix):
        """A pair of which only this panel's own side is given."""
        return (None, matrix) if self.direction == "forward" else (matrix, None)

    def _content(self, upload: FileInput) -> str:
        if not upload.name:
            raise ValueError("no file has been chosen yet; choose a CSV file")
        if upload.size > upload.limit:
            raise ValueError(
                f"{upload.name} must be at most {MAX_BYTES / 1e6:g} MB here, found {upload.size / 1e6:.1f} MB; "
                "estimate its matrix with tplrepro.TransitionMatrix.from_sequences and load that, or load fewer lines"
            )
        return decode(bytes(upload.content), upload.name)

    def _once(self, key, make):
        """What was made last for this kind of key, made anew when the key changes."""
        place = key[0]
        if self._kept.get(place, (None,))[0] != key:
            self._kept[place] = (key, make())
        return self._kept[place][1]

    def _observed(self, _):
        self._changed()

    def _switched(self, _):
        self._show_form()
        self._changed()

    def _show_form(self):
        self.form.children = self._forms.get(self.kind.value, [])
        self.about.value = ""

    def _edit(self, _):
        try:
            text = format_matrix(self.matrix())
        except ValueError:
            text = self.text.value  # begin with the text as it was; the page says what is wrong with the source
        self.normalize.value = False
        self.text.value = text
        self.kind.value = TEXT
