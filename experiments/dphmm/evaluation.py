"""The evaluation of [5] (section 8): degree of protection, error and runtime along trajectories."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from time import process_time
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from experiments.claims.intervals import mean_with_interval
from experiments.dphmm.mobility import MobilityModel
from experiments.timing import cpu_seconds
from tplrepro.dphmm.constraint import check_states
from tplrepro.dphmm.data_release import KEPT, DataRelease, ReleasedAnswer, release
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import degree_of_protection
from tplrepro.markov.transition import TransitionMatrix

#: The baseline, whose complete graph is taken as any other one.
LISTED = "DPLS, edges listed"
#: The same, where only the pairs of each delta-location set are made.
PAIRED = "DPLS, pairs of its set"


def compare(
    models: Mapping[str, MobilityModel],
    radii: Mapping[str, float],
    epsilons: Sequence[float],
    *,
    excluded_probability: float,
    seed: int,
    kept: int = KEPT,
    list_edges: bool = False,
) -> pd.DataFrame:
    """Release all trajectories of each model by the three methods of section 8, over budgets
    `epsilons` (nats).

    `models` are given by name, and `radii` (r of G_util, km) by its first word, the data set. The
    baseline DPLS is a complete graph on the delta-location set, where delta is the
    `excluded_probability`. `seed` fixes all draws; `kept` is the size of the cache of protections,
    0 to find each anew. With `list_edges` the baseline is released twice more, as `LISTED` and as
    `PAIRED`. A row for each release: data, method and the columns of `evaluate`.
    """
    tables: dict[tuple, pd.DataFrame] = {}
    for name, model in models.items():
        radius = radii[name.split()[0]]
        policies = {
            "DPHMM, G_util": PolicyGraph.utility(model.answers, radius),
            "DPHMM, G_trs": PolicyGraph.transition(model.transitions),
            "DPLS": PolicyGraph.complete(len(model.answers)),
        }
        for method, policy in policies.items():
            excluded = excluded_probability if method == "DPLS" else None
            tables[name, method] = evaluate(model, policy, epsilons, excluded, seed=seed, kept=kept)
        ways = {LISTED: edges_listed, PAIRED: pairs_of_possible_states}
        if not list_edges:
            ways = {}
        for method, way in ways.items():
            with way():
                tables[name, method] = evaluate(
                    model, policies["DPLS"], epsilons, excluded_probability, seed=seed, kept=kept
                )
    keys = ["data", "method"]
    return pd.concat(tables, names=keys).reset_index(level=keys).reset_index(drop=True)


@contextmanager
def edges_listed() -> Iterator[None]:
    """Take complete graphs as any other: list their edges, and take the hull of all.

    Their hull is otherwise found from corners of the answers, a shortcut that [5] does not have.
    """
    with mock.patch.object(PolicyGraph, "is_complete", False):
        yield


@contextmanager
def pairs_of_possible_states() -> Iterator[None]:
    """As `edges_listed`, but a complete graph that is constrained makes the pairs of its possible
    states (Theorem 4.1 of [5]), and does not select them from the pairs of all states."""

    def constrain(graph: PolicyGraph, states: ArrayLike) -> PolicyGraph:
        kept = check_states(states, graph.n_states)
        return graph._copy(None, np.intersect1d(kept, graph.possible))

    with edges_listed(), mock.patch.object(PolicyGraph, "constrain", constrain):
        yield


def evaluate(
    model: MobilityModel,
    policy: PolicyGraph,
    epsilons: Sequence[float],
    excluded_probability: float | None = None,
    *,
    seed: int,
    kept: int = KEPT,
) -> pd.DataFrame:
    """Release all trajectories of a model under one policy, by the planar isotropic mechanism of
    section 8.

    The budgets `epsilons` are in nats. `excluded_probability` is delta of the delta-location set;
    None: the policy alone says which states are protected. Trajectory i draws from the generator of
    (seed, i), whatever the policy and the budget. `kept` is the size of the cache of protections;
    with 0 each release finds its protection anew, as Algorithm 2 is printed.

    A row for each trajectory, budget and timestamp: trajectory, epsilon, time (from 1); released,
    False where only one state is possible, without any value; possible: |C_t|; edges of the graph
    whose hull is taken; hull_area of this hull, km^2; degree_of_protection of the true state or of
    its surrogate; error: ||z - f(s)||_2, km; added_edges; CPU seconds of the release.
    """
    rows = []
    setting = DataRelease(
        policy,
        model.answers,
        model.transitions,
        mechanism="planar isotropic",
        excluded_probability=excluded_probability,
        skip=True,
        kept=kept,
    )
    for (i, trajectory), epsilon in product(enumerate(model.trajectories), epsilons):
        start, rng = model.transitions.row(trajectory[0]), np.random.default_rng([seed, i])
        steps = setting.series(trajectory[1:], epsilon, start, rng=rng)
        for time, state in enumerate(trajectory[1:].tolist(), start=1):
            started = process_time()
            step = next(steps)
            seconds = process_time() - started
            row: dict[str, Any] = {
                "trajectory": i,
                "epsilon": epsilon,
                "time": time,
                "released": step is not None,
            }
            if step is not None:
                row |= _measure(step, model.answers, state)
                row["seconds"] = seconds
            rows.append(row)
    return pd.DataFrame(rows)


def _measure(step: ReleasedAnswer, answers: np.ndarray, true_state: int) -> dict[str, Any]:
    """The columns of `evaluate` that need the released value: possible, edges,
    hull_area, degree_of_protection, error and added_edges."""
    protected = degree_of_protection(
        step.policy, answers, step.mechanism.hull, [step.perturbed_state]
    )
    return {
        "possible": step.policy.possible.size,
        "edges": step.policy.n_edges,
        "hull_area": step.mechanism.hull.volume,
        "degree_of_protection": protected.max(),
        "error": float(np.linalg.norm(step.z - answers[true_state])),
        "added_edges": len(step.added_edges),
    }


def over_trajectories(releases: pd.DataFrame, quantity: str) -> dict | float:
    """The mean over trajectories of the column `quantity` of releases, with its interval; without
    it for a single trajectory."""
    means = releases.groupby("trajectory")[quantity].mean()
    if len(means) == 1:
        return float(means.mean())
    return mean_with_interval(means)


def by_choice(releases: pd.DataFrame, quantities: Iterable[str]) -> dict[str, list]:
    """The mean of each quantity over trajectories, with its interval, for each data set and method:
    a list over the models of the data set.

    `releases` are those of `compare`, `quantities` columns of it; the key is such as "Geolife,
    DPLS: error".
    """
    results: dict[str, list] = {}
    for (name, method), part in releases.groupby(["data", "method"], sort=False):
        for quantity in quantities:
            key = f"{name.split()[0]}, {method}: {quantity}"
            results.setdefault(key, []).append(over_trajectories(part, quantity))
    return results


def ahead_over_time(by_time: pd.DataFrame, one: str, other: str) -> dict[str, list]:
    """Shares of the timestamps at which method `one` protects more than `other`, at a smaller
    error.

    `by_time` has a row for each data, method and time, with the columns degree_of_protection and
    error; for each data set the result has a list over its models.
    """
    results: dict[str, list] = {}
    for name, part in by_time.groupby("data", sort=False):
        table = part.pivot(index="time", columns="method", values=["degree_of_protection", "error"])
        more = table["degree_of_protection", one] > table["degree_of_protection", other]
        smaller = table["error", one] < table["error", other]
        key = f"{name.split()[0]}: share of timestamps at which {one} is ahead of {other}"
        results.setdefault(key, []).append(float((more & smaller).mean()))
    return results


def time_growth(sizes: Iterable[int], epsilon: float, *, seed: int) -> pd.DataFrame:
    """CPU seconds of one release of `epsilon` nats, all of n states equally likely, on a square
    grid with G_trs and with G_cplt.

    A row for each n in `sizes`: states, G_trs, complete.
    """
    rows = []
    for n in sizes:
        answers, transitions = grid_of_states(n)
        prior = np.full(n, 1 / n)

        def seconds_of_first(policy: PolicyGraph) -> float:
            def release_first() -> None:
                rng = np.random.default_rng(seed)
                next(release([0], policy, answers, epsilon, transitions, prior, rng=rng))  # noqa: B023

            return cpu_seconds(release_first)[1]

        rows.append(
            {
                "states": n,
                "G_trs": seconds_of_first(PolicyGraph.transition(transitions)),
                "complete": seconds_of_first(PolicyGraph.complete(n)),
            }
        )
    return pd.DataFrame(rows)


def grid_of_states(n_states: int, reach: float = 1.5) -> tuple[np.ndarray, TransitionMatrix]:
    """Answers (n, 2) on a square grid, and a chain that moves to cells at most `reach` away."""
    side = int(np.ceil(np.sqrt(n_states)))
    answers = np.stack(np.divmod(np.arange(n_states), side), axis=1).astype(float)
    near = cdist(answers, answers) <= reach
    return answers, TransitionMatrix(csr_array(near), normalize=True)
