"""The linear-fractional programme through CBC and HiGHS against exhaustion and the worked
examples."""

from itertools import islice, permutations

import highspy
import numpy as np
import pulp
import pytest

from tests.oracles import brute_force_loss, pair_loss_mpmath
from tests.tplrepro.leakage.matrices import FIG_3, KINDS, random_matrix
from tplrepro.leakage import linear_program

SOLVERS = ("CBC", "HiGHS", "highspy")
TOLERANCE = 1e-7  # absolute; what the module promises


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("formulation", ["scaled", "pairwise"])
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_equal_the_exact_optimum(kind, formulation, solver):
    rng = np.random.default_rng([1, KINDS.index(kind)])
    largest = linear_program.LARGEST_ALPHA[formulation]
    # One pair of rows through PuLP; all of them where HiGHS starts from the optimum for the pair
    # before.
    count = None if solver == "highspy" else 1
    for n in (2, 3, 5, 8):
        P = random_matrix(rng, kind, n)[rng.permutation(n)]
        for alpha in (1e-3, rng.uniform(0, largest), largest):
            values = [*islice(linear_program.pair_losses(P, alpha, solver, formulation), count)]
            expected = [
                float(pair_loss_mpmath(q, d, alpha)) for d, q in islice(permutations(P, 2), count)
            ]
            assert values == pytest.approx(expected, rel=0, abs=TOLERANCE)
    # rows that nearly agree keep their digits
    nearly = np.array([[0.5, 0.5], [0.5 + 1e-9, 0.5 - 1e-9]])
    value = next(linear_program.pair_losses(nearly, 8.0, solver, formulation))
    assert value == pytest.approx(float(pair_loss_mpmath(*nearly[::-1], 8.0)), rel=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_pairs_equal_brute_force_in_silence(solver, capfd):
    rng = np.random.default_rng(2)
    cases = [(random_matrix(rng, kind, 4), rng.uniform(0.01, 15)) for kind in KINDS]
    for P, alpha in [*cases, (np.eye(3), 3.0), (FIG_3, 0.0)]:
        value = linear_program.loss(P, alpha, solver=solver)
        assert value == pytest.approx(brute_force_loss(P, alpha), rel=0, abs=TOLERANCE)
    for P in (np.full((3, 3), 1 / 3), [[1.0]]):
        assert linear_program.loss(P, 3.0, solver=solver) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("failures", [1, 2])
def test_a_programme_without_a_way_on_from_the_optimum_before_starts_anew(monkeypatch, failures):
    status, lost, cleared = (
        highspy.Highs.getModelStatus,
        [highspy.HighsModelStatus.kUnknown] * failures,
        [],
    )
    monkeypatch.setattr(
        highspy.Highs, "getModelStatus", lambda self: lost.pop() if lost else status(self)
    )
    monkeypatch.setattr(highspy.Highs, "clearSolver", lambda self: cleared.append(self))
    if failures == 1:
        assert linear_program.loss(np.eye(2), 1.0, solver="highspy") == pytest.approx(
            1.0, rel=0, abs=TOLERANCE
        )
    else:
        with pytest.raises(
            ValueError, match=r"highspy found no optimum at alpha=1 \(status 'Unknown'\)"
        ):
            linear_program.loss(np.eye(2), 1.0, solver="highspy")
    assert len(cleared) == 1


def test_the_pairwise_formulation_has_the_papers_constraints(monkeypatch):
    sizes, P = set(), random_matrix(np.random.default_rng(4), "dense", 5)
    solve, run = pulp.LpProblem.solve, highspy.Highs.run
    measured = {
        "HiGHS": (
            pulp.LpProblem,
            "solve",
            lambda model, *given: add(model.numConstraints()) or solve(model, *given),
        ),
        "highspy": (
            highspy.Highs,
            "run",
            lambda kept: add((kept.getNumRow(), kept.getNumCol())) or run(kept),
        ),
    }
    add = sizes.add
    for solver, patch in measured.items():
        monkeypatch.setattr(*patch)
        for formulation in ("pairwise", "scaled"):
            linear_program.loss(P, 1.0, solver=solver, formulation=formulation)
    assert sizes == {5 * 4 + 1, 2 * 5 + 1, (5 * 4 + 1, 5), (2 * 5 + 1, 5 + 1)}


@pytest.mark.parametrize(
    ("solver", "name", "remedy"), [("CBC", "COIN_CMD", "pulp<4"), ("HiGHS", "HiGHS", "highspy")]
)
def test_a_solver_that_is_missing_or_fails_is_named(monkeypatch, solver, name, remedy):
    monkeypatch.setattr(getattr(pulp, name), "available", lambda self: False)
    with pytest.raises(
        ValueError,
        match=f"solver {solver} must be installed, found none; .*: "
        f'pip install "{remedy}", or choose',
    ):
        linear_program.loss(np.eye(2), 1.0, solver=solver)
    monkeypatch.undo()
    stopped = 0  # PuLP's number for a run that did not end
    if not hasattr(pulp, "LpStatus"):  # PuLP 4
        stopped = pulp.LpSolveStats()
    monkeypatch.setattr(pulp.LpProblem, "solve", lambda self, solver: stopped)
    message = rf"{solver} found no optimum at alpha=1 \(status 'Not ?Solved'\); lower alpha"
    with pytest.raises(ValueError, match=message):
        linear_program.loss(np.eye(2), 1.0, solver=solver)
