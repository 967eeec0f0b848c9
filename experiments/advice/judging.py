"""What a report recommends, against what is true."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

import tplreport as tr
from tplreport.reporting.allocation_schemes import COMPOSED
from tplreport.reporting.believable import JudgedChain, is_believable
from tplreport.reporting.counted_steps import CountedSteps
from tplreport.reporting.plans import (
    ESTIMATE,
    UPPER,
    WORST_USER,
    Plan,
    plans_for,
    recommended,
    upper_pair,
)
from tplreport.reporting.report import Report
from tplreport.reporting.simulated import NOTHING, finding_of
from tplrepro.markov import Sequences

#: Those of a report, unless it is given others.
CONFIDENCE = 0.95
SENSITIVITY = 2.0
AS_GOOD = "α/T is as good"
KEPT = "cheaper plan, kept"
WOULD_KEEP = "doubted, would keep"
WOULD_BREAK = "doubted, would break"
BROKEN = "plan above α"
#: What a report did, in the order of figures; see `Judgement.verdict`.
VERDICTS = (AS_GOOD, KEPT, WOULD_KEEP, WOULD_BREAK, BROKEN)
#: Of tables by kind: what happened in how many data sets.
WORLDS = "worlds"
DOUBTED = "doubted"
WITHHELD = "withheld"
UNWARNED = "above α unwarned"
MODEL_BREAKS = "above α without checks"
#: The error of the recommended plan over that of α/T, in the median.
SHARE_OF_ERROR = "error / that of α/T"


@dataclass(frozen=True)
class Judgement:
    """What the report on one simulated data set said, and what is true; nats.

    The model's plan is the one that would be recommended if one chain for all users were believed
    without checks.
    """

    alpha: float
    horizon: int
    doubted: bool  # a check doubts that there is one chain
    relied_on: bool  # the report relies on its plan, though users may differ
    withheld: bool  # nothing is recommended
    composed: bool  # the recommended plan is α/T
    model_composed: bool  # the model's plan is
    true_tpl: float  # of the recommended plan; 0 where it is withheld
    model_tpl: float  # of the model's plan
    users_tpl: float  # of the plan against the worst user's habits, NaN without one
    error: float  # of the recommended plan; NaN where it is withheld
    model_error: float
    error_of_shares: float  # of α/T
    finding: str = NOTHING  # what the report found
    steps: float = np.nan  # of each user
    one_place_tpl: float = np.nan  # of the best plan for one place, NaN without one
    one_place_error: float = np.nan

    @property
    def is_broken(self) -> bool:
        """Whether the recommended plan leaks more than α."""
        return self.true_tpl > self.alpha

    @property
    def is_unwarned(self) -> bool:
        """Whether the recommended plan leaks more than α, and the report relies on it."""
        return self.is_broken and self.relied_on

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        if self.is_broken:
            return BROKEN
        if not (self.composed or self.withheld):
            return KEPT
        if self.model_composed:
            return AS_GOOD
        if self.model_tpl > self.alpha:
            return WOULD_BREAK
        return WOULD_KEEP


def judge(
    data: Sequences,
    alpha: float,
    horizon: int,
    true_tpl: Callable[[Any], float],
    first: str | None = None,
) -> Judgement:
    """What a report on `data` recommends, against the truth.

    Parameters
    ----------
    data : Sequences
        What was observed.
    alpha : float
        The level of the report, nats.
    horizon : int
        The number of releases T.
    true_tpl : callable
        The true TPL (nats) of budgets (T,).
    first : str, optional
        The time of the first release.

    Returns
    -------
    Judgement
    """
    advice = tr.report(data, alpha, horizon, first=first, draws=0)
    believed = JudgedChain.of(data, first=first).counted
    return judgement_of(advice, believed, true_tpl)


def judgement_of(
    advice: Report, believed: CountedSteps, true_tpl: Callable[[Any], float]
) -> Judgement:
    """What a report recommends, against the true TPL (nats) of budgets (T,); `believed` are the
    counts of all users, by phases where habits follow the clock."""
    alpha = advice.settings["alpha"]
    plan = advice.recommendation
    model = plan_for_one_chain(believed, alpha, advice.settings["horizon"])
    model_tpl = true_tpl(model.budgets)
    error = np.nan
    tpl_of_plan = 0.0
    if plan is not None:
        error = plan.error
        tpl_of_plan = true_tpl(plan.budgets)
    users_tpl = np.nan
    if WORST_USER in advice.adversaries:
        users_tpl = true_tpl(recommended(advice.plans, alpha, True, WORST_USER).budgets)
    one_place_tpl = np.nan
    one_place_error = np.nan
    # Each plan for one place has equal budgets: that of the least error leaks the most.
    for_one_place = advice.best_for_one_place
    if for_one_place is not None:
        one_place_tpl = true_tpl(for_one_place.budgets)
        one_place_error = for_one_place.error
    return Judgement(
        alpha=alpha,
        horizon=advice.settings["horizon"],
        doubted=not is_believable(advice.checks),
        relied_on=advice.believable,
        withheld=advice.withheld,
        composed=plan is not None and plan.scheme == COMPOSED,
        model_composed=model.scheme == COMPOSED,
        true_tpl=tpl_of_plan,
        model_tpl=model_tpl,
        users_tpl=users_tpl,
        error=error,
        model_error=model.error,
        error_of_shares=advice.plans[0].error,
        finding=finding_of(advice),
        steps=advice.size["steps"] / advice.size["users"],
        one_place_tpl=one_place_tpl,
        one_place_error=one_place_error,
    )


def plan_for_one_chain(counted: CountedSteps, alpha: float, horizon: int) -> Plan:
    """The plan that a report would recommend if it took the counted steps for those of one chain
    that all users share."""
    pair = upper_pair(counted, CONFIDENCE)
    plans = plans_for(alpha, horizon, {ESTIMATE: pair, UPPER: pair}, SENSITIVITY)
    return recommended(plans, alpha, model_believable=True)


def row_of(outcome: Any) -> dict[str, Any]:
    """The fields of an outcome, a dataclass, and of its `judgement`, and what follows from it."""
    row = asdict(outcome)
    judgement = outcome.judgement
    found = {
        "verdict": judgement.verdict,
        "is_broken": judgement.is_broken,
        "is_unwarned": judgement.is_unwarned,
    }
    return row | row.pop("judgement") | found


def summarize_by_kind(outcomes: pd.DataFrame, **more: pd.Series) -> pd.DataFrame:
    """A row for each kind of data set: their number, in how many of them what happened, and the
    median error of the recommended plans.

    Parameters
    ----------
    outcomes : DataFrame
        A row for each data set, of `row_of`.
    **more : Series of bool
        What else happened in which data sets, by name of its column.

    Returns
    -------
    DataFrame
    """
    flags = pd.DataFrame(
        {
            WORLDS: True,
            **more,
            DOUBTED: outcomes["doubted"],
            WITHHELD: outcomes["withheld"],
            UNWARNED: outcomes["is_unwarned"],
            MODEL_BREAKS: outcomes["model_tpl"] > outcomes["alpha"],
        },
        index=outcomes.index,
    )
    kinds = outcomes["kind"]
    table = flags.groupby(kinds, sort=False).sum()
    table[SHARE_OF_ERROR] = shares_of_error(outcomes).groupby(kinds).median()
    return table


def shares_of_error(outcomes: pd.DataFrame) -> pd.Series:
    """The error of each recommended plan over that of α/T; NaN where none is recommended."""
    return outcomes["error"] / outcomes["error_of_shares"]
