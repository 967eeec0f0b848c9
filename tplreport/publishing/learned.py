"""A publisher whose chain was learned privately.

The model counts as a release of the time before the first (docs/theory/private_model.md). Of a
model that is one number, the floor, no chain is known: each time may have that budget, and no more.
"""

from __future__ import annotations
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, SupportsIndex

import numpy as np

from tplfrontier import GaussianFilter
from tplreport.learning.model import FLOOR, PrivateModel
from tplreport.learning.training_time import end_of_training
from tplreport.publishing.chain import Chain
from tplrepro.leakage.filter import FilterState, LeakageExceededError, Settled, TemporalFilter
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import REQUIRED, Correlation
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.validation import as_scalar, check_epsilon, check_horizon


@dataclass(frozen=True)
class LearnedChain:
    """Both sides of a model, the budget that each time may have for ever, and what a file keeps of
    the model."""

    backward: PrivacyLossFunction
    forward: PrivacyLossFunction
    floor: float
    content: dict


def learned_chain(model: PrivateModel | str | os.PathLike, alpha: float) -> LearnedChain:
    """The chain of a model, or of the file of one, for a publisher of level alpha.

    Parameters
    ----------
    model : PrivateModel, str or path-like
    alpha : float
        Nats.

    Returns
    -------
    LearnedChain

    Raises
    ------
    ValueError
        If its floor is 0, or that of another level.
    """
    if not isinstance(model, PrivateModel):
        model = PrivateModel.read(model)
    model.check_suffices(alpha)
    floor = model.floor_for(alpha)
    method = model.request.method
    content = {
        "method": method,
        "epsilon": model.epsilon,
        "floor": floor,
        "until": model.until,
        "statement": model.statement,
    }
    if method == FLOOR:
        unknown = _any_chain(model.states, model.request.step)
        return LearnedChain(unknown, unknown, floor, content)
    return LearnedChain(model.backward, model.forward, floor, content)


def _any_chain(states: list, step: str | None) -> PrivacyLossFunction:
    """L(alpha) = alpha, which holds whatever the chain is, of steps that take `step`."""
    return PrivacyLossFunction(TransitionMatrix(np.eye(len(states)), states, step=step))


def check_alone(
    backward: Correlation, forward: Correlation, start: Any, plan: Any, delta: float | None
) -> None:
    """ValueError for what a publisher with a model does not take."""
    names = []
    if backward is not REQUIRED:
        names.append("backward=")
    if forward is not REQUIRED:
        names.append("forward=")
    given = {"start=": start, "plan=": plan, "delta=": delta}
    names += [name for name, value in given.items() if value is not None]
    if names:
        raise ValueError(
            f"a model holds both sides of the chain, and its release comes before a floor, found "
            f"{' and '.join(names)} too; leave them out, or the model"
        )


def is_of_floor(model: Mapping | None) -> bool:
    """Whether settings hold a model of which the floor alone is known."""
    return model is not None and model["method"] == FLOOR


def filter_of(
    settings: Mapping, chain: Chain, after: Settled | None = None
) -> TemporalFilter | FloorFilter | GaussianFilter:
    """The filter of a publisher before its first time, or after what an earlier chain has left; a
    model is spent already."""
    model = settings.get("model")
    alpha = settings["alpha"]
    burst = settings.get("burst")
    if burst is not None:
        return GaussianFilter(alpha, settings["delta"], chain.backward, chain.forward, burst=burst)
    if model is not None and is_of_floor(model):
        return FloorFilter(alpha, model["floor"])
    account = TemporalFilter(alpha, chain.backward, chain.forward, floor=chain.floor, after=after)
    if model is not None:
        account.spend(model["epsilon"])
    return account


class FloorFilter:
    """What may be spent if the floor alone is known: as much at each time, with or without a
    release at others, as leakages rise with each budget."""

    def __init__(self, alpha: float, floor: float):
        self.alpha = alpha
        self.floor = floor
        self.state = FilterState(0, None, np.inf)

    @property
    def remaining(self) -> float:
        """The budget of the next release, nats."""
        return self.floor

    def spend(self, epsilon: float, count: SupportsIndex = 1) -> Self:
        """Account for releases of one budget, nats; LeakageExceededError if it is above the
        floor."""
        epsilon = as_scalar(check_epsilon(epsilon), "epsilon")
        check_horizon(count, "count")
        if epsilon > self.floor:
            raise LeakageExceededError(
                f"epsilon must be at most {self.floor!r}, the floor of the model, with which every "
                f"TPL is within alpha = {self.alpha:g}, found {epsilon!r}; spend less"
            )
        return self

    def skip(self, count: SupportsIndex = 1) -> Self:
        """Let time points pass without a release."""
        check_horizon(count, "count")
        return self

    def exhausted(self, count: SupportsIndex = 1) -> FilterState:
        """The state after times of which nothing is known but that each had the floor."""
        check_horizon(count, "count")
        return self.state


def check_after_training(model: Mapping | None, first: Any) -> None:
    """ValueError unless the first time comes after the last training time, if that is known."""
    if model is None or model["until"] is None:
        return
    until = end_of_training(model["until"])
    try:
        is_after = first > until
    except TypeError:
        raise ValueError(
            f"the first release must come after the last training time, {until}, found {first}, "
            "which cannot be compared; give times of the same kind and zone"
        ) from None
    if not is_after:
        raise ValueError(
            f"the first release must come after the last training time, {until}, found {first}: "
            "otherwise a person's leakage is alpha + epsilon; publish later times"
        )
