"""A million releases: budgets composed and read, and the profiles of a million events."""

import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np

import tplfrontier as tf
import tplrepro as tpl
from benchmarks.measuring import seconds_of
from benchmarks.tables import PLAIN_HEAD, row, shown
from tplfrontier.pairs.leakage import compile_kernels

RELEASES = 10**6


def measure() -> Iterator[str]:
    P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])
    budgets = np.random.default_rng(0).uniform(0.01, 0.2, RELEASES).tolist()
    account = tpl.TemporalAccountant(backward=P, forward=P)

    def compose() -> None:
        for budget in budgets:
            account.compose(budget)

    yield PLAIN_HEAD
    compile_kernels()
    yield row("10⁶ compositions of different budgets", shown(seconds_of(compose)), "0.3 s")
    yield row("one reading of all leakages", shown(seconds_of(lambda: account.tpl)), "0.3 s")
    more = seconds_of(lambda: account.compose(0.1).tpl)
    yield row("one more release and a reading", shown(more), "")
    equal = tpl.TemporalAccountant(backward=P, forward=P)
    took = seconds_of(lambda: equal.compose(0.1, RELEASES).tpl)
    yield row("10⁶ releases of one budget, composed, read", shown(took), "")
    yield from measure_events()


def measure_events() -> Iterator[str]:
    """The (ε, δ) profiles of a million events."""
    from dp_accounting import GaussianDpEvent

    P = tpl.TransitionMatrix([[0.9985, 0.0015], [0.0015, 0.9985]])
    for event, name in ((GaussianDpEvent(3.0), "Gaussian"), (0.1, "pure")):
        made: list = []
        took = seconds_of(lambda event=event, made=made: made.append(epsilon_of_many(event, P)))
        what = f"10⁶ {name} events, states stay with 0.9985: profiles, ε at δ = 1e-6"
        yield row(what, shown(took), "1 s")
        profiles = list(dict.fromkeys(made[0].both.profiles))
        took = seconds_of_compositions(event, profiles)
        what = f"of which {len(profiles)} compositions, one for each different TPL"
        yield row(what, shown(took), "")
    yield ""
    yield "Before a run of events settles, releases are composed one after the other, and each"
    yield "different TPL takes one more composition. Fourier transforms are the smaller part of"
    yield "it; the rest are the passes over profiles that make masses of them and, rounded up,"
    yield "profiles again."


def epsilon_of_many(event: Any, P: tpl.TransitionMatrix) -> Any:
    """The profiles of a million events after their epsilon was read."""
    made = tf.temporal_privacy_profile([(event, RELEASES)], P, P)
    made.epsilon(1e-6)
    return made


def seconds_of_compositions(event: Any, profiles: list) -> float:
    """Seconds of the composition of every fortieth of the profiles with one event."""
    one = tf.PrivacyProfile.of_event(event, profiles[0].grid)
    each = [seconds_of(lambda profile=profile: profile.compose(one)) for profile in profiles[::40]]
    return len(profiles) * statistics.median(each)
