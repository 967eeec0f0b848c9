"""Examples of matrices, the papers' and the limits, and the largest that the page takes."""

from functools import lru_cache

from tplreport.reading.matrices import parse_matrix as parse_any_matrix
from tplrepro.leakage.temporal import Correlation, LossMaker, loss_cycles
from tplrepro.markov.cycle import Cycle
from tplrepro.markov.generators import smoothed, strongest
from tplrepro.markov.transition import TransitionMatrix

MAX_STATES = 300  # larger matrices would make the page slow
MAX_PHASES = 336  # a week of half hours
MAX_WORK = MAX_STATES**3  # of a cycle, p n^3: so long takes one matrix of that many states
EXAMPLE_4 = "0.1, 0.2, 0.7\n0.3, 0.3, 0.4\n0.5, 0.3, 0.2"
WEEKDAY = """home, office, gym, bar
.7, .2, .06, .04
.25, .6, .08, .07
.7, .05, .2, .05
.8, .01, .01, .18"""
LARGE = "\n".join(
    ", ".join(f"{one:.17g}" for one in row) for row in smoothed(strongest(50), 0.05).probabilities
)
# Name -> forward and backward matrix as text; none: Bayes' reversal.
EXAMPLES = {
    "Fig. 8 of TKDE 2019": ("0.8, 0.2\n0.1, 0.9", "0.8, 0.2\n0.2, 0.8"),
    "home and office": ("home, office\n0.8, 0.2\n0.1, 0.9", ""),
    "four places of a weekday": (WEEKDAY, ""),
    "Fig. 3 of TKDE 2019, moderate": ("0.8, 0.2\n0, 1", "0.8, 0.2\n0, 1"),
    "Example 4 of TKDE 2019": (EXAMPLE_4, EXAMPLE_4),
    "50 states, smoothed": (LARGE, ""),
    "strongest correlation": ("1, 0\n0, 1", "1, 0\n0, 1"),
    "no correlation": ("1/2, 1/2\n1/2, 1/2", ""),
}


def parse_matrix(text: str) -> TransitionMatrix:
    """The matrix that was typed, of at most `MAX_STATES` states; ValueError for another text."""
    return parse_any_matrix(text, MAX_STATES)


@lru_cache(maxsize=4)
def parse_cycle(text: str) -> Cycle:
    """The cycle that was typed, or one matrix as a cycle of one; ValueError for another text."""
    cycle = Cycle(parse_matrix(text))
    check_size(cycle)
    return cycle


def check_size(cycle: Cycle) -> None:
    """ValueError for a cycle whose loss functions take too long."""
    p = len(cycle)
    n = cycle[0].n_states
    most = min(MAX_WORK // n**3, MAX_PHASES)
    if p > most:
        raise ValueError(
            f"a cycle of matrices of {n} states must have at most {most} phases here, found {p}; "
            "take longer steps, or fewer states"
        )


# The loss functions are kept while a slider moves.
@lru_cache(maxsize=8)
def losses_of(text: str) -> Correlation:
    """The loss functions of a cycle as text, or that of one matrix."""
    return as_losses(parse_cycle(text))


@lru_cache(maxsize=8)
def losses_of_reversal(text: str, start: str) -> Correlation:
    """The same of its Bayes' reversal, for users who start in the "habit", or in "any" law."""
    return as_losses(parse_cycle(text).reverse(start))


def as_losses(cycle: Cycle) -> Correlation:
    losses = cycle.map(LossMaker())
    if len(losses) == 1 and not losses.first:
        return losses[0]
    return losses


def check_sides(backward: Correlation, forward: Correlation) -> None:
    """ValueError unless both sides have the same states, and cycles the same phases."""
    loss_cycles(backward, forward)
    if not (isinstance(backward, Cycle) and isinstance(forward, Cycle)):
        return
    if backward.phases != forward.phases:
        raise ValueError(
            f"both cycles must have the same phases in the same order, found {len(backward)} "
            f"from {backward.phases[0]!r} and {len(forward)} from {forward.phases[0]!r}; reorder "
            "the backward cycle, or leave it empty"
        )
