"""The evaluation of [5] (section 8): degree of protection, error and runtime along trajectories.

`evaluate` releases each trajectory once under one policy, and records for each timestamp what Figs. 10 to 13 average.

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from tplrepro.dphmm.constraint import NUMERICAL_ZERO
from tplrepro.dphmm.data_release import release_step
from tplrepro.dphmm.errors import NoPrivacyError
from tplrepro.dphmm.inference import next_prior
from tplrepro.dphmm.mobility import MobilityModel
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import degree_of_protection

__all__ = ["compare", "evaluate", "grid_of_states", "policies", "time_growth"]


def policies(model: MobilityModel, radius: float, delta: float = 0.01) -> dict[str, tuple[PolicyGraph, float | None]]:
    """The three methods of section 8: name to (policy, delta), as `evaluate` takes them.

    Parameters
    ----------
    radius : float, r of G_util, km
    delta : float, of the baseline DPLS, a complete graph on the delta-location set
    """
    return {
        "DPHMM, G_util": (PolicyGraph.utility(model.answers, radius), None),
        "DPHMM, G_trs": (PolicyGraph.transition(model.transitions), None),
        "DPLS": (PolicyGraph.complete(len(model.answers)), delta),
    }


def evaluate(
    model: MobilityModel,
    policy: PolicyGraph,
    epsilon: float,
    delta: float | None = None,
    *,
    seed: int = 0,
    mechanism: str = "planar isotropic",
    method: str = "greedy",
    threshold: float = NUMERICAL_ZERO,
):
    """Release all trajectories of a model under one policy.

    Where only one state is possible nothing is released and the prior is kept, as no privacy is possible; such
    timestamps have `released` False and no other values.

    Parameters
    ----------
    policy : PolicyGraph over the model's states
    epsilon : float, nats, of each release
    delta, mechanism, method, threshold : as for `release`
    seed : int; trajectory i draws from the generator of (seed, i), whatever the policy

    Returns
    -------
    DataFrame, one row a trajectory and timestamp
        trajectory, time (from 1); released; possible: |C_t|; degree_of_protection of the true state (of its surrogate,
        where it is outside the delta-location set); error: ||z - f(s)||_2, km; added_edges; seconds of the release
    """
    import pandas as pd

    rows = []
    for i, trajectory in enumerate(model.trajectories):
        rng = np.random.default_rng([seed, i])
        belief = np.zeros(len(model.answers))
        belief[trajectory[0]] = 1.0
        for time, state in enumerate(trajectory[1:].tolist(), start=1):
            started = perf_counter()
            prior = next_prior(belief, model.transitions)
            row = {"trajectory": i, "time": time, "released": False}
            try:
                step = release_step(
                    state,
                    prior,
                    policy,
                    model.answers,
                    epsilon,
                    delta=delta,
                    mechanism=mechanism,
                    method=method,
                    threshold=threshold,
                    rng=rng,
                    time=time,
                )
            except NoPrivacyError:
                belief = prior
                rows.append(row)
                continue
            seconds = perf_counter() - started
            belief = step.posterior
            hidden = step.perturbed_state
            counts = degree_of_protection(step.policy, model.answers, step.hull, [hidden])
            rows.append(
                row
                | {
                    "released": True,
                    "possible": step.policy.possible.size,
                    "degree_of_protection": counts[hidden],
                    "error": float(np.linalg.norm(step.z - model.answers[state])),
                    "added_edges": len(step.added_edges),
                    "seconds": seconds,
                }
            )
    return pd.DataFrame(rows)


def compare(model: MobilityModel, radius: float, epsilon: float, delta: float = 0.01, seed: int = 0):
    """`evaluate` for each of the three methods of `policies`: their rows below each other, `method` in front."""
    import pandas as pd

    methods = policies(model, radius, delta)
    tables = {
        name: evaluate(model, policy, epsilon, constraint, seed=seed) for name, (policy, constraint) in methods.items()
    }
    return pd.concat(tables, names=["method"]).reset_index(level="method").reset_index(drop=True)


def time_growth(sizes, epsilon: float, seed: int = 0, repeats: int = 5):
    """Seconds of one release, all of n states equally likely, on a square grid with G_trs and with G_cplt.

    Parameters
    ----------
    sizes : list of int, numbers of states |C_t|
    repeats : int, of which the fastest counts, after one release to warm up

    Returns
    -------
    DataFrame, a row a size: states, G_trs, complete
    """
    import pandas as pd

    rows = []
    for n in sizes:
        answers, transitions = grid_of_states(n)
        prior, row = np.full(n, 1 / n), {"states": n}
        for name, policy in (("G_trs", PolicyGraph.transition(transitions)), ("complete", PolicyGraph.complete(n))):
            seconds = []
            for repeat in range(repeats + 1):
                rng = np.random.default_rng([seed, repeat])
                started = perf_counter()
                release_step(0, prior, policy, answers, epsilon, rng=rng)
                seconds.append(perf_counter() - started)
            row[name] = min(seconds[1:])
        rows.append(row)
    return pd.DataFrame(rows)


def grid_of_states(n_states: int, reach: float = 1.5):
    """A square grid of states and a chain that moves to cells at most `reach` away, to time releases of any |C_t|.

    Returns
    -------
    answers : ndarray (n, 2); transitions : TransitionMatrix

    Examples
    --------
    >>> answers, transitions = grid_of_states(9)
    >>> PolicyGraph.transition(transitions).n_edges
    36
    """
    from scipy.sparse import coo_array
    from scipy.spatial import cKDTree

    from tplrepro.markov.transition import TransitionMatrix

    side = int(np.ceil(np.sqrt(n_states)))
    answers = np.stack(np.divmod(np.arange(n_states), side), axis=1).astype(float)
    pairs = cKDTree(answers).query_pairs(reach, output_type="ndarray")
    pairs = np.vstack([pairs, pairs[:, ::-1], np.column_stack([np.arange(n_states)] * 2)])
    matrix = coo_array((np.ones(len(pairs)), pairs.T), shape=(n_states, n_states)).tocsr()
    return answers, TransitionMatrix(matrix, normalize=True)
