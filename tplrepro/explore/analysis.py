"""Everything that the page shows, computed from its inputs: one frozen result, without widgets.

`analyse` takes the previous result and keeps of it what does not depend on the inputs that changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from tplrepro.explore.schemes import PENDING, SCHEMES, SLOW, Scheme, allocate
from tplrepro.leakage.loss_function import PrivacyLossFunction, Witness
from tplrepro.leakage.temporal import TemporalLeakage, temporal_privacy_leakage
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import check_budgets, check_level

__all__ = ["Analysis", "Inputs", "Side", "analyse", "check_same_states", "critical_budget"]

#: Points at which a loss function is drawn.
POINTS = 160


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the leakages and budgets depend on.

    Attributes
    ----------
    backward, forward : PrivacyLossFunction or None, what the adversary knows
    epsilons : ndarray (T,), budgets in nats
    alpha : float, the level of alpha-DP_T to allocate, nats
    sensitivity : float, of the released counts
    """

    backward: PrivacyLossFunction | None
    forward: PrivacyLossFunction | None
    epsilons: np.ndarray
    alpha: float
    sensitivity: float = 2.0


@dataclass(frozen=True, eq=False)
class Side:
    """One loss function as it is drawn, and what it means for the largest budget.

    Attributes
    ----------
    name : "backward" or "forward"
    function : PrivacyLossFunction
    alphas, losses : ndarray (POINTS + number of breakpoints in range,), the curve; nats
    breakpoints : ndarray, those in range; nats
    supremum : float, of the leakage under the largest budget for ever, nats; inf if there is none
    critical : float, see `critical_budget`
    witness : Witness at the step that leads to the largest leakage of this side
    """

    name: str
    function: PrivacyLossFunction
    alphas: np.ndarray
    losses: np.ndarray
    breakpoints: np.ndarray
    supremum: float
    critical: float
    witness: Witness

    def __str__(self) -> str:
        return f"{self.name}: {self.witness}"


@dataclass(frozen=True, eq=False)
class Analysis:
    """All results for one set of inputs.

    Attributes
    ----------
    inputs : Inputs
    leakage : TemporalLeakage of the budgets
    sides : tuple of Side, one for each matrix that the adversary knows
    schemes : tuple of Scheme, in the order of `SCHEMES`
    """

    inputs: Inputs
    leakage: TemporalLeakage
    sides: tuple[Side, ...]
    schemes: tuple[Scheme, ...]

    @property
    def pending(self) -> bool:
        """Whether schemes are left to compute."""
        return any(scheme.message == PENDING for scheme in self.schemes)

    @property
    def largest_budget(self) -> float:
        return float(self.inputs.epsilons.max())

    @property
    def critical(self) -> float:
        """The budget a release below which BPL, FPL and TPL stay finite for ever; nats, 0 to inf."""
        return min((side.critical for side in self.sides), default=inf)

    @property
    def supremum(self) -> float:
        """The supremum of TPL if the largest budget is spent at every time point for ever; nats."""
        if not self.sides:
            return self.largest_budget
        return sum(side.supremum for side in self.sides) - (len(self.sides) - 1) * self.largest_budget


def critical_budget(function: PrivacyLossFunction) -> float:
    """The budget a release, in nats, below which the leakage has a finite supremum (Theorem 11 of [1]).

    With (d, q) the vertex that holds for large alpha: inf if d > 0 or L = 0, else log(1/q), and 0 if q = 1. From that
    budget on the leakage grows without bound; below it, it does not.

    Examples
    --------
    >>> critical_budget(PrivacyLossFunction([[0.8, 0.2], [0.1, 0.9]]))
    inf
    >>> round(critical_budget(PrivacyLossFunction([[0.8, 0.2], [0.0, 1.0]])), 6)  # log(1 / 0.8)
    0.223144
    >>> critical_budget(PrivacyLossFunction([[1.0, 0.0], [0.0, 1.0]]))
    0.0
    """
    if function.is_identity:
        return 0.0
    d, _ = function.vertices[-1]
    if d > 0.0 or function.is_zero:
        return inf
    # The limit of alpha - L(alpha), which no rounding of 1 - q spoils; far beyond the last breakpoint it is reached.
    last = function.breakpoints[-1] if function.breakpoints.size else 0.0
    return function.budget_for(max(1e4, 2.0 * last))


def check_same_states(backward: TransitionMatrix | None, forward: TransitionMatrix | None) -> None:
    """Raise ValueError unless two matrices are over the same states, in the same order; None fits everything."""
    if backward is None or forward is None:
        return
    if backward.n_states != forward.n_states:
        raise ValueError(
            f"the backward and the forward matrix must have the same states, found {backward.n_states} and "
            f"{forward.n_states} states; change one of them, or derive the backward matrix from the forward one"
        )
    names = [list(matrix.states) for matrix in (backward, forward)]
    if names[0] != names[1] and list(range(backward.n_states)) not in names:
        raise ValueError(
            f"the backward and the forward matrix must name the same states in the same order, found {names[0][:4]} "
            f"and {names[1][:4]}; sort them alike"
        )


def analyse(inputs: Inputs, previous: Analysis | None = None, complete: bool = True) -> Analysis:
    """Compute everything for the page.

    Parameters
    ----------
    inputs : Inputs
    previous : Analysis, optional
        An earlier result; of it is kept what does not depend on what changed since.
    complete : bool
        Also compute the schemes that take long; without it they are pending.

    Raises
    ------
    ValueError
        If a budget, alpha or the sensitivity is not positive and finite.

    Examples
    --------
    >>> P = PrivacyLossFunction([[0.8, 0.2], [0.1, 0.9]])
    >>> result = analyse(Inputs(P, P, np.full(5, 0.1), alpha=1.0))
    >>> result.leakage.tpl.round(3).tolist(), round(result.supremum, 3)
    ([0.281, 0.326, 0.34, 0.326, 0.281], 0.586)
    """
    check_budgets(inputs.epsilons)
    check_level(inputs.alpha)
    check_level(inputs.sensitivity, "sensitivity")
    matrices = inputs.backward, inputs.forward
    if previous is not None and (previous.inputs.backward, previous.inputs.forward) != matrices:
        previous = None
    same_level = previous is not None and previous.inputs.alpha == inputs.alpha
    if previous is not None and np.array_equal(previous.inputs.epsilons, inputs.epsilons):
        leakage = previous.leakage
        sides = previous.sides if same_level else _sides(inputs, leakage)
    else:
        leakage = temporal_privacy_leakage(inputs.epsilons, *matrices)
        sides = _sides(inputs, leakage)
    horizon = inputs.epsilons.size
    kept = {}
    if previous is not None and same_level and previous.inputs.epsilons.size == horizon:
        kept = {scheme.name: scheme for scheme in previous.schemes if scheme.message != PENDING}
    schemes = []
    for name in SCHEMES:
        if name in kept:
            schemes.append(kept[name])
        elif complete or name not in SLOW:
            schemes.append(allocate(name, inputs.alpha, *matrices, horizon))
        else:
            schemes.append(Scheme(name, None, message=PENDING))
    return Analysis(inputs, leakage, sides, tuple(schemes))


def _sides(inputs: Inputs, leakage: TemporalLeakage) -> tuple[Side, ...]:
    budget = float(inputs.epsilons.max())
    both = ("backward", inputs.backward, leakage.bpl), ("forward", inputs.forward, leakage.fpl[::-1])
    known = [(name, function, series) for name, function, series in both if function is not None]
    suprema = [function.supremum(budget) for _, function, _ in known]
    reach = [*filter(isfinite, suprema), *(float(series.max()) for _, _, series in known)]
    # In steps, so that neither the curve nor its axis changes at each move of a slider.
    limit = 2.0 ** (np.ceil(2.0 * np.log2(1.05 * max([inputs.alpha, *reach]))) / 2.0)
    sides = []
    for (name, function, series), supremum in zip(known, suprema, strict=True):
        breakpoints = function.breakpoints[function.breakpoints < limit]
        alphas = np.union1d(np.linspace(0.0, limit, POINTS), breakpoints)
        before = float(series[max(int(np.argmax(series)) - 1, 0)])
        sides.append(
            Side(
                name=name,
                function=function,
                alphas=alphas,
                losses=function(alphas),
                breakpoints=breakpoints,
                supremum=supremum,
                critical=critical_budget(function),
                witness=function.witness(before),
            )
        )
    return tuple(sides)
