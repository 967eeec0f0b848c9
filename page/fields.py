"""The fields of the page: controls, and below them the sentence that says what is wrong."""

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

import ipywidgets
import numpy as np
from traitlets import dlink

# more would be slow, and from 10 MB on breaks JupyterLab's connection to the kernel
MAX_BYTES = 5_000_000


class Field(ipywidgets.VBox):
    """An entry, a note and room for an error, which marks the entry as invalid."""

    def __init__(self, entry: Any, *more: ipywidgets.Widget, note: str = ""):
        self.entry, self.error = entry, ipywidgets.HTML()
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
        self.error.value = (
            f"<span class='tplr-error' role='alert'>{escape(problem)}</span>" if problem else ""
        )
        (self.add_class if problem else self.remove_class)("tplr-invalid")


class Number(Field):
    """A number: an entry holds it exactly, and a slider between `limits` shows the nearest value
    that it can."""

    def __init__(
        self, label: str, value: float, limits: tuple, most: float = np.inf, whole: bool = False
    ):
        self.label, self.limits, self.most, self.whole = label, limits, most, whole
        # A float also for whole numbers: an integer entry would take 2.5 for 25.
        entry = ipywidgets.FloatText(value, description=label, continuous_update=False)
        make, step = (ipywidgets.FloatSlider, 1) if whole else (ipywidgets.FloatLogSlider, 0.002)
        low, high = limits if whole else np.log10(limits)
        self.slider = make(value, min=low, max=high, step=step, readout=False)
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
        if not (0 < value <= self.most and value < np.inf) or (
            self.whole and not value.is_integer()
        ):
            must = (
                "a whole number greater than 0" if self.whole else "a finite number greater than 0"
            )
            must += f" and at most {self.most:g}" if self.most < np.inf else ""
            raise ValueError(f"{self.label} must be {must}, found {value:g}")
        return int(value) if self.whole else value


class File(Field):
    """A button that uploads one file."""

    def __init__(self, note: str):
        # Without a tooltip the browser shows "null".
        upload = ipywidgets.FileUpload(description="Choose a file", tooltip=note)
        super().__init__(upload, note=f"{note}; at most {MAX_BYTES / 1e6:g} MB")

    def read(self) -> tuple[bytes, str]:
        """Content and name of the file, or ValueError."""
        if not self.value:
            raise ValueError("no file has been chosen yet; choose one")
        file = self.value[0]
        if file["size"] > MAX_BYTES:
            found = f"found {file['size'] / 1e6:.1f} MB; load fewer lines, or use the command line"
            raise ValueError(f"{file['name']} must be at most {MAX_BYTES / 1e6:g} MB here, {found}")
        return bytes(file["content"]), file["name"]


def text(label: str, note: str) -> Field:
    """An entry of several lines, acting when it is left."""
    return Field(ipywidgets.Textarea(description=label, rows=4, continuous_update=False), note=note)


def dropdown(label: str, options: Iterable[Any]) -> Field:
    return Field(ipywidgets.Dropdown(description=label, options=[*options]))
