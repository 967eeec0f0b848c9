"""Temporal privacy leakage as an accountant of dp_accounting: its `PLDAccountant` becomes one that knows correlations.

Each mechanism composed is the release of one time point, whether it comes by `compose`, by its count or within a
`SelfComposedDpEvent` or `ComposedDpEvent`: dp_accounting's ledger tells none of these apart, so the account does not.
"""

from copy import copy
from math import inf

from attr import evolve
from dp_accounting import NeighboringRelation, PrivacyAccountant, dp_event

from tplrepro.leakage.accountant import TemporalAccountant
from tplrepro.leakage.temporal import Matrix

__all__ = ["TemporalPrivacyAccountant"]


class TemporalPrivacyAccountant(PrivacyAccountant):
    """A `dp_accounting.PrivacyAccountant` of releases over time, against an adversary who knows their correlation.

    What is protected is one user's value at one time point (event level): epsilon and delta are the largest TPL of all
    time points. Where both matrices are None that is the worst release alone; with two identity matrices (a value never
    changes) it is dp_accounting's own composition of all releases.

    Parameters
    ----------
    backward, forward, grid : as in `TemporalAccountant`
    neighboring_relation : NeighboringRelation.REPLACE_ONE
        dp_accounting's noise multipliers and sensitivities are relative to the largest norm of one value, so two values
        may be twice that apart and their noise counts half, as for its own Gaussian noise under REPLACE_ONE. ValueError
        for other relations: correlation tells values from each other, not a value from none.

    A NoOpDpEvent takes no time. `supports` says which events have a known profile. For time points without a release,
    several mechanisms at one of them, and noise relative to the largest change of a value, see `TemporalAccountant`.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> account = TemporalPrivacyAccountant(backward=[[0.8, 0.2], [0.1, 0.9]])
    >>> round(account.compose(GaussianDpEvent(20 / 3), 8).get_epsilon(1e-5), 2)
    1.64
    """

    def __init__(
        self,
        backward: Matrix | None = None,
        forward: Matrix | None = None,
        *,
        neighboring_relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE,
        grid: float | None = None,
    ):
        if neighboring_relation is not NeighboringRelation.REPLACE_ONE:
            raise ValueError(
                f"neighboring_relation must be REPLACE_ONE, found {neighboring_relation}; give noise for the change "
                "from any value to any other, which is what correlation tells apart"
            )
        super().__init__(neighboring_relation)
        self._account = TemporalAccountant(backward, forward, grid=grid)

    def _maybe_compose(
        self, event: dp_event.DpEvent, count: int, do_compose: bool
    ) -> PrivacyAccountant.CompositionErrorDetails | None:
        match event:
            case dp_event.NoOpDpEvent():
                return None
            case dp_event.SelfComposedDpEvent():
                # PLDAccountant drops the count of randomised response, and so composes it once (dp-accounting 0.6.0).
                return self._maybe_compose(event.event, event.count * count, do_compose)
            case dp_event.ComposedDpEvent():
                rounds = range(count if do_compose else 1)
                errors = (self._maybe_compose(part, 1, do_compose) for _ in rounds for part in event.events)
                return next((error for error in errors if error), None)
        if do_compose:
            self._account.compose(_between_values(event), count)
            return None
        try:
            copy(self._account).compose(_between_values(event))
        except ValueError as error:
            return self.CompositionErrorDetails(event, str(error))
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """The smallest epsilon known, nats; 0 <= target_delta <= 1. A target of 0 asks for pure DP."""
        if self.get_delta(inf) == 1.0:
            return inf  # of a release without noise, by dp_accounting's convention also for a target of 1
        if len(self._account) == 0 or target_delta == 1.0:
            return 0.0
        epsilons = self._account.epsilon(target_delta) if target_delta else self._account.tpl
        return float(epsilons.max())

    def get_delta(self, target_epsilon: float) -> float:
        """The smallest delta known; target_epsilon >= 0, nats."""
        if len(self._account) == 0:
            return 0.0
        return float(self._account.delta(min(target_epsilon, 1e300)).max())


def _between_values(event: dp_event.DpEvent) -> dp_event.DpEvent:
    """The event with noise relative to the largest change of a value, twice the largest norm."""
    match event:
        case dp_event.GaussianDpEvent(0) | dp_event.LaplaceDpEvent(0) | dp_event.DiscreteLaplaceDpEvent(0, _):
            return dp_event.NonPrivateDpEvent()
        case dp_event.GaussianDpEvent() | dp_event.LaplaceDpEvent():
            return evolve(event, noise_multiplier=event.noise_multiplier / 2)
        case dp_event.DiscreteLaplaceDpEvent():
            return evolve(event, sensitivity=event.sensitivity * 2)
        case dp_event.PoissonSampledDpEvent() | dp_event.SampledWithoutReplacementDpEvent():
            return evolve(event, event=_between_values(event.event))
        case dp_event.SelfComposedDpEvent():  # sampled together
            return evolve(event, event=_between_values(event.event))
        case dp_event.ComposedDpEvent():
            return evolve(event, events=[_between_values(part) for part in event.events])
        case dp_event.RandomizedResponseDpEvent() | dp_event.ZCDpEvent() | dp_event.NonPrivateDpEvent():
            return event
    raise ValueError(f"no profile is known of {type(event).__name__} between any two values of a user")
