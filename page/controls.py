"""Controls of the page: numbers that are dragged or typed, layout, and values in the page's address."""

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode

import ipywidgets
import numpy as np
import traitlets

from page.glossary import about
from page.text import number
from tplrepro.validation import LARGEST

# Scale -> the slider and its step.
SCALES = {
    "linear": (ipywidgets.FloatSlider, 0.5),
    "logarithmic": (ipywidgets.FloatLogSlider, 0.01),
    "whole": (ipywidgets.IntSlider, 1),
}


class NumberControl(ipywidgets.HBox):
    """A number: an entry holds it exactly, and a slider shows the nearest value that it can.

    `minimum` and `maximum` limit the slider only; the number must be greater than 0, or at least 0 if `zero`, and
    at most `most`. `scale` is a key of `SCALES`.
    """

    def __init__(
        self,
        label: str,
        value: float,
        minimum: float,
        maximum: float,
        scale: str = "linear",
        most: float = LARGEST,
        zero: bool = False,
    ):
        self.label, self._scale, self._most, self._zero = label, scale, most, zero
        if scale == "logarithmic":
            minimum, maximum = np.log10(minimum), np.log10(maximum)
        slider, step = SCALES[scale]
        tooltip = about(label) or label
        self.slider = slider(description=label, tooltip=tooltip, readout=False, min=minimum, max=maximum, step=step)
        # A float also for whole numbers: an integer entry would take 2.5 for 25.
        self.entry = ipywidgets.FloatText(value=value, tooltip=f"{label}, typed", continuous_update=False)
        self.entry.add_class("tplr-entry")
        self._typed()
        self.slider.observe(self._dragged, "value")
        self.entry.observe(self._typed, "value")
        super().__init__([self.slider, self.entry])
        self.add_class("tplr-row")

    @property
    def value(self) -> Any:
        """The number, an int if the scale is whole; ValueError if it is not allowed."""
        value, is_whole = self.entry.value, self._scale == "whole"
        is_positive = value > 0 or (self._zero and value == 0)
        if not (is_positive and value <= self._most) or (is_whole and not value.is_integer()):
            must = "a whole number" if is_whole else "a finite number"
            must += ", at least 0" if self._zero else " greater than 0"
            if self._most < LARGEST:
                must += f" and at most {self._most:g}"
            raise ValueError(f"{self.label} must be {must}, found {value:g}; move its slider, or type another one")
        return int(value) if is_whole else value

    def _place(self, value: float) -> float:
        """The place of a value on the slider's scale; NaN if it has none."""
        if self._scale == "logarithmic":
            value = np.log10(value) if value > 0 else np.nan
        return float(np.clip(value, self.slider.min, self.slider.max))

    def _agree(self) -> bool:
        """Whether the slider is at the step nearest to the entry, to which the browser moves it."""
        return abs(self._place(self.slider.value) - self._place(self.entry.value)) <= 0.501 * self.slider.step

    def _dragged(self, _) -> None:
        if not self._agree():
            self.entry.value = float(f"{self.slider.value:.3g}")

    def _typed(self, _=None) -> None:
        # With an impossible value in the entry the slider stays, and the analysis says what is wrong.
        place = self._place(self.entry.value)
        if not self._agree() and not np.isnan(place):
            self.slider.value = self.entry.value if self._scale == "logarithmic" else place


def card(title: str, *widgets: ipywidgets.Widget) -> ipywidgets.VBox:
    return ipywidgets.VBox([ipywidgets.HTML(f"<h3>{title}</h3>"), *widgets]).add_class("tplr-card")


def note(text: str = "") -> ipywidgets.HTML:
    return ipywidgets.HTML(text).add_class("tplr-note")


def dropdown(label: str, options: Collection[str], value: str | None = None) -> ipywidgets.Dropdown:
    return ipywidgets.Dropdown(description=label, options=[*options], value=value or next(iter(options)), tooltip=label)


def toggle(label: str, options: list[str], tooltip: str) -> ipywidgets.ToggleButtons:
    return ipywidgets.ToggleButtons(description=label, options=options, tooltip=tooltip)


def write_query(controls: Mapping[str, Any], initial: Mapping[str, Any]) -> str:
    """The values that differ from the initial ones, such as epsilon=0.2&horizon=20.0."""
    return urlencode({name: control.value for name, control in controls.items() if control.value != initial[name]})


def read_query(query: str, controls: Mapping[str, Any]) -> list[str]:
    """Set the controls to the values of a query; returns those that the controls refuse."""
    refused = []
    for name, texts in parse_qs(query).items():
        if name not in controls:
            continue
        control = controls[name]
        value: Any = texts[-1]
        if isinstance(control.value, bool):
            value = {"True": True, "False": False}.get(value)
        elif isinstance(control.value, float):
            value = number(value)
        try:
            if value is None or (isinstance(value, float) and not np.isfinite(value)):
                raise ValueError
            control.value = value
        except (ValueError, traitlets.TraitError):
            refused.append(f"{name}={texts[-1]}")
    return refused
