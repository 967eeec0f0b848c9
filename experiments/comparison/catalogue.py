"""The notions compared: the mechanism behind each, the level that it promises, and the leakage that
theory allows.

Each mechanism has one parameter, and a notion translates that parameter into a level. Several
notions share Laplace noise with the same budget epsilon at every time, for example, and differ in
the level only: at equal measured leakage they are equal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from experiments.comparison import central, local
from experiments.comparison.markov_quilt import quilt_level
from experiments.comparison.setting import Adversary, Setting, SimulatedRelease
from experiments.comparison.window import by_absorption, by_distribution
from tplfrontier import gaussian_epsilon
from tplfrontier.profiles.temporal_profile import temporal_privacy_profile
from tplrepro import allocate_by_quantification, allocate_optimally
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import constrained_dp_factor, protect
from tplrepro.search import largest_within
from tplrepro.validation import check_level

#: The delta of Gaussian noise, whose privacy loss is unbounded.
DELTA = 1e-6
#: Parameters beyond these are not tried.
SMALLEST, LARGEST = 1e-6, 1e6

Release = Callable[..., SimulatedRelease]  # of a setting and a parameter, by a generator rng
#: Maps the parameter of a mechanism to nats.
NatsOfParameter = Callable[[Setting, float], float]


@dataclass(frozen=True)
class CountMechanism:
    """A way to release counts over time, with one parameter."""

    name: str
    trusts_server: bool  # a server sees the true data
    release: Release
    # the largest leakage about one time over all outputs that theory allows; for Gaussian noise
    # with delta = `DELTA`
    bound: NatsOfParameter


@dataclass(frozen=True)
class Notion:
    """What level of a privacy notion the named mechanism promises with a parameter, and the
    parameter for a level."""

    name: str
    mechanism: str
    level: NatsOfParameter

    def parameter(self, setting: Setting, level: float) -> float:
        """The largest parameter of this level."""
        return _largest_parameter(self.level, setting, level)


def at_guarantee(mechanism: CountMechanism, setting: Setting, target: float) -> float:
    """The largest parameter for which theory bounds the leakage of all outputs by `target` nats;
    NaN if none."""
    return _largest_parameter(mechanism.bound, setting, target)


def _largest_parameter(nats_of: NatsOfParameter, setting: Setting, target: float) -> float:
    """The largest parameter between `SMALLEST` and `LARGEST` whose `nats_of`, which increases with
    it, is at most `target`; NaN if there is none."""
    highest = check_level(target, "target")

    def within(parameter: float) -> bool:
        return nats_of(setting, parameter) <= highest

    if not within(SMALLEST):
        return np.nan
    return largest_within(within, SMALLEST, LARGEST, tolerance=1e-9, logarithmic=True)


def mechanisms(
    setting: Setting, window: int, block: float, radius: float
) -> dict[str, CountMechanism]:
    """All mechanisms of the comparison, by name.

    `window` is the w of w-event privacy. One policy of DPHMM connects the cells of each square of
    side `block`, another one all cells within `radius`, in the unit of the positions. `bound` of
    each mechanism: the leakage in nats that theory allows for a parameter.
    """
    n = setting.n_cells
    square = np.floor(setting.positions / block + 1e-9)
    in_one_square = (square[:, None] == square).all(axis=-1)
    policies = {
        "complete": PolicyGraph.complete(n),
        "blocks": PolicyGraph.from_edges(n, np.argwhere(in_one_square)),
        "radius": PolicyGraph.utility(setting.positions, radius),
    }
    absorption: dict[str, Any] = {"window": window, "scheme": by_absorption}
    distribution: dict[str, Any] = {"window": window, "scheme": by_distribution}
    # Correlation between being in a cell and being in it one time later, over all cells.
    pi = setting.adversary.initial
    staying = np.diag(setting.adversary.transitions.toarray())
    correlation = float(pi @ (staying - pi) / (pi @ (1 - pi)))

    def windows_bound(s: Setting, parameter: float) -> float:
        """The parameter times the number of windows that cover all times."""
        return parameter * -(-s.horizon // window)

    def response_bound(s: Setting, parameter: float) -> float:
        """A factor e^epsilon from the marginal in either direction is e^(2 epsilon) between two
        cells."""
        return _equal_bound(s, 2 * parameter)

    trusted: list[tuple[str, Release, NatsOfParameter]] = [
        ("equal budgets", central.release_laplace, _equal_bound),
        ("Algorithm 8", partial(_release_allocated, allocate_by_quantification), _itself),
        ("optimal budgets", partial(_release_allocated, allocate_optimally), _itself),
        ("budget absorption", partial(central.release_by_window, **absorption), windows_bound),
        ("budget distribution", partial(central.release_by_window, **distribution), windows_bound),
        ("Gaussian noise", central.release_gaussian, _gaussian_bound),
        (
            "correlated noise",
            partial(central.release_gaussian, correlation=correlation),
            partial(_correlated_bound, correlation),
        ),
    ]
    untrusted: list[tuple[str, Release, NatsOfParameter]] = [
        *(
            (
                f"DPHMM, {name}",
                partial(local.release_by_policy, policy=policy),
                partial(_policy_bound, policy),
            )
            for name, policy in policies.items()
        ),
        ("SIP, exact", local.release_optimal_response, response_bound),
        ("SIP, published", local.release_conditional_response, lambda s, parameter: np.inf),
        ("LDP, randomised response", local.release_reports, _equal_bound),
        ("LDP, unary encoding", partial(local.release_reports, unary=True), _equal_bound),
        ("LBA", partial(local.release_reports_by_window, **absorption), windows_bound),
        ("LBD", partial(local.release_reports_by_window, **distribution), windows_bound),
    ]
    by_name = {}
    for name, release, bound in trusted:
        by_name[name] = CountMechanism(name, True, release, bound)
    for name, release, bound in untrusted:
        by_name[name] = CountMechanism(name, False, release, bound)
    return by_name


def notions(window: int) -> list[Notion]:
    """All notions of the comparison; `window` is the w of w-event privacy."""

    def at_all_times(setting: Setting, parameter: float) -> float:
        return parameter * setting.horizon

    def in_window(setting: Setting, parameter: float) -> float:
        return parameter * min(window, setting.horizon)

    def shifted_once(setting: Setting, shift: float) -> float:
        return float(gaussian_epsilon(shift, DELTA))

    return [
        Notion("event-level DP", "equal budgets", _itself),
        Notion("group DP", "equal budgets", at_all_times),
        Notion("w-event, uniform", "equal budgets", in_window),
        Notion("w-event, absorption", "budget absorption", _itself),
        Notion("w-event, distribution", "budget distribution", _itself),
        Notion("Markov quilts", "equal budgets", quilt_level),
        Notion("DP_T, Algorithm 7", "equal budgets", _supremum),
        Notion("DP_T, Algorithm 8", "Algorithm 8", _itself),
        Notion("DP_T, optimal", "optimal budgets", _itself),
        Notion("DP_T, Gaussian", "Gaussian noise", _gaussian_bound),
        Notion("correlated Gaussian", "correlated noise", shifted_once),
        *(
            Notion(f"DPHMM, {name}", f"DPHMM, {name}", _itself)
            for name in ("complete", "blocks", "radius")
        ),
        *(Notion(name, name, _itself) for name in ("SIP, exact", "SIP, published")),
        *(
            Notion(name, name, at_all_times)
            for name in ("LDP, randomised response", "LDP, unary encoding")
        ),
        *(Notion(f"LDP, {name}", name, _itself) for name in ("LBA", "LBD")),
    ]


def _itself(setting: Setting, parameter: float) -> float:
    return parameter


def _equal_bound(setting: Setting, epsilon: float) -> float:
    return setting.adversary.bound(np.full(setting.horizon, epsilon))


def _supremum(setting: Setting, epsilon: float) -> float:
    """The alpha for which Algorithm 7 gives this budget: the supremum of the TPL over all times."""
    backward = setting.adversary.backward.supremum(epsilon)
    forward = setting.adversary.forward.supremum(epsilon)
    return float(backward + forward - epsilon)


@lru_cache(maxsize=256)  # the notion and the mechanism search for the same parameter
def _gaussian_bound(setting: Setting, shift: float) -> float:
    """The largest TPL with delta = `DELTA` at any time; one release moves the counts by `shift`
    standard deviations of the noise."""
    if shift > 10.0:  # profiles do not reach this far; the bound by composition is used
        return float(gaussian_epsilon(shift * np.sqrt(setting.horizon), DELTA))
    from dp_accounting import GaussianDpEvent

    adversary = setting.adversary
    releases = [(GaussianDpEvent(1 / shift), setting.horizon)]
    profile = temporal_privacy_profile(releases, adversary.backward, adversary.forward)
    return profile.epsilon(DELTA).max()


def _correlated_bound(correlation: float, setting: Setting, shift: float) -> float:
    """The epsilon, with delta = `DELTA`, at which any two paths are indistinguishable, and with
    them mixtures of paths; `correlation` (rho) and `shift` are those of `release_gaussian`.

    After whitening, each step shifts the squared mean by at most 2 (1 + |rho|)^2, and the noise has
    a share 1 - rho^2 of the variance.
    """
    steps = (setting.horizon - 1) * (1 + abs(correlation)) / (1 - abs(correlation))
    return float(gaussian_epsilon(shift * np.sqrt(1 + steps), DELTA))


def _policy_bound(policy: PolicyGraph, setting: Setting, epsilon: float) -> float:
    """Theorem 6.3 of [5] for one time, at `epsilon` nats a distance of 1 in the policy, and TPL
    from one time to the next."""
    fitted = protect(policy, setting.positions)
    factor = constrained_dp_factor(fitted.policy, setting.positions, fitted.hull)
    return _equal_bound(setting, epsilon * factor)


def _release_allocated(
    allocate: Callable, setting: Setting, level: float, *, rng: np.random.Generator
) -> SimulatedRelease:
    """Counts with Laplace noise of the budgets that `allocate` gives for `level` nats of TPL."""
    budgets = _allocated_budgets(allocate, setting.adversary, level, setting.horizon)
    return central.release_laplace(setting, budgets, rng=rng)


@lru_cache(maxsize=256)  # all seeds of a sweep use the same budgets
def _allocated_budgets(
    allocate: Callable, adversary: Adversary, level: float, horizon: int
) -> np.ndarray:
    """The budgets (T,) that `allocate`, such as `allocate_optimally`, gives for `level` nats."""
    return allocate(level, adversary.backward, adversary.forward, horizon)
