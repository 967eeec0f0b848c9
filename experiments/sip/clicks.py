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
        distance = mean_over_clicks(self.distance, self.clicks)
        error = mean_over_clicks(self.changed, self.clicks)
        return {
            "distance": distance.value,
            "distance deviation": distance.deviation,
            "error": error.value,
            "error deviation": error.deviation,
            "leakage": float(self.leakage.max()),
        }

    def gain_on(self, other: "SessionCosts") -> dict[str, dict[str, float]]:
        """How much more `other` costs on the same sessions, a click, with intervals of 95 % over
        sessions."""
        distance = mean_over_clicks(other.distance - self.distance, self.clicks)
        error = mean_over_clicks(other.changed - self.changed, self.clicks)
        return {"distance": distance.with_interval(), "error": error.with_interval()}

    def __getitem__(self, chosen) -> "SessionCosts":
        return SessionCosts(
            self.distance[chosen], self.changed[chosen], self.leakage[chosen], self.clicks[chosen]
        )


@dataclass(frozen=True)
class MeanOverClicks:
    """A mean over clicks with its standard deviation."""

    value: float
    deviation: float

    def with_interval(self) -> dict[str, float]:
        """The mean and its interval of 95 %, in the form that records use."""
        half = HALF_WIDTH * self.deviation
        return {"value": self.value, "low": self.value - half, "high": self.value + half}


def mean_over_clicks(sums: np.ndarray, clicks: np.ndarray) -> MeanOverClicks:
    """The mean of sums (m,) over all clicks (m,), and its standard deviation: users are drawn, not
    clicks."""
    mean = float(sums.sum() / clicks.sum())
    residuals = sums - mean * clicks
    deviation = float(np.sqrt(np.sum(residuals**2)) / clicks.sum())
    return MeanOverClicks(mean, deviation)


def randomized_costs(sessions: Sequence[np.ndarray], n_pages: int, epsilon: float) -> SessionCosts:
    """Exact expected costs of randomised response among all pages, with `epsilon` nats a click;
    `sessions` are arrays of page numbers below `n_pages`."""
    other = 1.0 / (n_pages - 1 + np.exp(epsilon))
    clicks = np.array([session.size for session in sessions])
    distances = []
    for session in sessions:
        to_lower_pages = session * (session + 1) / 2
        to_higher_pages = (n_pages - 1 - session) * (n_pages - session) / 2
        distances.append((to_lower_pages + to_higher_pages).sum())
    distance = other * np.array(distances)
    changed = other * (n_pages - 1) * clicks
    return SessionCosts(distance, changed, np.full(clicks.size, np.nan), clicks)


def tops_costs(
    sessions: Sequence[np.ndarray], n_pages: int, epsilon: float, *, rng: np.random.Generator
) -> SessionCosts:
    """Simulated costs of ToPS with `epsilon` nats a click and two clicks of warm-up; `sessions` are
    arrays of page numbers below `n_pages`."""
    outputs = [release_tops(session, n_pages, epsilon, rng=rng, warm_up=2) for session in sessions]
    return _simulated(sessions, outputs, np.full(len(sessions), np.nan))


def click_costs(
    sessions: Sequence[np.ndarray],
    mechanism: BeliefMechanism,
    chain: SymbolChain,
    *,
    rng: np.random.Generator,
) -> SessionCosts:
    """Expected costs of each click given the outputs before it, which are simulated; `sessions` are
    arrays of page numbers, and the mechanism believes in `chain`."""
    pages = np.arange(chain.n_symbols)
    costs = np.zeros((len(sessions), 3))
    for session, cost in zip(sessions, costs, strict=True):
        belief = Belief.start(chain)
        for page in session.tolist():
            response = mechanism.response(belief.current)
            cost[0] += response.row(page) @ np.abs(pages - page)
            cost[1] += response.changed()[page]
            cost[2] = max(cost[2], response.leakage)
            belief = belief.observe(response.sample(page, rng=rng), response)
    distance, changed, leakage = costs.T
    clicks = np.array([session.size for session in sessions])
    return SessionCosts(distance, changed, leakage, clicks)


def batch_costs(
    batches: Batches,
    chosen: np.ndarray,
    epsilon: float,
    chain: SymbolChain,
    *,
    rng: np.random.Generator,
) -> SessionCosts:
    """Simulated costs of the exact response to batches that occur.

    `chosen` are the numbers of the sessions that are released. A batch of w clicks gets w times
    `epsilon` nats.
    """
    spent = {
        width: sip.OptimalResponse(width * epsilon) for width in np.unique(batches.widths).tolist()
    }
    width = batches.symbols.shape[1]
    sessions, outputs, leakages = [], [], []
    for session in batches.select(chosen):
        released = sip.release_sequences([session], spent, chain, rng=rng)
        sessions.append(_clicks_of(batches, session))
        outputs.append(_clicks_of(batches, released.outputs[0]))
        leakages.append(released.largest_leakage / width)
    return _simulated(sessions, outputs, np.array(leakages))


def _clicks_of(batches: Batches, session: np.ndarray) -> np.ndarray:
    pages = batches.symbols[session]
    return pages[pages >= 0]


def _simulated(sessions, outputs, leakages):
    """The costs of sessions whose outputs, arrays of as many pages, have been drawn; `leakages`
    (m,) in nats."""
    distances, changes, clicks = [], [], []
    for output, session in zip(outputs, sessions, strict=True):
        distances.append(np.abs(output - session).sum())
        changes.append(np.count_nonzero(output != session))
        clicks.append(session.size)
    return SessionCosts(
        np.array(distances, dtype=float), np.array(changes, dtype=float), leakages, np.array(clicks)
    )
