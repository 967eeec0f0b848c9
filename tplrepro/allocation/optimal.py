"""Budgets of least error among all that keep the temporal privacy leakage within alpha, for a known number of releases.

Algorithms 7 and 8 of [1] reach alpha at every time point with one budget in the middle; they do not ask which budgets
give the least error. Here the total expected error is minimised by SLSQP, from several starts because the problem is
not convex, among them the published budgets: the result is never worse than theirs, nor than alpha / T.

For a long series the first and the last budgets differ from a constant in the middle. Then the budgets are found on a
few knots first, and refined where they change.

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tplrepro.allocation.programme import Programme
from tplrepro.allocation.published import allocate_by_quantification, allocate_by_upper_bound
from tplrepro.allocation.safety import NoFiniteSupremumError, fit_to_level
from tplrepro.leakage.gaps import Timeline, make_timeline, timeline_leakage
from tplrepro.leakage.recursion import as_loss_functions
from tplrepro.validation import check_horizon, check_level

__all__ = ["allocate_optimally", "check_power", "check_weights"]

#: Several local optima were seen for alpha above 8 alone; then more starts are tried.
CURVED = 4.0
#: Up to so many releases every budget is an unknown, and is sought from every start.
FEW = 24
#: Up to so many, from the two best starts; beyond, equal weights allow knots.
MANY = 48
#: Unknowns when knots are refined; SLSQP takes O(N^3) an iteration.
MAX_KNOTS = 96
#: Budgets that differ by less than this share of them are the constant in the middle.
LEVEL = 1e-5


def allocate_optimally(
    alpha: float,
    backward=None,
    forward=None,
    horizon: int = 1,
    *,
    weights=None,
    released=None,
    error: str = "absolute",
) -> np.ndarray:
    """Budgets of least total error whose TPL is at most alpha at every one of T time points.

    Minimises sum_t w_t / epsilon_t, the expected absolute error of Laplace noise up to the sensitivity, or
    sum_t w_t / epsilon_t^2, half the expected squared error over the sensitivity squared. The best of several local
    optima, never worse than `allocate_by_quantification`, `allocate_by_upper_bound` and alpha / T. There is no proof
    that it is the global one. Deterministic.

    Parameters
    ----------
    alpha : float, the level of alpha-DP_T in nats, finite and > 0
    backward, forward : TransitionMatrix, array-like (n, n), PrivacyLossFunction, or a list of T - 1 of these; optional
        None where the adversary does not know that side.
    horizon : int >= 1, the number of time points T
    weights : array-like (R,), optional
        How much the error of each release counts, > 0; R = T unless `released` is given. Default equal.
    released : array-like (R,) of increasing time points in 0..T-1, or bool (T,), optional
        Release only these. The leakage stays within alpha at the other time points too; see `leakage_at_all_times`.
    error : "absolute" or "squared"

    Returns
    -------
    ndarray (R,), the budgets of the releases in nats, each > 0

    Raises
    ------
    ValueError
        If alpha is not positive and finite, the horizon is not a whole number >= 1, a matrix is not row-stochastic,
        weights or time points do not fit the horizon, or `error` is another word.

    Notes
    -----
    Time for two dense 50-state loss functions made before: 20 ms for T = 10, 0.1 s for T = 100, 1 to 2 s for 1,000.
    With unequal weights, a list of matrices or `released`, each budget is an unknown of its own: 0.5 s for
    R = 100, 4 s for 200, growing as R^3.

    Examples
    --------
    >>> backward, forward = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]  # Fig. 8 of [1]
    >>> budgets = allocate_optimally(1.0, backward, forward, horizon=5)
    >>> budgets.round(4).tolist(), (1 / budgets).sum().round(4).item()
    ([0.367, 0.2812, 0.2761, 0.3274, 0.3874], 15.5389)
    >>> published = allocate_by_quantification(1.0, backward, forward, horizon=5)
    >>> published.round(4).tolist(), (1 / published).sum().round(4).item()
    ([0.4998, 0.2039, 0.2039, 0.2039, 0.7041], 18.1362)
    >>> allocate_optimally(1.0, backward, forward, horizon=5, released=[0, 4]).round(4).tolist()
    [0.771, 0.9047]
    """
    alpha = check_level(alpha)
    horizon = check_horizon(horizon)
    power = check_power(error)
    backward, forward = _functions(backward, horizon, "backward"), _functions(forward, horizon, "forward")
    timeline = make_timeline(released, horizon, backward, forward)
    size = timeline.released.size
    weights = check_weights(weights, size)
    losses = [*timeline.backward, *timeline.forward]
    if all(loss is None or loss.is_zero for loss in losses):
        return np.full(size, alpha)
    programme = Programme(alpha, timeline, weights, power)
    published = list(_published(alpha, backward, forward, timeline))
    starts = published[:2] + [_fit(timeline, shape, alpha, 1e-3) for shape in _shapes(programme)]
    one_matrix = not isinstance(backward, list) and not isinstance(forward, list)
    on_knots = size > MANY and size == horizon and one_matrix and np.ptp(weights) == 0.0
    if size > FEW:
        starts = sorted(starts, key=programme.cost)[: 1 if on_knots and alpha <= CURVED else 2]
    if on_knots:
        found = _solve_on_knots(programme, starts)
    else:
        found = [programme.solve(start) for start in starts]
    return min([*published, *(_fit(timeline, budgets, alpha) for budgets in found)], key=programme.cost)


def check_power(error: str) -> int:
    """The power of 1 / epsilon that an error is proportional to."""
    powers = {"absolute": 1, "squared": 2}
    if error not in powers:
        raise ValueError(f"error must be 'absolute' or 'squared', found {error!r}; choose one of them")
    return powers[error]


def check_weights(weights, size: int) -> np.ndarray:
    """Positive, finite weights, one a release; None stands for equal ones."""
    if weights is None:
        return np.ones(size)
    values = np.asarray(weights, dtype=float)
    if values.shape != (size,):
        raise ValueError(f"weights must hold one number a release ({size}), found shape {values.shape}; give {size}")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(
            f"weights must be finite and greater than 0, found {values[~(values > 0) | ~np.isfinite(values)][0]:g}; "
            "leave time points that do not count out of `released`"
        )
    return values


def _solve_on_knots(programme: Programme, starts: list) -> list[np.ndarray]:
    """Solve on knots that lie denser towards both ends, then with one at each budget that differs from the middle."""
    size = programme.size
    parameters = programme.alpha, programme.timeline, programme.weights, programme.power
    coarse = Programme(*parameters, _knots(size, 6, 6, 1.4))
    found = [coarse.solve(start) for start in starts]
    best = min(found, key=lambda budgets: programme.cost(_fit(programme.timeline, budgets, programme.alpha, 1e-9)))
    middle = np.flatnonzero(np.abs(best / np.median(best) - 1.0) < LEVEL)
    first, last = (int(middle[0]) + 4, size - int(middle[-1]) + 3) if middle.size else (size, size)
    growth = 1.4
    if first + last > MAX_KNOTS - 20:
        share = (MAX_KNOTS - 60) / (first + last)
        first, last, growth = int(first * share), int(last * share), 1.1
    fine = Programme(*parameters, _knots(size, first, last, growth))
    return [*found, fine.solve(_fit(programme.timeline, best, programme.alpha, 1e-9))]


def _knots(size: int, first: int, last: int, growth: float) -> np.ndarray:
    """The first and last releases, and between them distances that grow towards the middle."""
    if first + last >= size:
        return np.arange(size)
    knots = set(range(first)) | set(range(size - last, size))
    for position, direction in ((first - 1, 1), (size - last, -1)):
        distance = 1.0
        while first <= position + direction * distance < size - last and abs(position - size // 2) > distance:
            distance *= growth
            position += direction * round(distance)
            knots.add(min(max(position, 0), size - 1))
    return np.array(sorted(knots | {size // 2}))


def _shapes(programme: Programme) -> Iterator[np.ndarray]:
    """Budgets to start from, up to a factor."""
    size, steps = programme.size, np.arange(programme.size)
    if np.ptp(programme.weights) > 0.0:
        yield programme.weights ** (1.0 / (1 + programme.power))
    if size <= FEW:
        yield np.where(steps % 2, 1.0, 0.2)
    if size > FEW or programme.alpha > CURVED:
        ends = np.full(size, 0.1)
        ends[0] = ends[-1] = 1.0
        yield ends
    if size <= FEW and programme.alpha > CURVED:
        yield np.where(steps % 2, 0.2, 1.0)
        yield 2.0**-steps
        yield 2.0**steps


def _published(alpha: float, backward, forward, timeline: Timeline) -> Iterator[np.ndarray]:
    """Algorithms 8 and 7, and equal budgets, of at least alpha / R each.

    Algorithms 7 and 8 release every time point; releasing only some of these leaks less.
    """
    size = timeline.released.size
    yield _fit(timeline, np.full(size, alpha / size), alpha)
    if isinstance(backward, list) or isinstance(forward, list):
        return
    yield allocate_by_quantification(alpha, backward, forward, timeline.horizon)[timeline.released]
    try:
        yield np.full(size, allocate_by_upper_bound(alpha, backward, forward))
    except NoFiniteSupremumError:
        return


def _fit(timeline: Timeline, budgets: np.ndarray, alpha: float, tolerance: float = 2.0**-52) -> np.ndarray:
    return fit_to_level(lambda scaled: timeline_leakage(timeline, scaled).tpl.max(), budgets, alpha, tolerance)


def _functions(matrices, horizon: int, name: str):
    """One loss function (or None) where it is the same at each step, else a list."""
    steps = as_loss_functions(matrices, horizon - 1, name) if horizon > 1 else []
    if all(step is steps[0] for step in steps):
        return steps[0] if steps else None
    return steps
