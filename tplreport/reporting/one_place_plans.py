"""Plans where the place before the last one predicts the next as well, and each single place is the
secret: theorem K of docs/theory/one_place.md.

All releases get the same budget, such that at most alpha is told about any place by the estimated
chain of order 2, which is taken to be that of everybody, at all times. Nothing is added for what
the data leave open, so that such a plan is never the recommended one.
"""

from __future__ import annotations
from collections.abc import Callable
from typing import Any

import numpy as np

from tplfrontier.chains.higher_order import estimate_higher_order
from tplfrontier.chains.one_place import (
    allocate_for_one_place,
    one_place_leakage,
    one_place_supremum,
)
from tplreport.reporting.allocation_schemes import mean_error, rounded_down
from tplreport.reporting.plans import ONE_PLACE, Pair, Plan, largest_tpl
from tplrepro.markov.sequences import Sequences
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.search import largest_within

#: Places that matter for the next one.
ORDER = 2
#: Names of the schemes.
FOR_EVER = "one place (any T)"
T_KNOWN = "one place (T known)"
#: Up to so many states, and so many releases where their number counts: about a second.
MOST_STATES = 20
MOST_RELEASES = 50
#: By which share a budget may be too small.
TOLERANCE = 1e-4
#: Exceeds what rounding up adds to a sum of budgets.
ROUNDING = 1e-9


def plans_for_one_place(
    data: Sequences,
    alpha: float,
    horizon: int,
    *,
    smoothing: float,
    adversaries: dict[str, Pair],
    sensitivity: float,
) -> list[Plan]:
    """A plan for any number of releases, and one for this many.

    Parameters
    ----------
    data : Sequences
    alpha : float
        What may be told about a place, in nats.
    horizon : int
        The number of releases T.
    smoothing : float > 0
        Pseudo-steps that are added to the row of each pair of places.
    adversaries : dict of str to (backward, forward) loss functions
        Those of a chain of order 1, to each of whom a plan also says what it leaks.
    sensitivity : float
        Of the counts of a time, in L1.

    Returns
    -------
    list of Plan
        A single one without budgets, which says why, beyond `MOST_STATES` states.

    Raises
    ------
    ValueError
        If no sequence has two places.
    """
    n = data.labels.size
    if n > MOST_STATES:
        why = f"it is computed for up to {MOST_STATES} states, found {n}"
        return [Plan(FOR_EVER, ONE_PLACE, None, {}, message=why)]
    chain = estimate_higher_order(data, ORDER, smoothing=smoothing / n, tuples="all")

    def plan_of(scheme: str, epsilon: float, told: Callable[[float], float]) -> Plan:
        """The plan that spends `epsilon` each time; `told` says how much that tells at most."""
        budgets = rounded_down(np.full(horizon, epsilon))
        leaked = {name: largest_tpl(budgets, pair) for name, pair in adversaries.items()}
        leaked[ONE_PLACE] = told(float(budgets[0]))
        return Plan(scheme, ONE_PLACE, budgets, leaked, mean_error(budgets, sensitivity))

    plans = []
    epsilon = allocate_for_one_place(alpha, chain)
    if epsilon > 0.0:
        plans.append(plan_of(FOR_EVER, epsilon, lambda each: one_place_supremum(each, chain)))
    else:
        why = "no budget keeps alpha for every T: by the estimate, what is told may have no bound"
        plans.append(Plan(FOR_EVER, ONE_PLACE, None, {}, message=why))
    if horizon <= MOST_RELEASES:
        most_told = _MostTold(chain, horizon)
        plans.append(plan_of(T_KNOWN, most_told.largest_budget(alpha), most_told))
    return plans


class _MostTold:
    """What so many releases tell about any place, as a function of the budget of each."""

    def __init__(self, chain: TransitionMatrix, horizon: int):
        self.chain = chain
        self.horizon = horizon

    def __call__(self, epsilon: float) -> float:
        told: Any = one_place_leakage(epsilon, self.chain, horizon=self.horizon)
        return float(told.max())

    def largest_budget(self, alpha: float) -> float:
        """The largest budget of each release that tells at most alpha; α/T does in any case."""
        least = alpha / self.horizon * (1.0 - ROUNDING)
        return largest_within(
            lambda epsilon: self(epsilon) <= alpha,
            least,
            alpha,
            tolerance=TOLERANCE,
            logarithmic=True,
        )
