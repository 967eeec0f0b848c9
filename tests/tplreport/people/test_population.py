"""Many users: each against her own matrix made by hand, and the same result from every backend."""

import os
import signal
from unittest import mock

import joblib
import numpy as np
import pandas as pd
import pytest

import tplreport as tr
import tplrepro as tpl
import tplrepro.markov.transition
from tplreport.people import population
from tplreport.people.shrinkage import pooled_matrices
from tplrepro.leakage.envelope import recursion
from tplrepro.markov.sequences import Sequences, count_transitions

EPSILONS = [0.3, 0.5, 0.2]


def walks(n_users, length=30):
    rng = np.random.default_rng(0)
    return {
        f"user {user}": rng.integers(0, 5, rng.integers(1, length)).tolist()
        for user in range(n_users)
    }


def counts_of(sequences, direction="forward"):
    return count_transitions(sequences, n_states=5, direction=direction)[0].toarray()


@pytest.mark.parametrize(("smoothing", "weight"), [(0.0, 2.0), (0.7, 2.0), (0.5, None)])
def test_each_user_has_her_own_matrix_shrunk_towards_the_pooled_one_if_asked_to(smoothing, weight):
    # The last, without a step, has the pooled matrix.
    users = {user: [own] for user, own in walks(12).items()} | {
        "two": [[1, 1, 0], [0, 0]],
        "new": [[3]],
    }
    result = tr.population_leakage(users, EPSILONS, smoothing=smoothing, prior_weight=weight)
    prior_free = tr.population_leakage(
        users, EPSILONS, smoothing=smoothing, prior_weight=weight, prior_free=True
    )
    everybody = [sequence for own in users.values() for sequence in own]
    largest = np.zeros(len(EPSILONS))
    for row, (user, own) in enumerate(users.items()):
        matrices = {}
        for direction in ("backward", "forward"):
            pooled = tpl.TransitionMatrix(
                counts_of(everybody, direction) + smoothing, normalize=True
            ).probabilities
            joint = counts_of(own, direction) + (smoothing if weight is None else weight * pooled)
            matrices[direction] = tpl.TransitionMatrix(joint, normalize=True)
        expected = tpl.temporal_privacy_leakage(EPSILONS, **matrices)
        assert result.users[row] == user
        assert result.transitions[row] == sum(map(len, own)) - len(own)
        assert result.tpl[row] == pytest.approx(expected.tpl, rel=1e-12)
        assert result.bpl[row] == pytest.approx(expected.bpl, rel=1e-12)
        largest = np.maximum(largest, expected.tpl)
        losses = [tpl.PriorFreeLoss(matrices[direction]) for direction in ("backward", "forward")]
        assert prior_free.tpl[row] == pytest.approx(
            tpl.temporal_privacy_leakage(EPSILONS, *losses).tpl, rel=1e-12
        )
    assert result.maximum == pytest.approx(largest, rel=1e-12)  # Eq. (3)


def test_without_smoothing_users_stay_where_nobody_leaves():
    data = Sequences(np.array([0, 1, 0, 2]), np.array([0, 4]), np.arange(3), np.arange(1))
    plain = pooled_matrices(data, 0.0)
    assert plain["forward"].toarray().tolist() == [[0, 0.5, 0.5], [1, 0, 0], [0, 0, 1]]
    assert plain["backward"].toarray().tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 0]]
    smooth = pooled_matrices(data, 1.0)
    assert smooth["forward"].toarray()[2] == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize(("smoothing", "weight"), [(1.0, 1.0), (0.0, 0.5), (1e-9, None)])
def test_many_users_at_a_time_have_the_bits_of_one_at_a_time(smoothing, weight, monkeypatch):
    """Users with one to three sequences of any lengths, not next to each other; ties abound where
    steps are few."""
    rng = np.random.default_rng(int(10 * smoothing))
    for n, longest in ((1, 4), (2, 50), (4, 5), (12, 30), (40, 100)):
        cumulative = np.cumsum(rng.dirichlet(np.full(n, 0.2), n), axis=1)
        steps = rng.integers(0, n, (longest, 60))
        for t in range(1, longest):
            steps[t] = (
                (cumulative[steps[t - 1]] < rng.random(60)[:, None]).sum(axis=1).clip(0, n - 1)
            )
        users = [*range(24), *rng.integers(0, 24, 36).tolist()]
        lengths = np.where(
            np.arange(60) < 24, rng.integers(1, longest + 1, 60), rng.integers(0, longest + 1, 60)
        )
        values = np.concatenate(
            [walk[:length] for walk, length in zip(steps.T, lengths, strict=True)]
        )
        data = Sequences(values, np.cumsum([0, *lengths]), np.arange(n), users)
        epsilons = 10.0 ** rng.choice([-5, -1, 1.5]) * rng.uniform(0.1, 1.0, 1 + n % 9)
        one_at_a_time = {
            "tplrepro.leakage.envelope.SMALL": 0,
            "tplreport.people.shrinkage.ENTRIES": 1,
        }
        kernel = "tplrepro.leakage.envelope.recursion.accumulate_for_each"
        uncompiled = {kernel: recursion.accumulate_for_each.plain}
        found = []
        for changes in ({}, one_at_a_time, uncompiled):
            with monkeypatch.context() as patch:
                for name, value in changes.items():
                    patch.setattr(name, value)
                leaked = tr.population_leakage(
                    data, epsilons, smoothing=smoothing, prior_weight=weight
                )
            found.append((leaked.bpl.tolist(), leaked.fpl.tolist()))
        assert found[1:] == found[:1] * 2


def test_leakages_are_the_same_for_labels_sequences_and_sparse_matrices(monkeypatch):
    users = walks(8)
    result = tr.population_leakage(users, EPSILONS)
    expected = result.tpl
    assert result.maximum.tolist() == expected.max(axis=0).tolist()
    assert result.largest[result.users.index(result.worst_user)] == expected.max()
    assert tr.population_leakage(users, 0.3, horizon=4).bpl.shape == (8, 4)
    row = result.to_frame().loc[("user 3", 1)]
    assert row.to_dict() == {
        "bpl": result.bpl[3, 1],
        "fpl": result.fpl[3, 1],
        "tpl": expected[3, 1],
    }
    named = {user: [f"cell {s}" for s in own] for user, own in users.items()}
    assert tr.population_leakage(named, EPSILONS).tpl == pytest.approx(expected, rel=1e-13)
    offsets = np.cumsum([0, *map(len, users.values())])
    ragged = Sequences(
        np.concatenate(list(users.values())), offsets, np.arange(5), np.array(list(users))
    )
    assert tr.population_leakage(ragged, EPSILONS).tpl == pytest.approx(expected, rel=1e-13)
    prior_free = tr.population_leakage(users, EPSILONS, prior_free=True).tpl
    for module in (tplrepro.markov.transition, population):
        monkeypatch.setattr(module, "SPARSE_FROM", 4)
    assert tr.population_leakage(users, EPSILONS).tpl == pytest.approx(expected, rel=1e-12)
    assert tr.population_leakage(users, EPSILONS, prior_free=True).tpl == pytest.approx(
        prior_free, rel=1e-12
    )


def test_leakages_do_not_depend_on_backend_and_batch_size():
    users = walks(20)
    alone = tr.population_leakage(users, EPSILONS)
    assert (tr.population_leakage(users, EPSILONS, n_jobs=2, batch_size=3).tpl == alone.tpl).all()
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert (tr.population_leakage(users, EPSILONS, batch_size=4).tpl == alone.tpl).all()


BAD = {
    "a missing value": ([0, None, 1], {}),
    "a state out of range": ([0, 7], {"n_states": 5}),
    "another kind of label": ([0, "x"], {"n_states": 5}),
    "no state": ([[]], {}),
    "no matrix": ([0, 1], {"smoothing": 0.0, "prior_weight": None}),
}


@pytest.mark.parametrize(("bad", "options"), BAD.values(), ids=BAD)
def test_the_error_names_the_user_whose_data_are_wrong(bad, options):
    users = {k: [0, 1, 2, 3, 4, k % 5, 0] for k in range(300)}
    with pytest.raises(ValueError, match="user 'Eve'"):
        tr.population_leakage(users | {"Eve": bad}, EPSILONS, batch_size=100, **options)


class Deadly:
    """A user who kills the first process that reads her from another one."""

    def __init__(self, killed, safe=None):
        self.arguments = killed, safe or os.getpid()
        if os.getpid() != self.arguments[1] and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def __reduce__(self):
        return Deadly, self.arguments


# A killed worker leaves its sockets and temporary folders to the garbage collector.
killing = pytest.mark.filterwarnings(
    *(
        f"default::{name}Warning"
        for name in ("Resource", "pytest.PytestUnraisableException", "User", "Future")
    )
)
KILLED = joblib.externals.loky.process_executor.TerminatedWorkerError


@killing
@pytest.mark.parametrize(("n_jobs", "error"), [(1, ValueError), (2, KILLED)])
def test_a_run_that_fails_loses_one_batch_and_goes_on(tmp_path, monkeypatch, n_jobs, error):
    users = {f"user {k}": [0, 1, 0, 0, k % 2, 1, 0] for k in range(40)}
    options = {"smoothing": 0.0, "prior_weight": None, "batch_size": 4, "folder": tmp_path / "done"}
    alone = tr.population_leakage(users, EPSILONS, **options | {"folder": None})
    bad = "Eve" if n_jobs == 1 else Deadly(tmp_path / "killed")
    with pytest.raises(error):
        tr.population_leakage(users | {bad: [0, 1]}, EPSILONS, n_jobs=n_jobs, **options)
    kept = pd.read_parquet(tmp_path / "done")
    assert set(kept["user"]) <= set(users)
    assert len(kept) >= 4 * len(EPSILONS)
    bar, before = mock.MagicMock(), written(tmp_path / "done")
    monkeypatch.setattr(population, "Bar", bar)
    for _ in range(2):
        result = tr.population_leakage(users, EPSILONS, **options)
        assert (result.tpl == alone.tpl).all()
        # what is there is not computed again
        assert before.items() <= written(tmp_path / "done").items()
        before = written(tmp_path / "done")
        assert len(before) == 10
        bar.assert_called_with(10, "population", "batch", True)
    assert bar().__enter__().update.call_count == 20
    damaged = next((tmp_path / "done").glob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-40])
    assert (tr.population_leakage(users, EPSILONS, **options).tpl == alone.tpl).all()
    # What was computed from other budgets is not taken for an answer.
    assert tr.population_leakage(users, [0.1], **options).bpl[0] == 0.1


def written(folder):
    """When each batch's file was written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}


@pytest.mark.parametrize("n", [3, 50])
def test_the_loss_of_all_users_is_the_largest_of_theirs(n):
    """One step leaks L(epsilon) more; 50 states have their hulls one by one. Zeros make one user's
    rows disjoint."""
    rng = np.random.default_rng(n)
    walks = {user: rng.integers(0, n, 40 * n).tolist() for user in range(4)}
    functions = population.loss_of_all_users(walks, smoothing=0.1, prior_weight=2.0)
    for epsilon in (0.01, 1.0, 5.0):
        found = tr.population_leakage(walks, [epsilon] * 2, smoothing=0.1, prior_weight=2.0)
        assert functions[0](epsilon) == pytest.approx((found.bpl[:, 1] - epsilon).max(), rel=1e-13)
        assert functions[1](epsilon) == pytest.approx((found.fpl[:, 0] - epsilon).max(), rel=1e-13)
    walks = {"ann": [0, 1, 0, 1, 0], "bob": [0, 0, 1, 1, 0]}
    assert not any(one.is_identity for one in population.loss_of_all_users(walks, smoothing=0.1))
    assert all(
        one.is_identity
        for one in population.loss_of_all_users({"ann": walks["ann"]}, smoothing=0.0)
    )
