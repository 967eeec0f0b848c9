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
#: Budgets (T,) by the name of a scheme, or why there are none.
Schemes = dict[str, np.ndarray | str]
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


def budgets_of_schemes(inputs: Inputs, complete: bool = True) -> Schemes:
    """Budgets (T,) by name, rounded down as in a report, or why there are none.

    Parameters
    ----------
    inputs : Inputs
        The level, the horizon and both sides.
    complete : bool
        Whether the slow scheme is computed as well.

    Returns
    -------
    dict
        In the order of the schemes.
    """
    sides = (inputs.backward, inputs.forward)
    schemes: Schemes = {}
    for name in SCHEMES:
        if complete or name != OPTIMAL:
            schemes[name] = allocate(name, inputs.alpha, sides, inputs.horizon)
        else:
            schemes[name] = PENDING
    return schemes


def scheme_name(scheme: str, inputs: Inputs) -> str:
    """The name of a scheme, and if a file was read, the adversary against whom its budgets hold, as
    in a report."""
    if inputs.report is None or scheme not in SCHEMES:
        return scheme
    if scheme == COMPOSED:
        return name_of(scheme, ANYBODY)
    return name_of(scheme, ESTIMATE)


def recommended_budgets(inputs: Inputs) -> Schemes:
    """Budgets by name of the plan that the report on a file recommends; empty if there is none."""
    report = inputs.report
    if report is None:
        return {}
    plan = report.recommendation
    if plan is None or plan.budgets is None:
        return {}
    is_current = all(
        report.settings[name] == getattr(inputs, name)
        for name in ("alpha", "horizon", "sensitivity")
    )
    return {report.title_of(plan): plan.budgets if is_current else PENDING}


def verdict_on(inputs: Inputs, budgets: np.ndarray) -> Verdict:
    """The verdict that the command gives on budgets (T,): for an estimate, against all that the
    data do not rule out."""
    if inputs.report is not None:
        return inputs.report.judge(budgets, inputs.alpha)
    leakage = temporal_privacy_leakage(budgets, inputs.backward, inputs.forward)
    largest = float(leakage.tpl.max())
    return judge(budgets, {ESTIMATE: largest}, inputs.alpha, budgets_in_words(budgets))


def analyse(inputs: Inputs, epsilons: np.ndarray, complete: bool = True) -> Analysis:
    """Leakage, error and verdict of budgets.

    Parameters
    ----------
    inputs : Inputs
        What they are for.
    epsilons : ndarray (T,)
        The budgets, in nats.
    complete : bool
        Whether what is slow is computed as well.

    Returns
    -------
    Analysis
        What the page shows.
    """
    gaussian = np.nan
    if complete and inputs.delta:
        gaussian = _error_of_gaussian_noise(inputs, inputs.delta)
    return Analysis(
        inputs,
        temporal_privacy_leakage(epsilons, inputs.backward, inputs.forward),
        verdict_on(inputs, epsilons),
        worst_leakage(inputs, epsilons),
        supremum_of_leakage(inputs, float(epsilons.max())),
        gaussian,
    )


def supremum_of_leakage(inputs: Inputs, epsilon: float) -> float:
    """The supremum of TPL if this budget is spent forever (Theorem 11 of [1]).

    Each side's supremum includes the budget, which TPL has once.
    """
    sides = [side for side in (inputs.backward, inputs.forward) if side is not None]
    suprema = [float(side.supremum(epsilon)) for side in sides]
    return sum(suprema) - (len(sides) - 1) * epsilon


def worst_leakage(inputs: Inputs, epsilons: np.ndarray) -> np.ndarray:
    """TPL (T,) of the budgets `epsilons` (T,) to the worst adversary that a file does not rule out,
    in nats; empty without a file."""
    if inputs.report is None:
        return np.empty(0)
    leakages = [
        temporal_privacy_leakage(epsilons, *sides).tpl
        for name, sides in inputs.report.adversaries.items()
        if name != PRIOR_FREE
    ]
    if not leakages:
        return np.empty(0)
    return np.max(leakages, axis=0)


def _error_of_gaussian_noise(inputs: Inputs, delta: float) -> float:
    """The mean absolute error of equal Gaussian noise that keeps (alpha, delta), where two cells
    change."""
    if inputs.alpha > MAX_ALPHA:
        raise ValueError(
            f"with a δ, α must be at most {MAX_ALPHA:g} nats here, found {inputs.alpha:g}; "
            "choose pure ε"
        )
    sides = (inputs.backward, inputs.forward)
    return gaussian_error(inputs.alpha, delta, sides, inputs.horizon, inputs.sensitivity)
