"""How many users a private model needs: words for errors."""

from __future__ import annotations

from tplrepro.display import count_noun

#: Users times epsilon with which the floor is about 10 % smaller than that of exact counts, by the
#: number of states; explore/private_model measures it.
NEEDED = {"matrix": {2: 2400, 5: 7500, 20: 94_000}, "floor": {2: 5300, 5: 9400, 20: 47_000}}


def needed(n: int, method: str) -> float:
    """Users times epsilon that n states need: between those that were measured, and beyond them,
    along straight lines of logarithms."""
    from numpy import exp, interp, log

    known = NEEDED[method]
    sizes = list(known)
    if n > sizes[-1]:
        before, last = sizes[-2:]
        slope = log(known[last] / known[before]) / log(last / before)
        return float(known[last] * (n / last) ** slope)
    return float(exp(interp(log(n), log(sizes), log(list(known.values())))))


def do_not_suffice(n: int, users: int, epsilon: float) -> str:
    """That so many users at this epsilon are too few for n states, and how many are enough."""
    times_epsilon = {method: _two_digits(needed(n, method)) for method in NEEDED}
    return (
        f"{count_noun(users, 'user', ',')} and epsilon {epsilon:g} do not suffice for "
        f"{count_noun(n, 'state')}: users times epsilon should be about {times_epsilon['matrix']} "
        f"for the matrix, {times_epsilon['floor']} for the floor alone; use alpha/T, fewer states, "
        "or a public chain"
    )


def _two_digits(number: float) -> str:
    """A number with two digits that count, such as 47,000."""
    return f"{float(f'{number:.2g}'):,.0f}"
