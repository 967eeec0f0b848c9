"""Bars are drawn of what takes long, where somebody looks, and of nothing else."""

import sys
from types import SimpleNamespace

import pytest

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from tplrepro import progress, sip
from tplrepro.progress import Bar, with_progress

P, Q = [[0.8, 0.2], [0.1, 0.9]], tpl.TransitionMatrix.random(300, rng=0)
SERIES = tf.LinearGaussianSeries.autoregressive(0.9, 5)
WALKS = {"ann": [0, 1, 1, 0, 0, 1], "bob": [1, 1, 0, 0, 1, 0]}
CRR, CHAIN = sip.ConditionalRandomizedResponse(1.0), sip.SymbolChain.first_order([0.5, 0.5], P)
LONG = {
    "joint hull": lambda: tpl.PrivacyLossFunction(Q),
    "exact leakage": lambda: tpl.exact_leakage([0.1] * 3, P, P),
    "fitting budgets": lambda: tpl.allocate_by_exact_leakage(1.0, P, P, 3),
    "least error": lambda: tpl.allocate_optimally(1.0, P, P, 3),
    "releases": lambda: sip.release_sequences([[0, 1]] * 2, CRR, CHAIN, rng=0),
    "allocations": lambda: tf.allocate_for_several(lambda *pair: 1.0, [(P, P)] * 2),
    "pairwise leakage": lambda: tf.pairwise_leakage([[0, 1], [1, 0]], P, P, horizon=3),
    "profiles": lambda: tf.temporal_privacy_profile([0.1] * 3, P, P, grid=0.1).backward,
    "profiles together": lambda: tf.temporal_privacy_profile([0.1] * 3, P, P, grid=0.1).both,
    "search": lambda: tf.allocate_series_noise(1.0, SERIES, 1.0),
    "least noise, at most": lambda: tf.allocate_series_noise(1.0, SERIES, 1.0, equal=False),
    "population": lambda: tr.population_leakage(WALKS, [0.1] * 3, batch_size=1),
    "bootstrap": lambda: tr.report(WALKS, alpha=1.0, horizon=3, draws=5, anyway=True),
}


@pytest.mark.parametrize("name", LONG)
def test_what_may_take_long_shows_how_far_it_is(name, monkeypatch, capsys):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    LONG[name]()
    # tqdm writes elsewhere once it has seen a notebook
    assert f"{name}: " in "".join(capsys.readouterr())


def test_a_bar_is_drawn_on_a_terminal_and_in_a_notebook_after_two_seconds(monkeypatch, capsys):
    def drawn(show=True):
        with Bar(3, "steps", "step", show) as bar:
            bar.update(2)
            bar.update()
        assert bar.n == 3
        return "steps: 67%" in "".join(capsys.readouterr()).replace("  ", " ")

    assert not drawn()
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    assert not drawn()  # nobody looks
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert drawn()
    assert not drawn(show=False)
    with monkeypatch.context() as hidden:
        hidden.setenv("TQDM_DISABLE", "1")
        assert not drawn()  # tqdm_notebook itself draws one
    monkeypatch.delitem(sys.modules, "IPython")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert drawn()
    assert [*with_progress(iter("ab"), "letters", "letter", size=ord)] == ["a", "b"]
    assert "letters: 97letter" in "".join(capsys.readouterr())
