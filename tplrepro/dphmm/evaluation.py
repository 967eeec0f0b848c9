"""The evaluation of [5] (section 8): degree of protection, error and runtime along trajectories.

`evaluate` releases each trajectory once under one policy, and records for each timestamp what Figs. 10 to 13 average.
"""

from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tplrepro.dphmm.data_release import release
from tplrepro.dphmm.mobility import MobilityModel
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import degree_of_protection
from tplrepro.markov.transition import TransitionMatrix

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare", "evaluate", "grid_of_states", "time_growth"]


def compare(
    models: Mapping[str, MobilityModel],
    radii: Mapping[str, float],
    epsilons: Iterable[float],
    *,
    delta: float,
    seed: int,
) -> "pd.DataFrame":
    """`evaluate` of the three methods of section 8 on each model, for each budget.

    For each name of data a model and the radius r of its G_util, km; budgets of a release, nats; `delta` of the
    baseline DPLS, a complete graph on the delta-location set. The rows are those of `evaluate` with data, epsilon and
    method in front.
    """
    import pandas as pd

    tables = {}
    for name, model in models.items():
        policies = {
            "DPHMM, G_util": (PolicyGraph.utility(model.answers, radii[name]), None),
            "DPHMM, G_trs": (PolicyGraph.transition(model.transitions), None),
            "DPLS": (PolicyGraph.complete(len(model.answers)), delta),
        }
        for epsilon in epsilons:
            for method, (policy, share) in policies.items():
                tables[name, epsilon, method] = evaluate(model, policy, epsilon, share, seed=seed)
    keys = ["data", "epsilon", "method"]
    return pd.concat(tables, names=keys).reset_index(level=keys).reset_index(drop=True)


def evaluate(
    model: MobilityModel, policy: PolicyGraph, epsilon: float, delta: float | None = None, *, seed: int
) -> "pd.DataFrame":
    """Release all trajectories of a model under one policy, by the planar isotropic mechanism of section 8.

    Where only one state is possible nothing is released and the prior is kept, as no privacy is possible; such
    timestamps have `released` False and no other values.

    `epsilon` and `delta` as in `release`; trajectory i draws from the generator of (seed, i), whatever the policy. A
    row for each trajectory and timestamp: trajectory, time (from 1); released; possible: |C_t|; degree_of_protection of
    the true state (of its surrogate, where it is outside the delta-location set); error: ||z - f(s)||_2, km;
    added_edges; seconds of the release.
    """
    import pandas as pd

    f, rows = model.answers, []
    options: dict[str, Any] = {"mechanism": "planar isotropic", "delta": delta, "skip": True}
    for i, trajectory in enumerate(model.trajectories):
        first, rng = model.transitions.row(trajectory[0]), np.random.default_rng([seed, i])
        steps = release(trajectory[1:], policy, f, epsilon, model.transitions, first, rng=rng, **options)
        for time, state in enumerate(trajectory[1:].tolist(), start=1):
            started = perf_counter()
            step = next(steps)
            row: dict[str, Any] = {"trajectory": i, "time": time, "released": step is not None}
            if step is not None:
                seconds = perf_counter() - started
                hidden = step.perturbed_state
                row |= {
                    "possible": step.policy.possible.size,
                    "degree_of_protection": degree_of_protection(step.policy, f, step.hull, [hidden])[hidden],
                    "error": float(np.linalg.norm(step.z - f[state])),
                    "added_edges": len(step.added_edges),
                    "seconds": seconds,
                }
            rows.append(row)
    return pd.DataFrame(rows)


def time_growth(sizes: Iterable[int], epsilon: float, *, seed: int, repeats: int = 5) -> "pd.DataFrame":
    """Seconds of one release, all of n states equally likely, on a square grid with G_trs and with G_cplt.

    A row for each of the `sizes` |C_t|: states, G_trs, complete; of the `repeats` the fastest counts, after a warm-up.
    """
    import pandas as pd

    rows = []
    for n in sizes:
        answers, transitions = grid_of_states(n)
        row: dict[str, float] = {"states": n}
        for name, policy in (("G_trs", PolicyGraph.transition(transitions)), ("complete", PolicyGraph.complete(n))):
            seconds = []
            for repeat in range(repeats + 1):
                rng = np.random.default_rng([seed, repeat])
                started = perf_counter()
                next(release([0], policy, answers, epsilon, transitions, np.full(n, 1 / n), rng=rng))
                seconds.append(perf_counter() - started)
            row[name] = min(seconds[1:])
        rows.append(row)
    return pd.DataFrame(rows)


def grid_of_states(n_states: int, reach: float = 1.5) -> tuple[np.ndarray, TransitionMatrix]:
    """Answers (n, 2) on a square grid, and a chain that moves to cells at most `reach` away.

    >>> answers, transitions = grid_of_states(9)
    >>> PolicyGraph.transition(transitions).n_edges
    36
    """
    import networkx
    from scipy.sparse import eye_array

    side = int(np.ceil(np.sqrt(n_states)))
    answers = np.stack(np.divmod(np.arange(n_states), side), axis=1).astype(float)
    near = networkx.to_scipy_sparse_array(PolicyGraph.utility(answers, reach).graph, dtype=float)
    return answers, TransitionMatrix(near + eye_array(n_states), normalize=True)
