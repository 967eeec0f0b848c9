"""Habits that follow the clock: one transition matrix for each step of a day, a week or another
period.

The matrix of a step stands at the same place on both sides: place r of a forward cycle holds
Pr(l^{t+1} | l^t), and of a backward cycle Pr(l^t | l^{t+1}), for times t at phase r. The first time
point is at phase 0 (`Cycle.starting_at`).

The *law* of a time is the distribution of the state then. A backward matrix depends on the law of
the earlier state, and so on how the chain began. `Cycle.reverse` names three cases: the chain
starts *in the habit*, in the law that repeats itself with the cycle; it starts in a *known* law; or
nothing is known of the *start*. docs/theory/promises.md proves what holds in each case.
"""

from __future__ import annotations
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import inf
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.markov.transition import (
    DAY,
    WEEK,
    WEEKDAYS,
    TransitionMatrix,
    as_step,
    as_transition_matrix,
)
from tplrepro.validation import (
    RngLike,
    as_generator,
    check_distribution,
    check_horizon,
    checked_states,
    common_states,
)

MIDNIGHT = timedelta(0)
TICK = timedelta(microseconds=1)
#: Periods with a clock.
PERIODS: dict[str | None, timedelta] = {"day": DAY, "week": WEEK}
NAME_OF_PERIOD = {length: name for name, length in PERIODS.items()}
#: A known start counts as forgotten once its law is this close to that of the habit.
FORGOTTEN = 1e-3
#: Numbers that the exact backward matrices of a known start may have; later ones are bounded.
MOST_ENTRIES = 5_000_000
#: Steps after which a start that is not forgotten is an error.
MOST_STEPS = 100_000
#: Of sparse matrices, whose products are dense.
MOST_STATES = 3000
#: How a chain began: its law repeats with the cycle, is that of an array, or is not known.
Start: TypeAlias = Literal["habit", "any"] | ArrayLike


@dataclass(frozen=True, eq=False)
class NearHabit:
    """A step back in time whose law is near that of the habit.

    `backward` is the matrix of the habit, whose forward one is `forward`. The law of the earlier
    state differs from the habit's by at most `distance` in Hilbert's metric.
    """

    backward: TransitionMatrix
    distance: float
    forward: TransitionMatrix

    @property
    def states(self) -> Sequence:
        return self.backward.states

    @property
    def n_states(self) -> int:
        return self.backward.n_states


@dataclass(frozen=True, eq=False)
class AnyLaw:
    """A step back in time under any law of the earlier state: all that is known is the `forward`
    matrix."""

    forward: TransitionMatrix

    @property
    def states(self) -> Sequence:
        return self.forward.states

    @property
    def n_states(self) -> int:
        return self.forward.n_states


class Cycle:
    """What the adversary knows of each step of a period, such as the 24 hours of a day.

    It takes the place of a matrix wherever one is taken. A matrix is a cycle of one.

    Parameters
    ----------
    steps : sequence (p,) of TransitionMatrix or array-like (n, n), PrivacyLossFunction or None
        Those of the steps from each phase to the next, the last one back to phase 0; or one matrix.
    phases : sequence (p,) of labels, optional
        By default the hours of the clock, where a step is given, else 0..p-1.
    step : str, datetime.timedelta or None
        The length of a step of whole microseconds, such as "1h", by default that of the matrices.
        If p steps are a day or a week, phase 0 is the one that begins at midnight, local time, or
        at midnight before Monday.
    first : sequence of the same, optional
        What is known of the first steps, in place of the cycle's.
    begins : datetime.timedelta
        How long after that midnight phase 0 begins, if it is another one.

    Raises
    ------
    ValueError
        If `steps` is empty, for matrices that are not row-stochastic or have different states, for
        phases that are not p distinct labels, for steps of different length, or if phase 0 begins
        elsewhere than within its day or week.

    Examples
    --------
    >>> night, day = [[0.98, 0.02], [0.02, 0.98]], [[0.7, 0.3], [0.4, 0.6]]
    >>> habits = Cycle([night, night, day, day], step="6h")
    >>> habits
    Cycle(4 phases '00:00', '06:00', '12:00', '18:00' of a day; 2 states)
    >>> habits.reverse()[2].probabilities.round(4).tolist()
    [[0.6947, 0.3053], [0.394, 0.606]]
    >>> habits.starting_at("12:00").phases
    ['12:00', '18:00', '00:00', '06:00']
    """

    def __init__(
        self,
        steps: Any,
        phases: Iterable | None = None,
        *,
        step: str | timedelta | None = None,
        first: Sequence = (),
        begins: timedelta = MIDNIGHT,
    ):
        given = steps if _is_several(steps) else [steps]
        if len(given) == 0:
            raise ValueError("a cycle needs at least one step, found none; give one for each phase")
        self._steps = _checked_steps(given)
        self._first = _checked_steps(first)
        #: The labels of the states, None if no matrix is known.
        self.states = common_states(_states_of([*self._steps, *self._first]))
        #: The length of a step, if it is known.
        self.step = _common_step(step, [*self._steps, *self._first])
        #: How long after midnight, or midnight before Monday, phase 0 begins; zero without a clock.
        self.begins = begins
        self._check_begins()
        if phases is None:
            phases = self._clock_labels()
        labels = checked_states(phases, len(self._steps))
        #: The labels of the phases.
        self.phases = list(labels)

    @classmethod
    def from_sequences(
        cls,
        sequences: Any,
        phase: Any = "hour",
        smoothing: float = 0.0,
        *,
        states: Iterable | None = None,
        direction: str = "forward",
        sparse: bool | None = None,
        weight: float | None = None,
        user: Any = None,
        time: Any = None,
        state: Any = None,
    ) -> Cycle:
        """The matrix of each phase of a day or week, shrunk towards the one of all phases.

        Parameters
        ----------
        sequences : Sequences or DataFrame
            With times that are one step apart in each sequence; a DataFrame has the columns user,
            time (time stamps) and state.
        phase : str, int, callable or sequence
            Which steps share a matrix: "hour", "weekday" (seven), "weekend" (Saturday and Sunday
            against the rest), a number of blocks of a day, a function from a DatetimeIndex to the
            label of each time, or the labels of all steps of a day, or of a week from Monday on. A
            step belongs to the phase in which it begins, by the clock of the times.
        smoothing : float
            s >= 0, which is added to each count of the matrix of all phases.
        states : sequence of labels, optional
            All states in their order, instead of the values seen, sorted.
        direction : str
            "forward" estimates Pr(l^{t+1} | l^t), "backward" Pr(l^t | l^{t+1}), t in each phase.
        sparse : bool, optional
            Whether the matrices are sparse; by default from 4,096 states on.
        weight : float, optional
            Weight of the matrix of all phases, in steps from each state; by default the likeliest
            one, so that phases with few data, or without differences, have the pooled matrix.
        user, time, state : optional
            The columns of a DataFrame, where they have other names.

        Returns
        -------
        Cycle of a day, or of a week if its days differ

        Raises
        ------
        ValueError
            Without times or one step, for a step that divides no week, an unknown phase, malformed
            sequences, or if a state is never left and s is 0.

        Examples
        --------
        >>> import pandas as pd
        >>> times = pd.date_range("2024-05-01", periods=9, freq="12h")
        >>> walk = pd.DataFrame({"user": 1, "time": times, "state": list("aabbaabba")})
        >>> habits = Cycle.from_sequences(walk, phase=2, weight=1.0)
        >>> [matrix.probabilities.round(2).tolist() for matrix in habits]
        [[[0.83, 0.17], [0.17, 0.83]], [[0.17, 0.83], [0.83, 0.17]]]
        """
        from tplrepro.markov.phases import estimate_matrices
        from tplrepro.markov.sequences import rename_columns

        renamed = rename_columns(sequences, {"user": user, "time": time, "state": state})
        matrices = estimate_matrices(
            renamed,
            phase,
            smoothing=smoothing,
            weight=weight,
            states=states,
            direction=direction,
            sparse=sparse,
        )
        return cls(matrices, step=matrices[0].step)

    def _check_begins(self) -> None:
        """ValueError unless phase 0 begins within the day or week."""
        period = PERIODS.get(self.period, TICK)
        if not MIDNIGHT <= self.begins < period:
            raise ValueError(
                f"begins must be a time after midnight within the day or week that all steps are, "
                f"found {self.begins}; give step=, and less than a period"
            )

    def _clock_labels(self) -> list:
        """The time of the day, or of the week, at which each phase begins; else 0..p-1."""
        if self.step is None or self.period is None:
            return list(range(len(self)))
        period = PERIODS[self.period]
        is_of_week = period == WEEK
        return [
            _clock_label((self.begins + self.step * phase) % period, is_of_week)
            for phase in range(len(self))
        ]

    def __len__(self) -> int:
        """The number of phases, p."""
        return len(self._steps)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._steps)

    def __getitem__(self, phase: int) -> Any:
        """What is known of the step from a phase, which counts from 0, to the next one."""
        return self._steps[phase]

    def __repr__(self) -> str:
        labels = [repr(label) for label in self.phases]
        if len(labels) > 4:
            labels[2:-1] = ["..."]
        noun = "phase" if len(self) == 1 else "phases"
        text = f"{len(self)} {noun} {', '.join(labels)}"
        if self.period is not None:
            text += f" of a {self.period}"
        if self._first:
            text += f"; {len(self._first)} first steps"
        if self.states is not None:
            text += f"; {len(self.states)} states"
        return f"Cycle({text})"

    @property
    def first(self) -> list:
        """What is known of the first steps, in place of the cycle's."""
        return list(self._first)

    @property
    def period(self) -> str | None:
        """ "day" or "week" if so long is a period, None if it is another or is not known."""
        if self.step is None:
            return None
        length = self.step * len(self)
        return NAME_OF_PERIOD.get(length)

    def at(self, time: int) -> Any:
        """What is known of the step from one time point, which counts from 0, to the next."""
        if time < len(self._first):
            return self._first[time]
        return self._steps[time % len(self)]

    def over(self, steps: int) -> list:
        """What is known of each of so many steps from the first time point on."""
        return [self.at(time) for time in range(steps)]

    def map(self, function: Callable[[Any], Any]) -> Cycle:
        """The cycle of `function(step)`, which is called once for each distinct step."""
        distinct = {id(step): step for step in [*self._steps, *self._first]}
        made = {key: function(step) for key, step in distinct.items()}
        first = [made[id(step)] for step in self._first]
        return self._with_steps([made[id(step)] for step in self._steps], first)

    def _with_steps(self, steps: Sequence, first: Sequence = ()) -> Cycle:
        """A cycle of other steps by the same clock."""
        return Cycle(steps, self.phases, step=self.step, first=first, begins=self.begins)

    def starting_at(self, phase: Any) -> Cycle:
        """The same cycle from another phase on, by its label: the phase of the first time point.

        Parameters
        ----------
        phase : one of `phases`

        Returns
        -------
        Cycle

        Raises
        ------
        ValueError
            For an unknown phase, or if the first steps differ from the cycle's: these belong to one
            start.
        """
        if phase not in self.phases:
            raise ValueError(
                f"phase must be one of the cycle's, found {phase!r}; give one of {self.phases}"
            )
        if self._first:
            raise ValueError(
                "a cycle with first steps of its own begins where it does, found another phase, "
                f"{phase!r}; choose the phase before reverse()"
            )
        number = self.phases.index(phase)
        begins = MIDNIGHT
        if self.step is not None and self.period is not None:
            begins = (self.begins + self.step * number) % PERIODS[self.period]
        return Cycle(
            [*self._steps[number:], *self._steps[:number]],
            [*self.phases[number:], *self.phases[:number]],
            step=self.step,
            begins=begins,
        )

    def laws(self) -> np.ndarray:
        """The law of the state at each phase that repeats itself with the cycle, (p, n).

        Returns
        -------
        array (p, n), the rows of which are distributions: law[r + 1] = law[r] P_r

        Raises
        ------
        ValueError
            If a step has no matrix, or several laws repeat themselves.

        Examples
        --------
        >>> Cycle([[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.5, 0.5]]]).laws().round(4).tolist()
        [[0.6667, 0.3333], [0.3333, 0.6667]]
        """
        matrices = self.known_matrices(self._steps)
        period_product = product_of(matrices)
        if period_product.is_sparse and period_product.n_states <= MOST_STATES:
            # That of a sparse matrix has the digits of the sum, not those of unlikely states.
            period_product = TransitionMatrix(period_product.toarray(), period_product.states)
        laws = [period_product.stationary()]
        for matrix in matrices[:-1]:
            law = laws[-1] @ matrix
            laws.append(law / law.sum())
        return np.array(laws)

    def reverse(self, start: Start = "habit") -> Cycle:
        """Bayes' rule: the backward cycle of a forward one.

        Parameters
        ----------
        start : "habit", "any" or array-like (n,)
            The law of the first state, its distribution. "habit": the law that repeats itself with
            the cycle, whatever a user's data are, and the adversary knows no more. An array: this
            law. "any": nothing is known of it, and all that follows holds for every law.

        Returns
        -------
        Cycle, whose place r holds what is known of the state at phase r, given that at r + 1
            For "habit" the backward matrices; states that cannot occur repeat the row of one that
            can, which changes no leakage. For an array the matrices of the first steps, until the
            law is nearly that of the habit, at most 5,000,000 / n^2 of them; what follows holds
            bounds (`NearHabit`). For "any" all places hold bounds (`AnyLaw`, then `NearHabit`).
            Leakages from bounds are upper bounds, and what needs a matrix, such as `sample`,
            refuses them.

        Raises
        ------
        ValueError
            If several laws repeat themselves, for an array that is no distribution, or if the start
            is not forgotten within 100,000 steps.

        Examples
        --------
        >>> seldom = Cycle([[[0.9999, 0.0001], [0.5, 0.5]]])
        >>> back = seldom.reverse(start=[0.5, 0.5])
        >>> len(back.first), back.first[0].probabilities.round(4).tolist()
        (22, [[0.6666, 0.3334], [0.0002, 0.9998]])
        """
        self._check_is_forward()
        matrices = self.known_matrices(self._steps)
        if isinstance(start, str):
            if start == "habit":
                return self._with_steps(self._reverse_of_habit())
            if start == "any":
                return self._reverse_of_any_law(matrices)
            raise ValueError(
                f'start must be "habit", "any" or the law of the first state, found {start!r}; '
                "give one of them"
            )
        law = check_distribution(start, self.states, "start")
        return self._reverse_of_known_law(matrices, law)

    def _reverse_of_habit(self) -> list[TransitionMatrix]:
        """The backward matrix of each step, if laws repeat with the cycle."""
        matrices = self.known_matrices(self._steps)
        if len(matrices) == 1 and matrices[0].is_sparse:
            return [matrices[0].reverse()]
        return _reverse_steps(matrices, self.laws())

    def _reverse_of_known_law(self, matrices: list[TransitionMatrix], law: np.ndarray) -> Cycle:
        laws_of_habit = self.laws()
        backward = _reverse_steps(matrices, laws_of_habit)
        p = len(matrices)
        n = law.size
        most_exact = MOST_ENTRIES // n**2
        first: list = []
        distance = hilbert_distance(law, laws_of_habit[0])
        while distance > FORGOTTEN:
            _check_is_forgotten(len(first), distance)
            phase = len(first) % p
            step: Any = NearHabit(backward[phase], distance, matrices[phase])
            if len(first) < most_exact:
                step = reverse_step(matrices[phase], law)
            first.append(step)
            law = law @ matrices[phase]
            law /= law.sum()
            distance = hilbert_distance(law, laws_of_habit[len(first) % p])
            distance += rounding_of_laws(len(first) + p, n)
        return self._bounded_after_start(backward, distance, matrices, first)

    def _reverse_of_any_law(self, matrices: list[TransitionMatrix]) -> Cycle:
        distinct = {id(matrix): AnyLaw(matrix) for matrix in matrices}
        unknown = [distinct[id(matrix)] for matrix in matrices]
        if any(has_one_support(step.forward) for step in distinct.values()):
            return self._with_steps(unknown)
        # Nothing is known until each state can have led to each other one; from then on the law
        # comes nearer and nearer to that of the habit.
        laws_of_habit = self.laws()
        backward = _reverse_steps(matrices, laws_of_habit)
        p = len(matrices)
        first: list = []
        product = np.eye(matrices[0].n_states)
        distance = inf
        while distance > FORGOTTEN:
            _check_is_forgotten(len(first), distance)
            phase = len(first) % p
            step: Any = unknown[phase]
            if distance < inf:
                step = NearHabit(backward[phase], distance, matrices[phase])
            first.append(step)
            product = product @ matrices[phase].toarray()
            product /= product.sum(axis=1, keepdims=True)
            # Each law is a mean of the rows of the product, and the balls of the metric are convex.
            law_of_habit = laws_of_habit[len(first) % p]
            distance = max(hilbert_distance(row, law_of_habit) for row in product)
            distance += rounding_of_laws(len(first) + p, len(product))
        return self._bounded_after_start(backward, distance, matrices, first)

    def _bounded_after_start(
        self, backward: list, distance: float, matrices: list, first: list
    ) -> Cycle:
        """The backward cycle after its `first` steps, from the `backward` matrices of the habit and
        the forward `matrices`, p of each: from then on, the law is that of the habit up to
        `distance`, nats, which does not grow."""
        steps = [
            NearHabit(matrix, distance, forward)
            for matrix, forward in zip(backward, matrices, strict=True)
        ]
        return self._with_steps(steps, first)

    def sample(self, length: int, *, rng: RngLike, initial: ArrayLike | None = None) -> list:
        """A path of states, by their labels, from phase 0 on.

        Parameters
        ----------
        length : int
            The number of states.
        rng : int, numpy.random.Generator or None
            A seed, a generator, or None for a path that nobody can repeat.
        initial : array-like (n,), optional
            The distribution of the first state, by default that of the habit.

        Returns
        -------
        list

        Raises
        ------
        ValueError
            If `initial` is no distribution, or a step has no matrix.

        Examples
        --------
        >>> Cycle([[[0.0, 1.0], [1.0, 0.0]], np.eye(2)]).sample(5, rng=1, initial=[1, 0])
        [0, 1, 1, 0, 0]
        """
        matrices = self.known_matrices([*self._steps, *self._first])
        if initial is None:
            probabilities = self.laws()[0]
        else:
            probabilities = check_distribution(initial, self.states, "initial")
        rng = as_generator(rng)
        states = matrices[0].states
        path = []
        for time in range(check_horizon(length, "length")):
            number = rng.choice(len(states), p=probabilities)
            path.append(states[number])
            probabilities = self.at(time).row(number)
        return path

    def every(self, k: int) -> Cycle:
        """The cycle of every k-th time point, for coarser steps.

        Parameters
        ----------
        k : int >= 1
            How many steps become one; if they do not divide p, the new period is several old ones.

        Returns
        -------
        Cycle of forward matrices, if this is one

        Raises
        ------
        ValueError
            For a k that is no whole number from 1 on, if a step has no matrix, or if the first
            steps differ from the cycle's, as those of a reversed cycle may.

        Examples
        --------
        >>> hours = Cycle([np.eye(2), [[0.8, 0.2], [0.4, 0.6]]], step="12h")
        >>> days = hours.every(2)
        >>> len(days), days[0].probabilities.tolist(), str(days.step)
        (1, [[0.8, 0.2], [0.4, 0.6]], '1 day, 0:00:00')
        """
        k = check_horizon(k, "k")
        self._check_is_forward()
        matrices = self.known_matrices(self._steps)
        p = len(matrices)
        starts = range(0, np.lcm(p, k), k)
        steps = []
        for start in starts:
            run = [matrices[(start + i) % p] for i in range(k)]
            steps.append(product_of(run))
        labels = [self.phases[start % p] for start in starts]
        if len(set(labels)) < len(labels):
            labels = list(range(len(labels)))
        length = None
        if self.step is not None:
            length = self.step * k
        coarse = Cycle(steps, labels, step=length)
        if coarse.period is None:
            return coarse
        return Cycle(steps, labels, step=length, begins=self.begins)

    def _check_is_forward(self) -> None:
        if self._first:
            raise ValueError(
                f"a cycle with first steps cannot be reversed or made coarser, found "
                f"{len(self._first)}; give a cycle of forward matrices"
            )

    def known_matrices(self, steps: Sequence) -> list[TransitionMatrix]:
        """The matrices of `steps`, the first of which has phase 0; ValueError if one has none, as
        a loss function."""
        for number, step in enumerate(steps):
            if not isinstance(step, TransitionMatrix):
                raise ValueError(
                    f"each step must have a matrix here, found {step!r} at phase "
                    f"{self.phases[number % len(self)]!r}; give a cycle of transition matrices"
                )
        return list(steps)


def check_is_exact(step: Any) -> None:
    """ValueError for a step of which only bounds are known, where its matrix is needed."""
    if isinstance(step, (NearHabit, AnyLaw)):
        kind = type(step).__name__
        raise ValueError(
            f"each step must have a known matrix here, found {kind}, which is a bound for several; "
            'reverse the cycle with start="habit", or give a list of the matrices of all steps'
        )


def as_cycle(correlation: Any) -> Cycle:
    """A cycle as it is; a matrix, a loss function or None as a cycle of one."""
    if isinstance(correlation, Cycle):
        return correlation
    return Cycle([correlation])


def product_of(matrices: Sequence[TransitionMatrix]) -> TransitionMatrix:
    """The matrix of several steps, one after the other."""
    if len(matrices) == 1:
        return matrices[0]
    product = _dense_array(matrices[0])
    for matrix in matrices[1:]:
        product = product @ _dense_array(matrix)
    return TransitionMatrix(product, matrices[0].states, normalize=True)


def reverse_step(matrix: TransitionMatrix, law: np.ndarray) -> TransitionMatrix:
    """The backward matrix of one step, by Bayes' rule from the law (n,) of the earlier state.

    A later state that cannot occur repeats the row of the likeliest one, which changes no leakage.
    """
    joint = _dense_array(matrix) * law[:, None]
    reached = joint.sum(axis=0)
    rows = np.arange(reached.size)
    rows[reached <= 0.0] = int(np.argmax(reached))
    return TransitionMatrix(joint.T[rows], matrix.states, normalize=True)


def _reverse_steps(matrices: list[TransitionMatrix], laws: np.ndarray) -> list[TransitionMatrix]:
    """Bayes' rule for each step, from the law of its earlier state."""
    return [reverse_step(matrix, law) for matrix, law in zip(matrices, laws, strict=True)]


def hilbert_distance(law: np.ndarray, other: np.ndarray) -> float:
    """Hilbert's distance of two laws (n,): the largest log of law_i other_j / (law_j other_i).

    >>> round(hilbert_distance(np.array([0.5, 0.5]), np.array([0.8, 0.2])), 6)  # log 4
    1.386294
    >>> hilbert_distance(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    inf
    """
    is_possible = law > 0.0
    if not np.array_equal(is_possible, other > 0.0):
        return inf
    log_ratio = np.log(law[is_possible]) - np.log(other[is_possible])
    return float(np.ptp(log_ratio))


def rounding_of_laws(steps: int, n: int) -> float:
    """A bound on what rounding may take from the distance of two laws that were multiplied by
    matrices (n, n) so many times: all terms are positive, so errors are relative and add up."""
    return 8.0 * (steps + 1) * (n + 2) * 2.0**-53


def has_one_support(matrix: TransitionMatrix) -> bool:
    """Whether the same states are possible next to every state."""
    is_possible = matrix.toarray() > 0.0
    return bool((is_possible == is_possible[0]).all())


def _check_is_forgotten(steps: int, distance: float) -> None:
    if steps >= MOST_STEPS:
        raise ValueError(
            f"the start must be forgotten within {MOST_STEPS:,} steps, found a distance of "
            f'{distance:.3g} from the habit; smooth the matrices, or give start="habit"'
        )


def _dense_array(matrix: TransitionMatrix) -> np.ndarray:
    if matrix.is_sparse and matrix.n_states > MOST_STATES:
        raise ValueError(
            f"products of matrices are dense: sparse ones may have {MOST_STATES} states, "
            f"found {matrix.n_states}; take fewer states"
        )
    return matrix.toarray()


def _is_several(steps: Any) -> bool:
    """Whether these are the matrices of several phases; rows of numbers are one matrix."""
    if isinstance(steps, np.ndarray):
        return steps.ndim == 3
    if isinstance(steps, Cycle):
        return True
    return isinstance(steps, (list, tuple)) and not any(np.ndim(item) == 1 for item in steps)


def _checked_steps(steps: Iterable) -> list:
    """Arrays as matrices; what holds a matrix, and None, stay as they are. One object stays one."""
    given = [*steps]
    distinct = {id(step): step for step in given}
    made = {key: _checked_step(step) for key, step in distinct.items()}
    return [made[id(step)] for step in given]


def _checked_step(step: Any) -> Any:
    is_checked = step is None or isinstance(step, (TransitionMatrix, NearHabit, AnyLaw))
    if is_checked or hasattr(step, "matrix"):  # a loss function
        return step
    return as_transition_matrix(step)


def _states_of(steps: Iterable) -> Iterator[Sequence]:
    for step in steps:
        if step is not None:
            yield getattr(step, "matrix", step).states


def _common_step(given: str | timedelta | None, steps: Iterable) -> timedelta | None:
    """The length of a step: what is given, else that of the matrices, which must agree."""
    length = as_step(given)
    for step in steps:
        own = getattr(getattr(step, "matrix", step), "step", None)
        if length is None:
            length = own
        if own is not None and own != length:
            raise ValueError(
                f"all steps of a cycle must have one length, found {length} and {own}; "
                "estimate the matrices with one step"
            )
    return length


def _clock_label(since_midnight: timedelta, is_of_week: bool) -> str:
    """The time of the day, or of the week from Monday on, so long after midnight."""
    days, time_of_day = divmod(since_midnight, DAY)
    hours, rest = divmod(time_of_day, timedelta(hours=1))
    minutes, seconds = divmod(rest, timedelta(minutes=1))
    label = f"{hours:02d}:{minutes:02d}"
    if seconds:
        label = f"{label}:{seconds.total_seconds():09.6f}"
    if is_of_week:
        label = f"{WEEKDAYS[days]} {label}"
    return label
