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
    phases_of,
    start_as_json,
)
from tplreport.publishing.counts import LARGE, check_scale, given_sensitivity
from tplreport.publishing.learned import check_alone, learned_chain
from tplreport.publishing.statistics import checked_statistics
from tplrepro.allocation.published import allocate_by_upper_bound
from tplrepro.leakage.accountant import TemporalAccountant
from tplrepro.leakage.filter import TemporalFilter, checked_floors
from tplrepro.leakage.temporal import Correlation
from tplrepro.markov.cycle import Start
from tplrepro.validation import (
    as_scalar,
    check_budgets,
    check_choice,
    check_delta,
    check_level,
    check_range,
)

#: One budget, those of the phases, or `LARGEST_FLOOR`.
Floor = ArrayLike | Mapping | str
#: A setting that may not be given.
Number = float | None
#: In place of a floor: the largest one that keeps alpha for ever.
LARGEST_FLOOR = "largest"
#: By so much it is smaller, as a share, so that no rounding on its way to a filter is too much.
MARGIN = 2.0**-40


def checked_settings(
    *,
    backward: Correlation,
    forward: Correlation,
    start: Start | None,
    alpha: float | None,
    sensitivity: float | None,
    statistics: Any,
    mechanism: str | None,
    floor: Floor | None,
    plan: ArrayLike | None,
    delta: float | None,
    step: int | str,
    allow_large: bool,
    model: Any = None,
    burst: float | None = None,
) -> dict:  # as `Publisher` takes them
    """The settings of a publisher that keeps its promise, as JSON has them."""
    if alpha is None:
        raise ValueError(
            "a publisher needs the level alpha that every TPL keeps, found none; give nats"
        )
    alpha = check_level(alpha)
    if not allow_large:
        _check_protects(alpha)
    learned = None
    if model is not None:
        check_alone(backward, forward, start, plan, delta)
        learned = learned_chain(model, alpha)
        backward = learned.backward
        forward = learned.forward
    _check_budgets_are_of_one_kind(floor, plan, delta, burst)
    settings = {
        "alpha": alpha,
        **_checked_sensitivities(sensitivity, statistics, step),
        "floor": 0.0,
        "plan": None,
        "delta": None,
        "burst": None,
        "mechanism": _fitting_mechanism(mechanism, delta),
        "step": step,
        "start": start_as_json(start),
        "model": None if learned is None else learned.content,
        **chain_as_json(*both_sides(backward, forward, start), step),
    }
    if delta is not None:
        settings["delta"] = float(check_delta(delta))
    chain = Chain.of_settings(settings)
    if burst is not None:
        settings["burst"] = _checked_burst(burst, settings, chain)
    elif learned is not None:
        settings["floor"] = _checked_floor_of_model(floor, learned.floor, chain)
    elif plan is None:
        settings["floor"] = checked_floor(floor, settings, chain)
    else:
        settings["plan"] = _checked_plan(plan, alpha, delta, chain)
    _check_scales(settings, chain.with_floor(settings["floor"]))
    return settings


def _checked_burst(burst: float, settings: Mapping, chain: Chain) -> float:
    """The burst of a token bucket; ValueError unless its noise can be drawn."""
    if "statistics" in settings:
        raise ValueError(
            "a burst is that of one statistic, found statistics=; give sensitivity=, or a plan"
        )
    account = tf.GaussianFilter(
        settings["alpha"], settings["delta"], chain.backward, chain.forward, burst=burst
    )
    multipliers = np.array([account.remaining, account.floor])
    check_scale(multipliers, settings["sensitivity"], gaussian=True)
    return account.burst


def _checked_sensitivities(sensitivity: float | None, statistics: Any, step: int | str) -> dict:
    """The sensitivity of one statistic, or all that is known of several."""
    if statistics is None:
        return {"sensitivity": given_sensitivity(sensitivity)}
    if sensitivity is not None:
        raise ValueError(
            "each of several statistics has its own sensitivity, found sensitivity= beside "
            "statistics=; leave it out"
        )
    return {"sensitivity": None, "statistics": checked_statistics(statistics, step)}


def _checked_floor_of_model(floor: Any, most: float, chain: Chain) -> float:
    """One floor that a model leaves for ever, by default the largest; ValueError for more, or for
    statistics that are not due at every time."""
    if len(chain) > 1:
        raise ValueError(
            "a model takes statistics that are due at every time, found some with every=; leave "
            "every= out, or give a public chain"
        )
    if len(chain.statistics) > 1:
        most *= 1.0 - MARGIN
    if floor is None or floor == LARGEST_FLOOR:
        return most
    must = f"floor must be at most {most!r}, that of the model"
    return as_scalar(check_range(floor, 0.0, most, must, "leave it out"), "floor")


def checked_floor(floor: Floor | None, settings: Mapping, chain: Chain) -> float | list[float]:
    """The one floor, or a list of that of each phase.

    Parameters
    ----------
    floor : number, sequence or mapping of phases, None, or "largest" for the largest number
    settings : mapping, of which alpha and the cycle count
    chain : Chain of these settings

    Returns
    -------
    float or list

    Raises
    ------
    ValueError
        Unless the floor keeps alpha for ever.
    """
    if isinstance(floor, str):
        check_choice(floor, "floor", (LARGEST_FLOOR,))
        return largest_floor(settings["alpha"], chain)
    phases = phases_of(settings)
    floors = checked_floors(in_order_of_phases(floor, phases), len(phases))
    stored: Any = floors
    if len(set(floors)) == 1:
        stored = floors[0]
    fitting = chain.with_floor(stored)
    TemporalFilter(settings["alpha"], fitting.backward, fitting.forward, floor=fitting.floor)
    return stored


def largest_floor(alpha: float, chain: Chain) -> float:
    """The largest budget of the time points at which all statistics are due, with which every TPL
    stays within alpha for ever; nats."""
    shape = None
    floors = np.array(chain.with_floor(1.0).floors)
    if len(chain) > 1:
        shape = floors
    budgets = allocate_by_upper_bound(alpha, chain.backward, chain.forward, shape=shape)
    is_spent = floors > 0.0
    ratios = np.atleast_1d(budgets)[is_spent] / floors[is_spent]
    return float(ratios.min() * (1.0 - MARGIN))


def _check_protects(alpha: float) -> None:
    if alpha > LARGE:
        raise ValueError(
            f"alpha = {alpha:g} nats protects nobody; give {LARGE:g}, or allow_large=True"
        )


def _check_scales(settings: Mapping, chain: Chain) -> None:
    """ValueError for floors or a plan of which the noise of a statistic cannot be drawn."""
    gaussian = settings["delta"] is not None
    levels = settings["plan"] or [floor for floor in chain.full_floors if floor > 0.0]
    if not levels:
        return
    for statistic in chain.statistics:
        share = statistic.share
        if gaussian:
            share = 1.0 / np.sqrt(share)
        check_scale(np.array(levels) * share, statistic.sensitivity, gaussian=gaussian)


def _check_budgets_are_of_one_kind(
    floor: Floor | None, plan: ArrayLike | None, delta: float | None, burst: float | None
) -> None:
    """ValueError for a plan beside a floor, for a delta without a plan or a burst, and for a burst
    beside others or without a delta."""
    if burst is not None:
        if delta is None:
            raise ValueError(
                "a burst is that of Gaussian noise, found no delta; give delta=, or a floor"
            )
        if plan is not None or floor is not None:
            raise ValueError(
                "budgets are those of a burst, a plan or a floor, found two of them; leave one out"
            )
        return
    if plan is not None and floor is not None:
        raise ValueError("budgets are those of a plan or a floor, found both; leave one out")
    if plan is None and delta is not None:
        raise ValueError(
            "a delta needs a plan, fixed in advance, of noise multipliers (see allocate_noise), or "
            "a burst, with which they may depend on what was published, found neither; give one"
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
    compose_runs(account, runs)
    return account.leakage


def compose_runs(account: TemporalAccountant, runs: Iterable[tuple[float, int]]) -> None:
    """Tell an account of budgets, 0 without a release, each for so many times."""
    for budget, times in runs:
        if budget:
            account.compose(budget, times)
        else:
            account.skip(times)


def _gaussian_leakages(runs: list[tuple[float, int]], chain: Chain) -> Any:
    """The profiles of a series; `runs` are pairs of a noise multiplier, 0 without a release, and
    for how many times."""
    from dp_accounting import GaussianDpEvent

    events = []
    for multiplier, times in runs:
        event = GaussianDpEvent(multiplier) if multiplier else None
        events.append((event, times))
    return tf.temporal_privacy_profile(events, chain.backward, chain.forward)
