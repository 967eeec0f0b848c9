"""The habits of single users, as far as their own steps tell them, and the loss functions that hold
for all of them.

The rows of a user are (c + w p) / (|c| + w) for the own counts c, the shared rows p and the weight
w that fits the user best (`evidence`); or those of all, some hours earlier or later. They count as
far as they are probable: with the evidence e for own habits of one of U users, one of whom is taken
to be odd, that is e / (U + e). Users who are odd at even odds or better also have an upper end, as
the shared chain has one.
"""

from __future__ import annotations
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from tplfrontier.chains.confidence import loss_from_counts
from tplreport.reporting.checks import LEAST_NATS, USERS, Answers
from tplreport.reporting.counted_steps import CountedSteps, EstimatedMatrices
from tplreport.reporting.evidence import HOURS_SHIFTED, WEIGHTS, UserEvidence, grains_of_users
from tplreport.reporting.steps_of_users import StepBlocks, has_parts_of_day
from tplrepro.leakage.envelope import hull_of_points
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.markov.phases import count_by_group
from tplrepro.markov.sequences import Sequences, count_transitions
from tplrepro.markov.transition import TransitionMatrix

#: So many users, those with the most evidence for own habits, are looked at one by one.
MOST_USERS = 20
#: How often the interval of shares is halved in which a plan begins to break.
HALVINGS = 12
#: The evidence for users is the mean of so many e-values, one of which is for single users.
N_CONSTRUCTIONS = 4
#: Users whose own habits are less probable than this are not looked at.
LEAST_PROBABLE = 0.01


@dataclass(frozen=True, eq=False)
class HabitsOfUser:
    """What is known of one user."""

    number: int
    name: Any
    probability: float  # that there are own habits
    weight: float  # of the shared rows
    at_all_hours: bool  # whether the user differs in the same way at all hours
    shift: int  # hours by which the user's habits are those of all later on

    @property
    def is_odd(self) -> bool:
        return self.probability >= 0.5


def users_apart(evidence: UserEvidence, blocks: StepBlocks) -> Iterator[HabitsOfUser]:
    """The users with the most evidence for habits of their own, the oddest first."""
    n_users = blocks.n_users
    grains = grains_of_users(blocks.clock, has_parts_of_day(blocks.data))
    is_shifted = evidence.is_shifted
    order = np.argsort(-evidence.each, kind="stable")
    for number in order[:MOST_USERS].tolist():
        odds = evidence.each[number] - np.log(n_users)
        probability = 1.0 / (1.0 + float(np.exp(-odds)))
        if probability < LEAST_PROBABLE:
            return
        best = int(evidence.best[number])
        shift = 0
        if is_shifted[number]:
            shift = HOURS_SHIFTED[int(evidence.best_shift[number])]
        yield HabitsOfUser(
            number,
            blocks.names[number],
            probability,
            WEIGHTS[best % len(WEIGHTS)],
            grains[best // len(WEIGHTS)] == "state",
            shift,
        )


@dataclass(frozen=True, eq=False)
class UsersApart:
    """The users whose habits may be their own, and the sequences of all."""

    data: Sequences
    looked_at: tuple[HabitsOfUser, ...]
    # of the shared habits in those of each user; None where all have the shared ones
    shared_weight: float | None = None
    shifts: tuple[int, ...] = ()  # hours by which any user's may be those of all later on

    @classmethod
    def of(cls, data: Sequences, blocks: StepBlocks, answers: Answers) -> UsersApart:
        """Those for whom there is the most evidence; all, where users differ."""
        shared_weight = None
        if USERS in answers.found:
            shared_weight = answers.users.best_weight
        shifts = answers.users.likely_shifts()
        return cls(data, tuple(users_apart(answers.users, blocks)), shared_weight, shifts)


@dataclass(frozen=True, eq=False)
class Losses:
    """Backward and forward loss functions of each group of phases."""

    backward: list[PrivacyLossFunction]
    forward: list[PrivacyLossFunction]


def losses_of_user(
    habits: HabitsOfUser,
    data: Sequences,
    counted: CountedSteps,
    matrices: EstimatedMatrices,
    confidence: float,
) -> list[Losses]:
    """The loss functions of the rows that a user may have; `data` are the user's sequences."""
    own = _own_tables(habits, data, counted)
    backward = [table.T for table in own]
    probable = Losses(
        _of_mixtures(backward, matrices.backward, habits),
        _of_mixtures(own, matrices.forward, habits),
    )
    if not habits.is_odd:
        return [probable]
    each = 1.0 - (1.0 - confidence) / 2.0
    upper = Losses(
        _upper_ends(backward, matrices.backward, habits.weight, each, counted.states),
        _upper_ends(own, matrices.forward, habits.weight, each, counted.states),
    )
    return [probable, upper]


def _own_tables(habits: HabitsOfUser, data: Sequences, counted: CountedSteps) -> list[np.ndarray]:
    """The user's steps in each group of phases; those of all hours, if they are alike."""
    if counted.groups is None:
        return [count_transitions(data)[0].toarray()]
    n = len(counted.states)
    of_groups = count_by_group(data, counted.groups).toarray().reshape(-1, n, n)
    if habits.at_all_hours:
        return [of_groups.sum(axis=0)] * len(of_groups)
    return [*of_groups]


def _of_mixtures(
    tables: list[np.ndarray], shared: list[TransitionMatrix], habits: HabitsOfUser
) -> list[PrivacyLossFunction]:
    """The loss functions of the mean of the user's rows and the shared ones, as probable as each
    is."""
    losses = []
    for table, matrix in zip(tables, shared, strict=True):
        p = matrix.toarray()
        totals = table.sum(axis=1, keepdims=True)
        rows = (table + habits.weight * p) / (totals + habits.weight)
        mean = habits.probability * rows + (1.0 - habits.probability) * p
        losses.append(PrivacyLossFunction(TransitionMatrix(mean, normalize=True)))
    return losses


def _upper_ends(
    tables: list[np.ndarray],
    shared: list[TransitionMatrix],
    weight: float,
    confidence: float,
    states: list,
) -> list[PrivacyLossFunction]:
    """The upper ends of the loss functions of the user's rows, which have `weight` steps of the
    shared ones."""
    counts = [
        table + weight * matrix.toarray() for table, matrix in zip(tables, shared, strict=True)
    ]
    return list(loss_from_counts(counts, confidence, states))


def worst_of_users(
    counted: CountedSteps,
    matrices: EstimatedMatrices,
    losses: list[Losses],
    users: UsersApart,
    confidence: float,
) -> tuple[Any, Any]:
    """The backward and the forward loss functions of all who may have habits of their own, no
    smaller than `losses`; cycles where habits follow the clock.

    `matrices` are those of the shared chain, whose upper end is the first of the losses.
    """
    groups_of_step = _groups_of_step(counted)
    shifts = {habits.shift for habits in users.looked_at if habits.shift and habits.is_odd}
    shifts.update(users.shifts)
    columns = [groups_of_step]
    for hours in sorted(shifts):
        columns.append(np.roll(groups_of_step, -_steps_of_hours(hours, counted)))
    own = list(losses)
    for habits in users.looked_at:
        if not habits.shift:
            steps = users.data.select(users.data.users == habits.name)
            own += losses_of_user(habits, steps, counted, matrices, confidence)
    distinct, kinds = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    sides = []
    for side in ("backward", "forward"):
        shared = getattr(losses[0], side)
        worst = []
        for group, *shifted in distinct.tolist():
            of_others = [shared[other] for other in shifted]
            worst.append(_largest([getattr(one, side)[group] for one in own] + of_others))
        sides.append(counted.at_steps([worst[kind] for kind in kinds.ravel().tolist()]))
    return sides[0], sides[1]


def _groups_of_step(counted: CountedSteps) -> np.ndarray:
    """The group of each step of a period, (p,)."""
    if counted.groups is None:
        return np.zeros(1, dtype=np.int64)
    return counted.groups.codes


def _steps_of_hours(hours: int, counted: CountedSteps) -> int:
    assert counted.groups is not None
    return round(timedelta(hours=hours) / counted.groups.step)


def _largest(losses: list[PrivacyLossFunction]) -> PrivacyLossFunction:
    """The least loss function that is no smaller than these."""
    first, *others = losses
    if not others:
        return first
    return PrivacyLossFunction.of_hull(
        first.matrix, hull_of_points(np.vstack([loss.hull for loss in losses]))
    )


def count_well_known(
    blocks: StepBlocks, matrices: EstimatedMatrices, breaks: Callable[[EstimatedMatrices], bool]
) -> int:
    """How many users have enough steps to show habits that a plan is not made for.

    These are the habits of all, but staying more often: by the least share with which the plan
    `breaks`. They would show if a user's steps, from where they began, were expected to give
    evidence beyond chance.
    """
    low = 0.0
    high = 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if breaks(_staying(matrices, middle)):
            high = middle
        else:
            low = middle
    if high == 1.0:  # even who never moves is safe
        return blocks.n_users
    divergences = []
    for shared, odd in zip(matrices.forward, _staying(matrices, high).forward, strict=True):
        p = shared.toarray()
        q = odd.toarray()
        divergences.append(np.sum(q * np.log(q / p, where=q > 0, out=np.zeros_like(q)), axis=1))
    of_rows = np.array(divergences)  # (groups, n)
    least = LEAST_NATS + np.log(N_CONSTRUCTIONS * blocks.n_users)
    known = 0
    for steps in blocks:
        expected = steps.sum_by_user(of_rows[steps.phase, steps.before])
        known += int((expected >= least).sum())
    return known


def _staying(matrices: EstimatedMatrices, share: float) -> EstimatedMatrices:
    """The matrices of who does not move with this probability, and else as all."""

    def mixed(matrix: TransitionMatrix) -> TransitionMatrix:
        p = matrix.toarray()
        return TransitionMatrix(share * np.eye(len(p)) + (1.0 - share) * p, normalize=True)

    return EstimatedMatrices([*map(mixed, matrices.backward)], [*map(mixed, matrices.forward)])
