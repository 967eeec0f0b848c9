"""The notions compared: the mechanism behind each, the level that it promises, and the leakage that theory allows.

Each mechanism has one parameter, and a notion translates that parameter into a level. Laplace noise with the
same budget epsilon at every time, for example, is epsilon-DP for one event if nothing is correlated, T
epsilon-DP for a whole user, w epsilon-DP for a window of w times, and alpha-DP_T with the alpha of Algorithm
7 of [1] for this chain. These notions share one mechanism, so at equal measured leakage they are equal.
Algorithm 8, the optimal budgets and the w-event schemes spend unequally over time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from experiments.comparison import central, local
from experiments.comparison.markov_quilt import quilt_budget, quilt_level
from experiments.comparison.randomized_response import KaryRandomizedResponse, UnaryEncoding
from experiments.comparison.setting import Adversary, Setting, SimulatedRelease
from experiments.comparison.window import by_absorption, by_distribution
from tplrepro import (
    allocate_by_quantification,
    allocate_by_upper_bound,
    allocate_noise,
    allocate_optimally,
    gaussian_epsilon,
    gaussian_mu,
)
from tplrepro.dphmm.mechanisms import KNormMechanism
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import constrained_dp_factor, protect
from tplrepro.leakage.temporal_profile import temporal_privacy_profile
from tplrepro.validation import check_horizon

#: The delta of Gaussian noise, whose privacy loss is unbounded.
DELTA = 1e-6


@dataclass(frozen=True)
class CountMechanism:
    """A way to release counts over time, with one parameter.

    `trusts_server` says whether a server sees the true data. `bound` is the largest leakage about one time
    that theory allows, over all outputs; nats, infinite if no bound is known. For Gaussian noise it holds
    with delta = `DELTA`.
    """

    name: str
    trusts_server: bool
    release: Callable[[Setting, float, np.random.Generator], SimulatedRelease]
    bound: Callable[[Setting, float], float]


@dataclass(frozen=True)
class Notion:
    """Translates the parameter of the named mechanism into the level of a privacy notion, and back; both in nats."""

    name: str
    mechanism: str
    level: Callable[[Setting, float], float]
    parameter: Callable[[Setting, float], float]


def mechanisms(setting: Setting, window: int, block: float, radius: float) -> dict[str, CountMechanism]:
    """All mechanisms of the comparison, by name.

    `window` is the w of w-event privacy; the policies of DPHMM connect the cells of squares of side `block`,
    and cells within `radius`, in the unit of the positions.
    """
    n, square = setting.n_cells, np.floor(setting.positions / block + 1e-9)
    policies = {
        "complete": PolicyGraph.complete(n),
        "blocks": PolicyGraph.from_edges(n, np.argwhere((square[:, None] == square).all(axis=-1))),
        "radius": PolicyGraph.utility(setting.positions, radius),
    }
    schemes = {"absorption": by_absorption, "distribution": by_distribution}

    def windows_bound(s: Setting, level: float) -> float:
        """The level times the number of windows that cover all times."""
        return level * -(-s.horizon // window)

    def within_window(release: Callable, name: str, scheme: str, trusts: bool) -> CountMechanism:
        return CountMechanism(name, trusts, partial(release, window=window, scheme=schemes[scheme]), windows_bound)

    correlation = _persistence(setting.adversary)
    made = [
        CountMechanism("equal budgets", True, central.release_laplace, _equal_bound),
        CountMechanism("Algorithm 8", True, partial(_release_allocated, allocate_by_quantification), _level),
        CountMechanism("optimal budgets", True, partial(_release_allocated, allocate_optimally), _level),
        *(within_window(central.release_by_window, f"budget {scheme}", scheme, True) for scheme in schemes),
        CountMechanism("Gaussian noise", True, central.release_gaussian, _gaussian_bound),
        CountMechanism(
            "correlated noise",
            True,
            partial(central.release_gaussian, correlation=correlation),
            partial(_correlated_bound, correlation),
        ),
        *(_policy_mechanism(name, graph) for name, graph in policies.items()),
        # A factor e^epsilon from the marginal in either direction is e^(2 epsilon) between two cells.
        CountMechanism(
            "SIP, exact", False, local.release_optimal_response, lambda s, level: _equal_bound(s, 2 * level)
        ),
        CountMechanism("SIP, published", False, local.release_conditional_response, lambda s, level: np.inf),
        CountMechanism(
            "LDP, randomised response", False, partial(local.release_reports, by=KaryRandomizedResponse), _equal_bound
        ),
        CountMechanism("LDP, unary encoding", False, partial(local.release_reports, by=UnaryEncoding), _equal_bound),
        *(
            within_window(local.release_reports_by_window, name, scheme, False)
            for name, scheme in {"LBA": "absorption", "LBD": "distribution"}.items()
        ),
    ]
    return {mechanism.name: mechanism for mechanism in made}


def notions(window: int) -> list[Notion]:
    """All notions of the comparison; `window` is the w of w-event privacy.

    >>> [notion.name for notion in notions(window=4) if notion.mechanism == "equal budgets"]
    ['event-level DP', 'group DP', 'w-event, uniform', 'Markov quilts', 'DP_T, Algorithm 7']
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
        *(Notion(f"w-event, {scheme}", f"budget {scheme}", *once) for scheme in ("absorption", "distribution")),
        Notion("Markov quilts", "equal budgets", _of_chain(quilt_level), _of_chain(quilt_budget)),
        Notion("DP_T, Algorithm 7", "equal budgets", _supremum, _by_upper_bound),
        Notion("DP_T, Algorithm 8", "Algorithm 8", *once),
        Notion("DP_T, optimal", "optimal budgets", *once),
        Notion("DP_T, Gaussian", "Gaussian noise", _gaussian_bound, _gaussian_shift),
        Notion(
            "correlated Gaussian",
            "correlated noise",
            lambda s, shift: gaussian_epsilon(shift, DELTA),
            lambda s, level: gaussian_mu(level, DELTA),
        ),
        *(Notion(f"DPHMM, {name}", f"DPHMM, {name}", *once) for name in ("complete", "blocks", "radius")),
        *(Notion(name, name, *once) for name in ("SIP, exact", "SIP, published")),
        *(Notion(name, name, *each) for name in ("LDP, randomised response", "LDP, unary encoding")),
        *(Notion(f"LDP, {name}", name, *once) for name in ("LBA", "LBD")),
    ]


def _level(setting, level):
    return level


def _equal_bound(setting, epsilon):
    return setting.adversary.bound(np.full(setting.horizon, epsilon))


def _gaussian_bound(setting, shift):
    if shift > 10.0:  # profiles do not reach this far; the bound by composition is used
        return gaussian_epsilon(shift * np.sqrt(setting.horizon), DELTA)
    from dp_accounting import GaussianDpEvent

    adversary = setting.adversary
    releases = [(GaussianDpEvent(1 / shift), setting.horizon)]
    return temporal_privacy_profile(releases, adversary.backward, adversary.forward).epsilon(DELTA).max()


def _gaussian_shift(setting, level):
    adversary = setting.adversary
    return 1 / allocate_noise(level, DELTA, adversary.backward, adversary.forward, setting.horizon)[0]


def _persistence(adversary: Adversary) -> float:
    """Correlation between being in a cell and being in it one time later, over all cells."""
    pi, staying = adversary.initial, np.diag(adversary.transitions.toarray())
    return float(pi @ (staying - pi) / (pi @ (1 - pi)))


def _correlated_bound(correlation: float, setting: Setting, shift: float) -> float:
    """The epsilon at which any two paths are indistinguishable.

    After whitening, each step shifts the squared mean by at most 2 (1 + |rho|)^2 and the noise has a share 1
    - rho^2 of the variance. The outputs given one cell are a mixture over paths, and mixtures are no easier
    to distinguish.
    """
    steps = (setting.horizon - 1) * (1 + abs(correlation)) / (1 - abs(correlation))
    return gaussian_epsilon(shift * np.sqrt(1 + steps), DELTA)


def _supremum(setting, epsilon):
    """The alpha for which Algorithm 7 gives this budget: the supremum of the TPL over all times."""
    adversary = setting.adversary
    return adversary.backward.supremum(epsilon) + adversary.forward.supremum(epsilon) - epsilon


def _by_upper_bound(setting, level):
    return allocate_by_upper_bound(level, setting.adversary.backward, setting.adversary.forward)


def _of_chain(quilts: Callable[..., float]) -> Callable[[Setting, float], float]:
    """The level or the budget of Markov quilts for the chain of a setting."""
    return lambda s, value: quilts(value, s.adversary.reversed, s.adversary.transitions, s.horizon)


def _release_allocated(allocate, setting, level, rng):
    return central.release_laplace(setting, _budgets(allocate, setting.adversary, level, setting.horizon), rng)


@lru_cache(maxsize=256)  # all seeds of a sweep use the same budgets
def _budgets(allocate: Callable, adversary: Adversary, level: float, horizon: int) -> np.ndarray:
    return allocate(level, adversary.backward, adversary.forward, horizon)


def _policy_mechanism(name: str, graph: PolicyGraph) -> CountMechanism:
    def bound(setting: Setting, epsilon: float) -> float:
        """Theorem 6.3 of [5] for one time, and TPL from one time to the next."""
        fitted = KNormMechanism.fitted(protect(graph, setting.positions), setting.positions, epsilon)
        return _equal_bound(setting, epsilon * constrained_dp_factor(fitted.policy, setting.positions, fitted.hull))

    return CountMechanism(f"DPHMM, {name}", False, partial(local.release_by_policy, policy=graph), bound)
