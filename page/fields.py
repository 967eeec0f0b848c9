"""The fields of the page: controls, and below them the sentence that says what is wrong."""

from collections.abc import Callable, Iterable
from html import escape
from typing import Any, NamedTuple

import ipywidgets
import numpy as np
from traitlets import dlink

# more would be slow, and from 10 MB on breaks JupyterLab's connection to the kernel
MAX_BYTES = 5_000_000


#: The least and the largest value of a slider.
Limits = tuple[float, float]


class Upload(NamedTuple):
    """A file that was chosen."""

    content: bytes
    name: str


class Field(ipywidgets.VBox):
    """An entry, further widgets, a note and room for an error, which marks the entry as invalid."""

    def __init__(self, entry: Any, *more: ipywidgets.Widget, note: str = ""):
        self.entry = entry
        self.error = ipywidgets.HTML()
        self.note = ipywidgets.HTML(escape(note)).add_class("tplr-note")
        super().__init__([entry, *more, self.note, self.error])
        self.add_class("tplr-field")

    @property
    def value(self) -> Any:
        return self.entry.value

    def attempt(self, make: Callable[[], Any], problems: list[str]) -> Any:
        """What `make` returns; None, a message here and one more of the problems if that is a
        ValueError."""
        try:
            return make()
        except ValueError as error:
            self.say(str(error))
            problems.append(str(error))
            return None

    def say(self, problem: str) -> None:
        """Show what is wrong, or nothing."""
        if problem:
            self.error.value = f"<span class='tplr-error' role='alert'>{escape(problem)}</span>"
            self.add_class("tplr-invalid")
        else:
            self.error.value = ""
            self.remove_class("tplr-invalid")


class Number(Field):
    """A number: an entry holds it exactly, and a slider between `limits` shows the nearest value
    that it can.

    It is above 0 and at most `most`, which may be beyond the slider, and has no fraction if
    `whole`.
    """

    def __init__(
        self, label: str, value: float, limits: Limits, most: float = np.inf, whole: bool = False
    ):
        self.label = label
        self.limits = limits
        self.most = most
        self.whole = whole
        # A float also for whole numbers: an integer entry would take 2.5 for 25.
        entry = ipywidgets.FloatText(value, description=label, continuous_update=False)
        self.slider = make_slider(value, limits, whole)
        super().__init__(entry, self.slider)
        dlink((entry, "value"), (self.slider, "value"))
        self.slider.observe(self._dragged, "value")

    def _dragged(self, _) -> None:
        """Take the slider's value, to three digits, unless the slider only shows what was typed as
        well as it can."""
        if not np.isclose(self.slider.value, np.clip(self.value, *self.limits), rtol=0.006):
            self.entry.value = float(f"{self.slider.value:.3g}")

    def read(self) -> Any:
        """The number, an int if it is whole; ValueError if it is not allowed."""
        value = self.value
        is_in_range = 0 < value <= self.most and value < np.inf
        is_of_kind = value.is_integer() or not self.whole
        if not (is_in_range and is_of_kind):
            raise ValueError(f"{self.label} must be {self.requirement()}, found {value:g}")
        return int(value) if self.whole else value

    def requirement(self) -> str:
        """What is allowed, in words."""
        words = "a finite number greater than 0"
        if self.whole:
            words = "a whole number greater than 0"
        if self.most < np.inf:
            words += f" and at most {self.most:g}"
        return words


def make_slider(value: float, limits: Limits, whole: bool) -> Any:
    """A slider between two limits, linear for whole numbers, else logarithmic."""
    low, high = limits
    if whole:
        return ipywidgets.FloatSlider(value, min=low, max=high, step=1, readout=False)
    return ipywidgets.FloatLogSlider(
        value, min=np.log10(low), max=np.log10(high), step=0.002, readout=False
    )


class File(Field):
    """A button that uploads one file."""

    def __init__(self, note: str):
        # Without a tooltip the browser shows "null".
        upload = ipywidgets.FileUpload(description="Choose a file", tooltip=note)
        super().__init__(upload, note=f"{note}; at most {MAX_BYTES / 1e6:g} MB")

    def read(self) -> Upload:
        """The file, or ValueError."""
        if not self.value:
            raise ValueError("no file has been chosen yet; choose one")
        file = self.value[0]
        if file["size"] > MAX_BYTES:
            found = f"found {file['size'] / 1e6:.1f} MB; load fewer lines, or use the command line"
            raise ValueError(f"{file['name']} must be at most {MAX_BYTES / 1e6:g} MB here, {found}")
        return Upload(bytes(file["content"]), file["name"])


def text(label: str, note: str) -> Field:
    """An entry of several lines, acting when it is left."""
    return Field(ipywidgets.Textarea(description=label, rows=4, continuous_update=False), note=note)


def dropdown(label: str, options: Iterable[Any]) -> Field:
    return Field(ipywidgets.Dropdown(description=label, options=[*options]))
