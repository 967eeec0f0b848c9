"""An online account of temporal privacy leakage: compose releases as they happen, read leakages at any time.

Contract. `compose` validates first and changes the account second, costs O(1) and returns the account. A new
release **raises the forward leakage, and with it the TPL, of all past releases**: a past release that
satisfied alpha-DP_T may no longer satisfy it (Example 3 of [1]). Budgets are part of the public mechanism;
they must not depend on the data. Several threads may read and compose; copies are independent. `save` keeps
an account in a file, for servers that restart.

A release is a budget, for pure epsilon-DP, or an event of dp_accounting, such as Gaussian noise, by the
conventions of `tplfrontier.events`. `epsilon` and `delta` account for both; without pauses, one more
release costs as much as the profiles that it changes. `bpl`, `fpl` and `tpl` are the pure leakages: exact for
budgets and events with a bounded loss, inf without a pure bound.
"""

from collections.abc import Callable
from copy import copy, deepcopy
from itertools import groupby
from math import ceil, inf, log2, ulp
from operator import itemgetter
from os import PathLike
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import numpy as np

from tplfrontier.profile import COARSEST, PrivacyProfile, Release, automatic_grid, check_grid
from tplfrontier.temporal_profile import TemporalPrivacyProfile, temporal_privacy_profile
from tplreport.ledger import Ledger
from tplrepro.leakage.filter import LeakageExceededError, TemporalFilter
from tplrepro.leakage.partial import Timeline, gaps
from tplrepro.leakage.temporal import Matrix, TemporalLeakage, accumulate, loss_functions, safely_below
from tplrepro.search import largest_within
from tplrepro.validation import check_alpha, check_delta, check_epsilon, check_horizon, check_level, one_number
from tplrepro.words import counted

if TYPE_CHECKING:
    from dp_accounting import DpEvent

#: The largest relative error of what remains when the search uses profiles.
TOLERANCE = 2.0**-10


class TemporalAccountant:
    """Account of the leakages of releases so far against one adversary.

    `backward` and `forward` are as in `temporal_privacy_leakage`, one matrix or loss function each. `grid` is
    as in `temporal_privacy_profile`; None adapts it to the weakest release so far. With `alpha` the account
    is a filter (`TemporalFilter`): it refuses what would raise a TPL above alpha, and keeps a budget of
    `floor` available at every later time. Budgets may then depend on what was released before.

    Examples
    --------
    >>> account = TemporalAccountant(backward=[[0.8, 0.2], [0, 1]], forward=[[0.8, 0.2], [0, 1]])
    >>> account.compose(0.1, count=2).tpl.round(4).tolist()
    [0.1808, 0.1808]
    >>> account.compose(0.1).tpl.round(4).tolist()  # the third release raised the leakage of the first two
    [0.2471, 0.2616, 0.2471]
    >>> account.ledger
    ((0.1, 2), (0.1, 1))
    >>> round(account.remaining(0.3), 4)  # of the fourth release, so that no leakage exceeds 0.3
    0.0583
    >>> from dp_accounting import GaussianDpEvent
    >>> account.compose(GaussianDpEvent(4.0)).epsilon(1e-6).round(3).tolist()
    [0.836, 0.951, 1.058, 1.162]
    >>> round(account.remaining(2.0, 1e-6), 3), round(account.remaining(2.0, 1e-6, GaussianDpEvent), 2)
    (0.999, 2.61)
    """

    def __init__(
        self,
        backward: Matrix | None = None,
        forward: Matrix | None = None,
        *,
        alpha: float | None = None,
        floor: float = 0.0,
        grid: float | None = None,
    ):
        self._backward, self._forward = loss_functions(backward, forward)
        self._filter = None if alpha is None else TemporalFilter(alpha, self._backward, self._forward, floor=floor)
        self._spending = Lock()
        self._file: Ledger | None = None
        self._gaps = gaps([self._backward], "backward"), gaps([self._forward], "forward")
        self._grid = None if grid is None else check_grid(grid)
        # Releases as they were composed, their bounds on the loss (0: no release), and their counts.
        self._ledger: list[tuple[Any, float, int]] = []
        self._events: dict[Release, Release] = {}
        # The number of ledger entries read so far, and their leakages: each reading replaces both at once.
        self._read = 0, TemporalLeakage(*np.empty((3, 0)))
        self._profiled: tuple[int, TemporalPrivacyProfile | None] = 0, None

    def __getstate__(self) -> tuple:
        # The ledger comes last: it must not be older than the readings.
        readings = self._read, self._profiled
        with self._spending:
            entries = copy(self._filter), self._ledger[:]
        return self._backward, self._forward, self._grid, *readings, *entries, {**self._events}

    def __setstate__(self, state: tuple) -> None:
        TemporalAccountant.__init__(self, *state[:2])
        self._grid, self._read, self._profiled, self._filter, self._ledger, self._events = state[2:]

    def __repr__(self) -> str:
        releases = sum(count for _, epsilon, count in self._ledger if epsilon)
        total = sum(epsilon * count for _, epsilon, count in self._ledger)
        return f"TemporalAccountant({counted(releases, 'release')}, {counted(total, 'nat', '.6g')} spent)"

    def __len__(self) -> int:
        """The number of time points so far, T."""
        return sum(count for *_, count in self._ledger)

    def compose(self, release: "float | DpEvent | PrivacyProfile", count: SupportsIndex = 1) -> Self:
        """Add `count` releases, one per time point; this raises the forward leakage of the earlier releases.

        A release is its budget (nats), an event of dp_accounting or a `PrivacyProfile`. A composed event is
        one release; an event that reveals nothing is like `skip`. ValueError if a budget is not positive and
        finite, an event is unsupported or count is not a whole number >= 1, and LeakageExceededError if the
        account has a level alpha and a TPL would exceed it; the account then stays as it is.
        """
        if type(release) is float and 0.0 < release < inf:  # the full checks cost more than everything else
            epsilon = release
        elif hasattr(release, "to_named_tuple") or isinstance(release, PrivacyProfile):
            kept = self._kept(release)
            epsilon = kept.epsilon
            if epsilon == 0.0:
                return self.skip(count)
            release = kept.event
        else:
            release = epsilon = one_number(check_epsilon(release), "epsilon", "compose each budget in turn")
        return self._add(release, epsilon, check_horizon(count, "count"))

    def _kept(self, release: Any) -> Release:
        kept = Release(release)
        if kept not in self._events:
            _ = kept.epsilon  # ValueError if it is unsupported
        return self._events.setdefault(kept, kept)

    def _add(self, release: Any, epsilon: float, count: int) -> Self:
        with self._spending:
            following = self._filter
            if following:
                following = copy(following)
                following.spend(epsilon, count) if epsilon else following.skip(count)
            if self._file:  # on the disk first: what is there counts, whatever happens next
                self._file.add(release, count)
            self._filter = following
            self._ledger.append((release, epsilon, count))
        return self

    def save(self, path: str | PathLike) -> Self:
        """Keep the account in a new file from now on: each release is on disk before `compose` returns.

        The file, of JSON lines, holds everything that `open` needs. Copies of the account are not kept in it.
        ValueError if there is a file, if another process has it open, or for labels that JSON does not have.
        """
        file = Ledger(path)
        try:
            with self._spending:
                alpha, floor = (self._filter.alpha, self._filter.floor) if self._filter else (None, 0.0)
                sides = {"backward": self._backward, "forward": self._forward}
                file.create({"alpha": alpha, "floor": floor, "grid": self._grid}, sides, list(self.ledger))
                self.close()
                self._file = file
        except BaseException:
            file.close()
            raise
        return self

    @classmethod
    def open(cls, path: str | PathLike) -> Self:
        """The account that `save` keeps in a file, after the last release; it is kept there further.

        ValueError if there is no such file, it is damaged, or another process has it open.
        """
        file = Ledger(path)
        try:
            settings, sides, entries = file.read()
            account = cls(**sides, **settings)
            for release, count in entries:
                is_pause = type(release) in (int, float) and release == 0
                account.skip(count) if is_pause else account.compose(release, count)
        except BaseException:
            file.close()
            raise
        account._file = file
        return account

    def close(self) -> None:
        """Let other processes open the file, as the end of a `with` block does; go on in memory only."""
        if self._file:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def skip(self, count: SupportsIndex = 1) -> Self:
        """Let `count` time points pass without a release; their leakages are as in `leakage_at_all_times`."""
        for between in self._gaps:
            between(0, 2)  # refuses sparse matrices of very many states, before the account changes
        return self._add(0.0, 0.0, check_horizon(count, "count"))

    @property
    def tolerated(self) -> float:
        """The largest FPL of the next time point with which every TPL stays within the level `alpha`."""
        if self._filter is None:
            raise ValueError("tolerated needs an account with a level, found none; make it with alpha=")
        return self._filter.tolerated

    def remaining(
        self,
        alpha: float | None = None,
        delta: float = 0.0,
        noise: "Callable[[float], DpEvent] | None" = None,
        *,
        floor: float = 0.0,
        adaptive: bool = False,
        plans: int = 1,
    ) -> float:
        """The largest next release that keeps every TPL within (alpha, delta), rounding errors included.

        Parameters
        ----------
        alpha : float > 0, nats; by default the level and floor of the account
        delta : float, 0 <= delta < 1, 0 if the account has a level; above 0 the result is exact within 0.1 %,
            and later noise must not depend on outputs
        noise : callable from a noise multiplier to an event, such as `GaussianDpEvent`; None: a pure budget
        floor : float >= 0, a pure budget that stays available at every later time; for delta = 0
        adaptive : whether releases depend on earlier outputs; ValueError with delta > 0, unless there are `plans`
        plans : int >= 1, the number of plans, each fixed in advance, between which outputs decide
            Each must keep (alpha, delta / plans), and this account must hold the releases of one of them.

        Returns the budget in nats, 0 if none is possible (with a delta: none above alpha / 8192); with `noise`
        the smallest noise multiplier, or inf if 8192 is not enough. Without a floor it says nothing about
        later releases.
        """
        if alpha is None:
            if self._filter is None:
                raise ValueError("remaining needs a level alpha, found none; give it here or to the account")
            if noise is None and not (delta or floor):
                return self._filter.remaining
            alpha, floor = self._filter.alpha, floor or self._filter.floor
        plans = check_horizon(plans, "plans")
        if delta and adaptive and plans == 1:
            raise ValueError(
                f"delta must be 0 if releases depend on outputs, found {delta:g}: (epsilon, delta) does not hold "
                "then. Compose the strongest release that may be chosen at each time; or give the number of plans, "
                "fixed in advance, between which you choose; or compose the epsilon of each release's probabilistic "
                "DP as a pure budget, and add up the deltas"
            )
        level, delta = check_level(alpha), float(delta) / plans
        if delta:
            check_delta(delta)
            if self._filter:
                raise ValueError(f"delta must be 0 if the account has a level, found {delta:g}; make one without alpha")
        if floor > 0.0 and (delta or noise):
            raise ValueError("a floor is a pure budget, found delta or noise beside it; leave them out")
        budget = 0.0 if delta else self._budget_within(level, floor)
        if noise is None and not delta:
            return budget

        def within(size: float) -> bool:
            release = size if noise is None else noise(1.0 / size)
            if delta:
                return copy(self).compose(release).epsilon(delta).max() <= level
            return Release(release).epsilon <= budget

        unit = level if noise is None else 1.0
        least, most = unit * 2.0**-13, unit * 2.0**13
        size = unit if not delta or (self.epsilon(delta) <= level).all() else 0.0
        while size >= least and not within(size):  # from sizes like those so far, on the same grid
            size /= 2.0
        while unit <= size < most and within(2.0 * size):
            size *= 2.0
        size = largest_within(within, size, 2.0 * size, tolerance=TOLERANCE, logarithmic=True) if size >= least else 0.0
        if noise is None:
            return size
        return 1.0 / size if size else inf

    def _budget_within(self, alpha: float, floor: float) -> float:
        """The largest pure budget of the next release."""
        if floor == 0.0:  # `tpl` has rounding errors, too
            alpha = safely_below(alpha, len(self) + 1)
        account = TemporalFilter(alpha, self._backward, self._forward, floor=floor)
        try:
            for _, epsilon, count in self._ledger[:]:
                if epsilon == inf:
                    return 0.0
                account.spend(epsilon, count) if epsilon else account.skip(count)
        except LeakageExceededError:
            return 0.0
        return account.remaining

    @property
    def ledger(self) -> "tuple[tuple[float | DpEvent | PrivacyProfile, int], ...]":
        """The releases in order: pairs (release, count), with 0 for time points without a release."""
        return tuple((deepcopy(release), count) for release, _, count in self._ledger)

    def epsilon(self, delta: float) -> np.ndarray:
        """The smallest proven epsilon of (epsilon, delta)-DP_T of each release, (T,); 0 < delta < 1."""
        delta = one_number(check_delta(delta), "delta")
        return self.profile.epsilon(delta) if any(bound for _, bound, _ in self._ledger) else np.zeros(len(self))

    def delta(self, epsilon: float) -> np.ndarray:
        """The smallest proven delta of (epsilon, delta)-DP_T of each release, (T,); epsilon in nats."""
        epsilon = one_number(check_alpha(epsilon, "epsilon"), "epsilon")
        return self.profile.delta(epsilon) if any(bound for _, bound, _ in self._ledger) else np.zeros(len(self))

    @property
    def profile(self) -> TemporalPrivacyProfile:
        """All privacy profiles as of now, with their compositions; ValueError before the first release."""
        read, profile = self._profiled
        ledger = self._ledger[:]
        if profile is None or read < len(ledger):
            entries = [(self._kept(release) if epsilon else None, count) for release, epsilon, count in ledger]
            grid, earlier = self._grid, profile
            if grid is None:  # halved until it suits the weakest release, so that it seldom changes
                finest = automatic_grid({release for release, _ in entries if release})
                grid = COARSEST * 2.0 ** -ceil(log2(COARSEST / finest))
            profile = temporal_privacy_profile(entries, self._backward, self._forward, grid=grid)
            profile = profile.following(earlier) if earlier else profile
            self._profiled = len(ledger), profile
        return profile

    @property
    def leakage(self) -> TemporalLeakage:
        """All leakages as of now, with their compositions."""
        read, leakage = self._read
        new = self._ledger[read:]
        if new:
            leakage = self._followed_by([entry[1:] for entry in new], leakage)
            self._read = read + len(new), leakage
        return leakage

    @property
    def epsilons(self) -> np.ndarray:
        """The budget of each release, (T,), nats."""
        return self.leakage.epsilons

    @property
    def bpl(self) -> np.ndarray:
        """Backward privacy leakage of each release, (T,), nats."""
        return self.leakage.bpl

    @property
    def fpl(self) -> np.ndarray:
        """Forward privacy leakage of each release as of now, (T,), nats."""
        return self.leakage.fpl

    @property
    def tpl(self) -> np.ndarray:
        """Temporal privacy leakage of each release as of now, (T,), nats."""
        return self.leakage.tpl

    def _followed_by(self, new: list[tuple[float, int]], previous: TemporalLeakage) -> TemporalLeakage:
        epsilons = np.append(previous.epsilons, np.repeat([epsilon for epsilon, _ in new], [n for _, n in new]))
        if not epsilons.all():
            times = np.flatnonzero(epsilons)
            return Timeline.along(*self._gaps, epsilons.size, times).leakage(epsilons[times])
        runs = [(epsilon, sum(n for _, n in group)) for epsilon, group in groupby(new, key=itemgetter(0))]
        last = float(previous.bpl[-1]) if previous.bpl.size else None
        bpl = np.fromiter(accumulate(((self._backward, *run) for run in runs), last), float)
        fpl = np.fromiter(accumulate((self._forward, *run) for run in runs[::-1]), float)
        changed: list[float] = []
        earlier = ((self._forward, float(epsilon), 1) for epsilon in previous.epsilons[::-1])
        for following, before in zip(accumulate(earlier, float(fpl[-1])), previous.fpl[::-1], strict=False):
            if following == before or abs(following - before) < ulp(following):
                break  # all earlier ones stay, too
            changed.append(following)
        unchanged = previous.fpl[: previous.fpl.size - len(changed)]
        return TemporalLeakage(
            epsilons,
            np.concatenate((previous.bpl, bpl)),
            np.concatenate((unchanged, changed[::-1], fpl[::-1])),
        )
