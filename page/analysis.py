"""Everything that the page shows, computed from its inputs: frozen results, without widgets."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from page.matrices import Side
from tplreport.reporting.allocation_schemes import (
    COMPOSED,
    OPTIMAL,
    SCHEMES,
    allocate,
    gaussian_error,
    rounded_down,
)
from tplreport.reporting.plans import ANYBODY, ESTIMATE, PRIOR_FREE, name_of
from tplreport.reporting.report import Report
from tplreport.reporting.sentences import Verdict, budgets_in_words, judge
from tplrepro.allocation.published import allocate_by_upper_bound
from tplrepro.leakage.suprema import LeakageSuprema, leakage_suprema
from tplrepro.leakage.temporal import (
    LossCycles,
    TemporalLeakage,
    loss_cycles,
    temporal_privacy_leakage,
)
from tplrepro.validation import FrozenArrays

PENDING = "being computed"
#: Budgets (T,) by the name of a scheme, or why there are none.
Schemes = dict[str, np.ndarray | str]
# with a delta: a larger level gives no privacy, and its profiles would be too long
MAX_ALPHA = 20.0
#: Releases about a cycle, whose profiles at a delta take seconds.
MAX_RELEASES = 100
#: Algorithm 7 for habits that follow the clock, beside that of least error, which is a scheme.
EQUAL_PHASES = "Algorithm 7, equal ε (any T)"
OF_SCHEDULE = "Algorithm 7, shape of the schedule (any T)"


@dataclass(frozen=True)
class Inputs:
    """What the budgets depend on, in nats."""

    backward: Side  # None: the adversary does not know it
    forward: Side
    horizon: int
    alpha: float  # the level of alpha-DP_T that is promised
    sensitivity: float  # of the released counts, in L1
    delta: float | None = None  # of (epsilon, delta) leakage, for Gaussian noise
    report: Report | None = None  # on the file from which the matrices are estimated
    schedule: tuple[float, ...] | None = None  # budgets of the phases, if those are chosen
    start: str = ""  # how users begin, of whom the backward side holds

    @cached_property
    def losses(self) -> LossCycles:
        """The loss functions of the steps round the cycle, which is of one for one matrix."""
        return loss_cycles(self.backward, self.forward)

    @property
    def n_phases(self) -> int:
        return len(self.losses)

    def phase(self, release: int) -> Any:
        """The label of the phase of a release, which counts from 0."""
        return self.losses.phases[release % self.n_phases]


@dataclass(frozen=True, eq=False)
class Analysis(FrozenArrays):
    """What the chosen budgets leak and cost."""

    inputs: Inputs
    leakage: TemporalLeakage  # of the chosen budgets, which are its `epsilons`
    verdict: Verdict
    # (T,), the TPL to the worst adversary that a file does not rule out; else empty
    worst: np.ndarray
    suprema: LeakageSuprema  # of each phase, if its largest budget is spent forever
    # mean absolute error of Gaussian noise for (alpha, delta); NaN without, or while it is computed
    gaussian: float

    @property
    def supremum(self) -> float:
        """The largest one of TPL, nats."""
        return self.suprema.max()

    @property
    def suprema_over_time(self) -> np.ndarray:
        """The supremum of TPL at each release (T,)."""
        inputs = self.inputs
        n_first = inputs.losses.n_first
        times = np.arange(inputs.horizon)
        rows = np.where(times < n_first, times, n_first + times % inputs.n_phases)
        return self.suprema.tpl[rows]


def budgets_of_schemes(inputs: Inputs, complete: bool = True) -> Schemes:
    """Budgets (T,) by name, rounded down as in a report, or why there are none.

    Parameters
    ----------
    inputs : Inputs
        The level, the horizon and both sides.
    complete : bool
        Whether the slow schemes are computed as well.

    Returns
    -------
    dict
        In the order of the schemes.
    """
    sides = (inputs.backward, inputs.forward)
    schemes: Schemes = {}
    for name in SCHEMES:
        if complete or not is_slow(name, inputs):
            schemes[name] = allocate(name, inputs.alpha, sides, inputs.horizon)
        else:
            schemes[name] = PENDING
    for name, shape in shapes_of_phases(inputs).items():
        schemes[name] = PENDING
        if complete:
            schemes[name] = budgets_in_shape(inputs, shape)
    return schemes


def is_slow(scheme: str, inputs: Inputs) -> bool:
    """Whether a scheme waits until the sliders rest."""
    if inputs.n_phases == 1:
        return scheme == OPTIMAL
    return scheme in SCHEMES and scheme != COMPOSED


def shapes_of_phases(inputs: Inputs) -> dict[str, np.ndarray]:
    """The proportions (p,) of budgets of the phases that Algorithm 7 is asked for, by name."""
    shapes = {}
    if inputs.n_phases > 1:
        shapes[EQUAL_PHASES] = np.ones(inputs.n_phases)
    if inputs.schedule is not None:
        shapes[OF_SCHEDULE] = np.array(inputs.schedule)
    return shapes


def budgets_in_shape(inputs: Inputs, shape: ArrayLike) -> np.ndarray | str:
    """Algorithm 7's budgets (T,) for phases in these proportions (p,), or why there are none."""
    try:
        of_phases = allocate_by_upper_bound(
            inputs.alpha, inputs.backward, inputs.forward, shape=shape
        )
    except ValueError as error:
        return str(error)
    return np.resize(rounded_down(of_phases), inputs.horizon)


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
        suprema_of_leakage(inputs, epsilons),
        gaussian,
    )


def suprema_of_leakage(inputs: Inputs, epsilons: np.ndarray) -> LeakageSuprema:
    """The suprema of leakages if the largest budget of each phase is spent forever (Theorem 11 of
    [1]); of a phase without release, the largest of all."""
    p = inputs.n_phases
    largest = np.full(p, epsilons.max())
    for phase in range(min(p, epsilons.size)):
        largest[phase] = epsilons[phase::p].max()
    return leakage_suprema(largest, inputs.backward, inputs.forward)


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
    if inputs.n_phases > 1 and inputs.horizon > MAX_RELEASES:
        raise ValueError(
            f"with a δ, the releases about a cycle must be at most {MAX_RELEASES} here, found "
            f"{inputs.horizon}; take fewer, or choose pure ε"
        )
    sides = (inputs.backward, inputs.forward)
    return gaussian_error(inputs.alpha, delta, sides, inputs.horizon, inputs.sensitivity)
