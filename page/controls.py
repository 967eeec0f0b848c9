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

    `minimum` and `maximum` limit the slider only; `scale` is a key of `SCALES`.
    """

    value = traitlets.Any()

    def __init__(self, label: str, value: float, minimum: float, maximum: float, scale: str = "linear"):
        self.label, self._scale = label, scale
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
        traitlets.dlink((self.entry, "value"), (self, "value"), self._whole)
        self.add_class("tplr-row")

    def _whole(self, value: float) -> float:
        return int(value) if self._scale == "whole" and value.is_integer() else value

    def checked(self, most: float = LARGEST) -> Any:
        """The value; ValueError unless it is greater than 0, at most `most`, and whole if the scale is."""
        is_whole = self._scale == "whole"
        if not 0 < self.value <= most or (is_whole and not isinstance(self.value, int)):
            must = "a whole number, at least 1" if is_whole else "a finite number greater than 0"
            if most < LARGEST:
                must += f" and at most {most:g}"
            raise ValueError(f"{self.label} must be {must}, found {self.value:g}; move its slider, or type another one")
        return self.value

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
    values = parse_qs(query)
    for name, control in controls.items():
        if name not in values:
            continue
        text = values[name][-1]
        value: Any = text
        if isinstance(control.value, bool):
            value = {"True": True, "False": False}.get(text)
        elif isinstance(control.value, float):
            value = number(text)
        try:
            if value is None or (isinstance(value, float) and not np.isfinite(value)):
                raise ValueError
            control.value = value
        except (ValueError, traitlets.TraitError):
            refused.append(f"{name}={text}")
    return refused
