"""Compiled code: its sums, its order, when it is compiled; the screen, whose sums bound the excess
from above."""

import copy
import math
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tplreport as tr
import tplrepro as tpl
from tests.work import LineCounter
from tplfrontier.pairs import leakage as pairwise
from tplfrontier.pairs import tree_simplex
from tplreport.people.population import loss_of_all_users
from tplrepro.allocation import minimisation
from tplrepro.allocation.minimisation import Recursion
from tplrepro.leakage import envelope, prior_free
from tplrepro.leakage.accumulation import (
    StepsInTurn,
    accumulate_along,
    accumulate_leakages,
    accumulate_until_known,
    leakage_after,
    leakages_in_turn,
)
from tplrepro.leakage.envelope import (
    best_vertex,
    compiled,
    dense,
    few_rows,
    hulls,
    joint_hull,
    recursion,
    screens,
    sparse,
    sparse_pairs,
)
from tplrepro.leakage.envelope.compiled import Kernel
from tplrepro.leakage.temporal import LossCycle
from tplrepro.validation import frozen

ROOMS = few_rows, hulls, recursion, screens, sparse_pairs, tree_simplex


@pytest.fixture(autouse=True)
def worth_compiling(monkeypatch):
    monkeypatch.setattr(Kernel, "worth", 0)


@given(st.lists(st.floats(1e-20, 1.0), min_size=1, max_size=200))
def test_compensated_sums_are_right_to_the_last_bits(terms):
    total = lost = 0.0
    for term in terms:
        total, lost = hulls.add_compensated(total, lost, term)
    assert total == pytest.approx(math.fsum(terms), rel=4.5e-16, abs=0)


@given(st.lists(st.integers(0, 20), max_size=80))
def test_keys_are_sorted_compiled_as_uncompiled(numbers):
    keys = np.array(numbers, dtype=float)
    n = len(numbers)
    found = hulls.stable_order(keys, n)
    assert found.tolist() == hulls.stable_order.plain(keys, n).tolist()


def test_no_kernel_is_compiled_twice():
    dense = tpl.TransitionMatrix.random(60, rng=np.random.default_rng(1))
    for P in (dense, tpl.TransitionMatrix(np.asfortranarray(dense)), copy.deepcopy(dense)):
        tpl.PrivacyLossFunction(P)
        tpl.privacy_loss(P, 1.0)
    pairwise.compile_kernels()
    found = {
        name: f.compiled.signatures
        for room in ROOMS
        for name, f in vars(room).items()
        if isinstance(f, Kernel)
    }
    assert len(found) > 25
    for name, signatures in found.items():
        assert len(signatures) <= 1, (name, signatures)


def small_matrix(kind, seed, n):
    rng = np.random.default_rng(seed)
    walk, noise = rng.integers(0, n, 3 * n), rng.choice([0.0, 1e-16, 1e-12, 1e-8])
    half = rng.integers(1, 4, (n // 2 + 1, n // 2 * 2 + 2))
    half = half * (1 + noise * rng.standard_normal(half.shape))
    P = {
        "random": lambda: rng.dirichlet(np.ones(n), size=n),
        "strongest": lambda: tpl.smoothed(tpl.strongest(n, seed=seed), 10.0 ** rng.uniform(-6, 8)),
        "ties": lambda: rng.integers(1, 4, (n, n)) / 1.0,
        "huge ratios": lambda: 10.0 ** rng.uniform(-300, 0, (n, n)),
        "tied": lambda: np.block(
            [[half], [half[:, ::-1] * (1 + noise * rng.standard_normal(half.shape))]]
        ),
        "nearly equal": lambda: rng.dirichlet(np.full(n, 1e8), size=n),
        "sparse": lambda: tpl.TransitionMatrix.from_sequences(
            [walk], n_states=n, smoothing=0.1, sparse=True
        ),
    }[kind]()
    return (
        P
        if isinstance(P, tpl.TransitionMatrix)
        else tpl.TransitionMatrix(P / P.sum(axis=1, keepdims=True))
    )


KINDS = ("random", "strongest", "ties", "huge ratios", "nearly equal")


@pytest.mark.parametrize("kind", [*KINDS, "tied", "sparse"])
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 12))
@settings(max_examples=15)
def test_small_problems_have_the_same_solution_uncompiled(kind, seed, n):
    P = small_matrix(kind, seed, n)
    found = []
    for worth in (0, math.inf):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Kernel, "worth", worth)
            found.append(
                [joint_hull(P).tolist(), *(best_vertex(P, alpha) for alpha in (1e-3, 1.0, 50.0))]
            )
    assert found[0] == found[1]


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 7))
@settings(max_examples=25)
def test_pairs_of_states_have_the_same_leakage_uncompiled(seed, n):
    """NumPy's exp and sum differ from compiled ones by up to 7e-15 nats."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(n, 0.5), n)
    bounds = 10.0 ** rng.uniform(-3, 3) * rng.exponential(size=(n, n))
    np.fill_diagonal(bounds, 0.0)
    found = []
    for worth in (0, math.inf):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Kernel, "worth", worth)
            found.append(pairwise.log_ratios(rows, bounds).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", [*KINDS, "tied"])
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 24) | st.integers(25, 48))
@settings(max_examples=60)
def test_the_hull_is_that_of_all_pairs_in_any_order(kind, seed, n):
    # A pair is left out only if all its points are under the hull once the fraction TIE is taken
    # off their gaps. With slope x = gap/(d + 1/u) the loss is log(1 + x), and log(1 + x (1 - TIE))
    # >= (1 - TIE) log(1 + x): what is left out costs no more than that fraction of the loss, at any
    # alpha, however far its point lies from the hull's vertex.
    rng, P = np.random.default_rng(seed), small_matrix(kind, seed, n)
    pairs = np.stack(np.divmod(np.arange(P.n_states**2), P.n_states), axis=1)
    rows, inverse = P.probabilities, 1.0 / np.expm1(np.geomspace(1e-6, 700.0, 100))
    far = screens.last_slopes(rows, rows.max(axis=0))
    found = [dense.hull_of_few_rows(rows)]
    found += [hulls.grow_hull(dense.NO_POINTS, rows, rng.permutation(pairs), far) for _ in range(2)]
    values = [
        np.log1p((points[:, 1] / (points[:, 0] + inverse[:, None])).max(axis=1, initial=0.0))
        for points in found
    ]
    for other in values[1:]:
        np.testing.assert_allclose(other, values[0], rtol=4e-15)


@pytest.mark.parametrize("kind", [*KINDS, "tied"])
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 12))
@settings(max_examples=20)
def test_the_hull_of_several_matrices_is_that_of_the_hulls_of_each(kind, seed, n):
    rng = np.random.default_rng(seed)
    matrices = [small_matrix(kind, int(rng.integers(2**32)), n).probabilities for _ in range(6)]
    same_size = [rows for rows in matrices if len(rows) == len(matrices[0])]
    inverse = 1.0 / np.expm1(np.geomspace(1e-6, 700.0, 100))
    several = dense.hull_of_several(np.array(same_size))
    each = np.concatenate([dense.hull_of_few_rows(rows) for rows in same_size])
    found, expected = (
        np.log1p((points[:, 1] / (points[:, 0] + inverse[:, None])).max(axis=1, initial=0.0))
        for points in (several, each)
    )
    np.testing.assert_allclose(found, expected, rtol=4e-15)


def test_numba_is_loaded_when_it_is_worth_it():
    code = (
        "import sys, tplrepro as tpl; P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]]);"
        "tpl.PrivacyLossFunction(P), tpl.privacy_loss(P, 1.0);"
        "tpl.allocate_by_quantification(1.0, P, P, horizon=5);"
        "print('numba' in sys.modules); tpl.privacy_loss(tpl.strongest(70), 1.0);"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


HULLS = (
    "import numpy as np; from tplrepro.leakage.envelope import compiled, hulls;"
    "compiled.Kernel.worth = 0;"
    "hulls.is_diagonal(np.ones((1, 5))), hulls.add_compensated(0.0, 0.0, 1.0)"
)
ELSEWHERE = (
    "import numpy as np; from tplreport.reporting import evidence;"
    "evidence.MANY_STEPS = 0; evidence.count_earlier(np.zeros(3, int), np.zeros(3, int), 1)"
)


def warnings_of(code, cache):
    """What Python prints as warnings when it runs some code with a cache of its own."""
    command = [sys.executable, "-c", code]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stderr


@pytest.mark.parametrize("code", [HULLS, ELSEWHERE], ids=["of the room", "elsewhere"])
def test_compilation_is_announced_in_one_line(tmp_path, code):
    assert re.fullmatch(
        r"tplrepro:1: UserWarning: compiling kernels, .*: they are kept in .*one.*\n",
        warnings_of(code, tmp_path / "one"),
    )
    # those that were kept are not compiled again
    assert code == ELSEWHERE or warnings_of(code, tmp_path / "one") == ""


def test_all_kernels_can_be_compiled_at_once():
    # Those that Python calls; with them come those that they call.
    rooms = {room.__name__.rpartition(".")[2]: room for room in ROOMS}
    code = "from tplfrontier.pairs import leakage, tree_simplex; leakage.compile_kernels();"
    code += f"from tplrepro.leakage.envelope import {', '.join(rooms.keys() - {'tree_simplex'})};"
    code += (
        f"names = {{name: f for room in ({', '.join(rooms)}) for name, f in vars(room).items()}};"
    )
    code += "kernels = {name: f for name, f in names.items() if hasattr(f, 'compiled')};"
    code += "print(*(name for name, f in kernels.items() if f.compiled.signatures))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    calling = envelope, dense, minimisation, pairwise, prior_free, sparse
    sources = [Path(module.__file__).read_text(encoding="utf-8") for module in calling]
    called = {
        names
        for source in sources
        for names in re.findall(rf"\b({'|'.join(rooms)})\.(\w+)\(", source)
    }
    called = {name for room, name in called if isinstance(getattr(rooms[room], name), Kernel)}
    assert called <= set(done.stdout.split())
    assert len(called) > 15


def some_matrices(n, many):
    return [tpl.TransitionMatrix.random(n, rng=np.random.default_rng(seed)) for seed in range(many)]


def walks(users):
    return dict(enumerate(np.random.default_rng(0).integers(0, 4, (users, 12)).tolist()))


FAR_APART = 1.0 - np.eye(3)
# A tenth of what is announced before kernels are compiled, so that few lines are counted.
WORTH = compiled.WORTH // 10
# Each would run at least a million lines in plain Python.
MANY_STEPS = {
    "many small functions": lambda: [tpl.PrivacyLossFunction(P) for P in some_matrices(6, 250)],
    "a function": lambda: tpl.PrivacyLossFunction(
        tpl.TransitionMatrix.random(180, rng=np.random.default_rng(0))
    ),
    "many losses": lambda: [
        tpl.privacy_loss(P, 1.0) for P in some_matrices(4, 500) for _ in range(3)
    ],
    "a sparse function": lambda: tpl.PrivacyLossFunction(
        tpl.TransitionMatrix.from_sequences(
            [np.arange(60_000) ** 2 % 997], n_states=997, smoothing=0.1, sparse=True
        )
    ),
    "all users": lambda: loss_of_all_users(walks(600)),
    "each user": lambda: tr.population_leakage(walks(200), [0.1] * 50),
    "pairs of states": lambda: pairwise.pairwise_leakage(
        FAR_APART, *some_matrices(3, 2), horizon=250
    ),
    "without a prior": lambda: tpl.PriorFreeLoss(*some_matrices(600, 1)),
}


@pytest.mark.parametrize("path", MANY_STEPS)
def test_every_public_path_announces_the_steps_that_kernels_take_uncompiled(path, monkeypatch):
    """A step is some 15 lines of Python at most; each kernel is compiled before many are run."""
    uncompiled, kernel_calls = LineCounter(), []
    call = Kernel.__call__

    def counted(self, *arguments):
        kernel_calls.append(self)
        if Kernel.worth <= 0:
            return call(self, *arguments)
        with uncompiled:
            return call(self, *arguments)

    monkeypatch.setattr(Kernel, "worth", WORTH)
    monkeypatch.setattr(Kernel, "__call__", counted)
    MANY_STEPS[path]()
    assert uncompiled.count < 20 * WORTH
    assert kernel_calls
    assert Kernel.worth <= 0


def test_a_kernel_is_compiled_again_when_another_file_of_the_room_has_changed(tmp_path):
    package = shutil.copytree(
        Path(tpl.__file__).parent, tmp_path / "tplrepro", ignore=lambda *_: ["__pycache__"]
    )
    code = "import numpy as np; from numba import config;"
    code += "from tplrepro.leakage.envelope import compiled, few_rows;"
    code += "from tplrepro.validation import frozen; compiled.Kernel.worth = 0;"
    code += "print(few_rows.first_outside(frozen(np.eye(2)), 0.0, 0.9), repr(config.CACHE_DIR))"

    def first_outside(folder):
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-W", "ignore", "-c", code]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""  # filters of warnings reach the announcement
        return done.stdout.strip()

    assert first_outside("") == "(0, 1) ''"
    file = package / "leakage" / "envelope" / "hulls.py"
    source = file.read_text(encoding="utf-8")
    file.write_text(source.replace("TIE = 1e-15\n", "TIE = 0.5\n"), encoding="utf-8")
    assert first_outside("") == "(-1, -1) ''"
    assert len([*file.parent.glob("__pycache__/kernels-*")]) == 2


@cache
def some_functions():
    matrices = (
        tpl.TransitionMatrix.random(9, rng=np.random.default_rng(1)),
        tpl.smoothed(tpl.strongest(4), 1e-3),
        [[0.8, 0.2], [0.0, 1.0]],
        np.eye(3),
    )
    functions = [None, *map(tpl.PrivacyLossFunction, matrices)]
    functions[1].scale = 2.0
    return functions


@given(st.lists(st.integers(0, 4), max_size=8), st.floats(-8, 3), st.integers(0, 9))
def test_the_compiled_recursion_is_the_plain_one_bit_for_bit(chosen, size, seed):
    steps = [some_functions()[k] for k in chosen]
    rng, side = np.random.default_rng(seed), Recursion(steps)
    budgets = 10.0**size * rng.uniform(0.1, 1.0, len(steps) + 1)
    given = side.vertices, side.first, side.steps, budgets, rng.normal(size=(budgets.size, 3))
    leakages, derivative = recursion.accumulate_with_derivative(*given)
    for fast, plain in zip(
        (leakages, derivative), recursion.accumulate_with_derivative.plain(*given), strict=True
    ):
        assert fast.tolist() == plain.tolist()
    assert leakages.tolist() == accumulate_leakages(steps, budgets).tolist()
    slopes = [
        L and L.slope_at(alpha) for L, alpha in zip(steps, leakages[:-1].tolist(), strict=True)
    ]
    for t, slope in enumerate(slopes, start=1):
        assert (
            derivative[t].tolist() == (given[-1][t] + (slope or 0.0) * derivative[t - 1]).tolist()
        )


@pytest.mark.parametrize("size", [-8.0, 0.0, 2.0])
def test_a_long_array_of_budgets_has_the_leakages_of_single_steps(size):
    rng = np.random.default_rng(0)
    steps = [some_functions()[k] for k in rng.integers(0, 5, 5)] + some_functions()
    steps = [loss for loss in steps for _ in range(2500)]
    budgets = 10.0**size * rng.uniform(0.1, 1.0, len(steps) + 1)
    budgets[6000:6100] = budgets[6000]  # a run
    expected = [float(budgets[0])]
    for loss, epsilon in zip(steps, budgets[1:].tolist(), strict=True):
        expected.append(leakage_after(loss, expected[-1], epsilon))
    assert accumulate_leakages(steps, budgets).tolist() == expected


@pytest.mark.parametrize("worth", [0, math.inf])
def test_leakages_are_recomputed_only_up_to_the_first_known_one(worth, monkeypatch):
    loss, budgets = some_functions()[1], np.random.default_rng(0).uniform(0.1, 0.2, 1000)
    known, expected = accumulate_along(loss, budgets, 0.1), accumulate_along(loss, budgets, 0.7)
    monkeypatch.setattr(Kernel, "worth", worth)
    steps = StepsInTurn(LossCycle([loss], []), 10**6, -1)
    found = accumulate_until_known(steps, budgets, 0.7, known)
    assert found.tolist() == expected[: found.size].tolist()
    close = abs(expected - known) < np.spacing(expected)
    assert 5 < found.size == np.argmax(close) < 300


@pytest.mark.parametrize(("n_steps", "size"), [(1, 5), (3, 5), (1, 900), (3, 900)])
def test_leakages_that_change_are_those_of_one_step_after_the_other(n_steps, size):
    """All of them where hardly anybody moves, with one matrix or a cycle of them."""
    stays = [1 - 1e-6, 1 - 3e-6, 1 - 2e-6]
    losses = [tpl.PrivacyLossFunction([[x, 1 - x], [1 - x, x]]) for x in stays[:n_steps]]
    steps = StepsInTurn(LossCycle(losses, []), 10**6, -1)
    budgets = np.random.default_rng(1).uniform(1e-4, 2e-4, size)
    expected = [*leakages_in_turn(steps.over(0, size), budgets.tolist(), 0.7)]
    found = accumulate_until_known(steps, budgets, 0.7, np.zeros(size))
    assert found.tolist() == expected
    known = np.concatenate([np.zeros(size // 2), expected[size // 2 :]])
    assert accumulate_until_known(steps, budgets, 0.7, known).tolist() == expected[: size // 2]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 150),
    # of the Dirichlet distribution: nearly empty rows to nearly equal
    shape=st.sampled_from([0.03, 1.0, 30.0, 1e12]),
    mu=st.sampled_from([0.0, 1e-9, 0.1, 0.7, 3.0, 50.0, 1e5]),
)
def test_bounds_are_above_the_excess_but_not_by_much(seed, n, shape, mu):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(n, shape), size=n)
    rows = frozen(rows / rows.sum(axis=1, keepdims=True))
    group = min(n, screens.GROUP)
    # In extended precision, whose rounding is far below that of the bounds.
    levels = (1 + np.longdouble(mu)) * rows[:group, None]
    columns = screens.columns_of(rows)
    bounds, room = np.empty((screens.GROUP, n), dtype=np.int32), screens.room_for(n)
    for m in range(group):
        screens.use_all_columns(m, n, room)
    # at the second, only columns that the first has left in use are tried
    for slope in (0.5 * mu, mu):
        screens.bound_excesses(columns, rows, 0, slope, room, bounds)
    assert (bounds[:group] >= (np.maximum(rows - levels, 0) * columns.scale).sum(axis=2)).all()
    levels *= 1 - 2 * screens.ROOM
    # rounded twice
    terms = np.maximum(rows - levels, 0) * columns.scale + 2.0 * (columns.largest > levels)
    assert (bounds[:group] <= terms.sum(axis=2)).all()


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 150),
    shape=st.sampled_from([0.03, 1.0, 30.0, 1e12]),
    mu=st.sampled_from([0.0, 1e-9, 0.7, 50.0, 1e5, 1e300]),
)
def test_sums_in_single_precision_mark_what_may_exceed_a_cap(seed, n, shape, mu):
    rows = np.random.default_rng(seed).dirichlet(np.full(n, shape), size=n)
    exact = np.maximum(rows.astype(np.longdouble) - (1 + np.longdouble(mu)) * rows[:, None], 0).sum(
        axis=2
    )
    far = screens.last_slopes(rows, rows.max(axis=0))
    for cap in np.quantile(exact.astype(float), [0.0, 0.3, 0.9, 1.0]):
        marks = np.zeros((n, n), dtype=bool)
        screens.mark_above(frozen(rows), far, 0, mu, cap, marks)
        assert marks[exact > cap].all()
        assert not marks[exact < cap - 2 * screens.sum_error(n)].any()


def test_counts_far_apart_over_a_little_smoothing_are_screened_too(monkeypatch):
    rng, counts = np.random.default_rng(0), np.zeros((600, 600))
    np.put_along_axis(counts, rng.integers(0, 600, (600, 8)), rng.integers(1, 50, (600, 8)), axis=1)
    P = tpl.TransitionMatrix.from_counts(counts, smoothing=0.001, sparse=False)
    full, choose = [], dense.choose_screen

    def noted(far, hull, usual):
        screen = choose(far, hull, usual)
        full.append(screen.cap[0] == hull[hulls.SUPPORT, 0])
        return screen

    monkeypatch.setattr(dense, "choose_screen", noted)
    found = tpl.PrivacyLossFunction(P)
    assert full == [True] * 3
    monkeypatch.setattr(dense, "choose_screen", lambda *given: dense.NO_SCREEN)
    np.testing.assert_array_equal(found.vertices, tpl.PrivacyLossFunction(P).vertices)


@pytest.mark.parametrize("smoothing", [None, 1e-2, 1e8])  # at the last, rows are nearly equal
def test_the_polygon_of_caps_is_under_the_hull(smoothing):
    P = tpl.TransitionMatrix.random(150, rng=np.random.default_rng(4))
    rows = (P if smoothing is None else tpl.smoothed(P, smoothing)).probabilities
    edges = hulls.edges_of_hull(dense.joint_hull(rows))
    slopes, support, _ = edges
    sample = np.random.default_rng(0).integers(0, 150, (150, 2))
    usual = screens.excesses_of_pairs(rows, sample, dense.SEED_SLOPES, 0.0).max(axis=1)
    chosen = dense.choose_screen(screens.last_slopes(rows, rows.max(axis=0)), edges, usual)
    assert 2 <= chosen.slope.size <= 16
    assert chosen.slope[0] == 0.0
    assert (chosen.slope == slopes[chosen.edge]).all()
    inside = slopes <= chosen.slope[-1]
    assert (
        np.interp(slopes[inside], chosen.slope, chosen.cap) <= support[inside] * (1 + 1e-12)
    ).all()


def test_the_number_of_threads_changes_nothing(monkeypatch):
    # Rows with many zeros tie; which of them is the witness must not depend on the machine.
    rows = tpl.TransitionMatrix.random(300, rng=np.random.default_rng(6), zeros=0.9).probabilities
    expected = dense.joint_hull(rows)
    for threads in (1, 2, 5):
        monkeypatch.setattr(compiled, "thread_count", lambda n, enough, threads=threads: threads)
        np.testing.assert_array_equal(dense.joint_hull(rows), expected)
