"""Several statistics over the same people, side by side under one alpha.

What is released at a time point together is epsilon-DP for the sum of the budgets, whatever each of
them counts (basic composition): that sum is the epsilon of the time, and the chain takes care of
different times. The floor is the budget of a time point at which all statistics are due, of which
each has its share. One that is not due spends nothing, so that the budgets of a period differ
(Theorem 4 of docs/theory/cycles.md), and a larger floor keeps the same alpha.

With a delta, shares are those of the squares of 1 / noise multiplier, which add up at one time.
"""

from __future__ import annotations
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import fsum, inf, lcm, nextafter, sqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tplreport.publishing.clock import DAY, LENGTH_OF, Clock
from tplreport.reading.time_steps import in_units_of
from tplrepro.leakage.loss_function import DOWN, UP
from tplrepro.markov.transition import WEEKDAYS
from tplrepro.validation import check_positive, check_sensitivity

FIELDS = ("sensitivity", "share", "every", "at")
#: By so much the shares of all statistics may differ from 1.
ROUNDING_OF_SHARES = 1e-9
#: More phases are refused: the publisher keeps limits for each.
MOST_PHASES = 20_000


@dataclass(frozen=True)
class Statistic:
    """One of the statistics of a file; `name` is None where a file has one without a name.

    It is due every `every` steps: those at `at`, which of dates are nanoseconds after midnight
    before Monday, and else steps after phase 0.
    """

    name: str | None
    sensitivity: float
    share: float = 1.0
    every: int = 1
    at: int = 0


def statistics_of(settings: Mapping) -> list[Statistic]:
    """The statistics that the settings of a publisher's file hold, in the order of the file."""
    stored = settings.get("statistics")
    if stored is None:
        return [Statistic(None, settings["sensitivity"])]
    return [Statistic(**fields) for fields in stored]


def statistic_names(settings: Mapping) -> list[str]:
    """The names of several statistics; none of one without a name."""
    return [fields["name"] for fields in settings.get("statistics") or []]


def checked_statistics(statistics: Any, step: int | str) -> list[dict]:
    """Statistics as a file keeps them, in the order in which they were given.

    Parameters
    ----------
    statistics : mapping of names to mappings, or DataFrame with a row for each name
        `sensitivity`, `share`, and if it is not due at every time `every` and `at`.
    step : int or str, the distance of two times of the publisher

    Returns
    -------
    list of dict, the fields of `Statistic`

    Raises
    ------
    ValueError
        Unless names are texts, shares are positive and sum to 1, sensitivities are positive, and
        periods are whole numbers of steps.
    """
    if isinstance(statistics, pd.DataFrame):
        statistics = _fields_of_table(statistics)
    if not isinstance(statistics, Mapping) or not statistics:
        raise ValueError(
            "statistics must be a mapping of names to their sensitivity and share, or a table of "
            f"them, found {type(statistics).__name__}; give such as "
            "{'people': {'sensitivity': 2, 'share': 1.0}}"
        )
    checked = [_checked_statistic(name, fields, step) for name, fields in statistics.items()]
    total = sum(statistic.share for statistic in checked)
    if abs(total - 1.0) > ROUNDING_OF_SHARES:
        raise ValueError(
            "the shares of all statistics must sum to 1, found "
            f"{' + '.join(f'{one.share:g}' for one in checked)} = {total:g}; divide each by it"
        )
    return [asdict(statistic) for statistic in checked]


def _fields_of_table(table: pd.DataFrame) -> dict[str, dict]:
    """The rows of a table as mappings, without its empty cells; beside these, a column of whole
    numbers holds floats."""
    return {
        name: {field: _as_whole(value) for field, value in row.items() if not _is_empty(value)}
        for name, row in table.to_dict("index").items()
    }


def _as_whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _is_empty(value: Any) -> bool:
    return value is None or value != value or value == ""


def _checked_statistic(name: Any, fields: Any, step: int | str) -> Statistic:
    if not isinstance(name, str) or not name or ": " in name:
        raise ValueError(
            f"names of statistics must be texts without a colon and a blank, found {name!r}; "
            "rename it"
        )
    if not isinstance(fields, Mapping):
        raise ValueError(
            f"statistic {name!r} must have a sensitivity and a share, found {fields!r}; give such "
            "as {'sensitivity': 2, 'share': 0.5}"
        )
    unknown = [field for field in fields if field not in FIELDS]
    missing = [field for field in ("sensitivity", "share") if field not in fields]
    if unknown or missing:
        found = ", ".join(map(str, fields)) or "nothing"
        raise ValueError(
            f"statistic {name!r} must have a sensitivity and a share, and may have every and at, "
            f"found {found}; correct it"
        )
    every = 1
    if "every" in fields:
        every = _checked_every(name, fields["every"], step)
    at = 0
    if "at" in fields:
        if every == 1:
            raise ValueError(
                f"at of statistic {name!r} belongs to every, found it due at every time; give "
                "every, or leave at out"
            )
        at = _checked_at(name, fields["at"], every, step)
    share = check_positive(fields["share"], f"the share of {name!r}", "give such as 0.5")
    return Statistic(name, check_sensitivity(fields["sensitivity"]), share, every, at)


def _checked_every(name: str, every: Any, step: int | str) -> int:
    """A period in steps."""
    example = "7"
    if isinstance(step, str):
        example = "'1D'"
    with suppress(ValueError):
        width = Clock.checked_step(every)
        if isinstance(step, int) and isinstance(width, int):
            return width
        if isinstance(step, str) and isinstance(width, str):
            count, rest = divmod(pd.Timedelta(width).value, pd.Timedelta(step).value)
            if count and not rest:
                return count
    shown = step
    if isinstance(step, str):
        shown = in_units_of(step)
    raise ValueError(
        f"every of statistic {name!r} must be a whole number of steps, found every={every!r} with "
        f"step={shown!r}; give such as every={example}"
    )


def _checked_at(name: str, at: Any, every: int, step: int | str) -> int:
    """When it is due: nanoseconds after midnight before Monday, or steps after phase 0."""
    if isinstance(step, int):
        if isinstance(at, (int, np.integer)) and 0 <= at < every:
            return int(at)
        raise ValueError(
            f"at of statistic {name!r} must be a whole number of steps from 0 to {every - 1}, "
            f"found {at!r}; correct it"
        )
    day, _, clock = str(at).rpartition(" ")
    try:
        since_midnight = pd.Timedelta(f"{clock}:00").value
        days = WEEKDAYS.index(day) if day else 0
    except ValueError:
        raise ValueError(
            f"at of statistic {name!r} must be a time of the day or week, found {at!r}; give such "
            "as at='18:00' or at='Mon 08:00'"
        ) from None
    return days * DAY + since_midnight


@dataclass(frozen=True)
class Schedule:
    """Which statistics are due at each of so many phases.

    `phases` holds their places in the list of statistics. `period` is "day" or "week" of a schedule
    by the clock.
    """

    phases: list[tuple[int, ...]]
    period: str | None = None

    def __len__(self) -> int:
        return len(self.phases)


def schedule_of(statistics: Sequence[Statistic], p: int, step: int | str, begins: int) -> Schedule:
    """When statistics are due, at a multiple of p phases.

    Parameters
    ----------
    statistics : sequence of Statistic
    p : int, the phases of the chain
    step : int or str, the distance of two times
    begins : int, when phase 0 begins: of dates nanoseconds after midnight before a Monday, else
        steps after the first time

    Returns
    -------
    Schedule

    Raises
    ------
    ValueError
        For periods in which dates do not return with the day or week.
    """
    longest = lcm(*(statistic.every for statistic in statistics))
    if longest == 1:
        return Schedule([tuple(range(len(statistics)))] * p)
    if isinstance(step, int):
        size = lcm(p, longest)
        _check_number_of_phases(size)
        offsets = [statistic.at - begins for statistic in statistics]
        return Schedule(_due(statistics, offsets, size))
    return _schedule_by_clock(statistics, p, pd.Timedelta(step).value, begins)


def _check_number_of_phases(size: int) -> None:
    if size > MOST_PHASES:
        raise ValueError(
            f"all statistics must return together after at most {MOST_PHASES} steps, found {size}; "
            "choose periods that divide each other"
        )


def _schedule_by_clock(
    statistics: Sequence[Statistic], p: int, width: int, begins: int
) -> Schedule:
    """When statistics are due in a day, or else in a week, of steps of `width` nanoseconds."""
    for period, length in LENGTH_OF.items():
        size, rest = divmod(length, width)
        periods = [p, *(statistic.every for statistic in statistics)]
        if not rest and all(size % one == 0 for one in periods):
            _check_number_of_phases(size)
            offsets = [_steps_after(begins, one, width) for one in statistics]
            return Schedule(_due(statistics, offsets, size), period)
    longest = max(statistics, key=lambda statistic: statistic.every)
    every = in_units_of(pd.Timedelta(longest.every * width))
    step = in_units_of(pd.Timedelta(width))
    raise ValueError(
        "statistics of dates must be due at times that return with the day or week, found "
        f"every={every!r} of {longest.name!r} with step={step!r}; give a period that divides a day "
        "or a week, or times that are whole numbers"
    )


def _steps_after(begins: int, statistic: Statistic, width: int) -> int:
    """How many steps after phase 0 a statistic is due."""
    steps, rest = divmod(statistic.at - begins, width)
    if rest:
        raise ValueError(
            f"at of statistic {statistic.name!r} must be a time of the publisher, found one "
            f"{in_units_of(pd.Timedelta(rest))} after; round it to the step"
        )
    return steps


def _due(
    statistics: Sequence[Statistic], offsets: Sequence[int], size: int
) -> list[tuple[int, ...]]:
    """The places of those that are due at each of `size` phases."""
    phases = []
    for phase in range(size):
        due = [
            place
            for place, (statistic, offset) in enumerate(zip(statistics, offsets, strict=True))
            if (phase - offset) % statistic.every == 0
        ]
        phases.append(tuple(due))
    return phases


class Spent(NamedTuple):
    """What a time spends on each statistic of a file, 0 on those that it does not release, and
    their sum, rounded up; nats, or with a delta noise multipliers."""

    budgets: tuple[float, ...]
    total: float


def sum_of(budgets: Sequence[float]) -> float:
    """The sum of budgets, rounded up: what they spend at one time."""
    if len(budgets) == 1:
        return budgets[0]
    exact = sum(map(Fraction, budgets))
    total = float(exact)
    if Fraction(total) < exact:
        total = nextafter(total, inf)
    return total


def divided(total: float, shares: Sequence[float], gaussian: bool) -> list[float]:
    """Budgets that sum to at most a total, in proportion to shares; or noise multipliers, if
    `gaussian`, that spend together what the total, one of them, would."""
    if len(shares) == 1:
        return [total]
    whole = fsum(shares)
    if gaussian:
        # the squares of 1 / multiplier add up
        return [total / sqrt(share / whole) * UP * UP for share in shares]
    budgets = [total * (share / whole) for share in shares]
    excess = sum(map(Fraction, budgets)) > Fraction(total)
    if excess:
        budgets = [budget * DOWN for budget in budgets]
    return budgets
