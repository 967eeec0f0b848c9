"""Small logs and XES texts for the tests."""

import pandas as pd
import pytest

from experiments.datasets.event_logs import recorded_logs
from tplrepro.eventlog import TransitionSystem

COLUMNS = ["case:concept:name", "concept:name", "time:timestamp"]


def log_of(*traces, complete=None):
    """A log whose k-th case has the activities of the k-th string, one event an hour, all cases in
    parallel."""
    rows = [
        (str(case), activity, pd.Timestamp("2022-01-01", tz="UTC") + pd.Timedelta(hours=hour))
        for case, activities in enumerate(traces)
        for hour, activity in enumerate(activities)
    ]
    log = pd.DataFrame(rows, columns=COLUMNS)
    if complete is not None:
        log["case:complete"] = [complete[int(case)] for case in log["case:concept:name"]]
    return log


def by_last_activity(*traces, complete=None, **options):
    return TransitionSystem.from_log(log_of(*traces, complete=complete), window=1, **options)


def random_log(rng, cases=12, activities="abcd", longest=6):
    return log_of(
        *("".join(rng.choice(list(activities), rng.integers(1, longest + 1))) for _ in range(cases))
    )


def labelled(rows, system, state):
    """What is not 0 in the row of a state, by the label of its column."""
    values = rows.toarray()[system.states.index(state)]
    return {
        label: value for label, value in zip(system.states, values.tolist(), strict=True) if value
    }


def published_log(log, published):
    """The log of a release, from the definition: so many events of each case, in the order in which
    the cases start."""
    parts = []
    log = log.sort_values("time:timestamp", kind="stable")
    for out, (_, events) in zip(
        published.tolist(), log.groupby("case:concept:name", sort=False), strict=True
    ):
        parts.append(events.head(out).assign(**{"case:complete": out > len(events)}))
    return pd.concat(parts)


def named(name):
    return "" if name is None else f'<string key="concept:name" value="{name}"/>'


def event(name="a", time="2022-01-01T00:00:00.000+00:00", more=""):
    time = "" if time is None else f'<date key="time:timestamp" value="{time}"/>'
    return f"<event>{named(name)}{time}{more}</event>\n"


def trace(*events, name="1"):
    return f"<trace>{named(name)}\n{''.join(events)}</trace>\n"


def write(folder, text, name="log.xes"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def recorded(name):
    """The path of a recorded log; without it the test is skipped with the reason."""
    return recorded_logs().get(name) or pytest.skip(
        f"TPLREPRO_DATA has no eventlogs/{name}.xes or .xes.gz"
    )
