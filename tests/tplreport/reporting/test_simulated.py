"""In how many simulated data sets a plan like the recommended one broke, as a report says it."""

import json

import numpy as np
import pytest

import tplreport as tr
import tplrepro as tpl
from tplreport.reporting import simulated
from tplreport.reporting.allocation_schemes import COMPOSED
from tplreport.reporting.checks import ORDER, USERS
from tplreport.reporting.simulated import Cell, SimulatedPlans, read_cells

MOVES = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])


def report_on(matrices, steps=60):
    rng = np.random.default_rng(0)
    walks = [tpl.TransitionMatrix(matrix).sample(steps, rng=rng) for matrix in matrices]
    return tr.report(walks, 1.0, 20, draws=0)


@pytest.fixture
def cells(monkeypatch):
    table = [
        Cell(simulated.NOTHING, True, False, 200, 3, 210, 4),
        Cell(simulated.NOTHING, False, False, 19, 5, 30, 6),
        Cell(USERS, True, False, 7, 0, 40, 31),
    ]
    monkeypatch.setattr(simulated, "read_cells", lambda: table)
    return table


def test_plans_of_data_like_these_are_quoted_in_sentence_json_and_page(cells):
    advice = report_on([MOVES.toarray()] * 25)
    assert advice.recommendation.budgets is not None
    assert advice.recommendation.scheme != COMPOSED
    sentence = (
        "In 3 of 200 simulated data sets with more than 20 users and up to 100 steps of each, with "
        "nothing doubtful, such a plan leaked more than α."
    )
    assert advice.simulated.sentence == sentence
    assert sentence in advice.sentences[4]
    assert json.loads(json.dumps(advice.to_dict()))["simulated"] == vars(advice.simulated)
    assert sentence in advice.to_html(figures=False)


def test_of_few_data_sets_all_sizes_are_taken_and_of_fewer_nothing_is_said(cells):
    few = report_on([MOVES.toarray()] * 10)
    assert few.simulated == SimulatedPlans(simulated.NOTHING, "of all sizes", False, 219, 8)
    cells.clear()
    assert few.simulated is None
    assert few.to_dict()["simulated"] is None
    assert "simulated" not in few.sentences[4]


def test_where_checks_doubt_plans_for_one_chain_are_quoted(cells):
    stay = [[0.97, 0.03], [0.03, 0.97]]
    mix = [[0.5, 0.5], [0.5, 0.5]]
    doubted = report_on([stay, mix] * 15, steps=90)
    assert doubted.simulated.sentence == (
        "In 31 of 40 simulated data sets with more than 20 users and up to 100 steps of each, in "
        "which the check 'differences between users' was the first to doubt, a plan for one chain "
        "leaked more than α."
    )


def test_the_table_of_the_package_can_be_read():
    for cell in read_cells():
        assert cell.finding in simulated.FINDINGS
        assert 0 <= cell.above <= cell.plans
        assert 0 <= cell.above_of_one_chain <= cell.plans_of_one_chain
    assert ORDER in simulated.FINDINGS
