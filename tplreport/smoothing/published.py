"""The noisy counts of a publisher's file, smoothed. The file is read only: a revised estimate is no
release."""

from __future__ import annotations
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from tplreport.publishing.statistics import statistic_names, statistics_of
from tplreport.publishing.store import Kind
from tplreport.publishing.values import column_name
from tplreport.smoothing.smooth import smooth_counts
from tplreport.smoothing.smoothed import SmoothedCounts


def smooth_published(
    noisy: pd.DataFrame,
    ledger: pd.DataFrame,
    settings: Mapping,
    statistic: str | None,
    **options: Any,
) -> SmoothedCounts:
    """Estimates of the counts of all times so far, those without a release included.

    Parameters
    ----------
    noisy : DataFrame
        A row for each time, missing where nothing was published.
    ledger : DataFrame
        That of the publisher.
    settings : mapping
        Those of its file.
    statistic : str or None
        One of several, by its name.
    **options
        As `smooth_counts` takes them, but for what the file knows.

    Returns
    -------
    SmoothedCounts

    Raises
    ------
    ValueError
        Without one of several statistics, if nothing was published, and as `smooth_counts`.
    """
    names = statistic_names(settings)
    if names and statistic is None:
        raise ValueError(
            f"statistic must be one of {', '.join(names)}, found none; smooth each by itself"
        )
    if not noisy.notna().to_numpy().any():
        raise ValueError("smoothing needs counts that were published, found none; publish first")
    column = "epsilon"
    argument = "epsilons"
    if settings["delta"] is not None:
        column = "noise_multiplier"
        argument = "noise_multipliers"
    sensitivity = settings["sensitivity"]
    if statistic is not None:
        column = column_name(column, statistic)
        (of_name,) = (each for each in statistics_of(settings) if each.name == statistic)
        sensitivity = of_name.sensitivity
    of_times = ledger[ledger["kind"] != Kind.MODEL.label]
    levels = np.repeat(of_times[column].to_numpy(), of_times["count"])
    options |= {"sensitivity": sensitivity, argument: levels}
    return smooth_counts(noisy, **options)
