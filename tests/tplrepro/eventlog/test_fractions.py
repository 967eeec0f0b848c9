"""Leakages of random logs against systems that are counted trace by trace, in fractions."""

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pandas as pd
import pytest

from tests.oracles import largest_loss
from tplrepro.eventlog import quantify_releases, releases

START = "+"
END = "~"
ABSTRACTIONS = {
    "sequence": tuple,
    "multiset": lambda items: tuple(sorted(items)),
    "set": lambda items: tuple(sorted(set(items))),
}


def states_of(path, window, direction, abstraction):
    """The state at each position of a path: some of its items up to there, or from there on."""
    width = window or len(path)
    states = []
    for position in range(len(path)):
        items = path[position : position + width]
        if direction == "prefix":
            items = path[max(position + 1 - width, 0) : position + 1]
        states.append(ABSTRACTIONS[abstraction](items))
    return states


def shares(row):
    """A row divided by its sum, without its zeros."""
    total = sum(row.values())
    return {state: Fraction(value) / total for state, value in row.items() if value}


def product(rows, following):
    """Two steps, one after the other."""
    result = {}
    for state, row in rows.items():
        reached = defaultdict(Fraction)
        for middle, share in row.items():
            for end, other in following[middle].items():
                reached[end] += share * other
        result[state] = dict(reached)
    return result


def several_events(one_event, depth, certain):
    """The rows of `depth` events at once, or of 0 to `depth`, each as likely."""
    moves = [one_event]
    for _ in range(depth - 1):
        moves.append(product(moves[-1], one_event))
    if certain:
        return {state: shares(row) for state, row in moves[-1].items()}
    rows = {}
    for state, row in one_event.items():
        total = defaultdict(Fraction)
        if row:
            total[state] += 1
        for move in moves:
            for end, share in shares(move[state]).items():
                total[end] += share
        rows[state] = shares(total)
    return rows


class CountedSystem:
    """The states and transitions of paths, and the rows of a step to their release."""

    def __init__(self, paths, view, counting):
        self.counts = defaultdict(Counter)
        self.ended = Counter()
        self.final = set()
        for path in paths:
            states = states_of(path, **view)
            self.ended[states[-1]] += 1
            if path[-1] == END:
                self.final.add(states[-1])
            transitions = list(pairwise(states))
            if counting == "cases":
                transitions = set(transitions)
            for state in states:
                self.counts[state] += Counter()
            for here, there in transitions:
                self.counts[here][there] += 1
        self.states = list(self.counts)

    def forward(self, depth, certain):
        one_event = {}
        for state, row in self.counts.items():
            stay = Counter({state: int(state in self.final)})
            one_event[state] = shares(row + stay)
        return several_events(one_event, depth, certain)

    def uniform(self, depth, certain):
        """All states before one are as likely."""
        before = {state: {} for state in self.states}
        for here, row in self.counts.items():
            for there in row:
                before[there][here] = Fraction(1)
        one_event = {state: shares(row) for state, row in before.items()}
        return several_events(one_event, depth, certain)

    def bayes(self, depth, certain):
        """Pr(state before | state), by Bayes' rule."""
        entered = {there for row in self.counts.values() for there in row}
        weights = {state: defaultdict(Fraction) for state in self.states}
        for here, steps in self.forward(depth, certain).items():
            row = Counter(steps)
            is_left = bool(self.counts[here]) or here in self.final
            if not is_left and not certain:
                row[here] += Fraction(1, depth + 1)
            visits = sum(self.counts[here].values()) + self.ended[here]
            for there, share in row.items():
                if there in entered:
                    weights[there][here] += visits * share
        return {state: shares(row) for state, row in weights.items()}


def loss_of(rows, smoothing):
    """L of the rows that are known, smoothed by Eq. (28) of [1]; None if there are none."""
    known = [row for row in rows.values() if row]
    if len(known) < 2:
        return None
    added = Fraction(smoothing)
    total = 1 + len(rows) * added
    distinct = {tuple((row.get(state, 0) + added) / total for state in rows) for row in known}
    numbers = [[mpmath.mpf(x.numerator) / x.denominator for x in row] for row in distinct]
    sums = {(mpmath.mpf(0), mpmath.mpf(0))}
    for q in numbers:
        for d in numbers:
            above = [(a, b) for a, b in zip(q, d, strict=True) if a > b]
            above.sort(key=lambda pair: pair[1] / pair[0])
            gap = below = mpmath.mpf(0)
            for a, b in above:
                gap += a - b
                below += b
                sums.add((gap, below))
    return lambda alpha: largest_loss(sums, alpha)


def accumulated(losses, budgets):
    """Eq. (13) of [1]."""
    leakages = [mpmath.mpf(budgets[0])]
    for loss, budget in zip(losses, budgets[1:], strict=True):
        leaked = loss(leakages[-1]) if loss else 0
        leakages.append(leaked + mpmath.mpf(budget))
    return leakages


def random_rows(rng):
    """A log of a few short cases, of which some go on after its end."""
    rows = []
    for case in range(int(rng.integers(2, 7))):
        is_complete = bool(rng.random() < 0.7)
        hours = np.sort(rng.integers(0, 12, int(rng.integers(1, 5))))
        for hour in hours.tolist():
            time = pd.Timestamp("2022-01-01") + pd.Timedelta(hours=hour, minutes=case)
            rows.append((str(case), str(rng.choice(list("abc"))), time, is_complete))
    names = ["case:concept:name", "concept:name", "time:timestamp", "case:complete"]
    return pd.DataFrame(rows, columns=names)


def paths_of(log, release):
    """The paths of the cases, which stand in the order in which they begin."""
    cases = sorted(log.groupby("case:concept:name"), key=lambda case: case[1].iloc[0, 2])
    paths = []
    for published, (_, case) in zip(release.published.tolist(), cases, strict=True):
        events = tuple(case["concept:name"])
        path = (START, *events[:published])
        if published > len(events):
            path = (*path, END)
        if published:
            paths.append(path)
    return paths


@mpmath.workdps(40)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 40))]
)
def test_leakages_are_those_of_traces_that_are_counted_in_fractions(seed):
    rng = np.random.default_rng([64, seed])
    for _ in range(8):
        log = random_rows(rng)
        depth = int(rng.integers(1, 4))
        certain = bool(rng.random() < 0.6)
        smoothing = float(rng.choice([0.0, 0.01, 0.3, 2.0]))
        backward_from = str(rng.choice(["bayes", "uniform"]))
        counting = str(rng.choice(["cases", "occurrences"]))
        direction = str(rng.choice(["prefix", "suffix"]))
        abstraction = str(rng.choice(list(ABSTRACTIONS)))
        window = [None, 1, 1, 2, 3][rng.integers(5)]
        chosen = {"window": depth, "certain": certain, "start": float(rng.uniform(0.1, 0.9))}
        chosen |= {"max_releases": 5, "rng": int(rng.integers(1e9))}
        series = list(releases(log, **chosen))
        budgets = rng.uniform(0.01, 1.5, len(series))
        found = quantify_releases(
            log,
            budgets,
            **chosen,
            direction=direction,
            abstraction=abstraction,
            state_window=window,
            counting=counting,
            backward_from=backward_from,
            smoothing=smoothing,
        )
        view = {"window": window, "direction": direction, "abstraction": abstraction}
        systems = [CountedSystem(paths_of(log, release), view, counting) for release in series]
        assert found["states"].tolist() == [len(system.states) for system in systems]
        before = [getattr(system, backward_from)(depth, certain) for system in systems[1:]]
        after = [system.forward(depth, certain) for system in systems[1:]]
        bpl = accumulated([loss_of(rows, smoothing) for rows in before], budgets)
        fpl = accumulated([loss_of(rows, smoothing) for rows in after][::-1], budgets[::-1])[::-1]
        tpl = [b + f - mpmath.mpf(e) for b, f, e in zip(bpl, fpl, budgets, strict=True)]
        for name, exact in (("bpl", bpl), ("fpl", fpl), ("tpl", tpl)):
            for value, truth in zip(found[name], exact, strict=True):
                assert abs(value - truth) <= 7e-15 * len(series) * truth
