"""Measure the package against its baselines in one run and write docs/benchmarks.md (`make bench`).

    python benchmarks/run.py                      # a quarter of an hour on a machine that does nothing else
    python benchmarks/run.py one whole            # some sections only
    USERS=1000000 python benchmarks/run.py users  # apart, of ten million by default; so are `nothing` and `readers`

Times are wall-clock medians after a warm-up, so compiled functions are loaded. Baselines and
package take turns, so that a drift of the machine's speed meets both. The page is written after
each section and keeps what the others held: each says when, where and from which commit it was
measured.
"""

import contextlib
import cProfile
import importlib.util
import json
import math
import os
import platform
import pstats
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from itertools import permutations
from pathlib import Path

import joblib
import numba
import numpy as np
import pandas as pd
from numba.core.event import install_recorder, install_timer
from scipy.optimize import linprog
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from experiments.datasets.readers import geolife, gowalla, kosarak
from experiments.provenance import machine as this_machine
from tplfrontier.pairs.leakage import compile_kernels
from tplreport import fixed_steps, grid, observed_sequences
from tplrepro import linear_program, published
from tplrepro.leakage.envelope import compiled, dense, hull_of_several, hulls, screens
from tplrepro.markov import Sequences
from tplrepro.sip.batches import BatchDistance

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = {}
# Run by name only.
APART = ("users", "nothing", "readers")


def section(name, title):
    def register(function):
        SECTIONS[name] = (title, function)
        return function

    return register


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_turn(repeats: int, *calls) -> list[list[float]]:
    """Times of each call, one after the other, `repeats` rounds after one round of warm-up."""
    for call in calls:
        call()
    rounds = [[seconds(call) for call in calls] for _ in range(repeats)]
    return [list(times) for times in zip(*rounds, strict=True)]


def ratio_line(what, baseline, ours, target):
    pairs = [a / b for a, b in zip(baseline, ours, strict=True)]
    low, middle, high = min(pairs), statistics.median(pairs), max(pairs)
    return (
        f"| {what} | {show(statistics.median(baseline))} | {show(statistics.median(ours))} | "
        f"{middle:,.0f} ({low:,.0f} to {high:,.0f}) | {target} |"
    )


def show(value: float) -> str:
    if value >= 0.1:
        return f"{value:.3g} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-4 else f"{value * 1e6:.3g} µs"


RATIO_HEAD = "| | baseline | tplrepro | ratio, median (range) | aim |\n|---|---|---|---|---|"
PLAIN_HEAD = "| | measured | aim |\n|---|---|---|"


@section("one", "One value L(α)")
def one_value():
    P = tpl.TransitionMatrix.random(200, rng=np.random.default_rng(1)).probabilities
    yield RATIO_HEAD
    for alpha in (0.1, 1.0, 10.0):
        base, ours = in_turn(
            9,
            lambda a=alpha: published.algorithm_1(P, a),
            lambda a=alpha: repeat(20, lambda: tpl.privacy_loss(P, a)),
        )
        ours = [t / 20 for t in ours]
        aim = "200" if alpha == 10.0 else ""
        yield ratio_line(f"n = 200, α = {alpha:g}: Algorithm 1 (NumPy)", base, ours, aim)


def repeat(times, call):
    for _ in range(times):
        call()


@section("whole", "The whole function")
def whole_function():
    P = tpl.TransitionMatrix.random(200, rng=np.random.default_rng(1)).probabilities

    def baseline():
        tables = published.algorithm_2(P)
        published.algorithm_4(tables, 1e-6, 10.0)

    yield RATIO_HEAD
    base, ours = in_turn(7, baseline, lambda: repeat(20, lambda: tpl.PrivacyLossFunction(P)))
    ours = [t / 20 for t in ours]
    yield ratio_line(
        "n = 200: Algorithms 2 + 4 (NumPy) on [0, 10], ours on [0, ∞)", base, ours, "500"
    )


@section("growth", "From fifty to ten thousand states")
def growth():
    sizes = (50, 100, 200, 500, 1000, 2000, 5000, 10_000)
    aims = {200: "1.5 ms", 1000: "60 ms", 5000: "10 s", 10_000: "90 s"}
    found = pd.DataFrame([in_process("whole_function_of", n) for n in sizes], index=sizes)
    yield "| states | one L(0.1) | whole function | aim | bare pass | passes | floor | let through | more memory |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for n, of in found.iterrows():
        floor = f"{show(of['bare'])} | {of['passes']:.2f} | {show(of['passes'] * of['bare'])} | {of['let']:.2%}"
        more = f"{of['more'] / 1e6:.0f} MB"
        yield f"| {n:,} | {show(of['one'])} | {show(of['seconds'])} | {aims.get(n, '')} | {floor} | {more} |"
    yield ""
    yield "A bare pass is a compiled loop over all ordered pairs of rows, on as many threads, that does"
    yield "nothing but n³ maxima and n³ sums in 16 bits; blocks of 16 rows read the 2 n² bytes n / 16"
    yield "times. The screen needs so many passes: at each of its slopes, the share of columns in which"
    yield "some row exceeds 1 + slope times the row d. Their product is the floor of this search; the rest"
    yield "is the first hull, and the pairs let through. More memory is that beyond package and matrix."
    for first in (sizes[0], 500):
        large = np.log(found.loc[first:, ["one", "seconds"]])
        one, whole = (np.polyfit(np.log(large.index), large[what], 1)[0] for what in large)
        yield ""
        yield f"Fitted growth from n = {first} on: one L(α) n^{one:.2f}, the whole function n^{whole:.2f}."


def whole_function_of(n: int) -> None:
    tpl.PrivacyLossFunction(
        tpl.TransitionMatrix.random(130, rng=np.random.default_rng(0))
    )  # loads the compiled functions
    tpl.privacy_loss(tpl.TransitionMatrix.random(130, rng=np.random.default_rng(0)), 0.1)
    P = tpl.TransitionMatrix.random(n, rng=np.random.default_rng(1))
    before, largest, finished = resident(), 0, threading.Event()

    def watch():
        nonlocal largest
        while not finished.wait(0.002):
            largest = max(largest, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    functions = []
    spent = seconds(lambda: functions.append(tpl.PrivacyLossFunction(P)))
    finished.set()
    watcher.join()
    if n <= 2000:
        spent = statistics.median(seconds(lambda: tpl.PrivacyLossFunction(P)) for _ in range(5))
    one = statistics.median(
        seconds(lambda: tpl.privacy_loss(P, 0.1)) for _ in range(1 if n > 2000 else 5)
    )
    found = {"seconds": spent, "one": one, "more": max(largest - before, 0)}
    print(
        json.dumps(
            found
            | {"bare": bare_pass(P.probabilities)}
            | screened(P.probabilities, functions[0].hull)
        )
    )


def bare_pass(rows: np.ndarray) -> float:
    """Seconds of a pass over all pairs of rows, from one over at most 1,024 rows d, on as many
    threads as ours."""
    steps, blocks = screens.columns_of(rows).steps, -(-min(len(rows), 1024) // 16)

    def work():
        dense.for_each(
            lambda k: bare_block(steps, 16 * k), blocks, compiled.thread_count(len(rows), 100)
        )

    work()
    return statistics.median(seconds(work) for _ in range(3)) * len(rows) / (16 * blocks)


@numba.njit(nogil=True)
def bare_block(steps, first):
    n = steps.shape[1]
    totals, columns = np.zeros((16, n), np.uint16), np.minimum(first + np.arange(16), n - 1)
    for start in range(0, n, 64):
        for m in range(16):
            total, levels = totals[m], steps[:, columns[m]]
            for k in range(start, min(start + 64, n - 7), 8):
                q, a, b, c, d = (
                    steps[k : k + 8],
                    levels[k],
                    levels[k + 1],
                    levels[k + 2],
                    levels[k + 3],
                )
                e, f, g, h = levels[k + 4], levels[k + 5], levels[k + 6], levels[k + 7]
                for i in range(n):
                    some = (max(q[0, i], a) + max(q[1, i], b)) + (max(q[2, i], c) + max(q[3, i], d))
                    others = (max(q[4, i], e) + max(q[5, i], f)) + (
                        max(q[6, i], g) + max(q[7, i], h)
                    )
                    total[i] += some + others
    return totals


def screened(rows: np.ndarray, hull: np.ndarray) -> dict[str, float]:
    """Passes that the last screen makes, and the share of 20,000 pairs of rows that it lets
    through."""
    n, largest, step = len(rows), rows.max(axis=0), 1.0 / screens.columns_of(rows).scale
    excesses = screens.excesses(rows, dense.spread_pairs(n), dense.SEED_SLOPES, step)
    usual = np.sort(excesses)[:, int(dense.USUAL * n)]
    screen = dense.choose_screen(screens.last_slopes(rows, largest), hulls.edges(hull), usual)
    passes = sum(float((largest > (1.0 + slope) * rows[:64]).mean()) for slope in screen.slope)
    pairs = np.random.default_rng(0).integers(0, n, (20_000, 2))
    let = (screens.excesses(rows, pairs, screen.slope, step) > screen.cap[:, None]).any(axis=0)
    return {"passes": passes, "let": float(let.mean())}


def resident() -> int:
    """Bytes of memory that this process holds now (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@section("kinds", "Other dense matrices of a thousand states")
def kinds():
    yield PLAIN_HEAD
    rng, n = np.random.default_rng(0), 1000
    matrices = {"random rows": tpl.TransitionMatrix.random(n, rng=rng)}
    for each, most in ((8, 2), (8, 50), (60, 2), (60, 50)):
        counts = np.zeros((n, n))
        np.put_along_axis(
            counts, rng.integers(0, n, (n, each)), rng.integers(1, most, (n, each)), axis=1
        )
        made = tpl.TransitionMatrix.from_counts(counts, smoothing=0.1, sparse=False)
        matrices[f"{each} counts a row up to {most - 1}, smoothing 0.1"] = made
    for name, P in matrices.items():
        spent = statistics.median(seconds(lambda P=P: tpl.PrivacyLossFunction(P)) for _ in range(5))
        yield f"| {name} | {show(spent)} | |"
    yield ""
    yield "Where nearly all pairs of rows are as far apart as can be, caps leave no room for sums in 16 bits, and"
    yield "those in single precision take three times as long."


@section("programme", "Linear programme")
def programme():
    P = tpl.TransitionMatrix.random(30, rng=np.random.default_rng(1)).probabilities
    yield RATIO_HEAD
    for formulation in ("scaled", "pairwise"):
        for solver in ("CBC", "HiGHS", "highspy"):
            base, ours = in_turn(
                1,
                lambda s=solver, f=formulation: linear_program.loss(
                    P, 1.0, solver=s, formulation=f
                ),
                lambda: repeat(100, lambda: tpl.privacy_loss(P, 1.0)),
            )
            of_function = seconds(lambda: repeat(100, lambda: tpl.PrivacyLossFunction(P))) / 100
            yield ratio_line(
                f"n = 30, α = 1: {solver}, {formulation} constraints, one L(α)",
                base,
                [ours[0] / 100],
                "10⁴" if solver != "highspy" else "",
            )
            if formulation == "pairwise":
                yield ratio_line("the same against our whole function", base, [of_function], "")


@section("account", "A million releases")
def account():
    P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])
    rng = np.random.default_rng(0)
    budgets = rng.uniform(0.01, 0.2, 10**6).tolist()
    holder = tpl.TemporalAccountant(backward=P, forward=P)

    def compose():
        for budget in budgets:
            holder.compose(budget)

    yield PLAIN_HEAD
    compile_kernels()
    yield f"| 10⁶ compositions of different budgets | {show(seconds(compose))} | 0.3 s |"
    yield f"| one reading of all leakages | {show(seconds(lambda: holder.tpl))} | 0.3 s |"
    yield f"| one more release and a reading | {show(seconds(lambda: holder.compose(0.1).tpl))} | |"
    equal = tpl.TemporalAccountant(backward=P, forward=P)
    took = seconds(lambda: equal.compose(0.1, 10**6).tpl)
    yield f"| 10⁶ releases of one budget, composed, read | {show(took)} | |"
    from dp_accounting import GaussianDpEvent

    P = tpl.TransitionMatrix([[0.9985, 0.0015], [0.0015, 0.9985]])
    for event, name in ((GaussianDpEvent(3.0), "Gaussian"), (0.1, "pure")):
        made = []
        took = seconds(lambda e=event, m=made: m.append(temporal_profiles(e, P)))
        yield f"| 10⁶ {name} events, states stay with 0.9985: profiles, ε at δ = 1e-6 | {show(took)} | 1 s |"
        profiles = [*dict.fromkeys(made[0].both.profiles)]
        one = tf.PrivacyProfile.of_event(event, profiles[0].grid)
        took = len(profiles) * statistics.median(
            seconds(lambda p=p, q=one: p.compose(q)) for p in profiles[::40]
        )
        yield f"| of which {len(profiles)} compositions, one for each different TPL | {show(took)} | |"
    yield ""
    yield "Before a run of events settles, releases are composed one after the other, and each different TPL"
    yield "takes one more composition. Fourier transforms are the smaller part of it; the rest are the passes"
    yield "over profiles that make masses of them and, rounded up, profiles again."


def temporal_profiles(event, P):
    made = tf.temporal_privacy_profile([(event, 10**6)], P, P)
    made.epsilon(1e-6)
    return made


@section("promises", "Any prior, budgets chosen as one goes, pairs of states")
def promises():
    rng = np.random.default_rng(0)
    yield RATIO_HEAD
    rows = rng.dirichlet(np.full(500, 0.5), 500)
    base, ours = in_turn(3, lambda: cross_ratio_by_numpy(rows), lambda: tpl.PriorFreeLoss(rows))
    yield ratio_line(
        "prior-free loss, n = 500: quotients of each row with all others (NumPy)", base, ours, ""
    )
    few, distances = rng.dirichlet(np.full(30, 0.5), 30), grid_distances(5, 6)
    base, ours = in_turn(
        3,
        lambda: pairs_by_highs(few, distances),
        lambda: tf.pairwise_leakage([distances] * 2, few, None),
    )
    what = "pairs of states, n = 30, a 5 × 6 grid, one step: 870 sparse linear programmes (HiGHS)"
    yield ratio_line(what, base, ours, "")
    yield ""
    yield PLAIN_HEAD
    rows = rng.dirichlet(np.full(1000, 0.5), 1000)
    yield f"| prior-free loss, n = 1,000 | {show(seconds(lambda: tpl.PriorFreeLoss(rows)))} | 0.5 s |"
    rows, distances = rng.dirichlet(np.full(100, 0.5), 100), grid_distances(10, 10)
    took = seconds(lambda: tf.pairwise_leakage([distances] * 2, rows, None))
    yield f"| pairs of states, n = 100, a 10 × 10 grid, one step of one side | {show(took)} | 5 s |"
    P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])
    kept = tpl.TemporalAccountant(backward=P, forward=P, alpha=1.0, floor=0.1)

    draws = rng.uniform(0.02, 0.18, 10**6).tolist()

    def spend():
        for draw in draws:
            kept.compose(min(draw, kept.remaining))

    what = "a million different releases within α = 1 with a floor of 0.1: from 0.02 to 0.18, or what remains"
    yield f"| {what} | {show(seconds(spend))} | 5 s |"
    for pause in (10**3, 10**6):
        paused = tpl.TemporalAccountant(backward=P, forward=P, alpha=1.0).compose(0.2).skip(pause)
        first, again = (seconds(lambda p=paused: p.remaining) for _ in range(2))
        yield f"| `remaining` after a pause of {pause:,} times, and again | {show(first)}, {show(again)} | |"


def cross_ratio_by_numpy(rows: np.ndarray) -> float:
    """The largest P_ik P_jl / (P_jk P_il)."""
    quotients = (row / rows for row in rows)
    return max((one.max(axis=1) / one.min(axis=1)).max() for one in quotients)


def grid_distances(rows: int, columns: int) -> np.ndarray:
    """0.3 nats for each step between cells (rows columns, rows columns)."""
    place = np.stack(np.divmod(np.arange(rows * columns), columns))
    return 0.3 * abs(place[:, :, None] - place[:, None]).sum(axis=0)


def pairs_by_highs(rows: np.ndarray, distances: np.ndarray) -> float:
    """The largest log ratio of two rows' means, by a programme for each pair, with neighbours'
    constraints."""
    high, low = np.nonzero((distances > 0.0) & (distances < 0.5))
    each = np.arange(high.size)
    values = np.concatenate([np.ones(high.size), -np.exp(distances[high, low])])
    above = csr_array((values, (np.tile(each, 2), np.concatenate([high, low]))))
    found = (
        linprog(-q, above, np.zeros(high.size), d[None], [1.0], method="highs").fun
        for q, d in permutations(rows, 2)
    )
    return -min(found)


@section("own", "Own data: from a file to recommended budgets")
def own():
    yield "Most of the memory above the aim of 600 MB is that of one check: four million steps are numbered"
    yield "by user and state in hash tables, beside the sequences and compiled kernels. Fewer steps would"
    yield "change what it finds."
    yield ""
    yield PLAIN_HEAD
    with tempfile.TemporaryDirectory() as folder:
        for rows, name, aim in (
            (10**6, "visits.csv", ""),
            (10**7, "visits.csv", "12 s"),
            (10**7, "visits.parquet", "8 s"),
        ):
            path = Path(folder) / name
            write_visits(path, rows)
            found = in_process("report_on", str(path))
            what = f"`tplrepro report` on {rows:,} synthetic rows of {rows // 50:,} users, {path.suffix[1:]}"
            what += f" of {path.stat().st_size / 1e6:,.0f} MB"
            yield f"| {what} | {show(found['seconds'])} | {aim} |"
            yield f"| the same: peak memory, Python included | {found['memory'] / 1e6:,.0f} MB | {aim and '600 MB'} |"


def write_visits(path: Path, rows: int) -> None:
    """Fifty hourly visits of each user to one of 60 places, in order of time, so that users
    alternate."""
    rng = np.random.default_rng(0)
    users, hours = rows // 50, pd.date_range("2026-01-01", periods=50, freq="h")
    place = rng.integers(0, 60, users)
    parts = []
    for hour in hours:
        place = np.where(
            rng.random(users) < 0.6, place, (place + rng.choice([-1, 1, 7], users)) % 60
        )
        parts.append(pd.DataFrame({"user": np.arange(users), "time": hour, "state": place}))
    table = pd.concat(parts)
    table["state"] = "place " + table["state"].astype(str)
    if path.suffix == ".csv":
        table.to_csv(path, index=False, date_format="%Y-%m-%d %H:%M:%S")
    else:
        table.to_parquet(path, index=False)


def report_on(path: str) -> None:
    from tplreport.command import main

    with contextlib.redirect_stdout(sys.stderr):
        took = seconds(lambda: main(["report", path, "--alpha", "1", "--horizon", "30"]))
    print(json.dumps({"seconds": took, "memory": peak()}))


@section("read", "Own data: reading alone, beside DuckDB and Polars where they are installed")
def reading_alone():
    tools = [tool for tool in ("tplreport", "duckdb", "polars") if importlib.util.find_spec(tool)]
    yield "Ours gives the sequences, checked. The others count steps in order of time, missing values and"
    yield "users in two states at once, and refuse rows that they cannot read. Each reading has its own"
    yield "process, three in turn; DuckDB may use as much memory as ours takes. Ours looks up users and"
    yield "states in threads while another one parses the next block. Most of the remaining difference to"
    yield "DuckDB is a hash table of all users' names, which is built again for each block."
    yield ""
    yield "| 10⁷ rows | median | of the processor | peak memory | ours takes, of its time | of its processor's |"
    yield "|---|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("csv", "parquet"):
            path = Path(folder) / f"visits.{kind}"
            write_visits(path, 10**7)
            found = {tool: [] for tool in tools}
            for tool in tools * 3:
                most = found["tplreport"][-1]["memory"] >> 20 if tool == "duckdb" else 0
                found[tool].append(in_process("read_by", tool, str(path), most))
            assert len({one["steps"] for rounds in found.values() for one in rounds}) == 1
            medians = {tool: pd.DataFrame(rounds).median() for tool, rounds in found.items()}
            for tool, of in medians.items():
                times = f"{show(of['seconds'])} | {show(of['processor'])}"
                ratios = medians["tplreport"] / of
                ratio = f"{ratios['seconds']:.2f} | {ratios['processor']:.2f}"
                yield f"| {kind}: {tool} | {times} | {of['memory'] / 1e6:,.0f} MB | {ratio} |"


def read_by(tool: str, path: str, most: int) -> None:
    """Read observations with a library, in at most so many MiB if it can be told to."""
    start, of_processor = time.perf_counter(), time.process_time()
    steps = {"tplreport": steps_by_tplreport, "duckdb": steps_by_duckdb, "polars": steps_by_polars}[
        tool
    ](path, most)
    spent = {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - of_processor,
    }
    print(json.dumps(spent | {"memory": peak(), "steps": steps}))


def steps_by_tplreport(path: str, most: int) -> int:
    return tr.read_sequences(path).n_transitions


def steps_by_duckdb(path: str, most: int) -> int:
    import duckdb

    types = "{'user': 'VARCHAR', 'time': 'TIMESTAMP', 'state': 'VARCHAR'}"
    of_file = (
        f"read_csv('{path}', strict_mode=true, types={types})"
        if path.endswith("csv")
        else f"'{path}'"
    )
    connection = duckdb.connect(config={"threads": 2, "memory_limit": f"{most}MiB"})
    connection.execute(f"set temp_directory = '{Path(path).parent}/duckdb'")
    found = connection.execute(f"""
        with following as (
            select "user", time, state, lead(state) over own as next, lead(time) over own as after
            from {of_file} window own as (partition by "user" order by time))
        select state, next, count(*), count(*) filter (time = after and state <> next),
            count(*) filter ("user" is null or time is null)
        from following group by state, next""").fetchall()
    return sum(count for _, after, count, *_ in found if after is not None)


def steps_by_polars(path: str, most: int) -> int:
    import polars as pl

    rows = (
        pl.scan_csv(path, try_parse_dates=True) if path.endswith("csv") else pl.scan_parquet(path)
    )
    rows = rows.with_columns(pl.col("state").cast(pl.Categorical)).sort(
        "user", "time", maintain_order=True
    )
    after = pl.col("user", "time", "state").shift(-1).name.prefix("next_")
    in_two = (pl.col("time") == pl.col("next_time")) & (pl.col("state") != pl.col("next_state"))
    found = (
        rows.with_columns(after)
        .filter(pl.col("user") == pl.col("next_user"))
        .group_by("state", "next_state")
    )
    return int(
        found.agg(pl.len(), in_two.sum().alias("in two"), pl.col("time").null_count())
        .collect()["len"]
        .sum()
    )


@section("sparse", "Tens of thousands of states")
def sparse():
    yield PLAIN_HEAD
    at_hand = Path(os.environ.get("TPLREPRO_DATA", "")) / "kosarak" / "kosarak.dat"
    with tempfile.TemporaryDirectory() as folder:
        full = Path(folder) / "kosarak.dat.gz"
        write_set("kosarak", full)
        sets = [("synthetic sessions of the official size", full)]
        if at_hand.is_file():
            sets.insert(0, ("the Kosarak sessions at hand", at_hand))
        for name, path in sets:
            for smoothing in (1e-4, 0.01, 1.0):
                found = in_process("sparse_function_of", str(path), smoothing)
                what = f"{name}: {found['states']:,} pages, {found['transitions']:,} transitions, s = {smoothing:g}"
                yield f"| {what}: one L(α), slowest of α = 0.1, 1, 10 | {show(found['one'])} | 1 s |"
                yield f"| the same: whole function, {found['vertices']} vertices | {show(found['whole'])} | 8 s |"
                yield f"| the same: peak memory, Python included | {found['memory'] / 1e6:.0f} MB | 2,000 MB |"
        found = in_process("file_to_budgets", str(full))
        what = "synthetic sessions of the official size: file to ten budgets, both sides"
        yield f"| {what} | {show(found['whole'])} | 15 s |"
        for what in ("read", "matrices", "budgets"):
            yield f"| of which {what} | {show(found[what])} | |"
        yield f"| the same: peak memory, Python included | {found['memory'] / 1e6:.0f} MB | 1,000 MB |"


def file_to_budgets(path: str) -> None:
    found = {"read": time.perf_counter()}
    sequences = kosarak.to_sequences(kosarak.load(path))
    found["matrices"] = time.perf_counter()
    sides = [
        tpl.TransitionMatrix.from_sequences(
            sequences, n_states=sequences.n_states, smoothing=0.01, direction=direction
        )
        for direction in ("backward", "forward")
    ]
    found["budgets"] = time.perf_counter()
    tpl.allocate_by_quantification(1.0, *sides, horizon=10)
    starts = [*found.values(), time.perf_counter()]
    found = dict(zip(found, np.diff(starts).tolist(), strict=True))
    print(json.dumps(found | {"whole": starts[-1] - starts[0], "memory": peak()}))


def sparse_function_of(path: str, smoothing: str) -> None:
    states = np.random.default_rng(0).integers(0, 300, 3000)
    warm = tpl.TransitionMatrix.from_sequences([states], n_states=300, smoothing=0.01, sparse=True)
    tpl.PrivacyLossFunction(warm)
    tpl.privacy_loss(warm, 1.0)
    sequences = kosarak.to_sequences(kosarak.load(path))
    n_states = sequences.n_states
    P = tpl.TransitionMatrix.from_sequences(
        sequences, n_states=n_states, smoothing=float(smoothing)
    )
    one = max(seconds(lambda a=alpha: tpl.privacy_loss(P, a)) for alpha in (0.1, 1.0, 10.0))
    made = []
    whole = seconds(lambda: made.append(tpl.PrivacyLossFunction(P)))
    found = {
        "states": n_states,
        "transitions": sequences.n_transitions,
        "vertices": len(made[0].vertices),
    }
    print(json.dumps(found | {"one": one, "whole": whole, "memory": peak()}))


@section("population", "Many users")
def population():
    users, budgets = 100_000, [0.1] * 10
    data = walking_users(users)
    some = data.select(np.arange(2000))
    yield RATIO_HEAD
    base, ours = in_turn(
        3,
        lambda: [
            tr.population_leakage(some.select([u]), budgets, n_states=data.n_states)
            for u in range(len(some))
        ],
        lambda: tr.population_leakage(some, budgets),
    )
    yield ratio_line("2,000 users: one call for each, and one for all", base, ours, "")
    tr.population_leakage(some, budgets, n_jobs=2, batch_size=500)
    spent = seconds(lambda: tr.population_leakage(data, budgets, n_jobs=2))
    yield ""
    yield PLAIN_HEAD
    what = "users, 20 states, 50 steps each, both sides, T = 10"
    yield f"| {users:,} {what}, two processes | {spent:.1f} s, {users / spent:,.0f} users/s | 60,000 users/s |"
    one = processor(lambda: tr.population_leakage(data.select(np.arange(20_000)), budgets)) / 20_000
    yield f"| CPU time a user, in one process | {show(one)} | 33 µs |"
    counts = np.bincount(
        400 * (np.arange(data.values.size) // 50) + 20 * data.values + np.roll(data.values, -1)
    )
    matrices = counts[: 400 * 2000].reshape(-1, 20, 20) + 0.05
    matrices = matrices / matrices.sum(axis=2, keepdims=True)
    of_hulls = processor(lambda: hull_of_several(matrices)) / 1000
    what = "of which two hulls: all 380 pairs of rows at the slope of each edge"
    yield f"| {what} | {show(of_hulls)} | |"
    yield ""
    rest = one - of_hulls
    yield "Half of a hull are searches, in which a bound dismisses most rows and the others are compared with"
    yield "all, and most of the other half are pairs that are sorted into it. All else takes"
    yield f"{show(rest)} a user, so that 33 µs would need two hulls in {show(max(33e-6 - rest, 0.0))}."


@section("users", "Ten million users on two workers of Dask, one of them killed")
def ten_million_users():
    users = int(os.environ.get("USERS", 10**7))
    found = in_process("population_on_dask", users)
    yield PLAIN_HEAD
    what = f"{users:,} users, {found['copies']} of each walk, 20 states, 50 steps each, both sides, T = 10"
    rate = users / found["seconds"]
    yield f"| {what} | {found['seconds']:.0f} s, {rate:,.0f} users/s | 30,000 users/s |"
    yield f"| CPU time a user, with what workers need to start | {show(found['cpu'] / users)} | 67 µs |"
    yield f"| workers killed and replaced on the way | {found['killed']} | 1 |"
    what = "users whose result differs in any bit from that of one uninterrupted process that computes each walk once"
    yield f"| {what} | {found['different']:,} | 0 |"
    yield f"| most memory of a worker, after the first 8,000 users | {found['first'] / 1e6:.0f} MB | |"
    yield f"| most memory of a worker, after all | {found['worker'] / 1e6:.0f} MB | the same |"
    what = (
        f"memory of the calling process, beyond the sequences ({found['sequences'] / 1e9:.2f} GB)"
    )
    yield f"| {what} | {found['more'] / users:.0f} bytes a user | 16 T + 85 |"


def walking_users(users: int) -> Sequences:
    rng, n, length = np.random.default_rng(0), 20, 50
    cumulative = np.cumsum(tpl.smoothed(tpl.strongest(n, seed=1), 0.05).probabilities, axis=1)
    following = (
        (cumulative[:, None] < (np.arange(256) / 256)[:, None])
        .sum(axis=2, dtype=np.uint8)
        .clip(0, n - 1)
    )
    walks = rng.integers(0, n, (users, length), dtype=np.uint8)
    for start in range(0, users, 100_000):
        part = walks[start : start + 100_000]
        draws = rng.integers(0, 256, part.shape, dtype=np.uint8)
        for t in range(1, length):
            part[:, t] = following[part[:, t - 1], draws[:, t]]
    return Sequences(walks.ravel(), np.arange(users + 1) * length, np.arange(n), np.arange(users))


def population_on_dask(users: int) -> None:
    from distributed import Client, LocalCluster

    # A power of 2, by which all counts and the smoothing grow: then everybody's matrix has the same
    # bits.
    copies = math.gcd(users, 128)
    each, budgets = walking_users(users // copies), [0.1] * 10
    offsets = np.append(0, np.cumsum(np.tile(each.lengths, copies)))
    data = Sequences(np.tile(each.values, copies), offsets, each.labels, np.arange(users))
    some = data.select(np.arange(8000))
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "host": "127.0.0.1",
        "dashboard_address": None,
    }
    with (
        LocalCluster(**options) as cluster,
        Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        tr.population_leakage(some, budgets)
        before, first, workers = (
            peak(),
            max(client.run(peak).values()),
            set(client.run(os.getpid).values()),
        )
        threading.Timer(3.0, os.kill, (min(workers), signal.SIGKILL)).start()
        start, used = time.perf_counter(), time.process_time()
        result = tr.population_leakage(
            data, budgets, smoothing=copies, batch_size=4096, progress=True
        )
        found = {"seconds": time.perf_counter() - start, "more": peak() - before, "first": first}
        found |= {
            "worker": max(client.run(peak).values()),
            "sequences": data.values.nbytes + data.offsets.nbytes,
        }
        found["killed"] = len(workers - set(client.run(os.getpid).values()))
    of_workers, own = resource.getrusage(resource.RUSAGE_CHILDREN), time.process_time() - used
    found |= {"copies": copies, "cpu": own + of_workers.ru_utime + of_workers.ru_stime}
    alone, different = tr.population_leakage(each, budgets), np.zeros(users, dtype=bool)
    for side in ("bpl", "fpl"):
        leakages = getattr(result, side).reshape(copies, *getattr(alone, side).shape)
        different |= (leakages != getattr(alone, side)).any(axis=2).ravel()
    print(json.dumps(found | {"different": int(different.sum())}))


@section("page", "The interactive page")
def page():
    from page import LeakagePage

    yield "The processor time from a move of a slider to the data sent to the browser, without the browser's drawing."
    yield ""
    yield PLAIN_HEAD
    for example, horizon in (("Fig. 8 of TKDE 2019", 10), ("50 states, smoothed", 100)):
        opened = LeakagePage(example, horizon=horizon)
        complete, opened._complete = opened._complete, lambda: None
        for name, field in (("ε", opened.epsilon), ("α", opened.alpha)):
            moves = []
            for value in np.geomspace(0.05, 5.0, 100).tolist():
                start = time.process_time()
                field.slider.value = value
                moves.append(time.process_time() - start)
            yield f"| {example}, T = {horizon}: a move of {name}, median | {show(statistics.median(moves))} | 50 ms |"
        start = time.process_time()
        complete()
        yield f"| {example}, T = {horizon}: the rest once it rests | {show(time.process_time() - start)} | |"


def peak() -> int:
    """The most bytes that this process has held; `ru_maxrss` may be that of who started it
    (Linux)."""
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])


@section("cold", "The first call, without cached kernels")
def cold():
    yield PLAIN_HEAD
    runs = [in_empty_cache("readme_example") for _ in range(3)]
    spent = statistics.median(run["wall"] for run in runs)
    yield f"| the README's example, from starting Python on | {show(spent)} | 2 s |"
    found = in_empty_cache("first_calls")
    for what, cpu in found["spent"].items():
        yield f"| {what}, CPU time | {show(cpu)} | |"
    total = sum(found["spent"].values())
    yield f"| all kernels together, CPU time | {show(total)} | 10 s |"
    yield ""
    each, llvm = show(total / found["functions"]), f"{found['llvm']:.0%}"
    yield f"Numba compiles {found['functions']} functions, its own among them, each in {each} on average and for one"
    yield f"type of argument; LLVM takes {llvm} of it, since it optimises a kernel again in each that calls it. This is"
    yield "the floor as long as there are as many: neither LLVM's lowest level of optimisation nor leaving out"
    yield "what makes kernels callable from Python saves much."


def in_empty_cache(function: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        return in_process(function, environment={"NUMBA_CACHE_DIR": folder})


def readme_example() -> None:
    code = (ROOT / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    print(json.dumps({"wall": seconds(lambda: run_python(code))}))


def first_calls() -> None:
    """CPU seconds of each first call, one after the other, in a process that has compiled
    nothing."""
    walk = np.random.default_rng(0).integers(0, 300, 3000)
    sparse = tpl.TransitionMatrix.from_sequences([walk], n_states=300, smoothing=0.01, sparse=True)
    P = tpl.TransitionMatrix.random(200, rng=np.random.default_rng(0))
    steps = {
        "first function, n = 200": lambda: tpl.PrivacyLossFunction(P),
        "then the first L(α)": lambda: tpl.privacy_loss(P, 1.0),
        "then the first sparse function": lambda: tpl.PrivacyLossFunction(sparse),
        "then the first sparse L(α)": lambda: tpl.privacy_loss(sparse, 1.0),
        "then all other kernels": compile_kernels,
    }
    spent, clocks = {}, []
    warnings.simplefilter("ignore")  # of the compilation
    timers = [
        install_timer(f"numba:{what}", clocks.append) for what in ("llvm_lock", "compiler_lock")
    ]
    with timers[0], timers[1], install_recorder("numba:compile") as recorder:
        for what, step in steps.items():
            start = time.process_time()
            step()
            spent[what] = time.process_time() - start
    functions = sum(one.is_start for _, one in recorder.buffer)
    print(json.dumps({"spent": spent, "functions": functions, "llvm": min(clocks) / max(clocks)}))


@section("waits", "Calculations of the other papers")
def waits():
    yield "Seconds of the processor, in one thread."
    yield ""
    yield PLAIN_HEAD
    for n, aim in ((100, ""), (200, ""), (400, "3 s")):
        rng = np.random.default_rng(n)
        belief, points = rng.dirichlet(np.ones(n)), rng.random((n, 2))
        distance = np.linalg.norm(points[:, None] - points, axis=-1)
        for epsilon in (1.0, 3.0):
            spent = processor(
                lambda e=epsilon, d=distance, b=belief: tpl.sip.OptimalResponse(e, d).response(b)
            )
            yield f"| SIP: exact response, Euclidean distance, n = {n}, ε = {epsilon:g} | {show(spent)} | {aim} |"
    rng = np.random.default_rng(0)
    pages, sessions = 1000, rng.integers(0, 1000, (400, 30))
    for order in (1, 2):
        chain = tpl.sip.chain_from_sequences(sessions, pages, order=order)
        for mechanism in (tpl.sip.ConditionalRandomizedResponse(1.0), tpl.sip.OptimalResponse(1.0)):
            spent = processor(
                lambda m=mechanism, c=chain: list(tpl.sip.release(sessions[0], m, c, rng=rng))
            )
            what = f"{pages:,} pages, order {order}, {type(mechanism).__name__}"
            yield f"| SIP: release of a symbol, {what} | {show(spent / 30)} | 0.3 ms |"
    for n in (10_000, 100_000, 1_000_000):
        rng = np.random.default_rng(n)
        belief = 0.05 * rng.dirichlet(np.full(n, 0.5))
        belief[:20] += 0.95 / 20
        distance = BatchDistance(rng.integers(0, 50, (n, 5)))
        belief /= belief.sum()
        for name, own in {
            "Hamming between batches": "hamming",
            "changed symbols, output generation": distance,
        }.items():
            if n < 1_000_000 or name.startswith("Hamming"):
                spent = processor(
                    lambda d=own, b=belief: tpl.sip.OptimalResponse(2.0, d).response(b)
                )
                assert tpl.sip.OptimalResponse(2.0, own).leakage(belief) <= 2.0
                yield f"| SIP: response among {n:,} batches of 5, {name}, ε = 2 | {show(spent)} | |"
    for d, radius, aim in ((4, 0.5, "0.2 s"), (5, 0.9, "1 s")):
        answers = np.random.default_rng(d).normal(size=(400, d))
        policy, even = tpl.dphmm.PolicyGraph.utility(answers, radius), np.full(400, 1 / 400)

        def one_step(policy=policy, answers=answers, even=even):
            walk = np.tile(even, (400, 1))
            next(
                tpl.dphmm.release(
                    [0], policy, answers, 1.0, walk, even, rng=np.random.default_rng(0)
                )
            )

        yield f"| DPHMM: one release, 400 states in dimension {d} | {show(processor(one_step))} | {aim} |"
    steps = profiled(one_step)
    for d, n in ((2, 150), (3, 60)):
        drawn, bare = (
            np.random.default_rng([d, n, 1]).normal(size=(n, d)),
            tpl.dphmm.PolicyGraph.from_edges(n, []),
        )
        spent = processor(lambda g=bare, f=drawn: tpl.dphmm.protect(g, f, "optimal"))
        yield f"| DPHMM: optimum of Eq. (5), {n} exposed states in dimension {d}, gap 0 | {show(spent)} | |"
    recorded = Path(os.environ.get("TPLREPRO_DATA", "")) / "eventlogs" / "bpic2012.xes.gz"
    if recorded.is_file():
        took = processor(lambda: tr.read_xes(recorded))
        yield f"| Event logs: BPI 2012 read | {show(took)} | 3 s |"
    calls = profiled(lambda: list(tpl.sip.release(sessions[0], mechanism, chain, rng=rng)))
    count, costliest = (
        sum(each for each, *_ in calls.values()),
        max(own for *_, own in calls.values()),
    )
    hulls_of, containing = steps["_hull_about"], steps["pairwise_contains"]
    yield ""
    yield f"OptimalResponse of order 2: a symbol takes {count / 30:,.0f} calls of Python and NumPy, of which the"
    yield f"costliest function has {costliest:.0%} of the time. The release in dimension 5 hides one state after the"
    yield f"other: {hulls_of[0]} hulls by Qhull and their checks take {hulls_of[1]:.0%} of the time, and which pairs of"
    yield f"states each of them hides, {containing[1]:.0%}."


def processor(call) -> float:
    """Seconds of the processor that a call takes in one thread, the least of three after one."""
    call()
    times = []
    with threadpool_limits(1):
        for _ in range(3):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
    return min(times)


def profiled(call) -> dict[str, tuple[int, float, float]]:
    """By function: its calls, the share of the time within it, and the share but for what it
    calls."""
    call()
    with threadpool_limits(1), cProfile.Profile() as profile:
        call()
    found = pstats.Stats(profile)
    return {
        name: (calls, inside / found.total_tt, own / found.total_tt)
        for (*_, name), (calls, _, own, inside, _) in found.stats.items()
    }


@section("batch", "The quick batch in a fresh clone, with an existing environment and caches")
def batch():
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        aside = shutil.ignore_patterns(
            ".git", ".venv*", ".snakemake", "build", "shared", ".*_cache", ".hypothesis"
        )
        shutil.copytree(ROOT, clone, ignore=aside)
        environment = os.environ | {"PYTHONPATH": str(clone)}
        environment.pop("TPLREPRO_DATA", None)
        command = [sys.executable, "-m", "workflow.batch", "--profile", "quick"]
        settings = {"cwd": clone, "env": environment, "capture_output": True, "text": True}
        done, took, spent = run_command(command, **settings)
    if done.returncode:
        raise RuntimeError(done.stdout[-3000:] + done.stderr[-1000:])
    rows = re.findall(r"^(\S+/\S+) +([0-9.]+)  \S.*ok$", done.stdout, re.MULTILINE)
    yield PLAIN_HEAD
    yield f"| `make figures`: all {len(rows)} notebooks, no data | {show(took)} | 150 s |"
    yield f"| the same: time of the processors | {spent:.0f} s | |"
    whole = sum(float(took) for _, took in rows)
    yield f"| the notebooks' own time, {os.cpu_count()} at once | {whole:.0f} s | |"
    for name, alone in sorted(rows, key=lambda row: -float(row[1]))[:6]:
        yield f"| of which {name} | {alone} s | |"
    least = min(float(took) for _, took in rows)
    yield f"| of which the shortest, which mostly starts, loads and saves | {show(least)} | |"
    yield from floor(took, spent, "fewer or smaller notebooks")


def run_command(command: list[str], **settings):
    """What `subprocess.run` returns, the seconds it took, and those of the processors."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, **settings)
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def floor(took: float, spent: float, fewer: str):
    """Sentence on how busy the processors were."""
    count = os.cpu_count()
    yield ""
    yield f"The {count} processors are busy {spent / took / count:.0%} of it: the floor is their time, which only"
    yield f"{fewer} would shorten."


@section("tests", "The tests")
def tests():
    _, took, spent = run_command(["make", "test"], cwd=ROOT, check=True, capture_output=True)
    yield PLAIN_HEAD
    yield f"| `make test` | {took:.0f} s | 180 s |"
    yield f"| the same: time of the processors | {spent:.0f} s | |"
    yield from floor(took, spent, "fewer examples of property tests, or fewer notebooks,")


@section("readers", "Readers of data sets at the official sizes")
def readers():
    yield "On synthetic sets, each step in its own process; peak memory includes Python and the libraries."
    yield ""
    yield "| | rows or states | seconds | peak memory |"
    yield "|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        for what in (*(f"write {name}" for name in FILES), *READERS):
            found = in_process("step_of_readers", what, folder)
            size = f"{found['rows']:,}" if what in READERS else f"{found['rows'] / 1e6:.0f} MB"
            yield f"| {what} | {size} | {found['seconds']:.1f} | {found['memory'] / 1e6:,.0f} MB |"


# Names of the files, and what writes them: users, and for Geolife the trajectories.
FILES = {
    "geolife": (
        "Geolife Trajectories 1.3.zip",
        182,
        {"n_trajectories": 18_670, "seconds_between_points": 2.1},
    ),
    "gowalla": ("loc-gowalla_totalCheckins.txt.gz", 196_591, {"box": grid.LOS_ANGELES}),
    "kosarak": ("kosarak.dat.gz", 990_002, {}),
}


def geolife_states(path: Path):
    ring = grid.Grid(grid.BEIJING_3RD_RING, 0.34)
    points = geolife.load(path, box=ring.box)
    points["cell"] = ring.cell(points.pop("latitude"), points.pop("longitude"))
    return fixed_steps(points, "1min", "10min").values


def gowalla_states(path: Path):
    city = grid.Grid(grid.LOS_ANGELES, 0.89)
    visits = gowalla.load(path, box=city.box)
    visits["cell"] = city.cell(visits["latitude"], visits["longitude"])
    return observed_sequences(visits, max_gap="1D").values


READERS = {
    "read geolife": geolife.load,
    "geolife within Beijing's third ring": lambda path: geolife.load(
        path, box=grid.BEIJING_3RD_RING
    ),
    "geolife to cells of 0.34 km, steps of a minute": geolife_states,
    "read gowalla": gowalla.load,
    "gowalla in Los Angeles to sequences": gowalla_states,
    "read kosarak": kosarak.load,
    "kosarak to sequences": lambda path: kosarak.to_sequences(kosarak.load(path)).values,
}


def step_of_readers(what: str, folder: str) -> None:
    """Write a data set of the official size, or read it."""
    name = next(name for name in FILES if name in what)
    path, start = Path(folder) / FILES[name][0], time.perf_counter()
    rows = len(READERS[what](path)) if what in READERS else write_set(name, path)
    print(json.dumps({"rows": rows, "seconds": time.perf_counter() - start, "memory": peak()}))


def write_set(name: str, path: Path) -> int:
    """Write the stand-in of a data set; returns its bytes."""
    _, users, settings = FILES[name]
    importlib.import_module(f"experiments.datasets.{name}").write(path, users, 0, **settings)
    return path.stat().st_size


@section("nothing", "A fresh clone from nothing")
def from_nothing():
    environment = {name: value for name, value in os.environ.items() if name != "TPLREPRO_DATA"}
    yield PLAIN_HEAD
    for target, aim in (("figures", 240), ("test", 360)):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["git", "clone", "--quiet", ROOT, "clone"], cwd=folder, check=True)
            settings = {
                "cwd": Path(folder) / "clone",
                "env": environment,
                "stdout": subprocess.DEVNULL,
                "check": True,
            }
            _, took, spent = zip(
                *(run_command(["make", name], **settings) for name in ("env", target)), strict=True
            )
            size = sum(path.lstat().st_size for path in Path(folder, "clone", ".venv").rglob("*"))
        yield f"| `make {target}`, no data | {sum(took):.0f} s | {aim} s |"
        yield f"| of which the environment, {size / 1e6:,.0f} MB | {show(took[0])} | |"
        yield f"| the same: time of the processors | {sum(spent):.0f} s | |"
    yield ""
    yield "One processor is idle while the kernels are compiled (section on first calls)."


@section("import", "Import")
def importing():
    bare, ours = in_turn(9, *(lambda c=code: run_python(c) for code in ("pass", "import tplrepro")))
    yield PLAIN_HEAD
    beyond = statistics.median(ours) - statistics.median(bare)
    yield f"| `import tplrepro`, beyond starting Python | {show(beyond)} | 0.5 s |"


def run_python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def in_process(function: str, *arguments, environment=()) -> dict:
    """What one function of this file prints as JSON in a process of its own."""
    command = [sys.executable, __file__, "--call", function, *map(str, arguments)]
    environment = os.environ | dict(environment)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout)


def machine() -> str:
    this = this_machine()
    return (
        f"{this['processor']}, {this['cores']} cores, {platform.system()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, Numba {numba.__version__}"
    )


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--call"]:
        name, *rest = arguments[1:]
        globals()[name](*[int(value) if value.isdigit() else value for value in rest])
        return
    unknown = set(arguments) - set(SECTIONS)
    if unknown:
        raise SystemExit(f"sections are {', '.join(SECTIONS)}; found {', '.join(sorted(unknown))}")
    head = [
        "# Benchmarks",
        "",
        "Written by `make bench`; every ratio comes from one run, measuring baseline and package in turn. Times are",
        "wall-clock medians with compiled functions loaded. The baselines are the paper's algorithms vectorised with",
        "NumPy (`tplrepro.published`) and its linear programme through PuLP (`tplrepro.linear_program`). Each section",
        "says when, from which commit and on which machine it was measured.",
    ]
    target, failed = ROOT / "docs" / "benchmarks.md", []
    measured = f"{time.strftime('%Y-%m-%d')}, commit {code_measured()}, {machine()}"
    for name in arguments or [name for name in SECTIONS if name not in APART]:
        title, function = SECTIONS[name]
        print(f"{title} ...", flush=True)
        start = time.perf_counter()
        try:
            lines = list(function())
        except Exception:
            traceback.print_exc()
            failed.append(name)
            continue
        lines += ["", f"*{measured}; {time.perf_counter() - start:.0f} s.*"]
        print(*lines, sep="\n", flush=True)
        write_page(target, head, earlier(target) | {title: "\n".join(lines)})
    print(f"wrote {target.relative_to(ROOT)}")
    if failed:
        raise SystemExit(
            f"sections that failed, of which the page keeps what it had: {', '.join(failed)}"
        )


def code_measured() -> str:
    """The commit, and whether anything else than the page itself differs from it."""
    git = ["git", "-C", str(ROOT)]
    try:
        commit = subprocess.check_output(
            [*git, "rev-parse", "--short=10", "HEAD"], text=True
        ).strip()
        status = [
            *git,
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--",
            ".",
            ":(exclude)docs/benchmarks.md",
        ]
        return commit + (" with changes" if subprocess.check_output(status) else "")
    except (OSError, subprocess.SubprocessError):
        return "no commit"


def write_page(target: Path, head: list[str], bodies: dict[str, str]) -> None:
    parts = [f"## {title}\n\n{bodies[title]}" for title, _ in SECTIONS.values() if title in bodies]
    partial = target.with_suffix(".partial")
    partial.write_text("\n\n".join(["\n".join(head), *parts]) + "\n", encoding="utf-8")
    partial.replace(target)


def earlier(target: Path) -> dict[str, str]:
    """The sections of an earlier run, which one of some sections keeps."""
    if not target.is_file():
        return {}
    sections = target.read_text(encoding="utf-8").split("\n## ")[1:]
    return {title: body.strip() for title, body in (section.split("\n", 1) for section in sections)}


if __name__ == "__main__":
    main(sys.argv[1:])
