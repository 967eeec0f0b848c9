"""Examples of matrices, the papers' and the limits, and the largest that the page takes."""

from functools import lru_cache
from typing import TypeAlias

from tplreport.reading.matrices import parse_chain
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.temporal import LossMaker, loss_cycles
from tplrepro.markov.cycle import Cycle, as_cycle
from tplrepro.markov.generators import smoothed, strongest

#: What the adversary knows of a side: a loss function, a cycle of them, or nothing.
Side: TypeAlias = PrivacyLossFunction | Cycle | None
MAX_STATES = 300  # larger matrices would make the page slow
MAX_PHASES = 336  # a week of half hours
MAX_WORK = MAX_STATES**3  # of a cycle, p n^3: so long takes one matrix of that many states
EXAMPLE_4 = "0.1, 0.2, 0.7\n0.3, 0.3, 0.4\n0.5, 0.3, 0.2"
WEEKDAY = """home, office, gym, bar
.7, .2, .06, .04
.25, .6, .08, .07
.7, .05, .2, .05
.8, .01, .01, .18"""
DAY = """phase, home, office
00:00, .98, .02
00:00, .5, .5
06:00, .3, .7
06:00, .2, .8
12:00, .3, .7
12:00, .1, .9
18:00, .95, .05
18:00, .8, .2"""
LARGE = "\n".join(
    ", ".join(f"{one:.17g}" for one in row) for row in smoothed(strongest(50), 0.05).probabilities
)
# Name -> forward and backward matrix, or cycle, as text; none: Bayes' reversal.
EXAMPLES = {
    "Fig. 8 of TKDE 2019": ("0.8, 0.2\n0.1, 0.9", "0.8, 0.2\n0.2, 0.8"),
    "home and office": ("home, office\n0.8, 0.2\n0.1, 0.9", ""),
    "four places of a weekday": (WEEKDAY, ""),
    "home and office by the time of day": (DAY, ""),
    "Fig. 3 of TKDE 2019, moderate": ("0.8, 0.2\n0, 1", "0.8, 0.2\n0, 1"),
    "Example 4 of TKDE 2019": (EXAMPLE_4, EXAMPLE_4),
    "50 states, smoothed": (LARGE, ""),
    "strongest correlation": ("1, 0\n0, 1", "1, 0\n0, 1"),
    "no correlation": ("1/2, 1/2\n1/2, 1/2", ""),
}


@lru_cache(maxsize=4)
def parse_cycle(text: str) -> Cycle:
    """The cycle that was typed, or one matrix as a cycle of one; ValueError for another text, or
    for more than the page takes."""
    cycle = as_cycle(parse_chain(text, MAX_STATES))
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
def losses_of(text: str) -> Side:
    """The loss functions of a cycle as text, or that of one matrix."""
    return as_losses(parse_cycle(text))


@lru_cache(maxsize=8)
def losses_of_reversal(text: str, start: str) -> Side:
    """The same of its Bayes' reversal, for users who start in the "habit", or in "any" law."""
    try:
        reversal = parse_cycle(text).reverse(start)
    except ValueError as error:
        remedy = "let users start in the habit"
        raise ValueError(str(error).replace('give start="habit"', remedy)) from None
    return as_losses(reversal)


def as_losses(cycle: Cycle) -> Side:
    losses = cycle.map(LossMaker())
    if len(losses) == 1 and not losses.first:
        return losses[0]
    return losses


def check_sides(backward: Side, forward: Side) -> None:
    """ValueError unless both sides have the same states, and cycles the same phases."""
    if isinstance(backward, Cycle) and isinstance(forward, Cycle):
        check_phases(backward, forward)
    loss_cycles(backward, forward)


def check_phases(backward: Cycle, forward: Cycle) -> None:
    if backward.phases != forward.phases:
        raise ValueError(
            f"both cycles must have the same phases in the same order, found {len(backward)} "
            f"from {backward.phases[0]!r} and {len(forward)} from {forward.phases[0]!r}; reorder "
            "the backward cycle, or leave it empty"
        )
