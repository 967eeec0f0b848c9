"""Leakage of ten million users on two workers of Dask, one of which is killed on the way."""

import math
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator

import joblib
import numpy as np

import tplreport as tr
from benchmarks.measuring import in_process, peak_bytes
from benchmarks.sections.walks import walking_users
from benchmarks.tables import PLAIN_HEAD, megabytes, row, shown
from tplrepro.markov import Sequences

BUDGETS = [0.1] * 10
CLUSTER = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}


def measure() -> Iterator[str]:
    users = int(os.environ.get("USERS", 10**7))
    found = in_process(leakage_on_dask, users)
    yield PLAIN_HEAD
    what = (
        f"{users:,} users, {found['copies']} of each walk, 20 states, 50 steps each, both sides, "
        "T = 10"
    )
    rate = f"{users / found['seconds']:,.0f} users/s"
    yield row(what, f"{found['seconds']:.0f} s, {rate}", "30,000 users/s")
    what = "CPU time a user, with what workers need to start"
    yield row(what, shown(found["cpu"] / users), "67 µs")
    yield row("workers killed and replaced on the way", found["killed"], "1")
    what = (
        "users whose result differs in any bit from that of one uninterrupted process "
        "that computes each walk once"
    )
    yield row(what, f"{found['different']:,}", "0")
    what = "most memory of a worker, after the first 8,000 users"
    yield row(what, megabytes(found["first"]), "")
    yield row("most memory of a worker, after all", megabytes(found["worker"]), "the same")
    sequences = f"{found['sequences'] / 1e9:.2f} GB"
    what = f"memory of the calling process, beyond the sequences ({sequences})"
    yield row(what, f"{found['more'] / users:.0f} bytes a user", "16 T + 85")


def leakage_on_dask(users: int) -> dict[str, float]:
    """What the calculation took, and in how many users it differs from one process."""
    # A power of 2, by which all counts and the smoothing grow: then everybody's matrix has the same
    # bits.
    copies = math.gcd(users, 128)
    each = walking_users(users // copies)
    data = copies_of(each, copies)
    result, found = run_on_cluster(data, copies)
    alone = tr.population_leakage(each, BUDGETS)
    different = np.zeros(users, dtype=bool)
    for side in ("bpl", "fpl"):
        expected = getattr(alone, side)
        leakages = getattr(result, side).reshape(copies, *expected.shape)
        different |= (leakages != expected).any(axis=2).ravel()
    return found | {"copies": copies, "different": int(different.sum())}


def copies_of(each: Sequences, copies: int) -> Sequences:
    """Each walk `copies` times, as that of another user each time."""
    offsets = np.append(0, np.cumsum(np.tile(each.lengths, copies)))
    users = np.arange(offsets.size - 1)
    return Sequences(np.tile(each.values, copies), offsets, each.labels, users)


def run_on_cluster(data: Sequences, copies: int) -> tuple:
    """The leakages of all users of `data`, and what they took; `copies`, their smoothing, is the
    number of copies of each walk."""
    from distributed import Client, LocalCluster

    some = data.select(np.arange(8000))
    with (
        LocalCluster(**CLUSTER) as cluster,
        Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        tr.population_leakage(some, BUDGETS)
        before = peak_bytes()
        first = max(client.run(peak_bytes).values())
        workers = set(client.run(os.getpid).values())
        threading.Timer(3.0, os.kill, (min(workers), signal.SIGKILL)).start()
        start = time.perf_counter()
        start_of_processor = time.process_time()
        result = tr.population_leakage(
            data, BUDGETS, smoothing=copies, batch_size=4096, progress=True
        )
        found = {
            "seconds": time.perf_counter() - start,
            "more": peak_bytes() - before,
            "first": first,
            "worker": max(client.run(peak_bytes).values()),
            "sequences": data.values.nbytes + data.offsets.nbytes,
            "killed": len(workers - set(client.run(os.getpid).values())),
        }
    own = time.process_time() - start_of_processor
    of_workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    found["cpu"] = own + of_workers.ru_utime + of_workers.ru_stime
    return result, found
