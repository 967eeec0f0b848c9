"""Everything that the page shows, computed from its inputs: one frozen result, without widgets.

`analyse` takes the previous result and keeps of it what does not depend on the inputs that changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from page.noises import GAUSSIAN, LAPLACE, LIVE, Noise, grid_of, quantify
from page.schemes import PENDING, SCHEMES, SLOW, Scheme, allocate
from tplrepro.leakage.loss_function import PrivacyLossFunction, Witness
from tplrepro.leakage.temporal import TemporalLeakage, temporal_privacy_leakage
from tplrepro.validation import FrozenArrays, check_level

__all__ = ["Analysis", "Inputs", "Side", "analyse", "critical_budget"]


@dataclass(frozen=True, eq=False)
class Inputs(FrozenArrays):
    """What the leakages and budgets depend on."""

    backward: PrivacyLossFunction | None  # what the adversary knows
    forward: PrivacyLossFunction | None
    epsilons: np.ndarray  # (T,), budgets in nats
    alpha: float  # the level of alpha-DP_T to allocate, nats
    sensitivity: float = 2.0  # of the released counts, in L1
    delta: float | None = None  # of (epsilon, delta) leakage; None for pure epsilon only
    mechanism: str = LAPLACE  # of the budgets, or PURE
    cells: int = 2  # that a change moves by equal parts of the sensitivity


@dataclass(frozen=True, eq=False)
class Side(FrozenArrays):
    """One loss function as it is drawn, and what it means for the largest budget; nats."""

    name: str  # "backward" or "forward"
    function: PrivacyLossFunction
    alphas: np.ndarray  # (160 + number of breakpoints in range,), the curve
    losses: np.ndarray  # of the same shape
    breakpoints: np.ndarray  # those in range
    supremum: float  # of the leakage under the largest budget for ever; inf if there is none
    critical: float  # see `critical_budget`
    witness: Witness  # at the step that leads to the largest leakage of this side

    def __str__(self) -> str:
        return f"{self.name}: {self.witness}"


@dataclass(frozen=True, eq=False)
class Analysis:
    """All results for one set of inputs."""

    inputs: Inputs
    leakage: TemporalLeakage  # of the budgets
    sides: tuple[Side, ...]  # one for each matrix that the adversary knows
    schemes: tuple[Scheme, ...]  # in the order of `SCHEMES`
    noises: tuple[Noise, ...] = ()  # that of the budgets and Gaussian noise at delta; none for pure epsilon

    @property
    def pending(self) -> bool:
        """Whether schemes are left to compute."""
        finest = grid_of(self.inputs.epsilons, resting=True)
        return any(scheme.message == PENDING for scheme in self.schemes) or any(n.grid > finest for n in self.noises)

    @property
    def largest_budget(self) -> float:
        return float(self.inputs.epsilons.max())

    @property
    def critical(self) -> float:
        """The budget a release below which BPL, FPL and TPL stay finite for ever; nats, 0 to inf."""
        return min((side.critical for side in self.sides), default=np.inf)

    @property
    def supremum(self) -> float:
        """The supremum of TPL if the largest budget is spent at every time point for ever; nats."""
        return sum(side.supremum for side in self.sides) - (len(self.sides) - 1) * self.largest_budget


def critical_budget(function: PrivacyLossFunction) -> float:
    """The budget a release, in nats, below which the leakage has a finite supremum (Theorem 11 of [1]).

    With (d, q) the vertex that holds for large alpha: inf if d > 0 or L = 0, else log(1/q), and 0 if q = 1. From that
    budget on the leakage grows without bound; below it, it does not.

    >>> critical_budget(PrivacyLossFunction([[0.8, 0.2], [0.1, 0.9]]))
    inf
    >>> round(critical_budget(PrivacyLossFunction([[0.8, 0.2], [0.0, 1.0]])), 6)  # log(1 / 0.8)
    0.223144
    >>> critical_budget(PrivacyLossFunction([[1.0, 0.0], [0.0, 1.0]]))
    0.0
    """
    d, _ = function.vertices[-1]
    if d > 0.0 or function.is_zero:
        return np.inf
    # The limit of alpha - L(alpha), which no rounding of 1 - q spoils; far beyond the last breakpoint it is reached.
    return float(function.budget_for(max(1e4, 2.0 * max(function.breakpoints, default=0.0))))


def analyse(inputs: Inputs, previous: Analysis | None = None, complete: bool = True) -> Analysis:
    """Compute everything for the page; what does not depend on what changed since is kept of the previous result.

    Unless it shall be `complete`, schemes that take long stay pending, and profiles are on a coarse grid. A budget,
    level or sensitivity that is not positive and finite, and matrices over different states, are ValueErrors.

    >>> P = PrivacyLossFunction([[0.8, 0.2], [0.1, 0.9]])
    >>> result = analyse(Inputs(P, P, np.full(5, 0.1), alpha=1.0))
    >>> result.leakage.tpl.round(3).tolist(), round(result.supremum, 3)
    ([0.281, 0.326, 0.34, 0.326, 0.281], 0.586)
    """
    check_level(inputs.alpha)
    check_level(inputs.sensitivity, "sensitivity")
    matrices, horizon = (inputs.backward, inputs.forward), inputs.epsilons.size
    leakage, sides, schemes = None, None, {}
    if previous is not None and (previous.inputs.backward, previous.inputs.forward) == matrices:
        same_level = previous.inputs.alpha == inputs.alpha
        if np.array_equal(previous.inputs.epsilons, inputs.epsilons):
            leakage, sides = previous.leakage, previous.sides if same_level else None
        if same_level and previous.inputs.epsilons.size == horizon:
            schemes = {scheme.name: scheme for scheme in previous.schemes if scheme.message != PENDING}
    leakage = leakage or temporal_privacy_leakage(inputs.epsilons, *matrices)
    sides = tuple(_sides(inputs, leakage)) if sides is None else sides
    for name in SCHEMES.keys() - schemes:
        if complete or name not in SLOW:
            schemes[name] = allocate(name, inputs.alpha, *matrices, horizon)
    in_order = tuple(schemes.get(name, Scheme(name, None, message=PENDING)) for name in SCHEMES)
    return Analysis(inputs, leakage, sides, in_order, tuple(_noises(inputs, previous, complete)))


def _noises(inputs: Inputs, previous: Analysis | None, complete: bool) -> Iterator[Noise]:
    if inputs.delta is None:
        return
    known, epsilons = {}, inputs.epsilons
    grid = grid_of(epsilons, complete) if complete or epsilons.size <= LIVE else np.inf
    if previous is not None and np.array_equal(previous.inputs.epsilons, epsilons):
        old = previous.inputs
        if (old.backward, old.forward, old.cells) == (inputs.backward, inputs.forward, inputs.cells):
            known = {noise.name: noise for noise in previous.noises if noise.grid <= grid}
    for name in (inputs.mechanism, GAUSSIAN):
        if name in known:
            yield known[name].at(inputs.delta)
        else:
            sides = inputs.backward, inputs.forward
            yield quantify(name, epsilons, *sides, delta=inputs.delta, cells=inputs.cells, grid=grid)


def _sides(inputs: Inputs, leakage: TemporalLeakage) -> Iterator[Side]:
    budget = float(inputs.epsilons.max())
    both = ("backward", inputs.backward, leakage.bpl), ("forward", inputs.forward, leakage.fpl[::-1])
    known = [(name, function, series) for name, function, series in both if function is not None]
    suprema = [float(function.supremum(budget)) for _, function, _ in known]
    reach = [*filter(np.isfinite, suprema), *(float(series.max()) for _, _, series in known)]
    # In steps, so that neither the curve nor its axis changes at each move of a slider.
    limit = 2.0 ** (np.ceil(2.0 * np.log2(1.05 * max([inputs.alpha, *reach]))) / 2.0)
    for (name, function, series), supremum in zip(known, suprema, strict=True):
        breakpoints = function.breakpoints[function.breakpoints < limit]
        alphas = np.union1d(np.linspace(0.0, limit, 160), breakpoints)
        losses = np.asarray(function(alphas))
        witness = function.witness(float(series[max(int(np.argmax(series)) - 1, 0)]))
        yield Side(name, function, alphas, losses, breakpoints, supremum, critical_budget(function), witness)
