"""Everything that the page shows, computed from its inputs: frozen results, without widgets."""

from dataclasses import dataclass

import numpy as np

from tplreport.reporting.allocation_schemes import (
    COMPOSED,
    OPTIMAL,
    SCHEMES,
    allocate,
    gaussian_error,
)
from tplreport.reporting.plans import ANYBODY, ESTIMATE, PRIOR_FREE, name_of
from tplreport.reporting.report import Report
from tplreport.reporting.sentences import Verdict, budgets_in_words, judge
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import TemporalLeakage, temporal_privacy_leakage
from tplrepro.validation import FrozenArrays

PENDING = "being computed"
# with a delta: a larger level gives no privacy, and its profiles would be too long
MAX_ALPHA = 20.0


@dataclass(frozen=True)
class Inputs:
    """What the budgets depend on, in nats."""

    backward: PrivacyLossFunction | None  # None: the adversary does not know it
    forward: PrivacyLossFunction | None
    horizon: int
    alpha: float  # the level of alpha-DP_T that is promised
    sensitivity: float  # of the released counts, in L1
    delta: float | None = None  # of (epsilon, delta) leakage, for Gaussian noise
    report: Report | None = None  # on the file from which the matrices are estimated


@dataclass(frozen=True, eq=False)
class Analysis(FrozenArrays):
    """What the chosen budgets leak and cost."""

    inputs: Inputs
    leakage: TemporalLeakage  # of the chosen budgets, which are its `epsilons`
    verdict: Verdict
    # (T,), the TPL to the worst adversary that a file does not rule out; else empty
    worst: np.ndarray
    supremum: float  # of TPL if the largest budget is spent forever
    # mean absolute error of Gaussian noise for (alpha, delta); NaN without, or while it is computed
    gaussian: float


def budgets_of_schemes(inputs: Inputs, complete: bool = True) -> dict[str, np.ndarray | str]:
    """Name -> budgets (T,), rounded down as in a report, or why there are none; the slow scheme
    only if `complete`."""
    found: dict[str, np.ndarray | str] = {name: PENDING for name in SCHEMES}
    for name in SCHEMES:
        if complete or name != OPTIMAL:
            found[name] = allocate(
                name, inputs.alpha, (inputs.backward, inputs.forward), inputs.horizon
            )
    return found


def scheme_name(scheme: str, inputs: Inputs) -> str:
    """The name of a scheme; of a file, with whom its budgets hold against, as in a report."""
    if inputs.report is None or scheme not in SCHEMES:
        return scheme
    return name_of(scheme, ANYBODY if scheme == COMPOSED else ESTIMATE)


def recommended_budgets(inputs: Inputs) -> dict[str, np.ndarray | str]:
    """Name -> budgets of the plan that the report on a file recommends; empty if there is none."""
    report = inputs.report
    if report is None:
        return {}
    plan, settings = report.recommendation, report.settings
    if plan is None or plan.budgets is None:
        return {}
    asked = {name: getattr(inputs, name) for name in ("alpha", "horizon", "sensitivity")}
    is_current = all(settings[name] == value for name, value in asked.items())
    return {report.title_of(plan): plan.budgets if is_current else PENDING}


def verdict_on(inputs: Inputs, budgets: np.ndarray) -> Verdict:
    """The command's verdict: for an estimate, against all that the data do not rule out."""
    if inputs.report is not None:
        return inputs.report.judge(budgets, inputs.alpha)
    leakage = temporal_privacy_leakage(budgets, inputs.backward, inputs.forward)
    return judge(
        budgets, {ESTIMATE: float(leakage.tpl.max())}, inputs.alpha, budgets_in_words(budgets)
    )


def analyse(inputs: Inputs, epsilons: np.ndarray, complete: bool = True) -> Analysis:
    """Leakage, error and verdict of budgets (T,); unless `complete`, what is slow is left out."""
    leakage = temporal_privacy_leakage(epsilons, inputs.backward, inputs.forward)
    largest, sides = (
        float(epsilons.max()),
        [side for side in (inputs.backward, inputs.forward) if side is not None],
    )
    supremum = sum(float(side.supremum(largest)) for side in sides) - (len(sides) - 1) * largest
    pairs = inputs.report.adversaries if inputs.report else {}
    others = [
        temporal_privacy_leakage(epsilons, *pair).tpl
        for name, pair in pairs.items()
        if name != PRIOR_FREE
    ]
    worst = np.max(others, axis=0) if others else np.empty(0)
    gaussian = (
        _error_of_gaussian_noise(inputs, inputs.delta) if complete and inputs.delta else np.nan
    )
    return Analysis(inputs, leakage, verdict_on(inputs, epsilons), worst, supremum, gaussian)


def _error_of_gaussian_noise(inputs: Inputs, delta: float) -> float:
    """The mean absolute error of equal Gaussian noise that keeps (alpha, delta), where two cells
    change."""
    if inputs.alpha > MAX_ALPHA:
        raise ValueError(
            f"with a δ, α must be at most {MAX_ALPHA:g} nats here, found {inputs.alpha:g}; choose pure ε"
        )
    sides = inputs.backward, inputs.forward
    return gaussian_error(inputs.alpha, delta, sides, inputs.horizon, inputs.sensitivity)
