"""Controls of the page: a number that is dragged or typed, and boxes that give them room and labels."""

from collections.abc import Collection
from typing import Any

import ipywidgets
import numpy as np
import traitlets

from page.glossary import about
from tplrepro.validation import LARGEST

__all__ = ["NumberControl", "card", "dropdown", "note"]


#: Of each scale: the slider and its step.
SCALES = {
    "linear": (ipywidgets.FloatSlider, 0.5),
    "logarithmic": (ipywidgets.FloatLogSlider, 0.01),
    "whole": (ipywidgets.IntSlider, 1),
}


class NumberControl(ipywidgets.HBox):
    """One number with a slider, which acts while it is dragged, and an entry that takes any number exactly.

    The entry holds the value; the slider shows it as near as its range and steps allow.

    `label` names the unit too; `minimum` and `maximum` are the slider's; `scale` is "linear", "logarithmic" or "whole".
    """

    value = traitlets.Any()

    def __init__(self, label: str, value: float, minimum: float, maximum: float, scale: str = "linear"):
        self.label, self._scale = label, scale
        if scale == "logarithmic":
            minimum, maximum = np.log10(minimum), np.log10(maximum)
        slider, step = SCALES[scale]
        meaning = about(label) or label
        self.slider = slider(description=label, tooltip=meaning, readout=False, min=minimum, max=maximum, step=step)
        # Also of whole numbers: an entry of these would take 2.5 for 25.
        self.entry = ipywidgets.FloatText(value=value, tooltip=f"{label}, typed", continuous_update=False)
        self.entry.add_class("tplr-entry")
        self._typed()
        self.slider.observe(self._dragged, "value")
        self.entry.observe(self._typed, "value")
        super().__init__([self.slider, self.entry])
        traitlets.dlink((self.entry, "value"), (self, "value"), self._counted)
        self.add_class("tplr-row")

    def _counted(self, value: float) -> float:
        return int(value) if self._scale == "whole" and value.is_integer() else value

    def checked(self, most: float = LARGEST) -> Any:
        """The value, a ValueError unless it is greater than 0, at most `most`, and whole where the scale is."""
        whole = self._scale == "whole"
        if not (0 < self.value <= most and (not whole or isinstance(self.value, int))):
            must = "a whole number, at least 1" if whole else "a finite number greater than 0"
            must += f" and at most {most:g}" if most < LARGEST else ""
            raise ValueError(f"{self.label} must be {must}, found {self.value:g}; move its slider, or type another one")
        return self.value

    def _place(self, value: float) -> float:
        """Where a value stands on the scale of the slider; NaN where it has no place."""
        if self._scale == "logarithmic":
            value = np.log10(value) if value > 0 else np.nan
        return float(np.clip(value, self.slider.min, self.slider.max))

    def _agree(self) -> bool:
        """Whether the slider is at the step next to the entry's value; a browser moves it there and sends it back."""
        return abs(self._place(self.slider.value) - self._place(self.entry.value)) <= 0.501 * self.slider.step

    def _dragged(self, _) -> None:
        if not self._agree():
            self.entry.value = float(f"{self.slider.value:.3g}")

    def _typed(self, _=None) -> None:
        # Where the entry holds no possible value the slider stays, and the analysis says what is wrong.
        if not self._agree() and not np.isnan(self._place(self.entry.value)):
            near = self.entry.value if self._scale == "logarithmic" else self._place(self.entry.value)
            self.slider.value = near  # it keeps to its bounds by itself


def card(title: str, *widgets: ipywidgets.Widget) -> ipywidgets.VBox:
    return ipywidgets.VBox([ipywidgets.HTML(f"<h3>{title}</h3>"), *widgets]).add_class("tplr-card")


def note(text: str = "") -> ipywidgets.HTML:
    return ipywidgets.HTML(text).add_class("tplr-note")


def dropdown(label: str, options: Collection[str], value: str | None = None) -> ipywidgets.Dropdown:
    return ipywidgets.Dropdown(description=label, options=[*options], value=value or next(iter(options)), tooltip=label)
