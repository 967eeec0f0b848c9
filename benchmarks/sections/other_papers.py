"""What the calculations of the other papers take: responses, releases, hulls, event logs."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tplreport as tr
import tplrepro as tpl
from benchmarks.measuring import processor_seconds, profile_of
from benchmarks.tables import PLAIN_HEAD, row, shown
from tplrepro.sip.batches import BatchDistance

#: Pages and sessions of the releases of symbols.
N_PAGES = 1000
#: Clicks of a session.
CLICKS = 30


def measure() -> Iterator[str]:
    yield "Seconds of the processor, in one thread."
    yield ""
    yield PLAIN_HEAD
    yield from measure_exact_responses()
    yield from measure_releases()
    yield from measure_batches()
    for dimension, aim in ((4, "0.2 s"), (5, "1 s")):
        spent = processor_seconds(hull_release(dimension))
        yield row(f"DPHMM: one release, 400 states in dimension {dimension}", shown(spent), aim)
    yield from measure_protection()
    yield from measure_event_log()
    yield ""
    yield from what_costs_most()


def measure_exact_responses() -> Iterator[str]:
    """Responses of sequence information privacy under Euclidean distance."""
    for n, aim in ((100, ""), (200, ""), (400, "3 s")):
        rng = np.random.default_rng(n)
        belief = rng.dirichlet(np.ones(n))
        points = rng.random((n, 2))
        distance = np.linalg.norm(points[:, None] - points, axis=-1)
        for epsilon in (1.0, 3.0):
            mechanism_of = exact_response(epsilon, distance, belief)
            what = f"SIP: exact response, Euclidean distance, n = {n}, ε = {epsilon:g}"
            yield row(what, shown(processor_seconds(mechanism_of)), aim)


def exact_response(epsilon: float, distance: Any, belief: np.ndarray) -> Callable[[], object]:
    """A call that finds the exact response with `epsilon` nats to a belief (n,)."""
    return lambda: tpl.sip.OptimalResponse(epsilon, distance).response(belief)


def release_of_session(order: int, mechanism: Any) -> Callable[[], object]:
    """A call that releases the first of 400 sessions by a chain of this order."""
    rng = np.random.default_rng(0)
    sessions = rng.integers(0, N_PAGES, (400, CLICKS))
    chain = tpl.sip.chain_from_sequences(sessions, N_PAGES, order=order)
    return lambda: list(tpl.sip.release(sessions[0], mechanism, chain, rng=rng))


def measure_releases() -> Iterator[str]:
    """Symbols released one by one."""
    for order in (1, 2):
        for mechanism in (tpl.sip.ConditionalRandomizedResponse(1.0), tpl.sip.OptimalResponse(1.0)):
            spent = processor_seconds(release_of_session(order, mechanism))
            words = f"{N_PAGES:,} pages, order {order}, {type(mechanism).__name__}"
            yield row(f"SIP: release of a symbol, {words}", shown(spent / CLICKS), "0.3 ms")


def measure_batches() -> Iterator[str]:
    """Responses among many batches."""
    for n in (10_000, 100_000, 1_000_000):
        rng = np.random.default_rng(n)
        belief = 0.05 * rng.dirichlet(np.full(n, 0.5))
        belief[:20] += 0.95 / 20
        changed = BatchDistance(rng.integers(0, 50, (n, 5)))
        belief /= belief.sum()
        distances: dict[str, Any] = {"Hamming between batches": "hamming"}
        if n < 1_000_000:
            distances["changed symbols, output generation"] = changed
        for name, distance in distances.items():
            spent = processor_seconds(exact_response(2.0, distance, belief))
            assert tpl.sip.OptimalResponse(2.0, distance).leakage(belief) <= 2.0
            what = f"SIP: response among {n:,} batches of 5, {name}, ε = 2"
            yield row(what, shown(spent), "")


def hull_release(dimension: int) -> Callable[[], object]:
    """A call that releases one answer of 400 states in this dimension."""
    radius = {4: 0.5, 5: 0.9}[dimension]
    answers = np.random.default_rng(dimension).normal(size=(400, dimension))
    policy = tpl.dphmm.PolicyGraph.utility(answers, radius)
    prior = np.full(400, 1 / 400)
    steps = np.tile(prior, (400, 1))

    def release() -> None:
        rng = np.random.default_rng(0)
        next(tpl.dphmm.release([0], policy, answers, 1.0, steps, prior, rng=rng))

    return release


def measure_protection() -> Iterator[str]:
    """The optimum of Eq. (5) of [5] where all states are exposed."""
    for dimension, n in ((2, 150), (3, 60)):
        answers = np.random.default_rng([dimension, n, 1]).normal(size=(n, dimension))
        policy = tpl.dphmm.PolicyGraph.from_edges(n, [])
        spent = processor_seconds(
            lambda policy=policy, answers=answers: tpl.dphmm.protect(policy, answers, "optimal")
        )
        what = f"DPHMM: optimum of Eq. (5), {n} exposed states in dimension {dimension}, gap 0"
        yield row(what, shown(spent), "")


def measure_event_log() -> Iterator[str]:
    """Reading a recorded log, where it is at hand."""
    recorded = Path(os.environ.get("TPLREPRO_DATA", "")) / "eventlogs" / "bpic2012.xes.gz"
    if recorded.is_file():
        took = processor_seconds(lambda: tr.read_xes(recorded))
        yield row("Event logs: BPI Challenge 2012 read", shown(took), "3 s")


def what_costs_most() -> Iterator[str]:
    """What a symbol of order 2 and a release in dimension 5 spend their time on."""
    of_session = profile_of(release_of_session(2, tpl.sip.OptimalResponse(1.0))).values()
    calls = sum(function.calls for function in of_session) / CLICKS
    costliest = max(function.own_share for function in of_session)
    of_release = profile_of(hull_release(5))
    hulls = of_release[HULLS]
    containing = of_release[CONTAINS]
    yield f"OptimalResponse of order 2: a symbol takes {calls:,.0f} calls of Python and NumPy, of"
    yield f"which the costliest function has {costliest:.0%} of the time. The release in dimension"
    yield f"5 hides one state after the other: {hulls.calls} hulls by Qhull and their checks take"
    yield f"{hulls.share:.0%} of the time, and which pairs of states each of them hides,"
    yield f"{containing.share:.0%}."


#: Names of the functions of tplrepro.dphmm that make hulls, and that say which pairs they contain.
HULLS = "_hull_about"
CONTAINS = "pairwise_contains"
