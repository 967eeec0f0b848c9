"""Controls of the page: a number that is dragged or typed, and boxes that give them room and labels."""

from __future__ import annotations

import math

import ipywidgets

__all__ = ["NumberControl", "card", "dropdown", "note", "row"]


class NumberControl:
    """One number with a slider, which acts while it is dragged, and an entry that takes any number exactly.

    The entry holds the value; the slider shows it as near as its range and steps allow.

    Parameters
    ----------
    label : str, with the unit
    value, minimum, maximum : float or int; the bounds are those of the slider
    logarithmic, integer : bool
    changed : callable without arguments, called once for each change by the user
    """

    def __init__(self, label, value, minimum, maximum, changed, *, logarithmic=False, integer=False):
        self._changed = changed
        self._logarithmic, self._integer = logarithmic, integer
        self._from_slider = self._to_slider = False
        shared = {"description": label, "readout": False, "continuous_update": True, "tooltip": label}
        if logarithmic:
            low, high = math.log10(minimum), math.log10(maximum)
            self.slider = ipywidgets.FloatLogSlider(base=10, min=low, max=high, step=0.01, **shared)
        elif integer:
            self.slider = ipywidgets.IntSlider(min=minimum, max=maximum, step=1, **shared)
        else:
            self.slider = ipywidgets.FloatSlider(min=minimum, max=maximum, step=0.5, **shared)
        kind = ipywidgets.IntText if integer else ipywidgets.FloatText
        self.entry = kind(value=value, tooltip=f"{label}, typed", continuous_update=False)
        self.entry.add_class("tplr-entry")
        self._show(value)
        self.slider.observe(self._dragged, "value")
        self.entry.observe(self._typed, "value")
        self.widget = row(self.slider, self.entry)

    @property
    def value(self):
        return self.entry.value

    @value.setter
    def value(self, value):
        self.entry.value = value

    @property
    def disabled(self) -> bool:
        return self.entry.disabled

    @disabled.setter
    def disabled(self, disabled: bool):
        self.entry.disabled = self.slider.disabled = disabled

    def _dragged(self, change):
        if self._to_slider or self._rounds(change.new):
            return
        self._from_slider = True
        try:
            self.entry.value = change.new if self._integer else float(f"{change.new:.3g}")
        finally:
            self._from_slider = False

    def _rounds(self, shown) -> bool:
        """Whether a position is that of the entry's value, which a browser moves to the next step and sends back."""
        value, step = self.entry.value, 0.501 * self.slider.step
        if self._logarithmic:
            return value > 0 and abs(math.log10(shown) - math.log10(value)) <= step
        return abs(shown - value) <= step

    def _typed(self, change):
        if not self._from_slider:
            self._show(change.new)
        self._changed()

    def _show(self, value):
        """Move the slider to a value without counting that as a change."""
        if not math.isfinite(value) or (self._logarithmic and value <= 0):
            return  # the analysis says what is wrong with it
        low, high = self.slider.min, self.slider.max
        if self._logarithmic:
            low, high = 10.0**low, 10.0**high
        self._to_slider = True
        try:
            self.slider.value = min(max(value, low), high)
        finally:
            self._to_slider = False


def row(*widgets):
    box = ipywidgets.HBox(list(widgets))
    box.add_class("tplr-row")
    return box


def card(title: str, *widgets):
    box = ipywidgets.VBox([ipywidgets.HTML(f"<h3>{title}</h3>"), *widgets])
    box.add_class("tplr-card")
    return box


def note(text: str = ""):
    widget = ipywidgets.HTML(text)
    widget.add_class("tplr-note")
    return widget


def dropdown(label: str, options, value=None):
    options = list(options)
    return ipywidgets.Dropdown(
        description=label, options=options, value=options[0] if value is None else value, tooltip=label
    )
