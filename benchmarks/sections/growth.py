"""How time and memory of the loss function grow with the number of states, and what is the least
that the search could take."""

import statistics
from collections.abc import Iterator

import numba
import numpy as np
import pandas as pd

import tplrepro as tpl
from benchmarks.measuring import MemoryWatch, in_process, seconds_of
from benchmarks.tables import head, megabytes, row, shown
from tplrepro.leakage.envelope import compiled, dense, hulls, screens

SIZES = (50, 100, 200, 500, 1000, 2000, 5000, 10_000)
AIMS = {200: "1.5 ms", 1000: "60 ms", 5000: "10 s", 10_000: "90 s"}
#: Sizes up to which a call is repeated.
SHORT = 2000
#: Rows of a block of the bare pass.
BLOCK = 16


def measure() -> Iterator[str]:
    found = pd.DataFrame([in_process(measure_size, n) for n in SIZES], index=SIZES)
    yield head(
        "states",
        "one L(0.1)",
        "whole function",
        "aim",
        "bare pass",
        "passes",
        "floor",
        "let through",
        "more memory",
    )
    for n, of_size in found.iterrows():
        yield row(
            f"{n:,}",
            shown(of_size["one"]),
            shown(of_size["seconds"]),
            AIMS.get(n, ""),
            shown(of_size["bare"]),
            f"{of_size['passes']:.2f}",
            shown(of_size["passes"] * of_size["bare"]),
            f"{of_size['let']:.2%}",
            megabytes(of_size["more"]),
        )
    yield ""
    yield "A bare pass is a compiled loop over all ordered pairs of rows, on as many threads, that"
    yield "does nothing but n³ maxima and n³ sums in 16 bits; blocks of 16 rows read the 2 n²"
    yield "bytes n / 16 times. The screen needs so many passes: at each of its slopes, the share"
    yield "of columns in which some row exceeds 1 + slope times the row d. Their product is the"
    yield "floor of this search; the rest is the first hull, and the pairs let through. More"
    yield "memory is that beyond package and matrix."
    for first in (SIZES[0], 500):
        yield ""
        yield growth_from(found.loc[first:], first)


def growth_from(found: pd.DataFrame, first: int) -> str:
    """The fitted exponents, in words, of the measurements `found` of sizes from `first` on."""
    sizes = np.log(found.index.to_numpy(dtype=float))
    one, _ = np.polyfit(sizes, np.log(found["one"]), 1)
    whole, _ = np.polyfit(sizes, np.log(found["seconds"]), 1)
    exponents = f"one L(α) n^{one:.2f}, the whole function n^{whole:.2f}"
    return f"Fitted growth from n = {first} on: {exponents}."


def measure_size(n: int) -> dict[str, float]:
    """Seconds of one value and of the function, memory, and what the floor is made of."""
    load_kernels()
    P = tpl.TransitionMatrix.random(n, rng=np.random.default_rng(1))
    functions = []
    with MemoryWatch() as memory:
        whole = seconds_of(lambda: functions.append(tpl.PrivacyLossFunction(P)))
    rounds = 1
    if n <= SHORT:
        rounds = 5
        whole = statistics.median(
            seconds_of(lambda: tpl.PrivacyLossFunction(P)) for _ in range(rounds)
        )
    one = statistics.median(seconds_of(lambda: tpl.privacy_loss(P, 0.1)) for _ in range(rounds))
    found = {"seconds": whole, "one": one, "more": memory.more}
    found["bare"] = seconds_of_bare_pass(P.probabilities)
    return found | screen_of(P.probabilities, functions[0].hull)


def load_kernels() -> None:
    """Load the compiled functions, so that none is loaded while something is measured."""
    P = tpl.TransitionMatrix.random(130, rng=np.random.default_rng(0))
    tpl.PrivacyLossFunction(P)
    tpl.privacy_loss(P, 0.1)


def seconds_of_bare_pass(rows: np.ndarray) -> float:
    """Seconds of a pass over all pairs of rows, from one over at most 1,024 rows d, on as many
    threads as ours."""
    steps = screens.columns_of(rows).steps
    blocks = -(-min(len(rows), 1024) // BLOCK)
    threads = compiled.thread_count(len(rows), 100)

    def work() -> None:
        dense.for_each(lambda k: pass_over_block(steps, BLOCK * k), blocks, threads)

    work()
    of_blocks = statistics.median(seconds_of(work) for _ in range(3))
    return of_blocks * len(rows) / (BLOCK * blocks)


@numba.njit(nogil=True)
def pass_over_block(steps: np.ndarray, first: int) -> np.ndarray:
    """Maxima and sums (16, n) of the block of rows d that begins at row `first`, with all rows;
    column i of `steps` (n, n) is row i in units of 16 bits."""
    n = steps.shape[1]
    totals = np.zeros((16, n), np.uint16)
    columns = np.minimum(first + np.arange(16), n - 1)
    for start in range(0, n, 64):
        for m in range(16):
            total = totals[m]
            levels = steps[:, columns[m]]
            for k in range(start, min(start + 64, n - 7), 8):
                q = steps[k : k + 8]
                a, b, c, d = levels[k], levels[k + 1], levels[k + 2], levels[k + 3]
                e, f, g, h = levels[k + 4], levels[k + 5], levels[k + 6], levels[k + 7]
                for i in range(n):
                    first_four = (max(q[0, i], a) + max(q[1, i], b)) + (
                        max(q[2, i], c) + max(q[3, i], d)
                    )
                    last_four = (max(q[4, i], e) + max(q[5, i], f)) + (
                        max(q[6, i], g) + max(q[7, i], h)
                    )
                    total[i] += first_four + last_four
    return totals


def screen_of(rows: np.ndarray, hull: np.ndarray) -> dict[str, float]:
    """Passes that the last screen makes over `rows` (n, n), whose loss function has this hull, and
    the share of 20,000 pairs of rows that it lets through."""
    n = len(rows)
    largest = rows.max(axis=0)
    step = 1.0 / screens.columns_of(rows).scale
    excesses = screens.excesses_of_pairs(rows, dense.sample_pairs(n), dense.SEED_SLOPES, step)
    usual = np.sort(excesses)[:, int(dense.USUAL * n)]
    screen = dense.choose_screen(
        screens.last_slopes(rows, largest), hulls.edges_of_hull(hull), usual
    )
    passes = sum(float((largest > (1.0 + slope) * rows[:64]).mean()) for slope in screen.slope)
    pairs = np.random.default_rng(0).integers(0, n, (20_000, 2))
    let = (screens.excesses_of_pairs(rows, pairs, screen.slope, step) > screen.cap[:, None]).any(
        axis=0
    )
    return {"passes": passes, "let": float(let.mean())}
