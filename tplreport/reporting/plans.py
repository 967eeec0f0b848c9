"""The plans of a report: budgets by every scheme, what they leak to each adversary, and which is
recommended."""

from __future__ import annotations
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from tplfrontier.chains.confidence import loss_from_counts
from tplreport.people.population import loss_of_all_users
from tplreport.reporting.allocation_schemes import COMPOSED, SCHEMES, allocate, mean_error
from tplreport.reporting.counted_steps import CountedSteps, EstimatedMatrices
from tplreport.reporting.habits_of_users import Losses, UsersApart, worst_of_users
from tplrepro.display import count_from_one, frame_as_html, plot_frame
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.prior_free import PriorFreeLoss
from tplrepro.leakage.temporal import temporal_privacy_leakage
from tplrepro.markov.phases import PhaseGroups
from tplrepro.markov.sequences import Sequences
from tplrepro.validation import FrozenArrays

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Up to this many states the set of chains that the counts leave possible is computed; beyond,
#: every chain is possible.
MOST_FOR_UPPER = 40
#: Up to this many states: leakage against any prior.
MOST_FOR_PRIORS = 500
#: Up to this many entries of users' matrices, for the leakage to somebody who knows one user's
#: habits.
MOST_FOR_USERS = 20_000_000
#: A scheme must have an error this much below that of α/T to be recommended, for α/T keeps the
#: whole series within α.
WORTHWHILE = 0.05

#: Adversaries, whom a plan withstands.
ESTIMATE = "the estimate"
UPPER = "the upper end"
PRIOR_FREE = "any prior on both sides"
WORST_USER = "the worst user's habits"
ANYBODY = "anybody"
ONE_PLACE = "a chain of order 2"  # who wants to know a single place
UNBOUNDED = (
    "no budget keeps alpha for every T: the data do not rule out that leakage grows without bound"
)

#: The backward and the forward side: a loss function for all hours, or a cycle of them.
Pair = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class Plan(FrozenArrays):
    """Budgets of one scheme against one adversary, and what they leak; nats."""

    scheme: str
    against: str  # whom it withstands: one of the names above
    budgets: np.ndarray | None  # (T,); None if the scheme has none
    tpl: dict[str, float]  # largest TPL to each adversary
    error: float = np.nan  # mean absolute Laplace noise
    message: str = ""  # why there are no budgets

    def to_frame(self) -> pd.DataFrame:
        """The budget of each release t from 1, in the column epsilon, nats; empty if the scheme has
        none."""
        budgets: Any = self.budgets
        if budgets is None:
            budgets = []
        return pd.DataFrame({"epsilon": budgets}, pd.RangeIndex(1, len(budgets) + 1, name="t"))

    def _repr_html_(self) -> str:
        return frame_as_html(f"{self.name}: {self.message or 'budgets, nats'}", self.to_frame())

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the budgets over time with Matplotlib, on `ax` or new axes; returns the axes."""
        axes = plot_frame(self.to_frame(), ax, ylabel="budget (nats)")
        count_from_one(axes.xaxis, "release $t$")
        return axes

    @property
    def name(self) -> str:
        """The scheme, and against whom it holds."""
        return name_of(self.scheme, self.against)

    @property
    def user_level(self) -> float:
        """The leakage of the whole series: the sum of the budgets."""
        if self.budgets is None:
            return np.nan
        return float(np.sum(self.budgets))


def name_of(scheme: str, against: str) -> str:
    """The name of a plan: its scheme, and against whom it holds.

    >>> name_of("Algorithm 7 (any T)", UPPER)
    'Algorithm 7 (any T), against the upper end'
    """
    return f"{scheme}, against {against}"


@cache
def any_chain() -> Pair:
    """The loss functions that hold whatever the correlation is: L(alpha) = alpha."""
    function = PrivacyLossFunction(np.eye(2))
    return function, function


def pair_of(counted: CountedSteps, matrices: EstimatedMatrices) -> Pair:
    """Backward and forward loss functions of the matrices of all phases."""
    backward = counted.at_phases(map(PrivacyLossFunction, matrices.backward))
    forward = counted.at_phases(map(PrivacyLossFunction, matrices.forward))
    return backward, forward


def estimated_pair(counted: CountedSteps, smoothing: float) -> Pair:
    """Backward and forward loss functions of the estimate, where smoothing adds `smoothing` steps
    to each row."""
    return pair_of(counted, EstimatedMatrices.of(counted, smoothing))


def upper_pair(counted: CountedSteps, confidence: float) -> Pair:
    """Backward and forward loss functions that bound those of every chain that the counts do not
    rule out, with this confidence in both sides and all phases together.

    Where rows of users and hours may vary, counts tell as much less of them.
    """
    return _pair_of_upper_ends(counted, upper_losses(counted, confidence))


def _pair_of_upper_ends(counted: CountedSteps, upper: Losses | None) -> Pair:
    """The backward and the forward side of upper ends, None where every chain is possible."""
    if upper is None:
        return any_chain()
    return counted.at_phases(upper.backward), counted.at_phases(upper.forward)


def upper_losses(counted: CountedSteps, confidence: float) -> Losses | None:
    """Those of `upper_pair`, for each group of phases; None where there are too many states."""
    if len(counted.states) > MOST_FOR_UPPER:
        return None
    each = 1.0 - (1.0 - confidence) / 2.0
    return Losses(
        _upper_ends_of(counted, counted.backward_tables(), each),
        _upper_ends_of(counted, counted.tables(), each),
    )


def _upper_ends_of(
    counted: CountedSteps, tables: list, confidence: float
) -> list[PrivacyLossFunction]:
    """The upper ends of one side from its tables of counts, one for each group of phases."""
    told = [counted.told_of_anybody(table) for table in tables]
    return list(loss_from_counts(told, confidence, counted.states))


def adversaries_of(
    counted: CountedSteps, smoothing: float, confidence: float, users: UsersApart
) -> dict[str, Pair]:
    """Backward and forward loss functions against each adversary: one who knows the estimate, the
    worst possible chain, the habits of one user, or any evidence.

    `counted` holds the steps that show the shared chain, and smoothing adds `smoothing` of them to
    each row; `confidence` is that of the set of possible chains; `users` says whose own habits may
    differ. Adversaries for whom there are too many states are left out.
    """
    n = len(counted.states)
    matrices = EstimatedMatrices.of(counted, smoothing)
    upper = upper_losses(counted, confidence)
    adversaries: dict[str, Pair] = {
        ESTIMATE: pair_of(counted, matrices),
        UPPER: _pair_of_upper_ends(counted, upper),
    }
    if n <= MOST_FOR_PRIORS:
        of_any_prior = counted.at_phases(map(PriorFreeLoss, matrices.forward))
        adversaries[PRIOR_FREE] = (of_any_prior, of_any_prior)
    data = users.data
    if data.n_users > 1 and data.n_users * n**2 <= MOST_FOR_USERS:
        adversaries[WORST_USER] = any_chain()
        if upper is not None:
            losses = _losses_of_users(counted, matrices, smoothing, upper, users)
            adversaries[WORST_USER] = worst_of_users(counted, matrices, losses, users, confidence)
    return adversaries


def _losses_of_users(
    counted: CountedSteps,
    matrices: EstimatedMatrices,
    smoothing: float,
    upper: Losses,
    users: UsersApart,
) -> list[Losses]:
    """The loss functions of the shared chain at its upper end, and those of the habits of all
    users, where these differ."""
    losses = [upper]
    if users.shared_weight is not None:
        share = smoothing / len(counted.states)
        losses.append(_losses_of_all(users.data, counted, matrices, share, users.shared_weight))
    return losses


def _losses_of_all(
    data: Sequences, counted: CountedSteps, matrices: EstimatedMatrices, share: float, weight: float
) -> Losses:
    """The loss functions of the habits of all users, for each group of phases.

    The chains of each user at each phase are shrunk towards the shared ones, `matrices`, by
    `weight` pseudo-transitions. Where all hours are alike, smoothing adds `share` steps to each
    count of the shared one.
    """
    if counted.groups is None:
        both = loss_of_all_users(data, smoothing=share, prior_weight=weight)
        return Losses([both[0]], [both[1]])
    backward = []
    forward = []
    for group, steps in enumerate(steps_by_group(data, counted.groups)):
        shared = {"backward": matrices.backward[group], "forward": matrices.forward[group]}
        of_group = (PrivacyLossFunction(shared["backward"]), PrivacyLossFunction(shared["forward"]))
        if len(steps):  # else nobody was seen at these hours
            of_group = loss_of_all_users(steps, prior_weight=weight, pooled=shared)
        backward.append(of_group[0])
        forward.append(of_group[1])
    return Losses(backward, forward)


def steps_by_group(data: Sequences, groups: PhaseGroups) -> Iterator[Sequences]:
    """The steps of each group of phases, as sequences of two values."""
    later = data.places_of_later_values()
    owner = np.repeat(np.arange(len(data)), np.maximum(data.lengths - 1, 0))
    group_of_step = groups.of_values(data)[later - 1]
    for group in range(groups.n_groups):
        chosen = group_of_step == group
        yield data.gather(later[chosen] - 1, later[chosen] + 1, owner[chosen])


def largest_tpl(budgets: ArrayLike, pair: Pair) -> float:
    """The largest TPL over time of budgets (T,), in nats; `pair` are the backward and the forward
    loss function."""
    return float(temporal_privacy_leakage(budgets, *pair).tpl.max())


def plans_for(
    alpha: float, horizon: int, adversaries: dict[str, Pair], sensitivity: float
) -> list[Plan]:
    """α/T, and a plan for each other scheme and each of the adversaries, which are loss functions
    by name; each says its largest TPL against all of them."""

    def plan_for(scheme: str, against: str, pair: Pair) -> Plan:
        """The plan of a scheme against the adversary called `against`, or the reason why it has
        none."""
        budgets = allocate(scheme, alpha, pair, horizon)
        if isinstance(budgets, str):
            message = budgets
            if against in (UPPER, WORST_USER):
                message = UNBOUNDED
            return Plan(scheme, against, None, {}, message=message)
        leaked = {name: largest_tpl(budgets, other) for name, other in adversaries.items()}
        return Plan(scheme, against, budgets, leaked, mean_error(budgets, sensitivity))

    plans = [plan_for(COMPOSED, ANYBODY, adversaries[ESTIMATE])]
    for name, pair in adversaries.items():
        plans += [plan_for(scheme, name, pair) for scheme in SCHEMES if scheme != COMPOSED]
    return plans


def recommended(
    plans: Sequence[Plan], alpha: float, model_believable: bool, against: str = UPPER
) -> Plan:
    """The plan of least error that keeps alpha both at the upper end and against the adversary
    called `against`.

    It must keep alpha for the worst user's habits, too, as far as they are told. It is α/T if the
    model is not believable, or if no other plan is clearly better.
    """
    composed = next(plan for plan in plans if plan.scheme == COMPOSED)
    possible = [plan for plan in plans if plan.budgets is not None]
    kept = {UPPER, WORST_USER, against}
    safe = [
        plan
        for plan in possible
        if all(leaked <= alpha for name, leaked in plan.tpl.items() if name in kept)
    ]
    best = min(safe, key=lambda plan: plan.error, default=composed)
    if not model_believable or not is_clearly_better(best.error, composed.error):
        return composed
    return best


def is_clearly_better(error: Any, of_shares: Any) -> Any:
    """Whether the error of a plan is enough below that of α/T for the plan to be named; one error
    or many."""
    return error <= (1.0 - WORTHWHILE) * of_shares
