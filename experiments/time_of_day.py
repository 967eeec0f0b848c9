"""Habits that follow the clock: days of hours whose truth is known, what one matrix for all hours
promises under them, what a cycle saves, and what recorded data show.

The pooled matrix is that of all hours together: what anybody estimates who does not look at the
clock.
"""

from __future__ import annotations
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import tplrepro as tpl
from experiments import figures
from experiments.datasets.preparation import Prepared, prepare
from tplreport.people.rhythm import Rhythm, choose_rhythm
from tplreport.reading.time_steps import fixed_steps
from tplreport.reporting.allocation_schemes import equal_shares, mean_error
from tplrepro.display import count_from_one, label_log_axis
from tplrepro.leakage.envelope import hull_of_several

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOURS = 24
#: The clocks of those who recorded where they were.
ZONES = {"geolife": "Asia/Shanghai", "gowalla": "America/New_York"}
#: A user who moves changes two counts by 1.
SENSITIVITY = 2.0
POOLED_7 = "one matrix, Algorithm 7"
POOLED_8 = "one matrix, Algorithm 8"
EQUAL = "cycle, Algorithm 7"
LEAST_FOR_EVER = "cycle, least error for ever"
LEAST = "cycle, least error (T known)"
LARGEST_OF_ALL = "largest loss of all hours (T known)"
COMPOSED = "α/T"
#: Place of the hours among the candidates, or of the shortest blocks that a step divides, if the
#: weekend is not apart.
SHORTEST_BLOCKS = -2
#: Contexts of `RecordedRhythm.numbers`, and what figures call them.
CONTEXTS = {
    "weekend": "weekdays, weekend",
    "hours": "hours",
    "best": "best phases",
    "stay": "length of the stay",
}
#: How a commuter's hours differ: the probability to stay, from midnight on.
COMMUTER_STAYS = (
    (0.985, 0.99, 0.994, 0.996, 0.992, 0.95, 0.7, 0.45, 0.5, 0.8, 0.88, 0.85)
    + (0.7, 0.8, 0.9, 0.88, 0.75, 0.5, 0.45, 0.55, 0.65, 0.75, 0.88, 0.96)
)  # fmt: skip
#: Where those go who leave: hour at which it begins, and shares of home, work and elsewhere.
COMMUTER_GOES = {
    0: (0.85, 0.05, 0.1),
    6: (0.1, 0.8, 0.1),
    10: (0.1, 0.6, 0.3),
    12: (0.1, 0.3, 0.6),
    14: (0.2, 0.6, 0.2),
    16: (0.6, 0.05, 0.35),
    19: (0.65, 0.03, 0.32),
    22: (0.85, 0.05, 0.1),
}


def rhythms() -> dict[str, tpl.Cycle]:
    """Days of hours: three with still nights, and a commuter with 24 matrices."""
    return {
        "three states, .99 and .4": still_nights(3, 0.99, 6, 0.4),
        "two states, .98 and .85": still_nights(2, 0.98, 6, 0.85),
        "two states, .95 and .75": still_nights(2, 0.95, 4, 0.75),
        "commuter, 24 matrices": commuter(),
    }


def still_nights(n_states: int, still: float, hours: int, moving: float) -> tpl.Cycle:
    """A day on which people stay with the probability `still` in its first hours, later `moving`,
    and go anywhere else alike."""
    night = staying(n_states, still)
    day = staying(n_states, moving)
    return tpl.Cycle([night] * hours + [day] * (HOURS - hours), step="1h")


def staying(n_states: int, probability: float) -> np.ndarray:
    """A matrix of which each state lasts with this probability, and leads to the others alike."""
    matrix = np.full((n_states, n_states), (1.0 - probability) / (n_states - 1))
    np.fill_diagonal(matrix, probability)
    return matrix


def commuter() -> tpl.Cycle:
    """A day between home, work and elsewhere, of which no two hours are alike."""
    goes = COMMUTER_GOES[0]
    steps = []
    for hour, stay in enumerate(COMMUTER_STAYS):
        goes = COMMUTER_GOES.get(hour, goes)
        matrix = stay * np.eye(3) + (1.0 - stay) * np.tile(goes, (3, 1))
        steps.append(tpl.TransitionMatrix(matrix, ["home", "work", "elsewhere"], normalize=True))
    return tpl.Cycle(steps, step="1h")


def pooled(habits: tpl.Cycle) -> tpl.TransitionMatrix:
    """The matrix of all hours together, each counted as often as its states occur."""
    joint = sum(
        law[:, None] * matrix.toarray() for law, matrix in zip(habits.laws(), habits, strict=True)
    )
    return tpl.TransitionMatrix(joint, habits.states, normalize=True)


def largest_loss(habits: tpl.Cycle) -> tpl.PrivacyLossFunction:
    """The largest of the loss functions of all hours, at each leakage."""
    matrices = np.array([matrix.toarray() for matrix in habits])
    return tpl.PrivacyLossFunction.of_hull(habits[0], hull_of_several(matrices))


def plans(habits: tpl.Cycle, alpha: float, horizon: int) -> dict[str, np.ndarray]:
    """Budgets (T,) that promise `alpha` nats, by who plans them: with one matrix for all hours,
    with the cycle, with the largest loss of all hours, or with none of them."""
    back = habits.reverse()
    matrix = pooled(habits)
    all_hours = matrix.reverse(), matrix
    both = back, habits
    largest = largest_loss(back), largest_loss(habits)
    constant = tpl.allocate_by_upper_bound(alpha, *all_hours)
    equal = tpl.allocate_by_upper_bound(alpha, *both)
    least = tpl.allocate_by_upper_bound(alpha, *both, shape="least error")
    return {
        POOLED_7: np.full(horizon, constant),
        POOLED_8: tpl.allocate_by_quantification(alpha, *all_hours, horizon),
        EQUAL: np.resize(equal, horizon),
        LEAST_FOR_EVER: np.resize(least, horizon),
        LEAST: tpl.allocate_optimally(alpha, *both, horizon),
        LARGEST_OF_ALL: tpl.allocate_optimally(alpha, *largest, horizon),
        COMPOSED: equal_shares(alpha, horizon),
    }


def judged(budgets_of_plans: dict[str, np.ndarray], habits: tpl.Cycle) -> pd.DataFrame:
    """What the plans leak under the true habits, and how much their counts are off."""
    back = habits.reverse()
    rows = []
    for name, budgets in budgets_of_plans.items():
        bound = tpl.temporal_privacy_leakage(budgets, back, habits).max()
        exact = tpl.exact_leakage(budgets, back, habits).max()
        rows.append((name, bound, exact, mean_error(budgets, SENSITIVITY)))
    return pd.DataFrame(rows, columns=["plan", "TPL", "exact TPL", "mean error"])


def suprema(habits: tpl.Cycle, epsilon: float) -> dict[str, float]:
    """The largest TPL if each hour of all days has the budget `epsilon`, nats: as one matrix for
    all hours says, exactly by the third day, as the cycle says, and by the largest loss."""
    back = habits.reverse()
    matrix = pooled(habits)
    largest = largest_loss(back), largest_loss(habits)
    three_days = tpl.exact_leakage(epsilon, back, habits, horizon=3 * HOURS)
    return {
        "one matrix": tpl.leakage_suprema(epsilon, matrix.reverse(), matrix).max(),
        "worst mechanism, three days": three_days.max(),
        "cycle": tpl.leakage_suprema(epsilon, back, habits).max(),
        "largest loss of all hours": tpl.leakage_suprema(epsilon, *largest).max(),
    }


@dataclass(frozen=True)
class EqualLeakage:
    """Algorithm 8 for a cycle: its error, and what it says where no budgets leak alpha at all
    times."""

    error: float
    warning: str  # "" where there are such budgets


def equal_leakage(habits: tpl.Cycle, alpha: float, horizon: int) -> EqualLeakage:
    """What Algorithm 8 gives for a cycle."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        budgets = tpl.allocate_by_quantification(alpha, habits.reverse(), habits, horizon)
    said = " ".join(str(warning.message) for warning in caught)
    return EqualLeakage(mean_error(budgets, SENSITIVITY), said)


@dataclass(frozen=True)
class Cut:
    """How positions become steps between cells."""

    cell_km: float
    step: str
    hold: str  # how long the last known position holds

    @classmethod
    def parsed(cls, text: str) -> Cut:
        """Of a text such as "4km/1h/3h"."""
        cell, step, hold = text.split("/")
        return cls(float(cell.removesuffix("km")), step, hold)

    @property
    def name(self) -> str:
        """In words, such as "4 km, 1h, held for 3h"."""
        return f"{self.cell_km:g} km, {self.step}, held for {self.hold}"


def recorded_rhythm(name: str, cut: Cut, stand_in: dict, smoothing: float) -> RecordedRhythm:
    """The phases by which the positions of a data set predict each other best.

    Parameters
    ----------
    name : "geolife" or "gowalla"
    cut : Cut
    stand_in : dict, the arguments of the stand-in
    smoothing : float, of the cycle

    Returns
    -------
    RecordedRhythm
    """
    data = prepare(name, stand_in=stand_in, cell_km=cut.cell_km)
    zone = ZONES[name]
    if data.synthetic and name == "gowalla":
        zone = "UTC"  # which its stand-in takes for local time
    local = data.observations["time"].dt.tz_convert(zone)
    sequences = fixed_steps(data.observations.assign(time=local), cut.step, cut.hold)
    return RecordedRhythm(data, cut, choose_rhythm(sequences, smoothing))


@dataclass(frozen=True, eq=False)
class RecordedRhythm:
    """What a data set shows by hour and by weekday; gains over one chain are in nats, with their
    standard errors."""

    data: Prepared
    cut: Cut
    rhythm: Rhythm

    @property
    def name(self) -> str:
        """Such as "Geolife, 4 km, 1h, held for 3h"."""
        return f"{self.data.name}, {self.cut.name}"

    def gains(self) -> pd.DataFrame:
        """The gain of each candidate, from few phases to many."""
        rows = [
            (candidate.name, candidate.n_phases, candidate.gain.nats, candidate.gain.error)
            for candidate in self.rhythm.candidates
        ]
        return pd.DataFrame(rows, columns=["phases", "number", "gain", "error"])

    def summary(self) -> dict[str, object]:
        """What was read, and what matters."""
        gains = self.gains().set_index("phases")
        best = gains["gain"].idxmax()
        chosen = self.rhythm.chosen
        stay = self.rhythm.stay
        return {
            "states": self.rhythm.sequences.n_states,
            "steps": self.rhythm.sequences.n_transitions,
            "hours": _shown(gains.iloc[SHORTEST_BLOCKS]),
            "weekend": _shown(gains.loc["weekdays and the weekend"]),
            "best": f"{_shown(gains.loc[best])} ({best})",
            "chosen": chosen.name,
            "stay": f"{stay.nats:.1f} ± {stay.error:.1f}",
        }

    def numbers(self) -> dict[str, object]:
        """Those for the record."""
        gains = self.gains().set_index("phases")
        best = gains["gain"].idxmax()
        stay = self.rhythm.stay
        return {
            "states": self.rhythm.sequences.n_states,
            "steps": self.rhythm.sequences.n_transitions,
            "hours": gains.iloc[SHORTEST_BLOCKS].tolist()[1:],
            "weekend": gains.loc["weekdays and the weekend"].tolist()[1:],
            "best": gains.loc[best].tolist()[1:],
            "phases chosen": self.rhythm.chosen.n_phases,
            "stay": [stay.nats, stay.error],
            "stay matters": stay.matters,
        }


def _shown(gain: pd.Series) -> str:
    return f"{gain['gain']:.1f} ± {gain['error']:.1f}"


def draw_gains(axis: Axes, recorded: list[RecordedRhythm]) -> None:
    """The gains of several contexts, a row for each way to cut a data set."""
    rows = np.arange(len(recorded))
    numbers = [found.numbers() for found in recorded]
    for k, (key, label) in enumerate(CONTEXTS.items()):
        gains, errors = np.array([one[key] for one in numbers]).T
        style: dict = {
            "color": figures.PALETTE[k],
            "marker": "osD^"[k],
            "linestyle": "",
            "label": label,
        }
        axis.errorbar(gains, rows + 0.18 * (k - 1.5), xerr=errors, elinewidth=1, **style)
    axis.axvline(0.0, color="black", linewidth=0.8, linestyle=":", marker="")
    axis.set(xlabel="held-out gain (nats)", ylim=(len(rows) + 0.9, -0.6))
    axis.set_xscale("symlog", linthresh=10)
    axis.set_xticks([-10, 0, 10, 100, 1000], ["-10", "0", "10", "100", "1,000"])
    axis.set_yticks(rows, [found.name.replace(", held", ",\nheld") for found in recorded])
    axis.tick_params(axis="y", labelsize=7)
    axis.legend(loc="lower right", ncols=2, columnspacing=1.0)


def draw_start(axis: Axes, begun: KnownStart) -> None:
    """The BPL of each time after a known start, and the suprema for each start."""
    times = np.arange(1, begun.exact.size + 1)
    axis.plot(times, begun.exact, marker="", label="worst mechanism, known start")
    axis.plot(times, begun.habit, marker="", label="start in the habit")
    for name, supremum in begun.suprema.items():
        axis.axhline(supremum, color="0.5", linewidth=0.8, linestyle=":", marker="")
        axis.text(times[-1], supremum * 1.05, f"supremum, {name}", ha="right", fontsize=7)
    highest = max(begun.suprema.values())
    axis.set(yscale="log", ylim=(None, 1.5 * highest), ylabel="BPL (nats)")
    count_from_one(axis.xaxis, "time $t$")
    label_log_axis(axis.yaxis)
    axis.legend(loc="lower right", bbox_to_anchor=(1.0, 0.02))


@dataclass(frozen=True, eq=False)
class KnownStart:
    """A chain that starts in a known law, and its bounds for each of the three starts.

    `exact` (T,) is the BPL of the worst mechanism with the true backward matrices, `habit` (T,)
    the BPL of users who start in the habit, and `suprema` the suprema of BPL by start, nats.
    `broken` is what the budget of Algorithm 7 for the habit leaks, at most, and `budgets` are those
    of Algorithm 7 by start.
    """

    exact: np.ndarray
    habit: np.ndarray
    suprema: dict[str, float]
    budgets: dict[str, float]
    broken: float


def known_start(matrix: list, law: list, epsilon: float, alpha: float, horizon: int) -> KnownStart:
    """What leaks about users who start in a law that is not that of their habit.

    Parameters
    ----------
    matrix : list (n, n)
    law : list (n,), of the first state
    epsilon : float, of every release, nats
    alpha : float, the level of Algorithm 7, nats
    horizon : int, the number of releases

    Returns
    -------
    KnownStart
    """
    forward = tpl.Cycle([matrix])
    sides = {
        "habit": forward.reverse(),
        "known": forward.reverse(start=law),
        "any": forward.reverse(start="any"),
    }
    steps = backward_steps(matrix, law, horizon - 1)
    suprema = {}
    budgets = {}
    for name, side in sides.items():
        suprema[name] = float(tpl.leakage_suprema(epsilon, side, forward).bpl.max())
        budgets[name] = tpl.allocate_by_upper_bound(alpha, side, forward)
    habit = tpl.temporal_privacy_leakage(epsilon, sides["habit"], forward, horizon=horizon)
    return KnownStart(
        tpl.exact_leakage(epsilon, steps, matrix, horizon=horizon).bpl,
        habit.bpl,
        suprema,
        budgets,
        tpl.exact_leakage(budgets["habit"], steps, matrix, horizon=horizon).max(),
    )


def backward_steps(matrix: list, law: list, n_steps: int) -> list[np.ndarray]:
    """The true backward matrices of the first steps, by Bayes' rule from the law of each time."""
    now = np.array(law, dtype=float)
    steps = []
    for _ in range(n_steps):
        joint = now[:, None] * np.array(matrix)
        now = joint.sum(axis=0)
        steps.append(joint.T / now[:, None])
    return steps
