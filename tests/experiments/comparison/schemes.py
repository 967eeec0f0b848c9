"""What the schemes of `window` may spend at time t, as the papers write it; budgets are those of
earlier times."""

from experiments.comparison.window import by_absorption, by_distribution


def absorbed(t, budgets, unit, window):
    """Lines 6 to 10 of Algorithm 2 of Kellaris et al., and 8 of Algorithm 4 of Ren et al."""
    published = [k for k in range(t) if budgets[k] > 0]
    if not published:
        return unit * min(t + 1, window)
    last = published[-1]
    nullified = round(budgets[last] / unit) - 1
    return 0.0 if t - last <= nullified else unit * min(t - last - nullified, window)


def distributed(t, budgets, unit, window):
    """Half of what is left of the half of epsilon that the window may publish with: their
    Algorithms 1 and 3."""
    return (window * unit - sum(budgets[max(t - window + 1, 0) : t])) / 2


SCHEMES = {"absorption": (by_absorption, absorbed), "distribution": (by_distribution, distributed)}
