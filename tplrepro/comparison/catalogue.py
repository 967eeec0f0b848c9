"""The notions compared: the mechanism behind each, the level that it promises, and what the promise is worth here.

A mechanism has one parameter. A notion reads that parameter as a level: Laplace noise of the same budget epsilon at
every time is epsilon-DP for one event if nothing is correlated, T epsilon for a whole user, w epsilon for a window of w
times, and alpha-DP_T with the alpha that Algorithm 7 of [1] finds for this chain. So these four are one mechanism, and
equal measured leakage makes them the same; Algorithm 8, the optimal budgets and budget absorption spend unequally.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from tplrepro.allocation import allocate_by_quantification, allocate_by_upper_bound, allocate_optimally
from tplrepro.comparison import central, local
from tplrepro.comparison.adversary import Adversary
from tplrepro.comparison.setting import Setting
from tplrepro.comparison.simulated_release import SimulatedRelease
from tplrepro.dphmm.mechanisms import KNormMechanism
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import constrained_dp_factor
from tplrepro.mechanisms import KaryRandomizedResponse, UnaryEncoding
from tplrepro.validation import check_horizon

__all__ = ["CountMechanism", "Notion", "mechanisms", "notions"]


@dataclass(frozen=True)
class CountMechanism:
    """A way to release counts over time, with one parameter.

    Attributes
    ----------
    trusts_server : bool, whether a server sees the true data
    release : callable (setting, parameter, rng) -> SimulatedRelease
    bound : callable (setting, parameter) -> float
        The largest leakage about one time that any outputs can have, by theory; nats. Infinite if none is known.
    """

    name: str
    trusts_server: bool
    release: Callable[[Setting, float, np.random.Generator], SimulatedRelease]
    bound: Callable[[Setting, float], float]


@dataclass(frozen=True)
class Notion:
    """A reading of a mechanism's parameter as the level of a privacy notion; both in nats.

    Attributes
    ----------
    mechanism : str, its name
    level : callable (setting, parameter) -> float
    parameter : callable (setting, level) -> float, the inverse
    """

    name: str
    mechanism: str
    level: Callable[[Setting, float], float]
    parameter: Callable[[Setting, float], float]


def mechanisms(setting: Setting, window: int, block: float, radius: float) -> dict[str, CountMechanism]:
    """All mechanisms of the comparison, by name.

    Parameters
    ----------
    setting : Setting
    window : int, w of budget absorption
    block : float, side of the squares whose cells the categorical policy of DPHMM connects
    radius : float, of the utility-oriented policy of DPHMM; both in the unit of the positions
    """
    n = setting.n_cells
    policies = {
        "DPHMM, complete": PolicyGraph.complete(n),
        "DPHMM, blocks": PolicyGraph.categorical(local.blocks(setting.positions, block), n),
        "DPHMM, radius": PolicyGraph.utility(setting.positions, radius),
    }

    def absorb(setting: Setting, level: float, rng: np.random.Generator) -> SimulatedRelease:
        return central.release_by_absorption(setting, level, window, rng)

    trusting: dict[str, tuple[Callable, Callable]] = {
        "equal budgets": (_release_equal, _equal_bound),
        "Algorithm 8": (partial(_release_allocated, allocate_by_quantification), lambda setting, level: level),
        "optimal budgets": (partial(_release_allocated, allocate_optimally), lambda setting, level: level),
        "budget absorption": (absorb, lambda setting, level: level * -(-setting.horizon // window)),
    }
    others: dict[str, tuple[Callable, Callable]] = {
        name: (partial(_release_by_policy, graph), partial(_policy_bound, graph)) for name, graph in policies.items()
    }
    others |= {
        # A factor e^epsilon either way from the marginal is e^(2 epsilon) between two cells.
        "SIP, exact": (local.release_optimal_response, lambda setting, level: _equal_bound(setting, 2 * level)),
        "SIP, published": (local.release_conditional_response, lambda setting, level: np.inf),
        "LDP, randomised response": (partial(_release_reports, KaryRandomizedResponse), _equal_bound),
        "LDP, unary encoding": (partial(_release_reports, UnaryEncoding), _equal_bound),
    }
    made = [CountMechanism(name, True, *functions) for name, functions in trusting.items()]
    made += [CountMechanism(name, False, *functions) for name, functions in others.items()]
    return {mechanism.name: mechanism for mechanism in made}


def notions(window: int) -> list[Notion]:
    """All notions of the comparison; `window` is the w of w-event privacy.

    Examples
    --------
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
        *(Notion(name, name, *once) for name in ("DPHMM, complete", "DPHMM, blocks", "DPHMM, radius")),
        *(Notion(name, name, *once) for name in ("SIP, exact", "SIP, published")),
        *(Notion(name, name, *each) for name in ("LDP, randomised response", "LDP, unary encoding")),
    ]


def _release_equal(setting, epsilon, rng):
    return central.release_laplace(setting, np.full(setting.horizon, epsilon), rng)


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


def _release_reports(mechanism, setting, epsilon, rng):
    return local.release_reports(setting, mechanism(epsilon, setting.n_cells), rng)


def _release_by_policy(graph, setting, epsilon, rng):
    return local.release_by_policy(setting, KNormMechanism.protecting(graph, setting.positions, epsilon), rng)


def _policy_bound(graph, setting, epsilon):
    """Theorem 6.3 of [5] for one time, and TPL from one time to the next."""
    mechanism = KNormMechanism.protecting(graph, setting.positions, epsilon)
    return _equal_bound(setting, epsilon * constrained_dp_factor(mechanism.policy, setting.positions, mechanism.hull))
