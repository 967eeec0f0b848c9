"""The last training time of a private model, which publishers' first times must come after."""

import datetime
import re
from typing import Any

import numpy as np
import pandas as pd

from tplreport.reading.times import ISO_TIME

#: A date without a time of day.
DAY = re.compile(r"\d{4}-\d\d-\d\d")


def stored_training_time(until: Any) -> int | str | None:
    """A last training time as JSON has it: a whole number, or a date in full as text.

    ValueError for anything else: 04.05.2024 can be read as two days, and 2024-04 is a month, of
    which it would have to be told whether all of it is meant.
    """
    if until is None:
        return None
    if isinstance(until, int | np.integer) and not isinstance(until, bool):
        return int(until)
    is_dated = isinstance(until, str | datetime.date | np.datetime64 | pd.Period)
    text = str(until).strip().replace("/", "-")
    if not is_dated or re.fullmatch(ISO_TIME, text) is None:
        raise _no_training_time(until)
    try:
        pd.Timestamp(text)
    except ValueError:
        raise _no_training_time(until) from None
    return text


def end_of_training(until: int | str) -> int | pd.Timestamp:
    """The last instant of a last training time, as a model holds it: of a day its end."""
    stored = stored_training_time(until)
    if not isinstance(stored, str):
        assert stored is not None
        return stored
    end = pd.Timestamp(stored)
    if DAY.fullmatch(stored):
        end += pd.Timedelta(days=1, nanoseconds=-1)
    return end


def _no_training_time(until: Any) -> ValueError:
    return ValueError(
        f"the last training time must be a whole number or a date in full, found {until!r}; write "
        "it such as 2024-04-30, or 2024-04-30 23:00"
    )
