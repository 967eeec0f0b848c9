"""The notions compared: the mechanism behind each, the level that it promises, and what the promise is worth here.

A mechanism has one parameter. A notion reads that parameter as a level: Laplace noise of the same budget epsilon at
every time is epsilon-DP for one event if nothing is correlated, T epsilon for a whole user, w epsilon for a window of w
times, and alpha-DP_T with the alpha that Algorithm 7 of [1] finds for this chain. So these four are one mechanism, and
equal measured leakage makes them the same; Algorithm 8, the optimal budgets and budget absorption spend unequally.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from tplrepro.allocation import allocate_by_quantification, allocate_by_upper_bound, allocate_optimally
from tplrepro.comparison import central, local
from tplrepro.comparison.setting import Adversary, Setting, SimulatedRelease
from tplrepro.dphmm.mechanisms import KNormMechanism
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import constrained_dp_factor
from tplrepro.mechanisms import KaryRandomizedResponse, UnaryEncoding
from tplrepro.validation import check_horizon

__all__ = ["CountMechanism", "Notion", "mechanisms", "notions"]


@dataclass(frozen=True)
class CountMechanism:
    """A way to release counts over time, with one parameter; `bound` is what any outputs leak about one time at most.

    `trusts_server` if a server sees the true data. The bound is by theory, in nats, infinite if none is known.
    """

    name: str
    trusts_server: bool
    release: Callable[[Setting, float, np.random.Generator], SimulatedRelease]
    bound: Callable[[Setting, float], float]


@dataclass(frozen=True)
class Notion:
    """A reading of the named mechanism's parameter as the level of a privacy notion, and its inverse; both in nats."""

    name: str
    mechanism: str
    level: Callable[[Setting, float], float]
    parameter: Callable[[Setting, float], float]


def mechanisms(setting: Setting, window: int, block: float, radius: float) -> dict[str, CountMechanism]:
    """All mechanisms of the comparison, by name.

    `window` is the w of budget absorption; the policies of DPHMM connect the cells of squares of side `block`, and
    cells within `radius`, in the unit of the positions.
    """
    n, square = setting.n_cells, np.floor(setting.positions / block + 1e-9)
    policies = {
        "complete": PolicyGraph.complete(n),
        "blocks": PolicyGraph.from_edges(n, np.argwhere((square[:, None] == square).all(axis=-1))),
        "radius": PolicyGraph.utility(setting.positions, radius),
    }
    absorb = partial(central.release_by_absorption, window=window)
    made = [
        CountMechanism("equal budgets", True, central.release_laplace, _equal_bound),
        CountMechanism("Algorithm 8", True, partial(_release_allocated, allocate_by_quantification), _level),
        CountMechanism("optimal budgets", True, partial(_release_allocated, allocate_optimally), _level),
        CountMechanism("budget absorption", True, absorb, lambda s, level: level * -(-s.horizon // window)),
        *(_policy_mechanism(name, graph) for name, graph in policies.items()),
        # A factor e^epsilon either way from the marginal is e^(2 epsilon) between two cells.
        CountMechanism(
            "SIP, exact", False, local.release_optimal_response, lambda s, level: _equal_bound(s, 2 * level)
        ),
        CountMechanism("SIP, published", False, local.release_conditional_response, lambda s, level: np.inf),
        *(
            CountMechanism(f"LDP, {name}", False, partial(local.release_reports, by=by), _equal_bound)
            for name, by in {"randomised response": KaryRandomizedResponse, "unary encoding": UnaryEncoding}.items()
        ),
    ]
    return {mechanism.name: mechanism for mechanism in made}


def notions(window: int) -> list[Notion]:
    """All notions of the comparison; `window` is the w of w-event privacy.

    >>> [notion.name for notion in notions(window=4) if notion.mechanism == "equal budgets"]
    ['event-level DP', 'group DP', 'w-event, uniform', 'DP_T, Algorithm 7']
    """
    w = check_horizon(window, "window")

    def times(number):
        """A level that is the parameter times a number, which may depend on the setting."""
        return lambda s, parameter: parameter * number(s), lambda s, level: level / number(s)

    once, each = times(lambda setting: 1), times(lambda setting: setting.horizon)
    return [
        Notion("event-level DP", "equal budgets", *once),
        Notion("group DP", "equal budgets", *each),
        Notion("w-event, uniform", "equal budgets", *times(lambda setting: min(w, setting.horizon))),
        Notion("w-event, absorption", "budget absorption", *once),
        Notion("DP_T, Algorithm 7", "equal budgets", _supremum, _by_upper_bound),
        Notion("DP_T, Algorithm 8", "Algorithm 8", *once),
        Notion("DP_T, optimal", "optimal budgets", *once),
        *(Notion(f"DPHMM, {name}", f"DPHMM, {name}", *once) for name in ("complete", "blocks", "radius")),
        *(Notion(name, name, *once) for name in ("SIP, exact", "SIP, published")),
        *(Notion(name, name, *each) for name in ("LDP, randomised response", "LDP, unary encoding")),
    ]


def _level(setting, level):
    return level


def _equal_bound(setting, epsilon):
    return setting.adversary.bound(np.full(setting.horizon, epsilon))


def _supremum(setting, epsilon):
    """The alpha that Algorithm 7 needs for this budget: the TPL of endlessly many releases."""
    adversary = setting.adversary
    return adversary.backward.supremum(epsilon) + adversary.forward.supremum(epsilon) - epsilon


def _by_upper_bound(setting, level):
    return allocate_by_upper_bound(level, setting.adversary.backward, setting.adversary.forward)


def _release_allocated(allocate, setting, level, rng):
    return central.release_laplace(setting, _budgets(allocate, setting.adversary, level, setting.horizon), rng)


@lru_cache(maxsize=256)  # all seeds of a sweep ask for the same
def _budgets(allocate: Callable, adversary: Adversary, level: float, horizon: int) -> np.ndarray:
    return allocate(level, adversary.backward, adversary.forward, horizon)


def _policy_mechanism(name: str, graph: PolicyGraph) -> CountMechanism:
    def bound(setting: Setting, epsilon: float) -> float:
        """Theorem 6.3 of [5] for one time, and TPL from one time to the next."""
        fitted = KNormMechanism.protecting(graph, setting.positions, epsilon)
        return _equal_bound(setting, epsilon * constrained_dp_factor(fitted.policy, setting.positions, fitted.hull))

    return CountMechanism(f"DPHMM, {name}", False, partial(local.release_by_policy, policy=graph), bound)
