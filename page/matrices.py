"""Examples of matrices, the papers' and the limits, and the largest that the page takes."""

from tplreport.reading.matrices import parse_matrix as parse_any_matrix
from tplrepro.markov.generators import smoothed, strongest
from tplrepro.markov.transition import TransitionMatrix

MAX_STATES = 300  # larger matrices would make the page slow
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
