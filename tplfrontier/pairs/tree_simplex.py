"""The largest q x / d x over all x > 0 with x_j <= e^D_jk x_k, by the simplex method.

`pairs.leakage` says what it is for.

A basis is a tree of tight constraints over the columns, with node 0 as its root: with p =
parent[m], the node above m, x_m = e^D_mp x_p if upper[m], and x_p = e^D_pm x_m if not. An exchange
cuts the tree above one node and scales x below the cut until another constraint becomes tight,
which joins both parts again.

Arguments of these names are the same everywhere: `q`, `d` (n,) are two rows of a matrix; `bounds`
(n, n) is D; `parent`, `upper` (n,) are the tree; `order` (n,) is its nodes, each after its parent;
`y` (n,) is log x. A cut is named by the node right below it.
"""

from math import exp

import numpy as np

from tplrepro.leakage.envelope.compiled import FAST, kernel
from tplrepro.leakage.envelope.hulls import STEEPEST, equal_rows

# FLOW and CLEAR only decide which cut comes next and when a search ends; `proved_ratio` is a bound
# for any last tree. A flow is a difference of two numbers. It counts as negative only if it is
# below minus this share of their sum.
FLOW = 2.0**-48
# The sign of a flow that is a sum over the nodes below is certain where it exceeds this share of
# all gains.
CLEAR = 1e-12
# The largest x of which e^x is a double.
LARGEST_EXPONENT = 709.782712893384


@kernel()
def place_nodes(parent, upper, bounds, order, y):
    """Fill `y` (n,) with log x, x_0 = 1, where every constraint of the tree is tight, and `order`
    (n,) with the nodes, each after its parent."""
    y[:] = np.nan
    y[0] = 0.0
    order[0] = 0
    placed = 1
    path = np.empty(parent.size, np.int64)
    for start in range(parent.size):
        # the nodes without a place between this one and the tree so far
        length = 0
        m = start
        while np.isnan(y[m]):
            path[length] = m
            length += 1
            m = parent[m]
        for at in range(length - 1, -1, -1):
            m = path[at]
            p = parent[m]
            if upper[m]:
                y[m] = y[p] + bounds[m, p]
            else:
                y[m] = y[p] - bounds[p, m]
            order[placed] = m
            placed += 1


# NumPy's exp and sum may differ from compiled ones in the last digits; these two do not.
@kernel()
def exponential(value):
    """e^value, inf beyond the range of doubles."""
    if value > LARGEST_EXPONENT:
        return np.inf
    return exp(value)


@kernel()
def sum_in_order(values):
    """The sum of values (n,), one after the other."""
    total = 0.0
    for value in values:
        total += value
    return total


@kernel()
def gains_and_costs(q, d, x):
    """q_k x_k and d_k x_k for each column, and the ratio q x / d x."""
    gain = np.empty(x.size)
    cost = np.empty(x.size)
    for m in range(x.size):
        gain[m] = q[m] * x[m]
        cost[m] = d[m] * x[m]
    return gain, cost, sum_in_order(gain) / sum_in_order(cost)


@kernel()
def sums_of_both_sides(values, factor, parent, order):
    """For a cut above each node but the root, the sums of factor * values (n,), all >= 0, below the
    cut and elsewhere.

    Nothing is subtracted, so that small sums are accurate.
    """
    n = values.size
    below = np.empty(n)
    beside = np.empty(n)
    passed = np.empty(n)
    for m in range(n):
        below[m] = factor * values[m]
        beside[m] = 0.0
        passed[m] = below[m]
    for at in range(n - 1, 0, -1):
        m = order[at]
        below[parent[m]] += below[m]
    # the node above and its branches before m, then its branches after m
    for at in range(1, n):
        m = order[at]
        beside[m] = passed[parent[m]]
        passed[parent[m]] += below[m]
    passed[:] = 0.0
    for at in range(n - 1, 0, -1):
        m = order[at]
        beside[m] += passed[parent[m]]
        passed[parent[m]] += below[m]
    # and what is beside the node above
    for at in range(1, n):
        m = order[at]
        beside[m] += beside[parent[m]]
    return below, beside


@kernel()
def choose_cut(q, d, parent, upper, order, x):
    """The node above which a cut raises q x / d x most, -1 if none does; and that ratio at `x`,
    before the cut."""
    gain, cost, ratio = gains_and_costs(q, d, x)
    gains_below, gains_beside = sums_of_both_sides(gain, 1.0, parent, order)
    costs_below, costs_beside = sums_of_both_sides(cost, ratio, parent, order)
    cut = -1
    least = 0.0
    for at in range(1, order.size):
        m = order[at]
        below = gains_below[m] + costs_below[m]
        beside = gains_beside[m] + costs_beside[m]
        if below < beside:
            flow = gains_below[m] - costs_below[m]
        else:
            flow = costs_beside[m] - gains_beside[m]
        if not upper[m]:
            flow = -flow
        rounding = FLOW * min(below, beside)
        if flow < least and flow < -rounding:
            cut = m
            least = flow
    return cut, ratio


@kernel()
def choose_clear_cut(q, d, parent, upper, order, x):
    """As `choose_cut`, from fewer sums: the node is -1 where rounding errors of these could
    decide."""
    gain, cost, ratio = gains_and_costs(q, d, x)
    cut = -1
    least = -CLEAR * sum_in_order(gain)
    for m in range(gain.size):
        gain[m] -= ratio * cost[m]
    for at in range(order.size - 1, 0, -1):
        m = order[at]
        if upper[m]:
            flow = gain[m]
        else:
            flow = -gain[m]
        if flow < least:
            cut = m
            least = flow
        gain[parent[m]] += gain[m]
    return cut, ratio


@kernel(fastmath=FAST)
def least_sum(row, levels):
    """The smallest row[k] + levels[k]: with D_jk and log x_k, how far log x_j can rise."""
    least = row[0] + levels[0]
    for k in range(1, row.size):
        total = row[k] + levels[k]
        least = min(least, total)
    return least


@kernel()
def exchange_constraint(cut, parent, upper, bounds, transposed, order, y):  # noqa: PLR0917 - a kernel: the arrays of a tree
    """Cut the tree above the node `cut`, and join both parts by the first constraint that becomes
    tight as x changes below the cut. `parent` and `upper` are changed; `y` and `order`, still those
    of the old tree, are not. `transposed` is `bounds`.T, contiguous.

    Returns which nodes were below the cut, (n,) of bool.
    """
    below = np.empty(parent.size, np.bool_)
    below[:] = False
    below[cut] = True
    for at in range(1, order.size):
        m = order[at]
        below[m] = below[m] or below[parent[m]]
    above_falls = not upper[cut]
    # The slack of j, k is D_jk - y_j + y_k, where y_k falls: each node below the cut looks at all
    # others.
    if above_falls:
        node, above = tightest_constraint(below, bounds, -1.0, y, cut)
    else:
        node, above = tightest_constraint(below, transposed, 1.0, y, cut)
    turn_path(cut, node, above, above_falls, parent, upper)
    return below


@kernel()
def tightest_constraint(below, table, sign, y, cut):
    """The node `below` a cut and the one above it whose constraint has the least slack.

    `table`, `sign`: D and -1 if x falls above the cut, D transposed and 1 if it rises there.
    """
    levels = np.empty(below.size)
    for m in range(below.size):
        if below[m]:
            levels[m] = STEEPEST
        else:
            levels[m] = -sign * y[m]
    least = np.inf
    node = cut
    for m in range(below.size):
        if below[m]:
            least_level = least_sum(table[m], levels)
            slack = least_level + sign * y[m]
            if slack < least:
                least = slack
                node = m
    row = table[node]
    above = 0
    for m in range(1, below.size):
        if row[m] + levels[m] < row[above] + levels[above]:
            above = m
    return node, above


@kernel()
def turn_path(cut, node, above, is_upper, parent, upper):
    """Hang `node` below `above`, and turn round the path from it up to the node `cut`. `is_upper`
    is what `upper` says of the new constraint; `parent` and `upper` are changed."""
    m = -1
    while m != cut:
        m = node
        node = parent[m]
        was_upper = upper[m]
        parent[m] = above
        upper[m] = is_upper
        above = m
        is_upper = not was_upper


@kernel()
def proved_ratio(q, d, parent, upper, order, bounds, ratio):  # noqa: PLR0917 - a kernel: the arrays of a tree
    """A ratio, little above the one given, that no x exceeds; inf if none is proved.

    Weights w >= 0 of the tree's constraints, a dual solution, prove q x <= r d x if at each node m

        q_m + sum of w e^D, constraints whose smaller end is m  <=  r d_m + sum of w, those whose
        larger end is m.

    From the leaves up, each constraint carries what its lower node has too much, or can still take.
    What a node has is rounded up, what it can take down.
    """
    error = np.empty(parent.size)
    error[:] = 9 * 2.0**-53
    for at in range(1, order.size):
        m = order[at]
        error[parent[m]] += 2.0**-53  # of a sum with one more term
    takes = np.empty(d.size)
    step = 2.0**-52
    while step < 1e30:
        level = ratio * (1.0 + step)
        for m in range(d.size):
            takes[m] = level * d[m]
        if is_proved(q, takes, parent, upper, order, bounds, error):
            return level
        step *= 2.0
    return np.inf


@kernel()
def is_proved(q, takes, parent, upper, order, bounds, error):  # noqa: PLR0917 - a kernel: the arrays of a tree
    """Whether weights of the tree's constraints (see `proved_ratio`) prove q x <= takes x for all
    x.

    `takes` (n,), a level times d, is changed; `error` (n,) is the relative rounding error of the
    sums at each node. False proves nothing.
    """
    has = q.copy()
    for at in range(order.size - 1, -1, -1):
        m = order[at]
        p = parent[m]
        raised = 1.0 + error[m]
        lowered = 1.0 - error[m]
        rest = has[m] * raised - takes[m] * lowered
        is_root = m == 0
        if rest > 0.0:
            if is_root or not upper[m]:
                return False
            weight = rest * exponential(bounds[m, p])
            has[p] += weight * raised
        elif not is_root and not upper[m]:
            weight = rest * exponential(-bounds[p, m])
            takes[p] -= weight * lowered
    return True


@kernel()
def climb_trees(q, d, parent, upper, bounds, transposed, order, y, patience):  # noqa: PLR0917 - a kernel: the arrays of a tree
    """Exchange until no cut raises q x / d x, or until `patience` exchanges in a row have not.

    `parent`, `upper`, `order` and `y` are changed to the last tree; `bounds` must be finite,
    `transposed` is `bounds`.T.
    """
    best = 0.0
    stalled = 0
    place_nodes(parent, upper, bounds, order, y)
    x = np.empty(y.size)
    for m in range(x.size):
        x[m] = exponential(y[m])
    while True:
        cut, ratio = choose_clear_cut(q, d, parent, upper, order, x)
        if cut < 0:
            cut, ratio = choose_cut(q, d, parent, upper, order, x)
        if ratio > best:
            stalled = 0
        else:
            stalled += 1
        if cut < 0 or stalled > patience:
            break
        best = max(best, ratio)
        moved = exchange_constraint(cut, parent, upper, bounds, transposed, order, y)
        place_nodes(parent, upper, bounds, order, y)
        for m in range(x.size):
            if moved[m]:
                x[m] = exponential(y[m])


@kernel()
def restrict_matrix(matrix, columns):
    """The rows and columns of a matrix that have the numbers `columns`."""
    part = np.empty((columns.size, columns.size))
    for k in range(columns.size):
        row = matrix[columns[k]]
        for m in range(columns.size):
            part[k, m] = row[columns[m]]
    return part


@kernel()
def set_entries(entries, row, columns):
    """Fill `entries` (m,) with those of `row` (n,) in the first m of `columns`."""
    for m in range(entries.size):
        entries[m] = row[columns[m]]


@kernel()
def set_used_columns(rows, i, j, columns):
    """Set the first entries of `columns` (n,) to the numbers of the columns that are above 0 in row
    i or j.

    Returns how many there are, and whether the same numbers stood there before.
    """
    size = 0
    is_same = True
    for k in range(rows.shape[1]):
        if rows[i, k] + rows[j, k] > 0.0:
            is_same = is_same and columns[size] == k
            columns[size] = k
            size += 1
    return size, is_same


@kernel()
def largest_ratios(rows, i, bounds, tilted, finite, patience, ratios):  # noqa: PLR0917 - a kernel: the arrays of a tree
    """Set ratios[j] (n,) to a proved bound of B_i x / B_j x for all x with x_k <= e^bounds[k, l]
    x_l, for each row B_j of `rows` (n, n).

    The search starts from the tree of the row before, or from a star where other columns are above
    0 in one of both rows, and ends by `patience` as in `climb_trees`. `tilted` (n, n) are finite
    bounds without ties, by which trees are chosen; `finite`, the smaller of these and `bounds`,
    gives the x whose ratio is proved.
    """
    columns = np.empty(rows.shape[1], np.int64)
    previous = -1  # how many of them the row before used
    for j in range(rows.shape[0]):
        if equal_rows(rows, i, j):
            ratios[j] = 1.0
            continue
        size, is_same = set_used_columns(rows, i, j, columns)
        if size != previous or not is_same:
            previous = size
            used = columns[:size]
            tilted_used = restrict_matrix(tilted, used)
            bounds_used = restrict_matrix(bounds, used)
            finite_used = restrict_matrix(finite, used)
            transposed = tilted_used.T.copy()
            parent = np.zeros(size, np.int64)
            order = np.zeros(size, np.int64)
            upper = np.zeros(size, np.bool_)
            upper[:] = True
            y = np.empty(size)
            q = np.empty(size)
            d = np.empty(size)
        set_entries(q, rows[i], columns)
        set_entries(d, rows[j], columns)
        climb_trees(q, d, parent, upper, tilted_used, transposed, order, y, patience)
        place_nodes(parent, upper, finite_used, order, y)
        highest = y.max()
        x = np.empty(size)
        for m in range(size):
            x[m] = exponential(y[m] - highest)
        _, _, ratio = gains_and_costs(q, d, x)
        ratios[j] = proved_ratio(q, d, parent, upper, order, bounds_used, ratio)
