"""The inputs of the page in its address: names and values of the controls that were changed, and back."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode

import numpy as np
import traitlets

from page.text import number

__all__ = ["LONGEST", "read_query", "write_query"]

#: Characters; servers refuse longer addresses.
LONGEST = 4000


def write_query(controls: Mapping[str, Any], initial: Mapping[str, Any]) -> str:
    """The values that are not the initial ones, such as epsilon=0.2&horizon=20.0."""
    return urlencode({name: control.value for name, control in controls.items() if control.value != initial[name]})


def read_query(query: str, controls: Mapping[str, Any]) -> list[str]:
    """Give controls the values of a query; those that they cannot take are left out and returned."""
    refused, given = [], parse_qs(query)
    for name in [name for name in controls if name in given]:  # other names, such as the theme, are for the server
        text, control = given[name][-1], controls[name]
        value: Any = text
        if isinstance(control.value, bool):
            value = {"True": True, "False": False}.get(text)
        elif isinstance(control.value, float):
            value = number(text)
        try:
            if value is None or value in (np.inf, -np.inf) or value != value:
                raise ValueError
            control.value = value
        except (ValueError, traitlets.TraitError):
            refused.append(f"{name}={text}")
    return refused
