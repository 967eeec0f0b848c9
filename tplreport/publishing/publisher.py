"""A publisher of noisy counts that cannot leak twice: one SQLite file knows what was spent and
handed out.

Contract. A time's budget is on the disk before its noise is drawn, and the noisy value before it is
returned. After a crash in between the budget counts as spent, and the value is drawn once, from the
counts that are given then. A time that was handed out has one value for ever. Nothing that is kept
depends on true counts, but for the noisy values: whether later counts are the same is not compared,
and a warning says so. Processes and threads share a file by the lock of its mark (`mark`); values
are drawn outside of it, and the first that is stored counts.

The mark shows what SQLite cannot see: a copy, an older state that was put back, a new name. Such a
file is read, and publishes after `resume`. What a file holds is in `store`.
"""

from __future__ import annotations
import os
import sqlite3
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from tplfrontier import GaussianFilter
from tplfrontier.budgets.gaussian_filter import BucketState
from tplfrontier.profiles.gaussian import check_noise_multipliers
from tplreport.files import FilePath, check_spares, write_whole
from tplreport.publishing.chain import (
    OF_BACKWARD,
    Chain,
    condition_of_promise,
    without_matrices_of_hulls,
)
from tplreport.publishing.changes import (
    NO_CHANGES,
    Change,
    KnownChanges,
    Segment,
    SoFar,
    chain_of_change,
    checked_change,
    joined,
    steps_of_stay,
    whole_series,
)
from tplreport.publishing.clock import Clock
from tplreport.publishing.counts import noise_width, release_counts
from tplreport.publishing.given import (
    as_given,
    as_series,
    as_table,
    given_at_one_time,
    given_in_tables,
    in_form_of,
    times_of,
)
from tplreport.publishing.learned import FloorFilter, check_after_training, filter_of, is_of_floor
from tplreport.publishing.mark import (
    check_is_no_publisher,
    check_is_not_in_use,
    check_system,
    files_beside,
)
from tplreport.publishing.marked_file import MarkedFile
from tplreport.publishing.settings import Floor, Number, checked_settings, compose_runs, leakages_of
from tplreport.publishing.statistics import Spent, divided, sum_of
from tplreport.publishing.store import Columns, Damage, Kind, Row, Store
from tplreport.publishing.values import (
    Arranged,
    Given,
    Layout,
    arrange,
    column_name,
    first_columns,
    in_one_table,
)
from tplrepro.display import count_noun, frame_as_html
from tplrepro.leakage.accountant import TemporalAccountant
from tplrepro.leakage.filter import FilterState, Settled, TemporalFilter
from tplrepro.leakage.temporal import REQUIRED, Correlation, TemporalLeakage
from tplrepro.markov.cycle import Start
from tplrepro.progress import Bar
from tplrepro.validation import (
    as_scalar,
    check_choice,
    check_epsilon,
    check_probability,
    warn_caller,
)

if TYPE_CHECKING:
    from tplreport.smoothing.smoothed import SmoothedCounts

CHUNK = 50_000  # times a transaction


class RepeatedTimeWarning(UserWarning):
    """A time was handed out before: its value is returned again, whatever the counts are now."""


@dataclass
class Request:
    """Counts of times that follow each other, to be published.

    `parts` are those of each statistic, by its place in the file, in the columns of the file, of
    which `layout` tells. `missing` are the statistics of which the caller says that there are no
    counts. `rows` are those that the file has.
    """

    clock: Clock
    layout: Layout
    positions: list[int]
    parts: dict[int, Arranged]
    missing: frozenset[int]
    rows: list[Row]

    @property
    def first(self) -> int:
        """The position of its first time."""
        return self.positions[0]

    @property
    def last(self) -> int:
        """The position of its last time."""
        return self.positions[-1]

    def places_at(self, number: int) -> tuple[int, ...]:
        """The statistics with counts at one of its times."""
        return tuple(place for place, part in self.parts.items() if part.is_given[number])

    def runs(self, numbers: range) -> Iterator[range]:
        """The times of these numbers, in runs that have counts of the same statistics."""
        given = np.zeros((len(self.parts), len(numbers)), dtype=bool)
        for number, part in enumerate(self.parts.values()):
            given[number] = part.is_given[numbers.start :]
        is_other = np.any(given[:, 1:] != given[:, :-1], axis=0)
        ends = [*np.flatnonzero(is_other) + 1, len(numbers)]
        start = 0
        for end in ends:
            yield numbers[start:end]
            start = end


@dataclass(frozen=True)
class HandedOut:
    """Noisy values of times by the place of their statistic, (T, n) each, as they were given, and
    how many of the times were handed out before."""

    values: dict[int, np.ndarray]
    repeated: int


class ValuesWithBands(NamedTuple):
    """Noisy values, and the half width of the band around each, of the same shape."""

    values: pd.DataFrame
    half_widths: pd.DataFrame


class Publisher:
    """Publishes one noisy row of counts for each time point, and never more than `alpha` allows.

    `Publisher(path)` opens a file; with settings it makes a new one, or opens one that has the same
    settings. A file that was deleted is not made anew while a mark tells that a time was
    published, skipped or passed. Scripts that run again should open it without settings, so that it
    is an error in any case.

    Parameters
    ----------
    path : str or path-like
        The file. A mark (``path.mark``) is kept beside it.
    backward, forward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, Cycle or None
        As in `TemporalFilter`; None if not known, which must be written out. Their steps must be as
        long as `step`, where that is known. One matrix for both that is not its own reversal is
        warned of.
    start : "habit", "any" or array-like (n,), optional
        How the chain begins, in place of `backward`. "habit": the promise holds for users whose
        first state has the law that repeats with the cycle, whatever their data are, if the
        adversary knows no more. An array: for users whose first state has this law. "any": for
        every law of the first state. Without it, the promise holds for users who start in the law
        of which `backward` is.
    model : PrivateModel, or the path of its file, optional
        In place of `backward`, `forward` and `start`: a chain that was learned privately, which
        counts as a release of the time before the first. By default its floor is the budget.
    alpha : float > 0
        The level that every TPL keeps, nats; above 20 only with `allow_large`.
    sensitivity : float > 0
        By how much one user may change the counts of a time, as in `release_counts`.
    statistics : mapping or DataFrame, optional
        Several statistics over the same people, in place of `sensitivity`: a mapping of their names
        to mappings of `sensitivity` and `share`, the part of the floor or plan that each has, 1 in
        sum; or a table with a row for each. One that is not due at every time has `every`, a number
        of steps or a duration, and `at`, steps after the first time, or what the clock shows, such
        as "18:00" or "Mon 08:00" (by default midnight, or midnight before Monday).
    mechanism : "opendp", "opendp-gaussian" or None
        Laplace noise, or with a delta Gaussian noise; None: the one that fits.
    floor : float > 0, array-like (p,), mapping of phases or "largest", optional
        The budget of each time for ever, or of each phase (0: no release), nats, unless `publish`
        is given another within what remains. Of several statistics that of a time at which all are
        due: what is not due spends nothing, and "largest", the largest number that keeps alpha for
        ever, is the higher for it.
    plan : array-like (T,), optional
        In place of a floor: budgets, fixed in advance, which keep alpha; nats.
    delta : float, 0 < delta < 1, optional
        With a plan of noise multipliers of Gaussian noise, which keeps (alpha, delta), or a burst.
    burst : float >= 0, optional
        With a delta, in place of a plan: noise multipliers may depend on all that was published,
        within a `tplfrontier.GaussianFilter`, for ever. Each time may have the multiplier
        `remaining` or more, by default that which is always left.
    step : int or text such as "1h"
        The distance of two times: whole numbers, or dates. The phase of the first date in a Cycle
        of a day or week is what the clock on the wall shows: as the date is written, or by its
        zone. Clocks that are changed need dates without a zone: an hour that they leave out is
        skipped, one that they repeat published once, and the promise is for users who do in that
        night what they do in others. Of times that are whole numbers, the first has phase 0 of a
        Cycle without a step.
    allow_large : bool
        Whether alpha may be above 20 nats.
    witness : str or path-like, optional
        A second mark, on another disk: it notices a disk that was put back as a whole. A file that
        has one is published from while it can be reached; `resume` changes it.

    Raises
    ------
    ValueError
        For settings that do not keep the promise, or are not those of the file.
    OSError
        For a file that cannot be used.
    RuntimeError
        For what a signal's handler asks while the call that it interrupts uses a file.

    Examples
    --------
    >>> import tempfile
    >>> import tplrepro as tpl
    >>> P = [[0.8, 0.2], [0.1, 0.9]]
    >>> path = tempfile.mkdtemp() + "/counts.sqlite"
    >>> publisher = Publisher(
    ...     path, backward=P, forward=P, alpha=1.0, sensitivity=2, floor=0.1, step="1h"
    ... )
    >>> noisy = publisher.publish("2024-05-01 08:00", {"home": 105, "work": 98})
    >>> sorted(noisy), round(publisher.remaining, 3)
    (['home', 'work'], 0.686)
    >>> publisher.skip("2024-05-01 09:00", until="2024-05-01 12:00").ledger["count"].tolist()
    [1, 4]

    By the clock, with more noise at night:

    >>> night = [[0.98, 0.02], [0.02, 0.98]]
    >>> habits = tpl.Cycle([night, P, P, P], step="6h")
    >>> floors = {"00:00": 0.05, "06:00": 0.1, "12:00": 0.1, "18:00": 0.1}
    >>> by_clock = Publisher(
    ...     path + "2",
    ...     forward=habits,
    ...     start="habit",
    ...     alpha=1.0,
    ...     sensitivity=2,
    ...     floor=floors,
    ...     step="6h",
    ... )
    >>> round(by_clock.skip("2024-05-01 18:00").remaining, 3)
    0.651
    >>> times = pd.date_range("2024-05-02", periods=3, freq="6h")
    >>> noisy = by_clock.publish_table(pd.Series([7, 8, 9], times))
    >>> by_clock.ledger["epsilon"].tolist()
    [0.0, 0.05, 0.1, 0.1]

    Two statistics, of which one is due every seventh time:

    >>> statistics = {
    ...     "people": {"sensitivity": 2, "share": 0.6},
    ...     "spent": {"sensitivity": 50, "share": 0.4, "every": 7},
    ... }
    >>> both = Publisher(
    ...     path + "3", backward=P, forward=P, alpha=1.0, statistics=statistics, floor="largest"
    ... )
    >>> noisy = both.publish(0, {"people": {"home": 105, "work": 98}, "spent": 4032.5})
    >>> noisy = both.publish(1, {"people": {"home": 101, "work": 97}})
    >>> print(both.ledger.round(3).drop(columns="kind"))
       time  count  epsilon  epsilon: people  epsilon: spent
    0     0      1    0.248            0.149           0.099
    1     1      1    0.149            0.149           0.000
    """

    _filter: TemporalFilter | FloorFilter | GaussianFilter | None = None
    #: Of the filter before the first time, when a model may have been spent.
    _state_at_start: FilterState | BucketState
    #: The phase of the first time, None before the file is read.
    _phase: int | None = None
    _changes: KnownChanges = NO_CHANGES

    def __init__(
        self,
        path: FilePath,
        *,
        backward: Correlation = REQUIRED,
        forward: Correlation = REQUIRED,
        start: Start | None = None,
        model: Any = None,
        alpha: Number = None,
        sensitivity: Number = None,
        statistics: Any = None,
        mechanism: str | None = None,
        floor: Floor | None = None,
        plan: ArrayLike | None = None,
        delta: Number = None,
        burst: Number = None,
        step: int | str = 1,
        allow_large: bool = False,
        witness: FilePath | None = None,
    ):
        check_system()
        self.path = Path(path).resolve()
        if witness is not None:
            witness = Path(witness).resolve()
            check_spares(witness, files_beside(self.path))
        self._file = MarkedFile(self.path, witness)
        settings: dict = {}
        numbers = (start, model, alpha, sensitivity, statistics, mechanism, floor, plan, delta)
        has_numbers = any(value is not None for value in (*numbers, burst))
        if has_numbers or backward is not REQUIRED or forward is not REQUIRED or step != 1:
            settings = checked_settings(
                backward=backward,
                forward=forward,
                start=start,
                alpha=alpha,
                sensitivity=sensitivity,
                statistics=statistics,
                mechanism=mechanism,
                floor=floor,
                plan=plan,
                delta=delta,
                step=Clock.checked_step(step),
                allow_large=allow_large,
                model=model,
                burst=burst,
            )
            self._file.create(settings)
        with self._reading() as store:
            store.check_pages()
            self.settings = without_matrices_of_hulls(store.read("settings"))
            self._file.identity = store.state.identity
            clock = self._clock(store)
            changes = KnownChanges.of(store)
        self.settings.setdefault("start", OF_BACKWARD)  # of a file of before
        self.settings.setdefault("model", None)
        self.settings.setdefault("burst", None)
        if isinstance(floor, str):
            settings.pop("floor", None)  # which another computer may round in another way
        self._check_settings(settings)
        #: Whether its statistics have names.
        self._is_named = "statistics" in self.settings
        #: That of a first time of phase 0; `_chain` is that of the first time of the file.
        self._unturned = Chain.of_settings(self.settings)
        self._statistics = self._unturned.statistics
        self._turn_to(clock.phase, changes)

    def _turn_to(self, phase: int | None, changes: KnownChanges) -> None:
        """Let the first chain begin at a phase, other ones follow, and the filter know them."""
        phase = phase or 0
        if phase == self._phase and changes.digest == self._changes.digest:
            return
        self._segments = [Segment(0, self._unturned.turned(phase))]
        self._segments += [chain_of_change(self.settings, change) for change in changes.chains]
        current = self._segments[0]
        after = None
        if changes.chains:
            current = joined(*self._segments[-2:])
            after = Settled(*changes.chains[-1]["settled"])
        #: The chain now, and the time at which its phase 0 is.
        self._chain = current.chain
        self._origin = current.position
        if self.settings["plan"] is None:
            self._filter = filter_of(self.settings, self._chain, after)
            self._state_at_start = self._filter.state
        self._phase = phase
        self._changes = changes

    def _check_settings(self, settings: dict) -> None:
        """ValueError if the file was made with other settings than those that are given."""
        compared = set(settings)
        if settings and settings["start"] != OF_BACKWARD:
            compared.discard("backward")  # which another computer may round in another way
        different = [
            name
            for name in settings
            if name in compared and self.settings.get(name) != settings[name]
        ]
        if different:
            raise ValueError(
                f"{self.path} was made with other settings of {', '.join(different)}; open it "
                "without settings, or take a new file, whose releases add to those of this one"
            )

    def __repr__(self) -> str:
        try:
            size = f"{len(self)} times"
        except (OSError, RuntimeError, ValueError):
            size = "its file cannot be read"
        text = f"{str(self.path)!r}, alpha={self.settings['alpha']:g}, {size}"
        condition = condition_of_promise(self.settings)
        if condition:
            text += f", for {condition}"
        if self.settings["model"] is not None:
            text += f", after a model of epsilon={self.settings['model']['epsilon']:g}"
        return f"Publisher({text})"

    def _repr_html_(self) -> str:
        try:
            ledger = self.ledger
        except (OSError, RuntimeError, ValueError):
            return frame_as_html(repr(self), pd.DataFrame())
        return frame_as_html(repr(self), ledger.set_index("time"))

    def __len__(self) -> int:
        """The number of time points so far."""
        with self._reading() as store:
            return store.state.following

    @property
    def files(self) -> list[Path]:
        """The files that belong to it: its own, its mark, its journals, and its witness."""
        return self._file.files()

    def publish(
        self,
        time: Any,
        counts: Any,
        epsilon: float | Mapping | None = None,
        *,
        noise_multiplier: float | None = None,
        without: str | Collection[str] = (),
    ) -> Any:
        """The noisy counts of one time point, whole numbers for whole numbers.

        A time that was published before has its value returned again: a `RepeatedTimeWarning` says
        that the counts given now are not compared with those of then, which are not kept.

        Parameters
        ----------
        time : int, date, text of a date in full or time stamp
            The next time, or one that has passed.
        counts : number, mapping or Series with labels, or array-like (n,)
            The labels must be the same at each time. Of several statistics a mapping of the names
            of those that are due to their counts.
        epsilon : float or mapping, optional
            A budget in place of the floor, nats. Of several statistics those that are given divide
            it in proportion to their shares, or each has its own by a mapping of names.
        noise_multiplier : float, optional
            With a burst, in place of the one that is always left: `remaining` or more.
        without : str or collection of str
            Statistics that are due, but whose counts are not known: they spend nothing, and are
            not published at this time later, either.

        Returns
        -------
        Noisy counts in the form of `counts`.

        Raises
        ------
        LeakageExceededError
            If the budget would raise a TPL above alpha; nothing is spent.
        ValueError
            For counts with other labels, statistics that are not due or lacking, or a time that is
            not the next and was not published.
        OSError
            If the file cannot be used, is a copy, or was put back.
        """
        rows = {0: counts}
        if self._is_named:
            rows = self._by_place(counts)
        missing = self._places_of(without)
        series = {place: as_series(row) for place, row in rows.items()}
        given = {place: given_at_one_time(row) for place, row in series.items()}
        level = self._level_of(epsilon, noise_multiplier)
        done = self._publish([time], given, missing, level)
        if done.repeated:
            _warn_of_repeated(f"time {time} was")
        noisy = {
            place: in_form_of(rows[place], pd.Series(values[0], series[place].index))
            for place, values in done.values.items()
        }
        if self._is_named:
            return {self._statistics[place].name: value for place, value in noisy.items()}
        return noisy[0]

    def _level_of(self, epsilon: Any, noise_multiplier: float | None) -> Any:
        """The budget that was given, or with a burst the noise multiplier; ValueError for the other
        one."""
        if self.settings["burst"] is None:
            if noise_multiplier is not None:
                raise ValueError(
                    "noise multipliers may be given with a burst, found a publisher without; give "
                    "epsilon=, or follow its plan"
                )
            return epsilon
        if epsilon is not None:
            raise ValueError(
                "a publisher with a burst takes noise multipliers, found epsilon=; give "
                "noise_multiplier="
            )
        if noise_multiplier is None:
            return None
        (multiplier,) = check_noise_multipliers([noise_multiplier]).tolist()
        return multiplier

    def _by_place(self, counts: Any) -> dict[int, Any]:
        """Counts of statistics by their places in the file; ValueError for other names."""
        place_of = {statistic.name: place for place, statistic in enumerate(self._statistics)}
        if not isinstance(counts, Mapping) or not counts.keys() <= place_of.keys():
            found = type(counts).__name__
            if isinstance(counts, Mapping):
                found = ", ".join(str(name) for name in counts if name not in place_of)
            must = f"counts must be a mapping of the statistics {', '.join(map(str, place_of))}"
            if not self._is_named:
                must = "names of statistics belong to a file of several"
            raise ValueError(f"{must}, found {found}; correct it")
        return {place_of[name]: counts[name] for name in place_of if name in counts}

    def _places_of(self, names: str | Collection[str]) -> frozenset[int]:
        """The places of statistics by their names; ValueError for other names."""
        if isinstance(names, str):
            names = [names]
        return frozenset(self._by_place(dict.fromkeys(names)))

    def publish_table(
        self,
        counts: Any,
        epsilon: float | Mapping | None = None,
        progress: bool = True,
        *,
        noise_multiplier: float | None = None,
        without: str | Collection[str] = (),
    ) -> Any:
        """The noisy counts of many times: a million in a minute.

        If one is refused, so are all after the last full 50,000 before it.

        Parameters
        ----------
        counts : Series or DataFrame
            A row for each time, which is its index. Of several statistics a mapping of names to
            such tables, each of which has the times at which it is due.
        epsilon : float or mapping, optional
            The budget of each, in place of the floor, nats, as in `publish`.
        progress : bool
            Whether a bar is shown if it takes long.
        noise_multiplier : float, optional
            With a burst that of each, as in `publish`.
        without : str or collection of str
            As in `publish`, at all of these times.

        Returns
        -------
        Series, DataFrame or dict of these
            Noisy counts, with the labels of `counts`.

        Raises
        ------
        LeakageExceededError, ValueError, OSError
            As `publish`.
        """
        given = {0: counts}
        if self._is_named:
            given = self._by_place(counts)
        level = self._level_of(epsilon, noise_multiplier)
        tables = {place: as_table(table) for place, table in given.items()}
        times = times_of(tables)
        missing = self._places_of(without)
        parts: dict[int, list] = {place: [] for place in tables}
        repeated = 0
        with Bar(len(times), "publishing", "time", progress) as bar:
            for first in range(0, max(len(times), 1), CHUNK):
                numbers = range(first, first + CHUNK)
                part = times[first : first + CHUNK]
                chunk = given_in_tables(tables, times, numbers)
                done = self._publish(part, chunk, missing, level)
                for place, values in done.values.items():
                    parts[place].append(values)
                repeated += done.repeated
                bar.update(len(part))
        if repeated:
            _warn_of_repeated(f"{repeated} of {len(times)} times were")
        noisy = {
            place: as_given(np.concatenate(parts[place]), table, given[place])
            for place, table in tables.items()
        }
        if self._is_named:
            return {self._statistics[place].name: table for place, table in noisy.items()}
        return noisy[0]

    def _publish(
        self, times: Any, given: dict[int, Given], missing: frozenset[int], epsilon: Any
    ) -> HandedOut:
        """Publish counts, by the place of their statistic, for T consecutive times, or hand out
        again what was published for them.

        There are no counts of `missing` statistics. `epsilon` is the budget of each new time, or of
        each statistic; None: the floor, or the plan.
        """
        with self._reading() as store:
            positions = self._clock(store, times).positions(times)
            has_new = positions[-1] >= store.state.following
        transaction = self._writing if has_new else self._reading
        with transaction() as store:
            request = self._request(store, times, given, missing)
            if has_new:
                self._reserve(store, request, epsilon)
        repeated = sum(row.kind == Kind.PUBLISHED for row in request.rows)
        self._draw(request)
        return HandedOut(self._stored_values(request), repeated)

    def _request(
        self, store: Store, times: Any, given: dict[int, Given], missing: frozenset[int]
    ) -> Request:
        """What is asked, in the order of the file; ValueError for times that cannot be
        published."""
        clock = self._clock(store, times)
        columns = self._columns(store)
        parts = {}
        for place, one in given.items():
            known = columns[place] or first_columns(one.labels, one.counts)
            if one.is_given.any():  # of none, nothing is known but the labels
                columns[place] = known
            parts[place] = arrange(known, one)
        layout = Layout(self._is_named, columns)
        positions = clock.positions(times)
        clock.check_follow(positions, store.state.following)
        rows = list(store.rows(positions[0], positions[-1]))
        request = Request(clock, layout, positions, parts, missing, rows)
        for number, row in enumerate(rows):
            if row.kind not in (Kind.RESERVED, Kind.PUBLISHED):
                passed = clock.label(max(row.position, positions[0]))
                raise ValueError(
                    f"time {passed} was skipped, or spent elsewhere; go on after the last one"
                )
            self._check_is_of_row(request, number, row)
        return request

    def _columns(self, store: Store) -> list[Columns | None]:
        """The columns of each statistic; None for one that was never published."""
        return store.columns() or [None] * len(self._statistics)

    def _check_is_of_row(self, request: Request, number: int, row: Row) -> None:
        """ValueError for other statistics than those that a time released, or is to release."""
        asked = set(request.places_at(number))
        released = set(request.layout.places_in(row))
        if asked == released or (row.kind == Kind.PUBLISHED and asked < released):
            return
        time = request.clock.label(row.position)
        if row.kind == Kind.PUBLISHED:
            raise ValueError(
                f"time {time} was published with {self._names_of(released)}, found "
                f"{self._names_of(asked)}; ask for these alone"
            )
        raise ValueError(
            f"the budgets of time {time} are spent on {self._names_of(released)}, found "
            f"{self._names_of(asked)}; give these, which are then drawn once"
        )

    def _names_of(self, places: Collection[int]) -> str:
        """Statistics by their names, for a message."""
        if not places:
            return "none"
        return ", ".join(str(self._statistics[place].name) for place in sorted(places))

    def _reserve(self, store: Store, request: Request, epsilon: Any) -> None:
        """Spend the budgets of the times that are new, and add their rows to the request; `epsilon`
        is the budget of each, or of each statistic, None: the floor, or the plan."""
        numbers = range(len(request.rows), len(request.positions))
        if not numbers:
            return
        self._keep_clock(store, request.clock)
        self._check_lost_change(store, request.last)
        spent = self._spend(store.state.following, request, numbers, epsilon)
        self._check_drawable(request, spent)  # else an error, and nothing is spent
        rooms = {one: request.layout.room(one.budgets) for one in set(spent)}
        rows = [
            Row(position, 1, Kind.RESERVED, one.total, rooms[one])
            for position, one in zip(request.positions[numbers.start :], spent, strict=True)
        ]
        store.insert(rows)
        if list(request.layout.columns) != self._columns(store):
            store.write_columns(request.layout.columns, self._is_named)
        store.state.following += len(rows)
        request.rows += rows

    def _check_drawable(self, request: Request, spent: Sequence[Spent]) -> None:
        """ValueError for budgets whose noise cannot be drawn."""
        for place, part in request.parts.items():
            different = sorted({one.budgets[place] for one in set(spent)} - {0.0})
            if different:
                self._noise(np.zeros((len(different), 1), part.counts.dtype), different, place)

    def _draw(self, request: Request) -> None:
        """Draw the values of times whose budgets are reserved, and store those that no other
        process was faster with."""
        reserved = [row for row in request.rows if row.kind == Kind.RESERVED]
        if not reserved:
            return
        layout = request.layout
        budgets = layout.budgets_of_each(reserved)
        levels = np.array(budgets)
        numbers = np.array([row.position for row in reserved]) - request.first
        values: list[dict[int, bytes]] = [{} for _ in reserved]
        for place, part in request.parts.items():
            (drawn_now,) = np.nonzero(levels[:, place])
            if not drawn_now.size:
                continue
            counts = part.counts[numbers[drawn_now]]
            noisy = self._noise(counts, levels[drawn_now, place].tolist(), place)
            for number, of_time in zip(drawn_now, noisy, strict=True):
                values[number][place] = of_time.tobytes()
        drawn = [
            Row(row.position, 1, Kind.PUBLISHED, row.budget, layout.pack(spent, of_time))
            for row, spent, of_time in zip(reserved, budgets, values, strict=True)
        ]
        with self._writing() as store:
            store.settle(drawn)

    def _stored_values(self, request: Request) -> dict[int, np.ndarray]:
        """What the file holds of the times of a request, in its columns."""
        with self._reading() as store:
            if request.last >= store.state.following:
                raise OSError(
                    f"{self.path} was put back or replaced while it was read; publish again"
                )
            rows = list(store.rows(request.first, request.last))
        if any(row.kind != Kind.PUBLISHED for row in rows):
            raise ValueError(
                "times were drawn while resume was called, which counts them as spent elsewhere"
            )
        values = {}
        for place, part in request.parts.items():
            asked = [row for row, given in zip(rows, part.is_given, strict=True) if given]
            if asked:
                values[place] = request.layout.table_of(asked, place)[:, part.order]
            else:
                values[place] = np.zeros((0, len(part.order)), part.columns.kind)
        return values

    def _noise(self, counts: np.ndarray, budgets: list, place: int) -> np.ndarray:
        """Noisy counts of one statistic."""
        levels: dict = {"epsilons": budgets}
        if self.settings["delta"]:
            levels = {"noise_multipliers": budgets}
        return release_counts(
            counts,
            **levels,
            sensitivity=self._statistics[place].sensitivity,
            mechanism=self.settings["mechanism"],
            allow_large=True,
        )

    def _spend(self, first: int, request: Request, numbers: range, epsilon: Any) -> list[Spent]:
        """What the times of these numbers in the request spend, the first of which is time number
        `first` of the file; `epsilon` is the budget of each, or of each statistic, None: the floor,
        or the plan.

        LeakageExceededError, or ValueError after the end of a plan.
        """
        if self._filter is None:
            self._planned(first, len(numbers), epsilon)
        spent: list[Spent] = []
        for run in request.runs(numbers):
            time = first + run.start - numbers.start
            for start, count in self._runs_of_levels(time, len(run)):
                one = self._budgets_of(request, start, request.places_at(run.start), epsilon)
                spent += [one] * count
        if self._filter is not None:
            for total, times in groupby(spent, attrgetter("total")):
                self._filter.spend(total, len([*times]))
        return spent

    def _runs_of_levels(self, first: int, count: int) -> Iterator[tuple[int, int]]:
        """Times with one level, of a plan or of the floors, each as the first and their number."""
        if self._filter is not None:
            for start, length in self._chain.runs(first - self._origin, count):
                yield start + self._origin, length
            return
        for time in range(first, first + count):
            yield time, 1

    def _budgets_of(
        self, request: Request, time: int, places: tuple[int, ...], epsilon: Any
    ) -> Spent:
        """What a new time spends on the statistics that are given."""
        if isinstance(self._filter, GaussianFilter):
            multiplier = self._filter.floor if epsilon is None else epsilon
            return Spent((multiplier,), multiplier)
        if isinstance(epsilon, Mapping):
            return self._spent_on(self._by_place_of_epsilon(epsilon, places))
        if epsilon is None:
            self._check_due(request, time, places)
        total = None
        if self._filter is None:
            total = self.settings["plan"][time]
        elif epsilon is not None:
            total = as_scalar(check_epsilon(epsilon), "epsilon")
        if total is not None:
            shares = [self._statistics[place].share for place in places]
            gaussian = self.settings["delta"] is not None
            parts = divided(total, shares, gaussian)
            return self._spent_on(dict(zip(places, parts, strict=True)), total)
        phase = self._phase_at(time)
        if not self._chain.full_floors[phase]:
            raise ValueError(
                "publish needs a budget, found no plan, and no floor at this time; give "
                "epsilon, or skip it"
            )
        floors = dict(zip(self._chain.due[phase], self._chain.budgets_at(phase), strict=True))
        return self._spent_on({place: floors[place] for place in places})

    def _phase_at(self, time: int) -> int:
        """The phase of a time of the chain now."""
        return (time - self._origin) % len(self._chain)

    def _by_place_of_epsilon(self, epsilon: Mapping, places: tuple[int, ...]) -> dict[int, float]:
        """A budget for each statistic that is given; ValueError for others."""
        budgets = self._by_place(epsilon)
        if tuple(budgets) != places:
            raise ValueError(
                "epsilon must have a budget for each statistic that is given, found those of "
                f"{self._names_of(budgets)} for {self._names_of(places)}; correct it"
            )
        return {
            place: as_scalar(check_epsilon(budget), f"epsilon of {self._names_of([place])}")
            for place, budget in budgets.items()
        }

    def _spent_on(self, budgets: dict[int, float], total: float | None = None) -> Spent:
        """Budgets by place, and their sum unless it is known to be at most a `total`."""
        if total is None:
            total = sum_of([*budgets.values()])
        everything = tuple(budgets.get(place, 0.0) for place in range(len(self._statistics)))
        return Spent(everything, total)

    def _check_due(self, request: Request, time: int, places: tuple[int, ...]) -> None:
        """ValueError unless just those statistics are given that are due."""
        due = set(self._chain.due[self._phase_at(time)])
        extra = set(places) - due
        lacking = due - set(places) - request.missing
        if extra:
            raise ValueError(
                f"{self._names_of(extra)} must not be given at {request.clock.label(time)}, when "
                f"due are {self._names_of(due)}; leave it out, or give epsilon"
            )
        if lacking:
            raise ValueError(
                f"{self._names_of(lacking)} is due at {request.clock.label(time)}, found no "
                f"counts; give them, or without={self._names_of(lacking)!r} if there are none: the "
                "share is then not spent"
            )
        if not places:
            raise ValueError(
                f"no statistic is published at {request.clock.label(time)}; skip that time"
            )

    def _planned(self, first: int, count: int, epsilon: float | None) -> list[float]:
        """The budgets of `count` times of the plan, from time number `first` on; ValueError after
        its end, or for another budget."""
        plan = self.settings["plan"]
        if epsilon is not None:
            raise ValueError("a plan holds the budget of each time, found epsilon; leave it out")
        left = len(plan) - first
        if count > left:
            remedy = f"give at most {left}, and the others to"
            if left <= 0:
                remedy = "end here, or make"
            raise ValueError(
                f"the plan has {count_noun(len(plan), 'time')}, {max(left, 0)} of them left, found "
                f"{count_noun(count, 'new time')}, of which none was published; {remedy} a new "
                "file with a plan of its own, whose releases add to those of this one"
            )
        return plan[first : first + count]

    def skip(self, time: Any, until: Any = None, epsilon: float = 0.0) -> Self:
        """Let time points pass without a release.

        Parameters
        ----------
        time : int, date, text of a date in full or time stamp
            The next time.
        until : the same, optional
            The last one, included.
        epsilon : float
            The budget of a release that each had elsewhere, nats.

        Returns
        -------
        Publisher
            Itself.

        Raises
        ------
        ValueError
            For a time that is not the next, or has passed.
        LeakageExceededError
            If the budget would raise a TPL above alpha.
        """
        with self._writing() as store:
            clock = self._clock(store, [time])
            following = store.state.following
            if until is None:
                until = time
            first, last = clock.positions([time, until])
            clock.check_follow([first], following)
            earliest = min(first, last)
            if earliest < following:
                raise ValueError(
                    f"time {clock.label(earliest)} has passed, {clock.label(following)} is next; "
                    "give that, and until not before it"
                )
            if epsilon and self.settings["burst"] is not None:
                raise ValueError(
                    "with a burst nothing is known of a release elsewhere but its noise, found "
                    "epsilon=; leave it out, or call resume(until), which counts all as spent"
                )
            self._keep_clock(store, clock)
            self._pass(store, last - first + 1, float(epsilon))
        return self

    def change_chain(
        self,
        time: Any,
        *,
        backward: Correlation = REQUIRED,
        forward: Correlation = REQUIRED,
        start: Start | None = None,
        floor: ArrayLike | Mapping | str | None = None,
    ) -> Self:
        """Follow another chain from a time on; what was spent before is carried over.

        The step that leads to the time is still that of the earlier chain. No TPL exceeds alpha, of
        times before and after, for users whose habits change so. The floor of before was kept for
        the earlier chain, and another one may be needed.

        Parameters
        ----------
        time : int, date, text of a date in full or time stamp
            The next time.
        backward, forward : as in `Publisher`, with the same states; `backward` may be left out
            Of the new chain; a cycle of a day or week goes by what the clock on the wall shows.
        start : "any", "habit" or array-like (n,), optional
            The law of the state at that time. None: that of the earlier chain, if it began in the
            habit or in a law. "any": all laws. "habit": the law that repeats with the new chain.
        floor : as in `Publisher`, optional
            By default that of before. "largest": the largest one that is possible after what was
            spent.

        Returns
        -------
        Publisher
            Itself.

        Raises
        ------
        ValueError
            For a time that is not the next, a plan, a chain that does not fit, a law that is not
            known, or a floor that cannot be kept.

        Examples
        --------
        >>> import tempfile
        >>> moves, holidays = [[0.8, 0.2], [0.1, 0.9]], [[0.6, 0.4], [0.3, 0.7]]
        >>> publisher = Publisher(
        ...     tempfile.mkdtemp() + "/counts.sqlite",
        ...     forward=moves,
        ...     start="habit",
        ...     alpha=1.0,
        ...     sensitivity=1,
        ...     floor="largest",
        ... )
        >>> noisy = publisher.publish_table(pd.Series(range(50)))
        >>> changed = publisher.change_chain(50, forward=holidays, floor="largest")
        >>> round(publisher.settings["floor"], 3), round(float(publisher.changes["floor"][0]), 3)
        (0.169, 0.409)
        """
        if self._filter is None:
            raise ValueError(
                "a plan is fixed in advance for one chain, found a new one; take a new file, whose "
                "releases add to those of this one"
            )
        if isinstance(self._filter, GaussianFilter):
            raise ValueError(
                "a burst is that of one chain, found a new one; take a new file, whose releases "
                "add to those of this one"
            )
        if self.settings["model"] is not None or isinstance(self._filter, FloorFilter):
            raise ValueError(
                "a publisher keeps the chain of its model, found a new one; take a new file, whose "
                "releases add to those of this one"
            )
        with self._writing() as store:
            following = store.state.following
            if not following:
                raise ValueError(
                    "a chain follows another one after its first time, found none that passed; "
                    "take a new file with the new chain"
                )
            clock = self._clock(store)
            (position,) = clock.positions([time])
            clock.check_follow([position], following)
            if position < following or position == self._segments[-1].position:
                raise ValueError(
                    f"the chain must be changed at a time that is next, and once, found "
                    f"{clock.label(position)}, with {clock.label(following)} next; give another"
                )
            lost = store.state.lost_change
            if lost is not None and position != lost:
                raise ValueError(
                    f"the chain was changed from {clock.label(lost)} on in a later state of this "
                    f"file, found a change at {clock.label(position)}; repeat that one first, with "
                    "the chain and the floor of then"
                )
            present: dict = dict(self.settings)
            earlier = self._changes.chains
            if earlier:
                present |= earlier[-1]["chain"]
            settled = self._filter.settled()
            so_far = SoFar(present, self._segments[-1], clock, settled)
            change = checked_change(Change(backward, forward, start, floor), so_far, position)
            if change["chain"]["cycle"] and clock.dates and clock.phase is None:
                # from now on, offsets from UTC are not to change
                store.write("clock", vars(replace(clock, phase=0)))
            store.write_changes_of_chain([*earlier, change])
            self._turn_to(self._phase, KnownChanges.of(store))
        return self

    @property
    def changes(self) -> pd.DataFrame:
        """The chains that followed the first one: the time from which each holds, its start, and
        its floor, that of all phases where they differ as a list."""
        with self._reading() as store:
            clock = self._clock(store)
            changes = self._changes.chains
        times = clock.index([change["position"] for change in changes])
        starts = [
            "carried over" if change["is_carried"] else change["chain"]["start"]
            for change in changes
        ]
        floors = [change["chain"]["floor"] for change in changes]
        return pd.DataFrame({"time": times, "start": starts, "floor": floors})

    def resume(self, until: Any = None) -> Self:
        """Publish from a file that is a copy, was renamed or was put back, when the other one is
        out of use.

        The file is another one from then on, for its marks. Its witness is the one that the
        publisher was opened with, or else the same as before.

        Parameters
        ----------
        until : int, date, text of a date in full or time stamp, optional
            The last time that may have been published since the copy was made: all times up to it
            count as spent, with as much as alpha allows. None: nothing was published since.

        Returns
        -------
        Publisher
            Itself.

        Raises
        ------
        ValueError
            For a plan whose first time is not known, and for times from a change of chain on of
            which a mark tells and the file does not.

        Notes
        -----
        Under another chain the times since the copy may have leaked more. If the chain was changed
        since, give the last time before the change, repeat `change_chain` with the same chain and
        floor, and call `resume` again with the last time of all. The mark beside the file, and its
        witness, tell of such a change; where both are lost, nothing does.
        """
        with self._file.resuming() as store:
            self._follow(store)
            # Whether their noise was drawn elsewhere is not known.
            reserved = [row for row in store.rows() if row.kind == Kind.RESERVED]
            store.settle([row._replace(kind=Kind.ELSEWHERE) for row in reserved])
            if until is not None:
                self._pass_until(store, until)
            self._keep_filter(store)
        return self

    def _pass_until(self, store: Store, until: Any) -> None:
        """Count all times up to one as spent."""
        if store.read("clock") is None and self._begins_at_one_phase:
            raise ValueError(
                f"{self.path} must know the first time of its plan, of its start or of its cycle, "
                f"found none, and all may be spent up to {until}; take a new file, whose releases "
                "add to those of this one"
            )
        clock = self._clock(store, [until])
        (last,) = clock.positions([until])
        count = last - store.state.following + 1
        if count > 0:
            self._keep_clock(store, clock)
            self._pass(store, count, None)

    def _pass(self, store: Store, count: int, budget: float | None) -> None:
        """Let `count` times pass: skipped (budget 0), or with a budget that was spent elsewhere
        (None: not known)."""
        self._check_lost_change(store, store.state.following + count - 1)
        kind = Kind.ELSEWHERE
        if budget:
            if self._filter is None:
                self._planned(store.state.following, count, budget)
            else:
                self._filter.spend(budget, count)
        elif budget is not None:
            kind = Kind.SKIPPED
            if self._filter:
                self._filter.skip(count)
        elif self._filter:
            self._filter.state = self._filter.exhausted(count)  # the tightest that it can be in
        store.insert([Row(store.state.following, count, kind, budget, None)])
        store.state.following += count

    def _check_lost_change(self, store: Store, last: int) -> None:
        """ValueError if the chain was changed at a time up to position `last` in a later state of
        the file: for the chain before it, times there would count too little."""
        lost = store.state.lost_change
        if lost is None or last < lost:
            return
        clock = self._clock(store)
        raise ValueError(
            f"the chain was changed at {clock.label(lost)} in a later state of this file, found "
            f"times up to {clock.label(last)}; go on up to the time before it, repeat change_chain "
            "with the chain and the floor of then, and go on"
        )

    @property
    def remaining(self) -> float:
        """The largest budget of the next time, with a burst the least noise multiplier; of a plan
        its budget (with a delta: noise multiplier)."""
        with self._reading() as store:
            if self._filter and not self._is_phase_open(store):
                return self._filter.remaining
            following = store.state.following
        if self._filter:
            return self._least_remaining()
        plan = self.settings["plan"]
        if following < len(plan):
            return plan[following]
        if self.settings["delta"]:
            return inf  # a noise multiplier
        return 0.0

    def _least_remaining(self) -> float:
        """What remains at the phase at which least does, if nothing was spent."""
        account = filter_of(self.settings, self._unturned)
        if isinstance(account, GaussianFilter):
            return account.remaining  # the same at all phases
        remaining = []
        for phase in range(len(self._unturned)):
            account.state = FilterState(phase, None, inf)
            remaining.append(account.remaining)
        return min(remaining)

    @property
    def ledger(self) -> pd.DataFrame:
        """What was spent: time, number of times, budget or noise multiplier (NaN if not known),
        kind; of several statistics also that of each, 0 where it was not released."""
        with self._reading() as store:
            layout = Layout(self._is_named, self._columns(store))
            found = [*self._spent_rows(store)]
            rows = [(row.position, row.times, row.budget, row.kind) for row in found]
            spent = [layout.budgets_of(row) for row in found if self._is_named]
            clock = self._clock(store)
        level = "noise_multiplier" if self.settings["delta"] else "epsilon"
        table = pd.DataFrame(rows, columns=["time", "count", level, "kind"]).astype({level: float})
        for place, statistic in enumerate(self._statistics):
            if self._is_named:
                column = [each[place] for each in spent]
                name = column_name(level, statistic.name)
                table.insert(3 + place, name, np.array(column, dtype=float))
        return table.assign(
            time=clock.index(table["time"]), kind=[Kind(kind).label for kind in table["kind"]]
        )

    def _spent_rows(self, store: Store) -> Iterator[Row]:
        """All rows of a file, after that of its model, which is of the time before the first."""
        model = self.settings["model"]
        if model is not None:
            yield Row(-1, 1, Kind.MODEL, model["epsilon"], None)
        yield from store.rows()

    @property
    def times(self) -> pd.Index:
        """All time points so far, those without a release included."""
        with self._reading() as store:
            return self._clock(store).index(range(store.state.following))

    @property
    def leakage(self) -> Any:
        """All leakages as of now: `TemporalLeakage`, or with a delta a `TemporalPrivacyProfile`."""
        self._check_has_chain()
        if self.settings["burst"] is not None:
            raise ValueError(
                "leakages are those of budgets that were fixed in advance, found a burst; each "
                "time keeps (alpha, delta)"
            )
        with self._reading() as store:
            found = [*self._spent_rows(store)]
            first = min((row.position for row in found), default=0)
            rows = _known_budgets(found)
            times = self._clock(store).index(range(first, store.state.following))
        chain = self._chain
        if self._changes.chains:
            backward, forward = whole_series(self._segments)
            chain = replace(chain, backward=backward, forward=forward)
        leakages = leakages_of(rows, self.settings["delta"], chain)
        if self.settings["delta"] is None:
            leakages = replace(leakages, index=times)
        return leakages

    def _check_has_chain(self) -> None:
        """ValueError for a file of which the floor alone is known."""
        if is_of_floor(self.settings["model"]):
            raise ValueError(
                "leakages need a chain, found a model of which the floor alone is known; each is "
                "within alpha"
            )

    def leakage_of_stay(
        self, first: Any, last: Any, start: Literal["any"] | None = None
    ) -> TemporalLeakage:
        """What was leaked about a person who was counted from one time to another one only.

        Releases outside say nothing about her, so that each leakage is at most that of a person who
        is always there; `user_level` is that about all of her stay (docs/theory/promises.md). A
        model that was learned from her data, too, adds its own epsilon to each of these numbers.

        Parameters
        ----------
        first, last : int, date, text of a date in full or time stamp
            Times that have passed, both included.
        start : "any", optional
            For every law of her first state. None: for the law that the publisher's backward side
            assumes then, such as the habit.

        Returns
        -------
        TemporalLeakage
            One leakage for each time of the stay, in the order of time.

        Raises
        ------
        ValueError
            For times that have not passed, were spent elsewhere, or depend on a delta; or if the
            forward matrices are not known, for any law.

        Examples
        --------
        >>> import tempfile
        >>> P = [[0.8, 0.2], [0.1, 0.9]]
        >>> publisher = Publisher(
        ...     tempfile.mkdtemp() + "/counts.sqlite",
        ...     forward=P,
        ...     start="habit",
        ...     alpha=1.0,
        ...     sensitivity=1,
        ...     floor=0.1,
        ... )
        >>> noisy = publisher.publish_table(pd.Series(range(100)))
        >>> stay = publisher.leakage_of_stay(40, 46)
        >>> round(stay.max(), 3), round(publisher.leakage.max(), 3), round(stay.user_level, 3)
        (0.411, 0.586, 0.7)
        """
        self._check_has_chain()
        check_choice(start, "start", (None, "any"))
        if self.settings["delta"] is not None:
            raise ValueError(
                "leakages of a stay are those of budgets, found noise multipliers; see leakage, or "
                "with a burst (alpha, delta)"
            )
        with self._reading() as store:
            clock = self._clock(store)
            begin, end = clock.positions([first, last])
            following = store.state.following
            if not 0 <= begin <= end < following:
                raise ValueError(
                    f"a stay must be of times that have passed, the first not after the last, "
                    f"found {clock.label(begin)} to {clock.label(end)}, with "
                    f"{clock.label(following)} next; correct it"
                )
            rows = [row.within(begin, end) for row in store.rows(begin, end)]
            segments = self._segments
        count = end - begin + 1
        account = TemporalAccountant(*steps_of_stay(segments, begin, count, start))
        compose_runs(account, _known_budgets(rows))
        return replace(account.leakage, index=clock.index(range(begin, end + 1)))

    def to_frame(self, statistic: str | None = None) -> pd.DataFrame:
        """All noisy values: a row for each published time, a column for each count.

        Parameters
        ----------
        statistic : str, optional
            One of several, by its name. None: all of them side by side, with columns such as
            "people: home"; where one was not published, its cells are missing (`pd.NA`).

        Returns
        -------
        DataFrame

        Raises
        ------
        ValueError
            For an unknown name.
        """
        with self._reading() as store:
            rows = [row for row in store.rows() if row.kind == Kind.PUBLISHED]
            layout = Layout(self._is_named, self._columns(store))
            clock = self._clock(store)
        if not self._is_named and statistic is None:
            return _frame_of(rows, layout, 0, clock)
        if statistic is not None:
            (place,) = self._by_place({statistic: None})
            return _frame_of(rows, layout, place, clock)
        frames = {}
        for place, each in enumerate(self._statistics):
            name = str(each.name)
            frames[name] = in_one_table(_frame_of(rows, layout, place, clock), name)
        return pd.concat([*frames.values()], axis=1).sort_index()

    def values_with_bands(self, level: float = 0.9) -> dict[str, ValuesWithBands]:
        """The noisy values of each statistic, and by how much their noise may be off.

        Parameters
        ----------
        level : float, 0 < level < 1
            The noise of each value lies within its band with this probability or more.

        Returns
        -------
        dict of ValuesWithBands by the names of statistics, "" for one without a name

        Raises
        ------
        ValueError
            For a level that is not between 0 and 1.
        """
        level = check_probability(level, "level", zero=False, one=False)
        with self._reading() as store:
            rows = [row for row in store.rows() if row.kind == Kind.PUBLISHED]
            layout = Layout(self._is_named, self._columns(store))
            clock = self._clock(store)
        gaussian = self.settings["delta"] is not None
        found = {}
        for place, statistic in enumerate(self._statistics):
            values = _frame_of(rows, layout, place, clock)
            published = [row for row in rows if place in layout.places_in(row)]
            levels = np.array([each[place] for each in layout.budgets_of_each(published)])
            columns = layout.columns[place]
            whole = columns is not None and np.dtype(columns.kind).kind == "i"
            width = noise_width(levels, statistic.sensitivity, gaussian, whole, level)
            widths = pd.DataFrame({column: width for column in values}, values.index)
            found[statistic.name or ""] = ValuesWithBands(values, widths)
        return found

    def smoothed(
        self,
        *,
        chain: Any = REQUIRED,
        statistic: str | None = None,
        total: float | None = None,
        initial: ArrayLike | None = None,
        online: bool = False,
        whole: bool = False,
        level: float = 0.9,
    ) -> SmoothedCounts:
        """Estimates of the true counts with their errors, for no further privacy cost.

        The file is only read: estimates are revised with each time, and are no releases.

        Parameters
        ----------
        chain : TransitionMatrix, Cycle, other matrices or None
            As `smooth_counts` takes it. It must be public: never the publisher's own matrices, if
            these were counted from private data.
        statistic : str, optional
            One of several, by its name.
        total, initial, online, whole, level : optional
            As `smooth_counts` takes them.

        Returns
        -------
        SmoothedCounts

        Raises
        ------
        ValueError
            As `smooth_counts`, and if nothing was published.
        """
        from tplreport.smoothing.published import smooth_published

        return smooth_published(
            self.to_frame(statistic).reindex(self.times),
            self.ledger,
            self.settings,
            statistic,
            chain=chain,
            total=total,
            initial=initial,
            online=online,
            whole=whole,
            level=level,
        )

    def export(self, path: str | os.PathLike) -> None:
        """Write the noisy values as CSV; ValueError for a file that a publisher uses."""
        self.check_target(path)
        write_whole(Path(path), self.to_frame().to_csv().encode())

    def backup(self, path: str | os.PathLike) -> None:
        """Write a copy of the file, which is whole also while others publish.

        ValueError for any file that is there, but for an older backup of this publisher.
        """
        target = Path(path).resolve()
        check_spares(target, self.files)
        check_is_not_in_use(target)
        if target.exists() and not self._is_backup(target):
            raise ValueError(
                f"a backup must be a new file, or take the place of an older one, found {target}; "
                "take another name"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        # for its owner's eyes only, from the start
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}")
        partial = Path(name)
        try:
            with self._reading() as store:
                store.copy_to(partial)
            os.fsync(handle)
            os.replace(partial, target)
        finally:
            os.close(handle)
            partial.unlink(missing_ok=True)

    def check_target(self, path: str | os.PathLike) -> None:
        """ValueError for a path whose file is one of this publisher's or of another one, or a
        backup, and must not be written over."""
        check_spares(path, self.files)
        check_is_no_publisher(path)

    def _is_backup(self, path: Path) -> bool:
        """Whether a file is a copy of this publisher's."""
        try:
            with closing(Store(path, write=False)) as store:
                return not store.is_empty and store.state.identity == self._file.identity
        except (sqlite3.Error, Damage, ValueError):
            return False

    @property
    def _begins_at_one_phase(self) -> bool:
        """Whether the first time must have phase 0: a plan and first steps are those of one."""
        is_without_clock = len(self._unturned) > 1 and self._unturned.clock is None
        return self._filter is None or self._unturned.has_first_steps or is_without_clock

    def _is_phase_open(self, store: Store) -> bool:
        """Whether the phase of the first time is not known yet, and may be any."""
        if self._unturned.clock is None or self._begins_at_one_phase:
            return False
        return store.read("clock") is None

    def _clock(self, store: Store, times: Any = ()) -> Clock:
        """The clock of the file; of a new one, which is not stored here, the one that starts with
        the first of `times`; of a new one without `times`, one that is never used for a label."""
        fields = store.read("clock")
        if fields is not None:
            return Clock(**fields)
        if not len(times):
            return Clock(**Clock.starting(0, 1))
        fields = Clock.starting(times[0], self.settings["step"], self._unturned.clock)
        if self._begins_at_one_phase:
            self._check_is_first_phase(fields["phase"])
        return Clock(**fields)

    def _check_is_first_phase(self, phase: int | None) -> None:
        """ValueError for a first time at another phase than that of a plan, or of first steps."""
        if phase:
            phases = self._unturned.forward.phases
            raise ValueError(
                "a plan, and a chain whose first steps depend on its start, begin at one phase, "
                f"{phases[0]!r}, found a first time at {phases[phase]!r}; make them of "
                f"cycle.starting_at({phases[phase]!r})"
            )

    def _keep_clock(self, store: Store, clock: Clock) -> None:
        if store.read("clock") is None:
            check_after_training(self.settings["model"], clock.label(0))
            store.write("clock", vars(clock))
            self._turn_to(clock.phase, self._changes)

    def _check_witness(self) -> None:
        """ValueError for another witness than that of the file: a command that changes nothing
        would ignore it."""
        with self._reading() as store:
            self._file.check_witness(store.state)

    def _remove_unused(self) -> None:
        """Remove the file and its marks unless a time was spent: a command that made them and is
        then refused leaves nothing behind."""
        self._file.remove_unused()

    @contextmanager
    def _reading(self) -> Iterator[Store]:
        """A transaction that changes nothing; it may be one of a copy."""
        with self._file.reading() as store:
            self._follow(store)
            yield store

    @contextmanager
    def _writing(self) -> Iterator[Store]:
        """A transaction of the marked file."""
        with self._file.writing() as store:
            self._follow(store)
            yield store
            self._keep_filter(store)

    def _follow(self, store: Store) -> None:
        """Let the filter know what the file knows; else it remembers what it computed."""
        if self._phase is None:
            return
        phase: int | None = self._phase
        if self._unturned.clock is not None:
            phase = (store.read("clock") or {}).get("phase")
        changes = self._changes
        if store.digest_of_changes() != changes.digest:
            changes = KnownChanges.of(store)
        self._turn_to(phase, changes)
        if self._filter is None:
            return
        found: Any = self._state_at_start
        if store.state.following:
            found = type(found)(*store.state.filter)
        if self._filter.state != found:
            self._filter.state = found

    def _keep_filter(self, store: Store) -> None:
        if self._filter:
            store.state.filter = self._filter.state


def _known_budgets(rows: Sequence[Row]) -> list[tuple[float, int]]:
    """The budgets of rows, and for how many times; ValueError if one is not known."""
    known = []
    for row in rows:
        if row.budget is None:
            raise ValueError(
                "leakages need all budgets, found times spent elsewhere; each is within alpha"
            )
        known.append((row.budget, row.times))
    return known


def _frame_of(rows: list[Row], layout: Layout, place: int, clock: Clock) -> pd.DataFrame:
    """The values of one statistic, with a row for each time at which it was published."""
    published = [row for row in rows if place in layout.places_in(row)]
    columns = layout.columns[place] or Columns([], "<i8")
    times = clock.index([row.position for row in published])
    return pd.DataFrame(layout.table_of(published, place).copy(), times, columns.labels)


def _warn_of_repeated(what: str) -> None:
    warn_caller(
        f"{what} handed out before: the same values are returned again, and the counts that are "
        "given now were not compared with those of then",
        RepeatedTimeWarning,
    )
