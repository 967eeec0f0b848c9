"""How much error smoothing takes from noisy counts: simulated people whose chain is known, chains
that are not theirs, and recorded people smoothed by the habits of others."""

from __future__ import annotations
import warnings
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import tplreport as tr
import tplrepro as tpl
from experiments import figures
from experiments.datasets.preparation import Prepared
from tplreport.smoothing.chain_over_time import chain_over_time
from tplreport.smoothing.methods import RIVALS, method_of_chain
from tplreport.smoothing.smoothed import CHAIN, SmoothedCounts
from tplreport.smoothing.starts import chain_model, walk_model
from tplreport.smoothing.tuning import PLAIN
from tplrepro.markov import Sequences

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

#: A user who moves changes two counts by 1.
SENSITIVITY = 2
WEEK = 168
NOISY = "noisy"
CLIPPED = "without negative ones"
ONLINE = ", online"
AWAY = "away"
#: Of the share of true counts in the bands of smoothed ones: how many series it is a mean of, and
#: its standard error over them.
SERIES_OF_BANDS = "series with bands"
ERROR_OF_COVER = "cover, standard error"
#: Weight of the chain of all hours in that of one, in steps from each state.
WEIGHT = 20.0
TWO_PLACES = np.array([[0.83, 0.17], [0.11, 0.89]])


@dataclass(frozen=True)
class World:
    """People who move by one chain, and the budget of each hour, nats."""

    people: int
    states: int
    is_map: bool  # people go to neighbours; else anywhere
    epsilon: float

    @property
    def name(self) -> str:
        """Such as "450 people, 20 places, ε = 0.3"."""
        return f"{self.people:,} people, {self.states} places, ε = {self.epsilon:g}"

    def chain(self, rng: np.random.Generator) -> np.ndarray:
        """A random chain of the kind."""
        if self.states == 2:
            return TWO_PLACES
        if self.is_map:
            return map_chain(self.states, rng)
        return anywhere_chain(self.states, rng)


WORLDS = (
    World(450, 2, False, 0.169),
    World(450, 20, False, 0.3),
    World(450, 100, True, 0.3),
    World(2_000, 25, True, 0.05),
    World(2_000, 400, True, 0.3),
    World(10_000, 2, False, 0.169),
    World(10_000, 20, False, 0.3),
    World(10_000, 100, True, 0.3),
    World(100_000, 2, False, 0.169),
    World(100_000, 100, True, 0.3),
)
#: States from which on a tenth of the series is simulated.
MANY = 100


def anywhere_chain(n: int, rng: np.random.Generator) -> np.ndarray:
    """People stay with probability .7, and else go to a place of a random law of their own."""
    return 0.7 * np.eye(n) + 0.3 * rng.dirichlet(np.ones(n), size=n)


def map_chain(n: int, rng: np.random.Generator) -> np.ndarray:
    """People stay with probability .7, and else go to a neighbour on a square map."""
    side = int(np.sqrt(n))
    moves = np.zeros((n, n))
    for place in range(n):
        row, column = divmod(place, side)
        for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if 0 <= row + down < side and 0 <= column + right < side:
                moves[place, (row + down) * side + column + right] = rng.random()
    return 0.7 * np.eye(n) + 0.3 * moves / moves.sum(axis=1, keepdims=True)


def draw_counts(chain: np.ndarray, people: int, times: int, rng: np.random.Generator) -> np.ndarray:
    """True counts (T, n) of people who move by a chain, from its stationary law on."""
    law = tpl.TransitionMatrix(chain).stationary()
    counts = [rng.multinomial(people, law)]
    for _ in range(times - 1):
        moved = [rng.multinomial(there, row) for there, row in zip(counts[-1], chain, strict=True)]
        counts.append(np.sum(moved, axis=0))
    return np.array(counts)


def draw_noise(shape: tuple, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Laplace noise on whole numbers, for experiments."""
    q = np.exp(-epsilon / SENSITIVITY)
    return rng.geometric(1.0 - q, shape) - rng.geometric(1.0 - q, shape)


def smooth_quietly(noisy: Any, **options: Any) -> SmoothedCounts:
    """Estimates, whatever is doubtful about the chain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tr.smooth_counts(noisy, sensitivity=SENSITIVITY, **options)


def rival_estimates(name: str, noisy: np.ndarray, epsilon: float) -> dict[str, np.ndarray]:
    """What a rival makes of noisy counts (T, n), with settings by likelihood: smoothed, and by
    each time and the earlier ones."""
    q = np.exp(-epsilon / SENSITIVITY)
    variances = np.full(noisy.shape, 2.0 * q / (1.0 - q) ** 2)
    model = walk_model(noisy.astype(float), variances)
    rival = RIVALS[name]
    smoothed = rival.smoothed(model, rival.choose(model).settings)
    return {name: smoothed.means, name + ONLINE: rival.filtered(model).means}


@dataclass(frozen=True)
class Judged:
    """Mean absolute errors of a count by method, the share of counts in their 90 % bands by
    method, and for each chain whether the likelihood prefers it to all rivals."""

    errors: dict[str, float]
    cover: dict[str, float]
    prefers: dict[str, bool]


def judge(
    true: np.ndarray, noisy: np.ndarray, epsilon: float, chains: dict[str, Any], columns: Any = None
) -> Judged:
    """The errors of the noisy counts (T, n), of rivals, and of smoothing by each of `chains`.

    Parameters
    ----------
    true, noisy : array (T, n)
    epsilon : float
        The budget of each time, nats.
    chains : dict
        Names and what `smooth_counts` takes.
    columns : sequence of labels, optional
        The states of the columns.

    Returns
    -------
    Judged
    """
    estimates = {NOISY: noisy, CLIPPED: noisy}
    for name in RIVALS:
        estimates |= rival_estimates(name, noisy, epsilon)
    cover = {}
    prefers = {}
    table = pd.DataFrame(noisy, columns=columns)
    for name, chain in chains.items():
        for ending, online in (("", False), (ONLINE, True)):
            result = smooth_quietly(table, chain=chain, epsilons=epsilon, online=online)
            estimates[name + ending] = result.counts
            cover[name + ending] = share_covered(result, true)
            prefers[name] = result.preferred == CHAIN
    errors = {}
    for name, estimate in estimates.items():
        possible = estimate
        if name != NOISY:
            possible = np.maximum(estimate, 0.0)
        errors[name] = float(np.abs(possible - true).mean())
    return Judged(errors, cover, prefers)


def share_covered(result: SmoothedCounts, true: np.ndarray) -> float:
    """The share of true counts within their bands."""
    above = result.lower.to_numpy() <= true
    below = true <= result.upper.to_numpy()
    return float((above & below).mean())


def judge_worlds(series: int, bands: int, places: int, *, rng: np.random.Generator) -> pd.DataFrame:
    """Errors and bands where the chain is that of the people: a row for each of `WORLDS` of at most
    `places`, with mean errors by method, the shares in the bands, and in how many series the
    likelihood prefers the chain.

    Parameters
    ----------
    series : int
        Series of a week of hours in each world, a tenth of it where there are many places.
    bands : int
        Series by which the bands of smoothed counts are judged, those among them, and a tenth of it
        where there are many places.
    places : int
    rng : numpy.random.Generator

    Returns
    -------
    DataFrame
    """
    (further,) = rng.spawn(1)
    rows = []
    for world in WORLDS:
        if world.states > places:
            continue
        number = series
        most = bands
        if world.states >= MANY:
            number = max(series // 10, 1)
            most = max(bands // 10, 2)
        judged = [_judge_week(Week.of(world, rng)) for _ in range(number)]
        row = {"world": world.name, "series": number} | mean_of(judged)
        shares = [one.cover[CHAIN] for one in judged]
        shares += [_share_in_bands(Week.of(world, further)) for _ in range(most - number)]
        row |= {f"cover, {CHAIN}": np.mean(shares), SERIES_OF_BANDS: len(shares)}
        row[ERROR_OF_COVER] = standard_error(shares)
        rows.append(row)
    return pd.DataFrame(rows).set_index("world")


def standard_error(shares: list[float]) -> float:
    """The standard error of their mean; nan of a single share, which does not say how others
    vary."""
    if len(shares) == 1:
        return float("nan")
    return float(np.std(shares, ddof=1) / np.sqrt(len(shares)))


@dataclass(frozen=True, eq=False)
class Week:
    """The chain of a world's people, and their true and noisy counts (T, n) by the hour."""

    world: World
    chain: np.ndarray
    true: np.ndarray
    noisy: np.ndarray

    @classmethod
    def of(cls, world: World, rng: np.random.Generator) -> Week:
        """A random week of a world."""
        chain = world.chain(rng)
        true = draw_counts(chain, world.people, WEEK, rng)
        noisy = true + draw_noise(true.shape, world.epsilon, rng)
        return cls(world, chain, true, noisy)


def _judge_week(week: Week) -> Judged:
    return judge(week.true, week.noisy, week.world.epsilon, {CHAIN: week.chain})


def _share_in_bands(week: Week) -> float:
    """The share of the true counts of a week that the bands of smoothed counts hold."""
    smoothed = smooth_quietly(week.noisy, chain=week.chain, epsilons=week.world.epsilon)
    return share_covered(smoothed, week.true)


def mean_of(judged: list[Judged]) -> dict[str, float]:
    """Mean errors and shares of several series."""
    means = pd.DataFrame([one.errors for one in judged]).mean().to_dict()
    covers = pd.DataFrame([one.cover for one in judged]).mean()
    prefers = pd.DataFrame([one.prefers for one in judged]).mean()
    return (
        means
        | {f"cover, {name}": share for name, share in covers.items()}
        | {f"prefers {name}": share for name, share in prefers.items()}
    )


ATTACKS = ("another chain", "half away for a day", "drift", "a rhythm of the day")


def judge_wrong_chains(number: int, *, rng: np.random.Generator) -> pd.DataFrame:
    """What chains do that are not the people's, of all kinds of `ATTACKS` in turn: a row for each,
    with root mean square errors over those of the noise.

    Parameters
    ----------
    number : int
        Of random worlds.
    rng : numpy.random.Generator

    Returns
    -------
    DataFrame
    """
    return pd.DataFrame([_judge_wrong_chain(ATTACKS[k % len(ATTACKS)], rng) for k in range(number)])


def _judge_wrong_chain(attack: str, rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.choice([2, 3, 5, 10]))
    people = int(10 ** rng.uniform(2.0, 5.0))
    epsilon = float(10 ** rng.uniform(-1.5, 0.5))
    own = _any_chain(n, rng)
    other = rng.choice([0.1, 0.3, 1.0])
    wrong = (1.0 - other) * own + other * _any_chain(n, rng)
    true = _attacked(draw_counts(own, people, WEEK, rng), attack, rng)
    noisy = true + draw_noise(true.shape, epsilon, rng)
    variances = np.full(noisy.shape, 2.0 * (SENSITIVITY / epsilon) ** 2)
    over_time = chain_over_time(wrong, range(n), pd.RangeIndex(WEEK))
    model = chain_model(noisy.astype(float), variances, over_time, None)
    plain = method_of_chain(model).smoothed(model, PLAIN).means
    smoothed = smooth_quietly(noisy, chain=wrong, epsilons=epsilon)
    online = smooth_quietly(noisy, chain=wrong, epsilons=epsilon, online=True)
    without = smooth_quietly(noisy, chain=None, epsilons=epsilon)
    of_noise = _root_mean_square(noisy - true)
    followed = smoothed.counts
    if smoothed.preferred != CHAIN:
        followed = without.counts
    row: dict[str, Any] = {"attack": attack, "people": people, "n": n, "epsilon": epsilon}
    estimates = {
        "plain": np.maximum(plain, 0.0),
        "smoothed": smoothed.counts,
        "online": online.counts,
        "preferred": followed,
    }
    for name, estimate in estimates.items():
        row[name] = _root_mean_square(estimate - true) / of_noise
    return row | {"cover": share_covered(smoothed, true)}


def _any_chain(n: int, rng: np.random.Generator) -> np.ndarray:
    moves = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0])), size=n)
    share = rng.uniform(0.02, 1.0)
    return share * moves + (1.0 - share) * np.eye(n)


def _attacked(true: np.ndarray, attack: str, rng: np.random.Generator) -> np.ndarray:
    """Counts of people of whom the model knows less."""
    times = np.arange(len(true))
    if attack == "half away for a day":
        start = int(rng.integers(20, len(true) - 30))
        true[start : start + 24] = rng.binomial(true[start : start + 24], 0.5)
    if attack == "drift":
        rates = np.linspace(1.0, rng.choice([0.2, 3.0]), len(true))
        return rng.poisson(true * rates[:, None])
    if attack == "a rhythm of the day":
        rates = 1.0 + 0.9 * np.sin(2.0 * np.pi * times / 24.0)
        return rng.poisson(true * rates[:, None])
    return true


def _root_mean_square(errors: np.ndarray) -> float:
    return float(np.sqrt((errors**2).mean()))


@dataclass(frozen=True, eq=False)
class Recorded:
    """Where recorded people were: states (people, T), 0 for away, of the `labels`, from a start of
    the clock on. Several of them may be days of one of the `users`."""

    data: Prepared
    name: str
    users: np.ndarray
    states: np.ndarray
    labels: list
    start: np.datetime64
    step: timedelta

    def counts(self, people: np.ndarray) -> np.ndarray:
        """How many of some people are in each state but away, (T, n)."""
        chosen = self.states[people]
        places = range(1, len(self.labels))
        return np.array([(chosen == place).sum(axis=0) for place in places]).T

    def chains(self, people: np.ndarray) -> dict[str, Any]:
        """The habits of some people: one matrix, and one for each hour of the day."""
        moves = self._sequences(people)
        return {
            "one matrix": tpl.TransitionMatrix.from_sequences(moves, smoothing=0.1),
            "cycle": tpl.Cycle.from_sequences(moves, "hour", smoothing=0.1, weight=WEIGHT),
        }

    def _sequences(self, people: np.ndarray) -> Sequences:
        """The states of some people."""
        chosen = self.states[people]
        times = chosen.shape[1]
        numbers = np.arange(len(people))
        return Sequences(
            chosen.ravel(),
            np.arange(len(people) + 1) * times,
            np.array(self.labels, dtype=object),
            numbers,
            starts=np.full(len(people), self.start),
            step=self.step,
        )


def gowalla_weeks(data: Prepared, *, weeks: int, places: int, hold: int) -> Recorded:
    """Users in New York by the hour, in those weeks that have most check-ins.

    Parameters
    ----------
    data : Prepared
        Gowalla, with cells.
    weeks : int
    places : int
        The cells with most check-ins; a user elsewhere is away.
    hold : int
        Hours for which a check-in holds.

    Returns
    -------
    Recorded
    """
    zone = "America/New_York"
    if data.synthetic:
        zone = "UTC"  # which the stand-in takes for local time
    local = data.observations["time"].dt.tz_convert(zone).dt.tz_localize(None)
    hour = local.astype("datetime64[s]").to_numpy().astype("datetime64[h]").astype(np.int64)
    monday = (hour - 96) // WEEK  # 1970-01-05 was a Monday
    of_week = np.bincount(monday - monday.min())
    sums = np.convolve(of_week, np.ones(weeks, dtype=np.int64), mode="valid")
    first = (int(np.argmax(sums)) + monday.min()) * WEEK + 96
    inside = (hour >= first) & (hour < first + weeks * WEEK)
    states, labels = _states_of(
        data.observations["user"].to_numpy()[inside],
        hour[inside] - first,
        data.observations["cell"].to_numpy()[inside],
        places,
        _Hold(weeks * WEEK, hold),
    )
    start = np.datetime64(int(first), "h").astype("datetime64[us]")
    users = np.arange(len(states))
    return Recorded(data, "Gowalla, hours", users, states, labels, start, timedelta(hours=1))


def geolife_days(data: Prepared, *, minutes: int, places: int, hold: int) -> Recorded:
    """Days of Geolife's users in Beijing, each day of a user as a person of its own.

    Parameters
    ----------
    data : Prepared
        Geolife, with cells.
    minutes : int
        Of a step.
    places : int
        The cells with most positions; a user elsewhere is away.
    hold : int
        Steps for which a position holds.

    Returns
    -------
    Recorded
    """
    local = data.observations["time"].dt.tz_convert("Asia/Shanghai").dt.tz_localize(None)
    minute = local.astype("datetime64[s]").to_numpy().astype("datetime64[m]").astype(np.int64)
    day, of_day = np.divmod(minute, 1440)
    of_day_of_user = pd.DataFrame({"user": data.observations["user"].to_numpy(), "day": day})
    person = of_day_of_user.groupby(["user", "day"]).ngroup().to_numpy()
    users = of_day_of_user.assign(person=person).groupby("person")["user"].first().to_numpy()
    states, labels = _states_of(
        person,
        of_day // minutes,
        data.observations["cell"].to_numpy(),
        places,
        _Hold(1440 // minutes, hold),
    )
    start = np.datetime64("2024-05-06", "us")
    step = timedelta(minutes=minutes)
    return Recorded(data, f"Geolife, {minutes} minutes", users, states, labels, start, step)


@dataclass(frozen=True)
class _Hold:
    """How many times there are, and for how many a state holds."""

    times: int
    hold: int


def _states_of(
    users: np.ndarray, times: np.ndarray, cells: np.ndarray, places: int, hold: _Hold
) -> tuple[np.ndarray, list]:
    """The state of each person at each time: the place of her last cell among those of most
    observations, or 0 for another one, or none."""
    chosen = pd.Series(cells[cells >= 0]).value_counts().index[:places].tolist()
    place_of = {cell: number for number, cell in enumerate(chosen, start=1)}
    observed = pd.DataFrame(
        {"user": users, "time": times, "state": pd.Series(cells).map(place_of).fillna(0).to_numpy()}
    )
    last = observed.groupby(["time", "user"], sort=True)["state"].last().unstack()
    table = last.reindex(range(hold.times)).ffill(limit=hold.hold).fillna(0.0)
    return table.to_numpy().T.astype(np.int64), [AWAY, *[f"cell {cell}" for cell in chosen]]


@dataclass(frozen=True)
class Halves:
    """People who are counted, and others, whose habits are taken for public."""

    counted: np.ndarray
    others: np.ndarray


def divide(recorded: Recorded, rng: np.random.Generator) -> Halves:
    """Two random halves of the users."""
    users = rng.permutation(np.unique(recorded.users))
    is_other = np.isin(recorded.users, users[: len(users) // 2])
    return Halves(np.flatnonzero(~is_other), np.flatnonzero(is_other))


def judge_recorded(
    recorded: Recorded, epsilon: float, repeats: int, *, rng: np.random.Generator
) -> dict[str, Any]:
    """Errors of counts of half of the users, smoothed by chains of the other half.

    Parameters
    ----------
    recorded : Recorded
    epsilon : float
        The budget of each time, nats.
    repeats : int
        Divisions into halves, and draws of the noise.
    rng : numpy.random.Generator

    Returns
    -------
    dict of mean errors by method, and as `judge_worlds`
    """
    judged = []
    for _ in range(repeats):
        halves = divide(recorded, rng)
        true = recorded.counts(halves.counted)
        noisy = true + draw_noise(true.shape, epsilon, rng)
        chains = recorded.chains(halves.others)
        judged.append(judge(true, noisy, epsilon, chains, recorded.labels[1:]))
    name = f"{recorded.name}, ε = {epsilon:g}"
    row: dict[str, Any] = {"data": name, "mean count": float(true.mean())}
    return row | mean_of(judged)


#: In the order of the figure, where a method has one colour in all panels.
METHODS = (CHAIN, "cycle", "one matrix", "random walk", "FAST", "constant")


def draw_errors(axis: Axes, table: pd.DataFrame) -> None:
    """Errors by method, over those of the noisy counts, a row for each row of `table`."""
    rows = np.arange(len(table))
    shown = [name for name in METHODS if name in table]
    for k, name in enumerate(METHODS):
        if name not in table:
            continue
        offset = 0.13 * (shown.index(name) - 0.5 * (len(shown) - 1))
        style: dict = {"color": figures.PALETTE[k], "marker": "oPsD^v"[k], "linestyle": ""}
        axis.plot(table[name] / table[NOISY], rows + offset, label=name, markersize=4, **style)
    axis.axvline(1.0, color="black", linewidth=0.8, linestyle=":", marker="")
    axis.set(xscale="log", xlabel="error / error of the noise", ylim=(len(rows) - 0.4, -0.6))
    axis.minorticks_off()
    axis.set_xticks([0.1, 0.2, 0.5, 1.0], ["0.1", "0.2", "0.5", "1"])
    axis.set_yticks(rows, [name.replace(", ε", ",\nε") for name in table.index])
    axis.tick_params(axis="y", labelsize=6)


def label_cover(axis: Axes, table: pd.DataFrame) -> None:
    """Write the share of true counts in the bands of smoothed ones at the right of each row."""
    right = axis.secondary_yaxis("right")
    shares = 100.0 * table[f"cover, {CHAIN}"]
    right.set_yticks(np.arange(len(table)), [f"{share:.1f}" for share in shares])
    right.set_ylabel("true counts in 90 % bands, %", fontsize=6, labelpad=2)
    right.tick_params(axis="y", labelsize=6, length=0)


@dataclass(frozen=True, eq=False)
class Example:
    """Some days of one cell: the dates (T,) and true counts (T,), and the result."""

    dates: np.ndarray
    true: np.ndarray
    result: SmoothedCounts
    place: int

    def draw(self, axis: Axes) -> None:
        """Draw the noisy counts, the band and the true counts."""
        shown = len(self.dates)
        column = self.result.columns[self.place]
        band: dict = {"color": figures.PALETTE[0], "alpha": 0.25, "linewidth": 0}
        lower, upper = self.result.lower[column], self.result.upper[column]
        axis.fill_between(self.dates, lower[:shown], upper[:shown], label="90 % band", **band)
        estimate = self.result.estimate[column][:shown]
        axis.plot(self.dates, estimate, color=figures.PALETTE[0], marker="", label="estimate")
        noisy = self.result.noisy[:shown, self.place]
        axis.plot(self.dates, noisy, color="0.5", marker=".", linestyle="", label="noisy")
        axis.plot(self.dates, self.true, color="black", linewidth=0.8, marker="", label="true")
        axis.set_ylabel("people in the cell")
        _date_days(axis.xaxis)
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=6)


def _date_days(axis: Axis) -> None:
    """Ticks at midnights with their dates, and at noons."""
    from matplotlib.dates import ConciseDateFormatter, DayLocator, HourLocator

    axis.set_major_locator(DayLocator())
    axis.set_minor_locator(HourLocator(byhour=[12]))
    axis.set_major_formatter(ConciseDateFormatter(axis.get_major_locator()))


def example(recorded: Recorded, epsilon: float, times: int, *, rng: np.random.Generator) -> Example:
    """The busiest cell of half of the users, in the first of so many times, smoothed by a cycle of
    the others.

    Parameters
    ----------
    recorded : Recorded
    epsilon : float
        The budget of each time, nats.
    times : int
        To be shown.
    rng : numpy.random.Generator

    Returns
    -------
    Example
    """
    halves = divide(recorded, rng)
    true = recorded.counts(halves.counted)
    noisy = pd.DataFrame(true + draw_noise(true.shape, epsilon, rng), columns=recorded.labels[1:])
    dates = recorded.start + np.arange(times) * np.timedelta64(recorded.step)
    habits = recorded.chains(halves.others)["cycle"]
    result = smooth_quietly(noisy, chain=habits, epsilons=epsilon)
    busiest = int(np.argmax(true.sum(axis=0)))
    return Example(dates, true[:times, busiest], result, busiest)
