"""Everything that the page shows, computed from its inputs: one frozen result, without widgets."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from page.noises import LIVE, NOISES, Noise, grid_of, quantify
from tplreport.schemes import OPTIMAL, SCHEMES, Scheme, allocate
from tplrepro.leakage.loss_function import PrivacyLossFunction, Witness
from tplrepro.leakage.temporal import TemporalLeakage, temporal_privacy_leakage
from tplrepro.validation import FrozenArrays

#: Computed only when the sliders rest: it takes a tenth of a second for T = 100, a second for T = 1,000.
SLOW = (OPTIMAL,)
PENDING = "being computed"


@dataclass(frozen=True, eq=False)
class Inputs(FrozenArrays):
    """What the leakages and budgets depend on."""

    backward: PrivacyLossFunction | None  # None: the adversary does not know it
    forward: PrivacyLossFunction | None
    epsilons: np.ndarray  # (T,), budgets in nats
    alpha: float  # the level of alpha-DP_T to allocate, nats
    sensitivity: float = 2.0  # of the released counts, in L1
    delta: float | None = None  # of (epsilon, delta) leakage; None for pure epsilon only
    cells: int = 2  # that a user's change moves, each by an equal part of the sensitivity

    @property
    def functions(self) -> tuple[PrivacyLossFunction | None, PrivacyLossFunction | None]:
        return self.backward, self.forward


@dataclass(frozen=True, eq=False)
class Side(FrozenArrays):
    """One loss function as it is drawn, and what it means for the largest budget; nats."""

    name: str  # "backward" or "forward"
    function: PrivacyLossFunction
    alphas: np.ndarray  # (160 + number of breakpoints in range,), the curve
    losses: np.ndarray  # of the same shape
    breakpoints: np.ndarray  # those in range
    supremum: float  # of the leakage if the largest budget is spent forever; inf if there is none
    critical: float  # see `critical_budget`
    witness: Witness  # at the step that leads to the largest leakage of this side

    def __str__(self) -> str:
        return f"{self.name}: {self.witness}"


@dataclass(frozen=True, eq=False)
class Analysis:
    """All results for one set of inputs."""

    inputs: Inputs
    leakage: TemporalLeakage
    sides: tuple[Side, ...]  # one for each matrix that the adversary knows
    schemes: tuple[Scheme, ...]  # in the order of `SCHEMES`
    noises: tuple[Noise, ...] = ()  # in the order of `NOISES`; none for pure epsilon

    @property
    def pending(self) -> bool:
        """Whether something remains to be computed."""
        coarse = any(noise.grid > grid_of(self.inputs.epsilons) for noise in self.noises)
        return coarse or any(scheme.message == PENDING for scheme in self.schemes)

    @property
    def largest_budget(self) -> float:
        return float(self.inputs.epsilons.max())

    @property
    def critical(self) -> float:
        """The budget per release below which BPL, FPL and TPL stay finite forever; nats, 0 to inf."""
        return min((side.critical for side in self.sides), default=np.inf)

    @property
    def supremum(self) -> float:
        """The supremum of TPL if the largest budget is spent at every release forever; nats."""
        return sum(side.supremum for side in self.sides) - (len(self.sides) - 1) * self.largest_budget


def critical_budget(function: PrivacyLossFunction) -> float:
    """The budget per release, in nats, below which the leakage has a finite supremum (Theorem 11 of [1]).

    With (d, q) the vertex that holds for large alpha: inf if d > 0 or L = 0, else log(1/q), and 0 if q = 1.
    """
    d, _ = function.vertices[-1]
    if d > 0.0 or function.is_zero:
        return np.inf
    # The limit of alpha - L(alpha), reached beyond the last breakpoint; the rounding of 1 - q does not
    # matter.
    return float(function.budget_for(max(1e4, 2.0 * max(function.breakpoints, default=0.0))))


def analyse(inputs: Inputs, previous: Analysis | None = None, complete: bool = True) -> Analysis:
    """Compute everything; the schemes and profiles of `previous` whose inputs are the same are reused.

    Unless `complete`, slow schemes stay pending, and profiles are on a coarse grid.
    """
    leakage = temporal_privacy_leakage(inputs.epsilons, *inputs.functions)
    schemes = tuple(_schemes(inputs, previous, complete))
    noises = tuple(_noises(inputs, previous, complete))
    return Analysis(inputs, leakage, tuple(_sides(inputs, leakage)), schemes, noises)


def _schemes(inputs: Inputs, previous: Analysis | None, complete: bool) -> Iterator[Scheme]:
    def asked(inputs: Inputs) -> tuple:
        return inputs.alpha, inputs.functions, inputs.epsilons.size

    kept = previous.schemes if previous is not None and asked(previous.inputs) == asked(inputs) else ()
    reusable = {scheme.name: scheme for scheme in kept if scheme.message != PENDING}
    for name in SCHEMES:
        if name in reusable:
            yield reusable[name]
        elif complete or name not in SLOW:
            yield allocate(name, *asked(inputs))
        else:
            yield Scheme(name, None, message=PENDING)


def _noises(inputs: Inputs, previous: Analysis | None, complete: bool) -> Iterator[Noise]:
    if inputs.delta is None:
        return

    def asked(inputs: Inputs) -> tuple:
        return inputs.functions, inputs.delta, inputs.cells, inputs.epsilons.tolist()

    grid = grid_of(inputs.epsilons, complete) if complete or inputs.epsilons.size <= LIVE else np.inf
    kept = previous.noises if previous is not None and asked(previous.inputs) == asked(inputs) else ()
    reusable = {noise.name: noise for noise in kept if noise.grid <= grid}
    for name in NOISES:
        if name in reusable:
            yield reusable[name]
        else:
            yield quantify(name, inputs.epsilons, inputs.functions, inputs.delta, inputs.cells, grid)


def _sides(inputs: Inputs, leakage: TemporalLeakage) -> Iterator[Side]:
    budget = float(inputs.epsilons.max())
    sides = [("backward", inputs.backward, leakage.bpl), ("forward", inputs.forward, leakage.fpl[::-1])]
    known = [(name, function, series) for name, function, series in sides if function is not None]
    suprema = [float(function.supremum(budget)) for _, function, _ in known]
    largest = max([inputs.alpha, *filter(np.isfinite, suprema), *(series.max() for *_, series in known)])
    # In steps, so that neither the curve nor its axis changes with every move of a slider.
    limit = 2.0 ** (np.ceil(2.0 * np.log2(1.05 * largest)) / 2.0)
    for (name, function, series), supremum in zip(known, suprema, strict=True):
        breakpoints = function.breakpoints[function.breakpoints < limit]
        alphas = np.union1d(np.linspace(0.0, limit, 160), breakpoints)
        losses = np.asarray(function(alphas))
        before_peak = max(int(np.argmax(series)) - 1, 0)
        witness = function.witness(float(series[before_peak]))
        yield Side(name, function, alphas, losses, breakpoints, supremum, critical_budget(function), witness)
