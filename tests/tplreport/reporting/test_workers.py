"""A report on workers of Dask has the numbers of one process, to the last digit."""

import os
import signal
import threading
from functools import partial

import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import tplreport as tr
from tplreport.people.workers import local_workers
from tplreport.reporting import checks, evidence, steps_of_users


def visits(users: int, hours: int) -> pd.DataFrame:
    """Rows of users in random order, the first of whom stays where she is."""
    rng = np.random.default_rng(3)
    place = rng.integers(0, 4, (users, hours))
    place[0] = 1
    place[0, :: hours // 3] = 2
    frame = pd.DataFrame(
        {
            "user": np.repeat([f"u{k}" for k in range(users)], hours),
            "time": np.tile(pd.date_range("2024-03-04", periods=hours, freq="1h"), users),
            "state": [f"place {k}" for k in place.ravel()],
        }
    )
    return frame.sample(frac=1.0, random_state=1, ignore_index=True)


def plainly(advice) -> dict:
    """All numbers of a report, without the name of what was read and of its rows."""
    plain = advice.to_dict()
    plain["read"].pop("source")
    return plain


def in_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_of_users, "STEPS_OF_TASK", 500)


@pytest.mark.parametrize("partitions", [1, 3])
def test_partitions_of_dask_give_the_report_of_the_whole_frame(partitions, monkeypatch):
    frame = visits(30, 48)
    whole = tr.report(tr.read_sequences(frame), 1.0, 10, draws=5)
    in_small_parts(monkeypatch)
    advice = tr.report(dd.from_pandas(frame, npartitions=partitions), 1.0, 10, draws=5)
    assert plainly(advice) == plainly(whole)


def test_a_row_that_is_refused_is_named_by_its_partition():
    frame = visits(4, 10)
    frame.loc[25, "user"] = None
    with pytest.raises(ValueError, match="in row 5 of partition 1 of the Dask DataFrame"):
        tr.read_sequences(dd.from_pandas(frame, npartitions=2))


def test_fewer_than_one_worker_is_refused():
    with pytest.raises(ValueError, match="workers"), local_workers(0):
        pass


def _look_after(events: list, *arguments):
    """One round over all blocks, after the next event, if there is one left."""
    if events:
        events.pop()()
    return evidence.look(*arguments)


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_its_blocks_are_judged_again(monkeypatch):
    frame = visits(300, 200)
    whole = tr.report(tr.read_sequences(frame), 1.0, 10, draws=5)
    monkeypatch.setattr(steps_of_users, "STEPS_OF_TASK", 2000)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        few = tr.read_sequences(frame.head(2000), order="times")
        tr.report(few, 1.0, 10, draws=0)  # loads the package
        workers = set(client.run(os.getpid).values())
        killing = threading.Timer(0.2, os.kill, (min(workers), signal.SIGKILL))
        monkeypatch.setattr(checks, "look", partial(_look_after, [killing.start]))
        advice = tr.report(dd.from_pandas(frame, npartitions=4), 1.0, 10, draws=5)
        client.wait_for_workers(2)
        assert set(client.run(os.getpid).values()) != workers
    assert plainly(advice) == plainly(whole)
