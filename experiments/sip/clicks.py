"""Click streams released whole (Fig. 6 of [3]): what each mechanism costs each session.

At large budgets so few clicks change that a simulation may show none. The cost of a click is
therefore the expectation over its output, given the simulated outputs before it; only for batches
it is simulated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from experiments.sip.tops import release_tops
from tplrepro import sip
from tplrepro.sip.batches import Batches
from tplrepro.sip.response import BeliefMechanism
from tplrepro.sip.sequence_release import Belief, SymbolChain

#: Standard deviations on each side of a mean in an interval of 95 %.
HALF_WIDTH = norm.ppf(0.975)


@dataclass(frozen=True, eq=False)
class SessionCosts:
    """Costs of released sessions, each (m,)."""

    distance: np.ndarray  # absolute difference of page numbers, summed over the clicks of a session
    changed: np.ndarray  # number of changed clicks
    leakage: np.ndarray  # largest leakage of a click, nats; nan where it is not measured
    clicks: np.ndarray  # clicks of each session

    def means(self) -> dict[str, float]:
        """Means over clicks with standard deviations, and the largest leakage, as columns of a
        table."""
        columns: dict[str, float] = {}
        for name, sums in (("distance", self.distance), ("error", self.changed)):
            columns[name], columns[f"{name} deviation"] = mean_over_clicks(sums, self.clicks)
        return columns | {"leakage": float(self.leakage.max())}

    def gain_on(self, other: "SessionCosts") -> dict[str, dict[str, float]]:
        """How much more `other` costs on the same sessions, a click, with intervals of 95 % over
        sessions."""
        gains = {}
        for name, sums in (
            ("distance", other.distance - self.distance),
            ("error", other.changed - self.changed),
        ):
            mean, deviation = mean_over_clicks(sums, self.clicks)
            half = HALF_WIDTH * deviation
            gains[name] = {"value": mean, "low": mean - half, "high": mean + half}
        return gains

    def __getitem__(self, chosen) -> "SessionCosts":
        return SessionCosts(
            self.distance[chosen], self.changed[chosen], self.leakage[chosen], self.clicks[chosen]
        )


def mean_over_clicks(sums: np.ndarray, clicks: np.ndarray) -> tuple[float, float]:
    """The mean of sums (m,) over all clicks (m,), and its standard deviation: users are drawn, not
    clicks."""
    mean = float(sums.sum() / clicks.sum())
    return mean, float(np.sqrt(np.sum((sums - mean * clicks) ** 2)) / clicks.sum())


def randomized_costs(sessions: Sequence[np.ndarray], n_pages: int, epsilon: float) -> SessionCosts:
    """Exact expected costs of randomised response among all pages."""
    other = 1.0 / (n_pages - 1 + np.exp(epsilon))
    clicks = np.array([session.size for session in sessions])
    away = [
        session * (session + 1) / 2 + (n_pages - 1 - session) * (n_pages - session) / 2
        for session in sessions
    ]
    distance = other * np.array([each.sum() for each in away])
    return SessionCosts(
        distance, other * (n_pages - 1) * clicks, np.full(clicks.size, np.nan), clicks
    )


def tops_costs(
    sessions: Sequence[np.ndarray], n_pages: int, epsilon: float, *, rng: np.random.Generator
) -> SessionCosts:
    """Simulated costs of ToPS with two clicks of warm-up."""
    outputs = [release_tops(session, n_pages, epsilon, rng=rng, warm_up=2) for session in sessions]
    return _simulated(sessions, outputs, np.full(len(sessions), np.nan))


def click_costs(
    sessions: Sequence[np.ndarray],
    mechanism: BeliefMechanism,
    chain: SymbolChain,
    *,
    rng: np.random.Generator,
) -> SessionCosts:
    """Expected costs of each click given the outputs before it."""
    pages, costs = np.arange(chain.n_symbols), np.zeros((len(sessions), 3))
    for session, cost in zip(sessions, costs, strict=True):
        belief = Belief.start(chain)
        for page in session.tolist():
            response = mechanism.response(belief.current)
            cost[0] += response.row(page) @ np.abs(pages - page)
            cost[1] += response.changed()[page]
            cost[2] = max(cost[2], response.leakage)
            belief = belief.observe(response.sample(page, rng=rng), response)
    distance, changed, leakage = costs.T
    return SessionCosts(
        distance, changed, leakage, np.array([session.size for session in sessions])
    )


def batch_costs(
    batches: Batches,
    chosen: np.ndarray,
    epsilon: float,
    chain: SymbolChain,
    *,
    rng: np.random.Generator,
) -> SessionCosts:
    """Simulated costs of the exact response to batches that occur; a batch of w clicks gets w times
    the budget."""
    spent = {
        width: sip.OptimalResponse(width * epsilon) for width in np.unique(batches.widths).tolist()
    }
    sessions, outputs, leakages = batches.select(chosen), [], []
    for session in sessions:
        released = sip.release_sequences([session], spent, chain, rng=rng)
        outputs.append(released.outputs[0])
        leakages.append(released.largest_leakage / batches.symbols.shape[1])
    true, shown = (
        [_clicks_of(batches, own) for own in sequences] for sequences in (sessions, outputs)
    )
    return _simulated(true, shown, np.array(leakages))


def _clicks_of(batches: Batches, session: np.ndarray) -> np.ndarray:
    pages = batches.symbols[session]
    return pages[pages >= 0]


def _simulated(sessions, outputs, leakages):
    pairs = list(zip(outputs, sessions, strict=True))
    return SessionCosts(
        np.array([np.abs(output - session).sum() for output, session in pairs], dtype=float),
        np.array([np.count_nonzero(output != session) for output, session in pairs], dtype=float),
        leakages,
        np.array([session.size for session in sessions]),
    )
