"""`tr.report`: from observations to a recommendation, five sentences, a table of plans, and checks
of the model.

The recommended plan keeps alpha against every chain that the counts of steps leave possible
(`tplfrontier.loss_from_counts`), not only against the estimate. Where a check doubts that there is
one such chain, the recommendation is α/T, which needs none: it keeps the whole series within
alpha.
"""

from __future__ import annotations
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from tplreport.people.uncertainty import LeakageInterval, leakage_interval
from tplreport.reading.matrices import RECOMMENDED
from tplreport.reading.table import is_in_partitions
from tplreport.reporting.allocation_schemes import gaussian_error
from tplreport.reporting.believable import SMOOTHING, JudgedChain, is_believable, is_refused
from tplreport.reporting.checks import REFUSED, Check
from tplreport.reporting.plans import (
    ANYBODY,
    ESTIMATE,
    ONE_PLACE,
    PRIOR_FREE,
    UPPER,
    Pair,
    Plan,
    any_chain,
    estimated_pair,
    largest_tpl,
    name_of,
    pair_of,
    plans_for,
    recommended,
)
from tplreport.reporting.sentences import (
    Verdict,
    at_each_time,
    budgets_in_words,
    doubts_of,
    judge,
    verdict,
)
from tplreport.reporting.simulated import SimulatedPlans, simulated_plans
from tplreport.reporting.time_of_day import AUTO
from tplrepro.display import count_from_one, count_noun, frame_as_html, label_log_axis, plot_frame
from tplrepro.markov.sequences import Sequences, as_sequences
from tplrepro.validation import (
    RngLike,
    as_generator,
    check_choice,
    check_horizon,
    check_level,
    check_positive,
    check_probability,
    check_sensitivity,
    check_smoothing,
    check_whole,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A condition of all that rests on backward matrices of the habit.
START = (
    "Leakages, and promises for any T, are for users who start in the habit: their first state "
    f"shows nothing but the habits of all. Those to {PRIOR_FREE} are for any start."
)
#: Up to this many states: bootstrap draws.
MOST_FOR_DRAWS = 500
#: An interval is of all draws but the least and the largest one.
FEWEST_DRAWS = 3
#: Pseudo-steps a row of the table of other smoothings, times the smoothing given.
FACTORS = (0.0, 0.1, 1.0, 10.0)


@dataclass(frozen=True, eq=False)
class PlannedPhases:
    """The phases of a day or week by which a report judges and plans."""

    name: str  # of what has a chain of its own, such as "blocks of 6 hours"
    n_chains: int
    period: str  # "day" or "week"
    zone: str | None  # whose clock tells them
    of_releases: list  # (T,), the label of the phase of each release

    @property
    def first(self) -> Any:
        """The phase of the first release."""
        return self.of_releases[0]

    @property
    def in_words(self) -> str:
        """The chains, such as "4 chains in turn (blocks of 6 hours of a day)"."""
        return f"{self.n_chains} chains in turn ({self.name} of a {self.period})"


@dataclass(frozen=True, eq=False)
class Report:
    """The advice for one data set, in nats; see `report`."""

    recommendation: Plan | None  # None where it is withheld, because a check refuses the model
    checks: tuple[Check, ...]
    plans: tuple[Plan, ...]
    # whether no check doubts the chain in a way that matters to the recommended plan
    believable: bool
    size: dict[str, int]  # users, sequences, states, steps
    count: float  # the usual size of a count
    settings: dict[str, Any]
    planned: dict[str, float]  # largest TPL of the planned releases to each adversary
    # pseudo-steps a row, and the largest TPL of the planned releases
    smoothings: tuple[tuple[float, float], ...]
    gaussian: dict[str, float]  # error of equal Gaussian noise by adversary, with a delta
    interval: LeakageInterval | None  # of the largest TPL of the planned releases
    adversaries: dict[str, Pair]  # the loss functions of each
    title: str
    reading: Any = None  # what was read, if a reader made the sequences
    # how many users have enough steps to show habits for which the recommended plan leaks twice
    # alpha; None: it needs no habits, or nothing is known of other users
    well_known_users: int | None = None
    # the phases of a day or week by which it judges; None: one chain for all hours
    rhythm: PlannedPhases | None = None

    def judge(self, budgets: ArrayLike | None = None, alpha: float | None = None) -> Verdict:
        """Whether budgets keep alpha against all that the data do not rule out.

        Parameters
        ----------
        budgets : array-like (T,), nats; by default the planned ones
        alpha : float, nats; by default the level of the report

        Returns
        -------
        Verdict, with the sentence that says so

        Raises
        ------
        ValueError
            For budgets that are not positive, finite numbers.
        """
        if alpha is None:
            alpha = self.settings["alpha"]
        if budgets is None:
            budgets = np.full(self.settings["horizon"], self.settings["epsilon"])
            each = at_each_time(self.settings)
            leaked = self.planned
        else:
            each = budgets_in_words(budgets)
            leaked = {name: largest_tpl(budgets, pair) for name, pair in self.adversaries.items()}
        doubts = ""
        if not self.believable:
            doubts = doubts_of(self)
        return judge(budgets, leaked, alpha, each, doubts, refused=bool(self.warnings))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict, in five sentences."""
        return verdict(self)

    @property
    def withheld(self) -> bool:
        """Whether there is no recommendation."""
        return self.recommendation is None

    @property
    def simulated(self) -> SimulatedPlans | None:
        """In how many simulated data sets a plan like the recommended one leaked more than α."""
        return simulated_plans(self)

    @property
    def best_for_one_place(self) -> Plan | None:
        """The plan of least error against a chain of order 2, where there is one because the order
        is doubtful."""
        plans = [plan for plan in self.plans if plan.against == ONE_PLACE]
        possible = [plan for plan in plans if plan.budgets is not None]
        return min(possible, key=lambda plan: plan.error, default=None)

    @property
    def size_in_words(self) -> str:
        """How many users, sequences, states and steps there are."""
        return ", ".join(
            count_noun(value, name.removesuffix("s"), ",") for name, value in self.size.items()
        )

    @property
    def read(self) -> tuple[str, ...]:
        """What was read, a line each."""
        if self.reading is None:
            return ()
        return self.reading.lines

    @property
    def warnings(self) -> tuple[str, ...]:
        """What heads the report: the sentences of the checks that refuse the model."""
        return tuple(
            f"{check.name}: {check.sentence}" for check in self.checks if check.verdict == REFUSED
        )

    def title_of(self, plan: Plan) -> str:
        """The name of a plan, marked if it is the recommended one."""
        if plan is self.recommendation:
            return f"{RECOMMENDED}{plan.name}"
        return plan.name

    @property
    def table(self) -> pd.DataFrame:
        """Every plan: the error of a count, its budgets, the largest TPL to each adversary, and the
        user level."""
        rows = []
        names = dict.fromkeys(self.planned)
        for plan in self.plans:
            names |= dict.fromkeys(plan.tpl)
        for plan in self.plans:
            row = {
                "plan": self.title_of(plan),
                "error": plan.error,
                "smallest budget": np.nan,
                "largest budget": np.nan,
            }
            if plan.budgets is not None:
                row["smallest budget"] = plan.budgets.min()
                row["largest budget"] = plan.budgets.max()
            row |= {f"TPL to {name}": plan.tpl.get(name, np.nan) for name in names}
            rows.append(row | {"user level": plan.user_level, "message": plan.message})
        for against, error in self.gaussian.items():
            name = name_of("Gaussian noise, equal", against)
            rows.append({"plan": name, "error": error, "message": ""})
        return pd.DataFrame(rows)

    @property
    def budgets(self) -> pd.DataFrame:
        """A row for each release t from 1, the phase of the day or week at which it is planned, if
        that matters, and a column for each plan; the name of the recommended one begins with
        "recommended: "."""
        columns: dict[str, Any] = {"t": np.arange(1, self.settings["horizon"] + 1)}
        if self.rhythm is not None:
            columns["phase"] = self.rhythm.of_releases
        for plan in self.plans:
            if plan.budgets is not None:
                columns[self.title_of(plan)] = plan.budgets
        return pd.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain types, for JSON; what has no number is None."""
        names = (
            "withheld",
            "warnings",
            "well_known_users",
            "sentences",
            "planned",
            "smoothings",
            "size",
            "settings",
        )
        values: dict[str, Any] = {"title": self.title, "read": None}
        if self.reading is not None:
            values["read"] = vars(self.reading)
        values |= {name: getattr(self, name) for name in names}
        values["checks"] = [vars(check) for check in self.checks]
        values["table"] = self.table.to_dict("records")
        plan = self.recommendation
        values["recommendation"] = None
        if plan is not None:
            named = {"plan": plan.name} | vars(plan)
            values["recommendation"] = named | {"user_level": plan.user_level}
        values["rhythm"] = None
        if self.rhythm is not None:
            values["rhythm"] = vars(self.rhythm)
        values["simulated"] = None
        if self.simulated is not None:
            values["simulated"] = vars(self.simulated)
        values["interval"] = None
        if self.interval is not None:
            values["interval"] = [self.interval.lower, self.interval.upper]
        return _plain(values)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the budgets of every plan over time with Matplotlib, on `ax` or new axes; returns
        the axes."""
        label = "release $t$"
        budgets = self.budgets.set_index("t")
        if self.rhythm is not None:
            label += f", the first at {self.rhythm.first}"
            budgets = budgets.drop(columns="phase")
        axes = plot_frame(budgets, ax, ylabel="budget (nats)", logy=True)
        count_from_one(axes.xaxis, label)
        label_log_axis(axes.yaxis)
        return axes

    def to_html(self, figures: bool = True) -> str:
        """A page of its own, without code; ModuleNotFoundError for figures without matplotlib."""
        from tplreport.reporting.html import page_of

        return page_of(self, figures)

    def __str__(self) -> str:
        lines = [*filter(None, [self.title]), *self.read, self.size_in_words]
        lines += [f"WARNING: {warning}." for warning in self.warnings]
        lines += [f"{number}. {sentence}" for number, sentence in enumerate(self.sentences, 1)]
        table = self.table[self.table["message"] == ""].drop(columns="message")
        lines += ["", table.to_string(index=False, float_format="{:.4g}".format, na_rep=""), ""]
        lines += [f"{plan.name}: {plan.message}." for plan in self.plans if plan.message]
        for check in self.checks:
            lines.append(
                f"{check.name}: {check.verdict}. {check.sentence[:1].upper()}{check.sentence[1:]}."
            )
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        table = self.table[self.table["message"] == ""].drop(columns="message")
        return frame_as_html(f"{self.size_in_words}. {' '.join(self.sentences)}", table)

    @property
    def notes(self) -> tuple[str, ...]:
        """Whom the numbers are about, and how much they depend on draws and on smoothing, a
        sentence each."""
        notes = [START]
        each = at_each_time(self.settings)
        if self.interval is not None:
            notes.append(self._note_on_interval(self.interval, each))
        values = ", ".join(f"{tpl:.4g} with {steps:g}" for steps, tpl in self.smoothings)
        if values:
            notes.append(
                f"Largest TPL {each}, by the steps that smoothing adds to a row: {values}."
            )
        return tuple(notes)

    def _note_on_interval(self, interval: LeakageInterval, each: str) -> str:
        """The interval of a leakage in words; `each` says what every release spends."""
        low = interval.lower
        high = interval.upper
        estimate = self.planned[ESTIMATE]
        note = (
            f"Redrawn data leak {low:.4g} to {count_noun(f'{high:.4g}', 'nat')} {each} "
            f"({interval.confidence:.0%} interval)"
        )
        if not low <= estimate <= high:
            why = "leakage is a maximum, which noise in redrawn data raises"
            note += f"; the estimate, {estimate:.4g}, is outside: {why}"
        return f"{note}."


def report(
    sequences: Any,
    alpha: float,
    horizon: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    sensitivity: float = 2.0,
    smoothing: float = SMOOTHING,
    confidence: float = 0.95,
    draws: int = 20,
    count: float | None = None,
    against: str = UPPER,
    cycle: str | None = AUTO,
    first: Any = None,
    anyway: bool = False,
    title: str = "",
    rng: RngLike = 0,
    progress: bool = True,
) -> Report:
    """Advice on a series of releases about the people in `sequences`.

    Parameters
    ----------
    sequences : as in `tplrepro.markov.as_sequences`
        Or a path or a DataFrame, in memory or of Dask, which are read by `read_sequences`. Within
        `joblib.parallel_config(backend="dask")`, or with other workers of joblib, blocks of users
        are judged by these; no digit of the result depends on it.
    alpha : float > 0, the level that the leakage about every time point must keep, in nats
    horizon : int >= 1, the number of releases T
    epsilon : float > 0, the budget planned for each release
        None: alpha, which ignores the correlation.
    delta : float, optional; Gaussian noise that keeps (alpha, delta) is shown as well
    sensitivity : float > 0, by how much one person's move changes the counts of a time point, in L1
    smoothing : float >= 0, pseudo-steps added to each row of counts, spread over the n states
    confidence : probability that the true chain is among those that the recommended plan withstands
    draws : bootstrap draws of users (of the posterior for one user); 0, or at least 3
        They give an interval of the leakage, of level 1 - 2 / draws whatever `confidence` is. None
        is drawn with draws = 0, with smoothing = 0 or with more than 500 states.
    count : the usual size of a released count; None: users by states
    against : whom the recommended plan withstands
        "the upper end", "the worst user's habits" or "any prior on both sides", which holds for
        users with any start, too. Where only differences between users are doubtful, a plan against
        the worst user's habits answers it.
    cycle : "auto", "day", "week" or None
        Whether each phase of a day or week has a chain of its own, from which all is judged and
        planned: "auto" where these predict other users better, which needs times of day; None: one
        chain for all hours.
    first : the time of the first release, such as "06:00", "Mon 06:00" or "2024-05-06 06:00"
        Where phases matter, plans hold for a start at this one. None: midnight, or midnight before
        Monday.
    anyway : recommend the plan of least error though checks doubt or refuse the model
    title : heads the report
    rng : numpy Generator or seed of the draws, by default seeded with 0
    progress : bool; show a bar

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        For no steps, a single state, or numbers outside their ranges.

    Examples
    --------
    >>> walk = np.random.default_rng(0).integers(0, 2, (30, 40))
    >>> advice = report(list(walk), alpha=1.0, horizon=10, draws=0)
    >>> advice.withheld, len(advice.sentences)
    (False, 5)
    >>> bool(advice.recommendation.tpl["the upper end"] <= 1.0)
    True
    """
    settings = _checked_settings(
        alpha,
        horizon,
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        smoothing=smoothing,
        confidence=confidence,
        against=against,
    )
    alpha = settings["alpha"]
    horizon = settings["horizon"]
    smoothing = settings["smoothing"]
    sensitivity = settings["sensitivity"]
    _check_draws(draws)
    if count is not None:
        count = check_positive(count, "count", "give the usual size of a count")
    settings |= {"cycle": cycle, "first": first}
    if first is not None:
        settings["first"] = str(first)
    data = _as_read(sequences)
    judged = JudgedChain.of(data, cycle, first, smoothing)
    checks = judged.checked.checks
    adversaries = judged.adversaries(settings["confidence"])
    size = _size_of(judged)
    check_choice(against, "against", adversaries)
    plans = plans_for(alpha, horizon, adversaries, sensitivity)
    believable = is_believable(checks, against) or judged.is_answered
    plan = None
    if anyway or not is_refused(checks):
        plan = recommended(plans, alpha, believable or anyway, against)
    plans += _plans_for_one_place(judged, settings, adversaries)
    well_known = None
    if plan is not None:
        well_known = judged.well_known_users(plan, alpha)
    if count is None:
        count = size["users"] / size["states"]
    releases = np.full(horizon, settings["epsilon"])
    interval = None
    if draws and smoothing and size["states"] <= MOST_FOR_DRAWS:
        redrawn = _redrawn_pairs(judged, draws, rng=as_generator(rng), progress=progress)
        interval = leakage_interval(
            redrawn, lambda pair: largest_tpl(releases, pair), 1.0 - 2.0 / draws
        )
    gaussian = {}
    if settings["delta"] is not None:
        gaussian = _gaussian_errors(settings, adversaries[against])
    return Report(
        recommendation=plan,
        checks=checks,
        plans=tuple(plans),
        believable=believable,
        size=size,
        count=count,
        settings=settings,
        planned={name: largest_tpl(releases, pair) for name, pair in adversaries.items()},
        smoothings=tuple(_leakages_by_smoothing(judged, releases)),
        gaussian=gaussian,
        interval=interval,
        adversaries=adversaries,
        title=title,
        reading=getattr(data, "reading", None),
        well_known_users=well_known,
        rhythm=_planned_phases(judged, horizon),
    )


def _as_read(data: Any) -> Sequences:
    """The sequences of data: rows of a file, a DataFrame or partitions of Dask are read, and what
    is no table is taken as it is."""
    if not (isinstance(data, str | PathLike | pd.DataFrame) or is_in_partitions(data)):
        return as_sequences(data)
    from tplreport.reading.observations import read_sequences

    try:
        return read_sequences(data)
    except ValueError as error:
        error.add_note(
            "report has no arguments for reading: give them to tr.read_sequences, and its result "
            "to report"
        )
        raise


def _planned_phases(judged: JudgedChain, horizon: int) -> PlannedPhases | None:
    """The phases of the releases; None where all hours are alike."""
    cycle = judged.counted.cycle
    groups = judged.counted.groups
    if groups is None or cycle is None or cycle.period is None:
        return None
    return PlannedPhases(
        name=judged.time_of_day.name,
        n_chains=groups.n_groups,
        period=cycle.period,
        zone=judged.data.zone,
        of_releases=[cycle.phases[time % len(cycle)] for time in range(horizon)],
    )


def _plans_for_one_place(
    judged: JudgedChain, settings: dict[str, Any], adversaries: dict[str, Pair]
) -> list[Plan]:
    """Plans against a chain of order 2, where the order of the chain is doubtful."""
    if not judged.doubts_order:
        return []
    # not imported where the order is not doubted
    from tplreport.reporting.one_place_plans import plans_for_one_place

    return plans_for_one_place(
        judged.data,
        settings["alpha"],
        settings["horizon"],
        smoothing=judged.smoothing or SMOOTHING,
        adversaries=adversaries,
        sensitivity=settings["sensitivity"],
    )


def _checked_settings(
    alpha: float,
    horizon: int,
    *,
    epsilon: float | None,
    delta: float | None,
    sensitivity: float,
    smoothing: float,
    confidence: float,
    against: str,
) -> dict[str, Any]:
    """What a report keeps as its settings, numbers in their ranges."""
    alpha = check_level(alpha, "alpha")
    horizon = check_horizon(horizon)
    if epsilon is None:
        epsilon = alpha
    epsilon = check_level(epsilon, "epsilon")
    sensitivity = check_sensitivity(sensitivity)
    smoothing = check_smoothing(smoothing)
    confidence = check_probability(confidence, "confidence", zero=False, one=False)
    if delta is not None:
        delta = check_probability(delta, "delta", zero=False, one=False)
    return {
        "alpha": alpha,
        "horizon": horizon,
        "epsilon": epsilon,
        "delta": delta,
        "sensitivity": sensitivity,
        "smoothing": smoothing,
        "confidence": confidence,
        "against": against,
    }


def _check_draws(draws: int) -> None:
    if not draws:
        return
    if check_whole(draws, "draws") < FEWEST_DRAWS:
        raise ValueError(
            f"draws must be 0 or at least {FEWEST_DRAWS}, found {draws}; give 0 for no interval, "
            f"or {FEWEST_DRAWS} or more, as it leaves out the two ends"
        )
    check_horizon(draws, "draws")


def _size_of(judged: JudgedChain) -> dict[str, int]:
    """How many users, sequences, states and steps there are."""
    data = judged.data
    return {
        "users": data.n_users,
        "sequences": len(data),
        "states": len(judged.counted.states),
        "steps": data.n_transitions,
    }


def _gaussian_errors(settings: dict[str, Any], adversary: Pair) -> dict[str, float]:
    """The error of equal Gaussian noise that keeps (alpha, delta) of the settings, against an
    adversary, and against any chain."""
    pairs = {settings["against"]: adversary, ANYBODY: any_chain()}
    return {
        who: gaussian_error(
            settings["alpha"], settings["delta"], pair, settings["horizon"], settings["sensitivity"]
        )
        for who, pair in pairs.items()
    }


def _leakages_by_smoothing(
    judged: JudgedChain, releases: np.ndarray
) -> Iterator[tuple[float, float]]:
    """Pairs of pseudo-steps a row and the largest TPL of `releases` (T,), budgets, if so many are
    added; without those for which there is no chain."""
    for steps in sorted({factor * (judged.smoothing or 1.0) for factor in FACTORS}):
        try:
            yield steps, largest_tpl(releases, estimated_pair(judged.counted, steps))
        except ValueError:  # without smoothing no state may remain
            continue


def _redrawn_pairs(
    judged: JudgedChain, draws: int, *, rng: np.random.Generator, progress: bool
) -> Iterator[Pair]:
    """Backward and forward loss functions of each of `draws` redrawn sets of users, or draws of the
    posterior of a single user."""
    redrawn = judged.counted.redrawn(
        judged.data, judged.smoothing, draws, rng=rng, progress=progress
    )
    for matrices in redrawn:
        yield pair_of(judged.counted, matrices)


def _plain(value: Any) -> Any:
    """Numbers, texts, lists and dicts; None for what is not finite."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple) or np.ndim(value):
        return [_plain(one) for one in value]
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    """A number or a text; None for what is not finite."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
