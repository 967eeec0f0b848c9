"""Settings of a publisher that keep its promise, and what its series leaks."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import tplfrontier as tf
from tplfrontier.profiles.gaussian import check_noise_multipliers
from tplreport.publishing.chain import (
    Chain,
    both_sides,
    chain_as_json,
    in_order_of_phases,
    start_as_json,
)
from tplreport.publishing.counts import LARGE, check_scale
from tplrepro.leakage.accountant import TemporalAccountant
from tplrepro.leakage.filter import TemporalFilter
from tplrepro.leakage.temporal import Correlation
from tplrepro.markov.cycle import Start
from tplrepro.validation import (
    check_budgets,
    check_choice,
    check_delta,
    check_level,
    check_sensitivity,
)


def checked_settings(
    *,
    backward: Correlation,
    forward: Correlation,
    start: Start | None,
    alpha: float | None,
    sensitivity: float | None,
    mechanism: str | None,
    floor: ArrayLike | Mapping | None,
    plan: ArrayLike | None,
    delta: float | None,
    step: int | str,
    allow_large: bool,
) -> dict:  # as `Publisher` takes them
    """The settings of a publisher that keeps its promise, as JSON has them."""
    if alpha is None:
        raise ValueError(
            "a publisher needs the level alpha that every TPL keeps, found none; give nats"
        )
    alpha = check_level(alpha)
    sensitivity = check_sensitivity(sensitivity)
    if not allow_large:
        _check_protects(alpha)
    chain = chain_as_json(*both_sides(backward, forward, start), step)
    _check_budgets_are_of_one_kind(floor, plan, delta)
    fitting = _fitting_mechanism(mechanism, delta)
    if delta is not None:
        delta = float(check_delta(delta))
    sides = Chain.of_settings(chain | {"floor": 0.0})
    floors: Any = 0.0
    if plan is None:
        floors = _checked_floors(floor, alpha, sides)
    else:
        plan = _checked_plan(plan, alpha, delta, sides)
    _check_scales(floors, plan, sensitivity, gaussian=delta is not None)
    return {
        "alpha": alpha,
        "sensitivity": sensitivity,
        "floor": floors,
        "plan": plan,
        "delta": delta,
        "mechanism": fitting,
        "step": step,
        "start": start_as_json(start),
        **chain,
    }


def _checked_floors(
    floor: ArrayLike | Mapping | None, alpha: float, chain: Chain
) -> float | list[float]:
    """The one floor, or a list of that of each phase; ValueError unless they keep `alpha`."""
    given = in_order_of_phases(floor, chain.forward.phases)
    checked = TemporalFilter(alpha, chain.backward, chain.forward, floor=given).floor
    if isinstance(checked, tuple):
        return list(checked)
    return checked


def _check_protects(alpha: float) -> None:
    if alpha > LARGE:
        raise ValueError(
            f"alpha = {alpha:g} nats protects nobody; give {LARGE:g}, or allow_large=True"
        )


def _check_scales(
    floors: float | list[float], plan: list[float] | None, sensitivity: float, gaussian: bool
) -> None:
    """ValueError for floors or a plan whose noise cannot be drawn; levels of a plan are noise
    multipliers if `gaussian`, budgets if not."""
    if plan is not None:
        check_scale(np.array(plan), sensitivity, gaussian=gaussian)
        return
    budgets = np.atleast_1d(floors)
    if budgets.any():
        check_scale(budgets[budgets > 0.0], sensitivity, gaussian=False)


def _check_budgets_are_of_one_kind(
    floor: ArrayLike | Mapping | None, plan: ArrayLike | None, delta: float | None
) -> None:
    """ValueError for a plan beside a floor, and for a delta without a plan."""
    if plan is not None and floor is not None:
        raise ValueError("budgets are those of a plan or a floor, found both; leave one out")
    if plan is None and delta is not None:
        raise ValueError(
            "a delta needs a plan, fixed in advance, of noise multipliers; see allocate_noise"
        )


def _fitting_mechanism(mechanism: str | None, delta: float | None) -> str:
    """The mechanism that fits a delta, or its absence; ValueError for another one."""
    fitting = "opendp"
    place = "without"
    if delta is not None:
        fitting = "opendp-gaussian"
        place = "with"
    check_choice(mechanism, "mechanism", (None, "opendp", "opendp-gaussian"))
    if mechanism not in (None, fitting):
        raise ValueError(
            f"mechanism must be {fitting!r} {place} a delta, found {mechanism!r}; Gaussian noise "
            "needs a delta and a plan of noise multipliers, Laplace noise budgets"
        )
    return fitting


def _checked_plan(plan: ArrayLike, alpha: float, delta: float | None, chain: Chain) -> list[float]:
    """The levels of a plan, which are budgets, or with a delta noise multipliers; ValueError unless
    every TPL is within `alpha` (and delta)."""
    promise = f"every TPL within alpha = {alpha:g}"
    if delta is None:
        levels = check_budgets(plan).tolist()
        worst = leakages_of(((level, 1) for level in levels), None, chain).tpl.max()
    else:
        levels = check_noise_multipliers(plan).tolist()
        promise += f" and delta = {delta:g}"
        profile = leakages_of(((level, 1) for level in levels), delta, chain)
        worst = profile.epsilon(delta).max()
    if worst > alpha:
        raise ValueError(f"the plan must keep {promise}, found {worst:.6g}; add noise")
    return levels


def leakages_of(rows: Iterable[tuple[float, int]], delta: float | None, chain: Chain) -> Any:
    """All leakages of a series.

    `rows` are pairs: a budget, or with a delta a noise multiplier, which is 0 without a release,
    and for how many times.
    """
    runs = [
        (level, sum(times for _, times in run))
        for level, run in groupby(rows, key=lambda row: row[0])
    ]
    if delta is not None:
        return _gaussian_leakages(runs, chain)
    account = TemporalAccountant(chain.backward, chain.forward)
    for budget, times in runs:
        if budget:
            account.compose(budget, times)
        else:
            account.skip(times)
    return account.leakage


def _gaussian_leakages(runs: list[tuple[float, int]], chain: Chain) -> Any:
    """The profiles of a series; `runs` are pairs of a noise multiplier, 0 without a release, and
    for how many times."""
    from dp_accounting import GaussianDpEvent

    events = []
    for multiplier, times in runs:
        event = GaussianDpEvent(multiplier) if multiplier else None
        events.append((event, times))
    return tf.temporal_privacy_profile(events, chain.backward, chain.forward)
