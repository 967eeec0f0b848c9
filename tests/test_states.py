"""Every public name, called with the same numbers and states in many forms.

The result is that of plain arrays, with its state axes in the order of the states given, or there
is an error that says what must be, what was found and what to do; never another number. Warnings
and floating-point errors are errors.
"""

import inspect
import math
import re
import tempfile
import warnings
from functools import partial

import dp_accounting
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import tplfrontier as tf
import tplreport as tr
import tplrepro as tpl
from experiments.comparison import setting_from_sequences
from experiments.sip.expected_release import expected_release
from tests.work import search_once
from tplfrontier.budgets import gaussian_filter, gaussian_noise, linear_gaussian, stopping
from tplfrontier.series import noise
from tplrepro import dphmm, eventlog, markov, mechanisms, sip
from tplrepro.leakage.envelope.compiled import Kernel
from tplrepro.mechanisms import LaplaceNoise

STEPS = np.array([[4, 3, 1], [1, 6, 1], [2, 2, 4]]) / 8  # eighths are the same numbers in float32
START, ANSWERS = np.array([4, 3, 1]) / 8, np.array([[0, 0], [3, 1], [1, 5]])
DOWNWARDS = np.tril(STEPS) / np.tril(STEPS).sum(axis=1, keepdims=True)
DISTANCES = np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0]])
COUNTS = np.array([[4, 3, 1], [1, 6, 1], [2, 2, 4]])
WALKS = [[0, 1, 1, 2, 0, 2], [2, 0, 0, 1, 2, 1]]
LIKELIHOODS = -np.array([[0.0, 0.5, 1.0], [2.0, 0.25, 0.0], [1.0, 1.0, 0.5]])


class Plain:
    """Arrays in the order 0, 1, 2."""

    change = staticmethod(lambda values: values)  # of numbers that belong to no states

    order = np.arange(3)
    states = None
    numbered = False  # whether no chain names the states, so that labels 0, 1, 2 are numbers

    def array(self, values, axes):
        for axis in axes:
            values = np.take(values, self.order, axis)
        return values

    rows = array
    start = property(lambda self: self.rows(START, (0,)))
    answers = property(lambda self: self.rows(ANSWERS, (0,)))
    likelihoods = property(lambda self: self.rows(LIKELIHOODS, (1,)))
    steps = property(lambda self: self.rows(STEPS, (0, 1)))
    counts = property(lambda self: self.rows(COUNTS, (0, 1)))
    distances = property(lambda self: self.rows(DISTANCES, (0, 1)))
    P = property(lambda self: self.matrix())

    def matrix(self, values=STEPS):
        return tpl.TransitionMatrix(self.array(values, (0, 1)), self.states)

    def walks(self):
        return [np.argsort(self.order)[walk] for walk in WALKS]

    def numbers(self, values):
        return self.change(np.array(values))

    def number(self, value):
        return self.numbers([value])[0]

    def log(self):
        """An event log of two cases."""
        columns = {
            "case:concept:name": [2, 1, 1, 2],
            "concept:name": ["b", "a", "c", "a"],
            "time:timestamp": range(4),
        }
        log = pd.DataFrame(columns)
        log["time:timestamp"] = pd.to_datetime(log["time:timestamp"], unit="D")
        return log.assign(**{"case:concept:name": self.column(log["case:concept:name"])})

    def reports(self):
        """Where two users were."""
        columns = {"user": [1, 1, 1, 2], "time": [0.0, 4.0, 11.0, 0.0], "cell": [5, 6, 5, 6]}
        return pd.DataFrame(
            {name: self.column(pd.Series(column)) for name, column in columns.items()}
        )

    def column(self, values):
        return values


class Permuted(Plain):
    """The states in another order, without labels."""

    order = np.array([2, 0, 1])


class Named(Plain):
    """A matrix with named states; what belongs to them is a Series or DataFrame in another order,
    or a mapping."""

    def __init__(self, states, kind="pandas"):
        self.names, self.kind = states, kind

    @property
    def states(self):
        self.numbered = False
        return self.names

    @property
    def order(self):
        return (
            np.argsort(self.names) if self.numbered and {*self.names} == {0, 1, 2} else np.arange(3)
        )

    def matrix(self, values=STEPS):
        return tpl.TransitionMatrix(values, self.states)

    def rows(self, values, axes):
        labels, other = pd.Index(self.names), [1, 2, 0]
        if self.kind == "mapping":
            return dict(
                zip(
                    [self.names[k] for k in other],
                    np.moveaxis(values, axes[0], 0)[other],
                    strict=True,
                )
            )
        if values.ndim == 1:
            return pd.Series(values, labels).iloc[other]
        frame = pd.DataFrame(values)
        for axis in axes:
            frame = frame.set_axis(labels, axis=axis).take(other, axis=axis)
        return [row for _, row in frame.iterrows()] if self.kind == "series" else frame

    def walks(self):
        return [[self.states[k] for k in walk] for walk in WALKS]


class As(Plain):
    """The same numbers in arrays of another kind."""

    def __init__(self, change):
        self.change = change

    def rows(self, values, axes):
        return self.change(values)

    def matrix(self, values=STEPS):
        return tpl.TransitionMatrix(self.change(values))

    def walks(self):
        return [self.change(np.array(walk)) for walk in WALKS]


class Typed(As):
    """The same numbers in pandas objects of other types."""

    def __init__(self, **types):
        self.types = types

    def column(self, values):
        return values.astype(self.types[values.dtype.kind])

    def change(self, values):
        return (
            self.column(pd.Series(values))
            if values.ndim == 1
            else pd.DataFrame(values).apply(self.column)
        )


def read_only(values):
    values = values.copy()
    values.setflags(write=False)
    return values


def non_contiguous(values):
    return np.repeat(np.asfortranarray(values), 2, axis=0)[::2]


def small(kind):
    """To a smaller type where that holds the same numbers."""
    return lambda values: values.astype(kind) if (values.astype(kind) == values).all() else values


def hidden(values):
    """Masked arrays in which other numbers lie under the mask, and rows sum to what they should."""
    other = np.roll(values, 1, axis=-1) if values.shape[-1] > 1 else values + 1
    return np.ma.array(other, mask=other != values)


FORMS = {
    "permuted": Permuted(),
    "numbers": Named([10, 3, 7]),
    "digits": Named([2, 0, 1]),
    "mapping": Named([10, 3, 7], "mapping"),
    "strings": Named(["c", "a", "b"]),
    "list of series": Named(["c", "a", "b"], "series"),
    "categories": Named(pd.Categorical(["c", "a", "b"], categories=["b", "c", "a"]).tolist()),
    "tuples of a frame": Named([("x", 1), ("x", 0), ("y", 1)], "mapping"),
    "uint8": As(small(np.uint8)),
    "float32": As(small(np.float32)),
    "read-only": As(read_only),
    "non-contiguous": As(non_contiguous),
    "sparse": As(lambda values: scipy.sparse.csr_array(values) if values.ndim == 2 else values),
    "coordinates": As(
        lambda values: scipy.sparse.coo_matrix(values) if values.ndim == 2 else values
    ),
    "lists": As(lambda values: values.tolist()),
    "objects": As(lambda values: values.astype(object)),
    "Fortran order": As(np.asfortranarray),
    "big-endian": As(lambda values: values.astype(values.dtype.newbyteorder(">"))),
    "masked array": As(np.ma.array),
    "hidden by a mask": As(hidden),
    "lists hidden by a mask": As(
        lambda values: [*hidden(values)] if values.ndim == 2 else hidden(values)
    ),
    "missing": As(lambda values: np.where(values == values.flat[0], np.nan, values)),
    "text": As(lambda values: values.astype(str)),
    "complex": As(lambda values: values + 0j),
    "complex and sparse": As(
        lambda values: scipy.sparse.csr_array(values + 0j) if values.ndim == 2 else values + 0j
    ),
    "nullable": Typed(i="Int64", f="Float64", b="boolean", O="string"),
    "arrow": Typed(i="int64[pyarrow]", f="double[pyarrow]", b="bool[pyarrow]", O="string[pyarrow]"),
}

BOTH, ONE, NONE = (0, 1), (0,), ()
BY_BOUND = partial(tpl.allocate_by_upper_bound, 1.0)
CRR = sip.ConditionalRandomizedResponse(1.0)
GRAPH = dphmm.PolicyGraph.complete(3)
EPSILONS, GAUSSIAN = [0.5, 1.0, 0.5], [dp_accounting.GaussianDpEvent(2.0)] * 3
CORRELATED = np.array([[4, 1], [1, 4]])
LINEAR = np.array([[0.5]]), np.array([[1]]), np.array([1]), np.array([[1]])
SERIES = tf.LinearGaussianSeries.autoregressive(0.5, 2)
SMOOTH = partial(tpl.TransitionMatrix.from_sequences, smoothing=1.0)
REPORT = partial(tr.report, alpha=1.0, draws=0, anyway=True)
at_all_times, counts = tpl.leakage_at_all_times, partial(tr.release_counts, mechanism="numpy")


def RNG():
    return np.random.default_rng(0)


def sequences(f, **options):
    states = [*range(3)] if f.states is None else f.states
    return markov.as_sequences(f.walks(), states=states, **options)


def batch_distances(f):
    batches = sip.observed_batches(sequences(f), 2)
    widths, numbers = batches.widths, np.arange(batches.n_states)
    table = batches.distance(f.distances)(numbers[:, None], numbers)
    return table[np.ix_(widths == 2, widths == 2)]


def edges(graph, f):
    pairs = {tuple(sorted(f.order[list(pair)].tolist())) for pair in graph.edges}
    return [float(pair in pairs) for pair in ((0, 1), (0, 2), (1, 2))]


def released(f, chosen=CRR):
    chain = sip.SymbolChain.first_order(f.start, f.P)
    result = sip.release_sequences(sequences(f), chosen, chain, rng=RNG())
    return [*expected_release(chosen, chain, 3).leakages, len(result.outputs)]


def worst(f):
    high = tpl.worst_outputs(f.numbers(EPSILONS), f.P, f.P, time=1).high
    return tf.measured_leakage(high * np.array(EPSILONS)[:, None], f.P, f.P).tpl[1]


def published(f):
    """What remains after a publication of counts, whose noise is not repeatable."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = dict(alpha=f.number(1), sensitivity=f.number(2), floor=f.number(0.125))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "backward= and forward= are one matrix")
            account = tr.Publisher(
                f"{folder}/counts", backward=f.P, forward=f.P, step="1h", **numbers
            )
        account.publish("2024-05-01 08:00", dict(zip("abc", f.numbers([5, 7, 200]), strict=True)))
        return account.remaining


def smooth(f):
    """Estimates of noisy counts of states, by their labels."""
    labels = f.states
    rng = RNG()
    people = [rng.multinomial(600, START)]
    for _ in range(23):
        moves = map(rng.multinomial, people[-1], STEPS)
        people.append(sum(moves))
    noisy = np.array(people) + rng.laplace(scale=2.0, size=(24, 3))
    noisy = pd.DataFrame(f.array(noisy, (1,)), columns=labels)
    options = {"epsilons": f.number(1), "sensitivity": f.number(2), "initial": f.start}
    return tr.smooth_counts(noisy, chain=f.P, **options).estimate.to_numpy()


def learned(f):
    """Loss functions of a model whose budget leaves no noise, which would not be repeatable."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = dict(steps_per_user=9, epsilon=f.number(2.0**20))
        states = [*range(3)] if f.states is None else f.states
        model = tr.learn_privately(sequences(f), path=f"{folder}/model", states=states, **numbers)
        assert tr.PrivateModel.read(f"{folder}/model").to_json() == model.to_json()
        return [model.forward(1.0), model.backward(1.0)]


def table(f):
    return tr.read_table(f.reports(), user="user", time="time", state="cell")


def response(kind):
    return lambda f: kind.response(f.start).matrix()


# What is called, the axes of its result that belong to states, and the call.
ROWS = [
    ("TransitionMatrix", BOTH, lambda f: f.P.to_numpy()),
    (
        "TransitionMatrix of a frame",
        BOTH,
        lambda f: tpl.TransitionMatrix(f.steps, f.states).to_numpy(),
    ),
    ("stationary", ONE, lambda f: f.P.stationary()),
    ("reverse", BOTH, lambda f: f.P.reverse(f.start).to_numpy()),
    (
        "Cycle, reverse",
        BOTH,
        lambda f: tpl.Cycle([f.P, f.P**2]).reverse(f.start).first[0].to_numpy(),
    ),
    ("Cycle, laws", ONE, lambda f: tpl.Cycle([f.P, f.P**2]).laws()[1]),
    ("sample", NONE, lambda f: len(f.P.sample(4, rng=RNG(), initial=f.start))),
    ("@", ONE, lambda f: f.P @ f.start),
    ("@ of two", BOTH, lambda f: (f.P @ f.P).to_numpy()),
    (
        "from_counts",
        BOTH,
        lambda f: tpl.TransitionMatrix.from_counts(f.counts, 0.5, f.states).to_numpy(),
    ),
    (
        "from_sequences",
        BOTH,
        lambda f: tpl.TransitionMatrix.from_sequences(sequences(f), smoothing=0.5).to_numpy(),
    ),
    ("smoothed", BOTH, lambda f: tpl.smoothed(f.P, 0.5).to_numpy()),
    ("count_transitions", BOTH, lambda f: markov.count_transitions(sequences(f))[0].toarray()),
    ("drop_dead_ends", BOTH, lambda f: markov.drop_dead_ends(f.counts, f.states)[0].toarray()),
    (
        "estimate_higher_order",
        NONE,
        lambda f: tf.estimate_higher_order(sequences(f), 2, 1.0).n_states,
    ),
    (
        "one_place_leakage",
        NONE,
        lambda f: tf.one_place_leakage(
            f.numbers([0.5, 0.25, 0.125]), tf.estimate_higher_order(sequences(f), 2, 1.0)
        ),
    ),
    (
        "one_place_supremum",
        NONE,
        lambda f: tf.one_place_supremum(0.25, tf.estimate_higher_order(sequences(f), 2, 1.0)),
    ),
    (
        "allocate_for_one_place",
        NONE,
        lambda f: tf.allocate_for_one_place(0.25, tf.estimate_higher_order(sequences(f), 2, 1.0)),
    ),
    ("every_kth", BOTH, lambda f: tf.every_kth(f.P, 2).to_numpy()),
    (
        "posterior_draws",
        NONE,
        lambda f: next(tr.posterior_draws(f.counts, 1, 1, rng=RNG())).n_states,
    ),
    (
        "forward_backward",
        (1,),
        lambda f: markov.forward_backward(f.likelihoods, f.P, f.start).smoothed,
    ),
    (
        "condition_on",
        (1,),
        lambda f: tpl.condition_on(f.P, f.start, f.rows(np.exp2(LIKELIHOODS), (1,))).possible,
    ),
    (
        "backward given evidence",
        BOTH,
        lambda f: tpl.condition_on(f.P, f.start, f.rows(-LIKELIHOODS, (1,))).backward[1].to_numpy(),
    ),
    ("PrivacyLossFunction", NONE, lambda f: tpl.PrivacyLossFunction(f.P)([0.5, 2.0])),
    ("privacy_loss", NONE, lambda f: tpl.privacy_loss(f.steps, 1.0)),
    (
        "temporal_privacy_leakage",
        NONE,
        lambda f: tpl.temporal_privacy_leakage(f.numbers(EPSILONS), f.P, f.P).tpl,
    ),
    (
        "leakage_suprema",
        NONE,
        lambda f: tpl.leakage_suprema(f.numbers(EPSILONS), tpl.Cycle([f.P] * 3), f.P).tpl,
    ),
    ("exact_leakage", NONE, lambda f: tpl.exact_leakage(f.numbers(EPSILONS), f.P, f.P).tpl),
    (
        "mechanism_leakage",
        NONE,
        lambda f: tf.mechanism_leakage(f.rows(1.0 + ANSWERS, ONE), f.P, f.P, horizon=3).tpl,
    ),
    ("measured_leakage", NONE, lambda f: tf.measured_leakage(f.likelihoods, f.P, f.P).tpl),
    (
        "population_leakage",
        NONE,
        lambda f: tr.population_leakage(sequences(f), f.numbers(EPSILONS)).bpl,
    ),
    ("allocate_by_upper_bound", NONE, lambda f: BY_BOUND(f.P, f.P)),
    ("allocate_for_several", NONE, lambda f: tf.allocate_for_several(BY_BOUND, [(f.P, f.P)])),
    (
        "temporal_privacy_profile",
        NONE,
        lambda f: tf.temporal_privacy_profile(GAUSSIAN, f.P, None).epsilon(1e-3),
    ),
    (
        "instantaneous_leakage",
        NONE,
        lambda f: sip.instantaneous_leakage(f.rows(STEPS, ONE), f.start),
    ),
    ("mutual_information", NONE, lambda f: sip.mutual_information(f.rows(STEPS, ONE), f.start)),
    (
        "local_differential_privacy",
        NONE,
        lambda f: sip.local_differential_privacy(f.rows(STEPS, ONE)),
    ),
    ("markov_sequences", BOTH, lambda f: sip.markov_sequences(f.start, f.P, 2)),
    ("batch_belief", BOTH, lambda f: sip.batch_belief(f.start, f.P, 2).reshape(3, 3)),
    ("batch_chain", BOTH, lambda f: sip.batch_chain(f.start, f.P, 2).initial.reshape(3, 3)),
    ("batch_distance", NONE, lambda f: sip.batch_distance(3, 2, f.distances).sum()),
    ("SymbolChain", BOTH, lambda f: sip.SymbolChain.first_order(f.start, f.P).toarray()),
    ("release_sequences", NONE, released),
    ("previous symbols", NONE, lambda f: released(f, sip.TemporalRandomizedResponse(1.0, f.P))),
    (
        "chain_from_sequences",
        ONE,
        lambda f: sip.chain_from_sequences(sequences(f), initial=f.start).initial,
    ),
    ("OptimalResponse", BOTH, response(sip.OptimalResponse(1.0))),
    (
        "OptimalResponse by distance",
        BOTH,
        lambda f: response(sip.OptimalResponse(1.0, f.distances))(f),
    ),
    ("ConditionalRandomizedResponse", BOTH, response(CRR)),
    ("RandomizedResponse", BOTH, response(sip.RandomizedResponse(1.0))),
    (
        "TemporalRandomizedResponse",
        BOTH,
        lambda f: response(sip.TemporalRandomizedResponse(1.0, f.P))(f),
    ),
    ("observed_batches", NONE, lambda f: batch_distances(f).sum()),
    (
        "delta_location_set",
        NONE,
        lambda f: np.sort(f.order[dphmm.delta_location_set(f.start, 0.2)]),
    ),
    ("PolicyGraph.utility", NONE, lambda f: edges(dphmm.PolicyGraph.utility(f.answers, 4.0), f)),
    (
        "PolicyGraph.transition",
        NONE,
        lambda f: edges(dphmm.PolicyGraph.transition(f.matrix(DOWNWARDS)), f),
    ),
    (
        "constrain",
        NONE,
        lambda f: np.sort(f.order[GRAPH.constrain(f.rows(START > 0.2, ONE)).possible]),
    ),
    ("sensitivity_hull", NONE, lambda f: dphmm.sensitivity_hull(GRAPH, f.answers).volume),
    ("l1_sensitivity", NONE, lambda f: dphmm.l1_sensitivity(GRAPH, f.answers)),
    ("degree_of_protection", ONE, lambda f: dphmm.degree_of_protection(GRAPH, f.answers)),
    ("constrained_dp_factor", NONE, lambda f: dphmm.constrained_dp_factor(GRAPH, f.answers)),
    ("protectable_graph", NONE, lambda f: edges(dphmm.protectable_graph(GRAPH, f.answers), f)),
    ("KNormMechanism", NONE, lambda f: dphmm.KNormMechanism(GRAPH, f.answers, 1.0).error),
    (
        "dphmm.release",
        ONE,
        lambda f: next(dphmm.release([1], GRAPH, f.answers, 1.0, f.P, f.start, rng=RNG())).prior,
    ),
    ("exposed_states", NONE, lambda f: dphmm.exposed_states(GRAPH, f.answers).size),
    ("LaplaceMechanism", NONE, lambda f: dphmm.LaplaceMechanism(GRAPH, f.answers, 1.0).error),
    (
        "PlanarIsotropicMechanism",
        NONE,
        lambda f: dphmm.PlanarIsotropicMechanism(GRAPH, f.answers, 1).error,
    ),
    ("BatchResponse", NONE, lambda f: sip.BatchResponse(1.0, 2, 3, f.distances).distance.sum()),
    ("TemporalAccountant", NONE, lambda f: tpl.TemporalAccountant(f.P, f.P).compose(0.5, 3).tpl),
    ("EventAccountant", NONE, lambda f: tf.EventAccountant(f.P, f.P).compose(0.5, 3).tpl),
    (
        "pairwise_leakage",
        (1, 2),
        lambda f: tf.pairwise_leakage(f.distances, f.P, f.P, horizon=3).tpl,
    ),
    ("loss_from_counts", NONE, lambda f: tf.loss_from_counts(f.counts, 0.9, f.states)(1.0)),
    ("published.algorithm_1", NONE, lambda f: tpl.published.algorithm_1(f.steps, 1.0)),
    ("linear_program.loss", NONE, lambda f: tpl.linear_program.loss(f.steps, 1.0, solver="HiGHS")),
    ("PriorFreeLoss", NONE, lambda f: tpl.PriorFreeLoss(f.P)(1.0)),
    (
        "allocate_by_quantification",
        NONE,
        lambda f: tpl.allocate_by_quantification(1.0, f.P, f.P, 3),
    ),
    (
        "setting_from_sequences",
        (1,),
        lambda f: setting_from_sequences(sequences(f), f.answers, 3, 0.5, 4.0).counts,
    ),
    ("allocate_by_exact_leakage", NONE, lambda f: tpl.allocate_by_exact_leakage(1.0, f.P, f.P, 3)),
    (
        "allocate_optimally",
        NONE,
        lambda f: tpl.allocate_optimally(1.0, f.P, f.P, 3, weights=f.numbers([1, 2, 1])),
    ),
    ("worst_outputs", NONE, worst),
    (
        "TemporalFilter",
        NONE,
        lambda f: tpl.TemporalFilter(f.number(1), f.P, f.P).spend(f.number(0.5)).remaining,
    ),
    (
        "leakage_at_all_times",
        NONE,
        lambda f: at_all_times(f.numbers([0.5, 1]), f.P, f.P, times=[0, 1], horizon=3).tpl,
    ),
    ("strongest", NONE, lambda f: tpl.strongest(f.number(3)).to_numpy()),
    ("as_sequences", NONE, lambda f: sequences(f).values.size),
    (
        "Sequences",
        NONE,
        lambda f: [*markov.Sequences(f.numbers([0, 1, 0]), f.numbers([0, 3]), ["a", "b"], ["u"])],
    ),
    (
        "LaplaceNoise",
        NONE,
        lambda f: LaplaceNoise(f.number(0.5)).log_ratio(f.numbers([3, 1]), f.number(2)),
    ),
    (
        "LaplaceNoise density",
        NONE,
        lambda f: LaplaceNoise(f.numbers([1, 2])).log_density(f.numbers([3, 1])),
    ),
    ("LaplaceNoise tail", NONE, lambda f: LaplaceNoise(2.0).log_cdf(f.numbers([3, 1]))),
    ("compose", NONE, lambda f: sip.compose(f.numbers(EPSILONS), 0.01)),
    (
        "sequence_leakage",
        NONE,
        lambda f: sip.sequence_leakage(CRR, f.rows(STEPS / 3, BOTH)).sequence,
    ),
    (
        "Belief",
        NONE,
        lambda f: sip.Belief.start(sip.SymbolChain.first_order(f.start, f.P)).current.max(),
    ),
    (
        "DataRelease",
        NONE,
        lambda f: len(
            [*dphmm.DataRelease(GRAPH, f.answers, f.P).series([1], 1, f.start, rng=RNG())]
        ),
    ),
    (
        "SensitivityHull",
        NONE,
        lambda f: dphmm.SensitivityHull(f.numbers(ANSWERS)).norm(f.numbers([1, 2])),
    ),
    ("cross_polytope", NONE, lambda f: dphmm.cross_polytope(f.number(2), f.number(3)).volume),
    (
        "protect",
        NONE,
        lambda f: (
            dphmm.protect(dphmm.PolicyGraph(3, f.numbers([[0, 1]])), f.numbers(ANSWERS)).hull.volume
        ),
    ),
    (
        "PolicyGraph",
        NONE,
        lambda f: dphmm.PolicyGraph.categorical([f.numbers([0, 2]), [1]]).edge_array,
    ),
    (
        "releases",
        NONE,
        lambda f: [each.published for each in eventlog.releases(f.log(), f.number(1))][-1].sum(),
    ),
    (
        "quantify_releases",
        NONE,
        lambda f: eventlog.quantify_releases(f.log(), f.number(0.5), state_window=1).tpl,
    ),
    (
        "TransitionSystem",
        NONE,
        lambda f: eventlog.TransitionSystem.from_log(f.log(), 1).counts.sum(),
    ),
    (
        "release_step",
        NONE,
        lambda f: eventlog.release_step(eventlog.TransitionSystem.from_log(f.log())).forward.sum(),
    ),
    ("PublishedLoss", NONE, lambda f: eventlog.PublishedLoss(f.P).at(f.number(1))),
    (
        "loss_matrix",
        NONE,
        lambda f: eventlog.loss_matrix(scipy.sparse.csr_array(STEPS), f.number(1))[0].to_numpy(),
    ),
    (
        "ExactGaussianProfile",
        NONE,
        lambda f: tf.ExactGaussianProfile(f.numbers([2, 2]), None, None).delta(f.number(0.5)),
    ),
    ("gaussian_delta", NONE, lambda f: tf.gaussian_delta(f.number(1), f.number(2))),
    ("gaussian_epsilon", NONE, lambda f: tf.gaussian_epsilon(f.number(1), f.number(0.125))),
    ("gaussian_mu", NONE, lambda f: tf.gaussian_mu(f.number(1), f.number(0.125))),
    (
        "gaussian_series_leakage",
        NONE,
        lambda f: tf.gaussian_series_leakage(f.numbers(CORRELATED), f.number(4), 1.0),
    ),
    (
        "gaussian_series_limit",
        NONE,
        lambda f: tf.gaussian_series_limit(SERIES, f.number(4), f.number(1)),
    ),
    (
        "LinearGaussianSeries",
        NONE,
        lambda f: tf.LinearGaussianSeries(*map(f.numbers, LINEAR), f.number(2)).covariance,
    ),
    (
        "event_level_budgets",
        NONE,
        lambda f: tf.event_level_budgets(f.numbers(CORRELATED), f.number(4)),
    ),
    (
        "gaussian_event_level_budgets",
        NONE,
        lambda f: tf.gaussian_event_level_budgets(
            f.numbers(CORRELATED), f.number(4), 0.125, n_states=f.number(3)
        ),
    ),
    # for both sides at once it takes twice the time of these
    (
        "GaussianFilter",
        NONE,
        lambda f: tf.GaussianFilter(f.number(1), 0.125, f.P, None).spend(f.number(9)).remaining,
    ),
    (
        "GaussianFilter of a forward matrix",
        NONE,
        lambda f: tf.GaussianFilter(f.number(1), 0.125, None, f.P).remaining,
    ),
    (
        "linear_gaussian_leakage",
        NONE,
        lambda f: tf.linear_gaussian_leakage(f.numbers(CORRELATED), f.number(4), 0.125, f.P, f.P),
    ),
    (
        "allocate_linear_noise",
        NONE,
        lambda f: tf.allocate_linear_noise(f.number(1), 0.125, f.numbers(CORRELATED), f.P, f.P),
    ),
    ("allocate_noise", NONE, lambda f: tf.allocate_noise(f.number(1), 0.125, f.P, f.P, 2)),
    (
        "PrivacyProfile",
        NONE,
        lambda f: tf.PrivacyProfile(f.numbers([0.5, 0.25, 0]), 0.5).epsilon(f.number(0.25)),
    ),
    (
        "allocate_series_noise",
        NONE,
        lambda f: tf.allocate_series_noise(1.0, f.numbers(CORRELATED), f.number(1)),
    ),
    (
        "correlate_series_noise",
        NONE,
        lambda f: tf.correlate_series_noise(1.0, f.numbers(CORRELATED), f.number(1), 1),
    ),
    (
        "endless_series_noise",
        NONE,
        lambda f: tf.endless_series_noise(f.number(1), SERIES, f.number(1)),
    ),
    (
        "allocate_with_stopping",
        NONE,
        lambda f: tf.allocate_with_stopping(1.0, f.P, f.P, f.number(0.25)).budgets(3),
    ),
    (
        "release_counts",
        NONE,
        lambda f: counts(f.numbers([[200, 7], [3, 9]]), f.numbers([1, 2]), f.number(1), rng=RNG()),
    ),
    ("Box", NONE, lambda f: tr.Box(1, 2, 3, 5).contains(f.numbers([7, 1.5]), f.numbers([9, 4]))),
    (
        "Grid",
        NONE,
        lambda f: tr.Grid(tr.Box(1, 2, 3, 5), f.number(10)).cell(
            f.numbers([7, 1.5]), f.numbers([9, 4])
        ),
    ),
    (
        "report",
        NONE,
        lambda f: (
            tr.report(
                sequences(f), 1.0, f.number(3), draws=0, rng=RNG(), anyway=True
            ).recommendation.budgets
        ),
    ),
    ("Publisher", NONE, published),
    ("smooth_counts", (1,), smooth),
    ("learn_privately, PrivateModel", NONE, learned),
    (
        "read_table, to_states, to_sequences",
        NONE,
        lambda f: [*tr.to_sequences(tr.to_states(table(f)), step=5.0)],
    ),
    (
        "read_sequences",
        NONE,
        lambda f: [*tr.read_sequences(f.reports(), user="user", time="time", state="cell")],
    ),
    ("fixed_steps", NONE, lambda f: [*tr.fixed_steps(f.reports(), 5.0)]),
    ("observed_sequences", NONE, lambda f: [*tr.observed_sequences(f.reports())]),
    (
        "bootstrap_draws",
        NONE,
        lambda f: (
            next(tr.bootstrap_draws(sequences(f), 1, rng=RNG(), estimate=SMOOTH)).to_numpy().sum()
        ),
    ),
    (
        "leakage_interval",
        NONE,
        lambda f: tr.leakage_interval([f.P] * 20, lambda P: tpl.privacy_loss(P, 1.0)).upper,
    ),
]


#: What takes nearly all the time of the rows that search for noise or budgets.
SEARCHES = (
    (gaussian_filter._EndlessCaps, "largest_rate"),
    (gaussian_noise._Series, "fit"),
    (linear_gaussian.LinearAnswers, "least_factor"),
    (noise, "_find_least_noise"),
    (noise, "_least_equal_variances"),
    (stopping, "_local_optima"),
)


@pytest.fixture
def searched_once(monkeypatch):
    """Forms that reach a search as the same numbers and states share what it finds."""
    for owner, name in SEARCHES:
        monkeypatch.setattr(owner, name, search_once(getattr(owner, name)))


@pytest.mark.usefixtures("searched_once")
@pytest.mark.parametrize(("axes", "call"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_every_form_of_states_gives_the_same(axes, call, monkeypatch):
    monkeypatch.setattr(Kernel, "worth", math.inf)  # three states are not worth compiling for
    with np.errstate(all="raise"):
        plain, wrong = flat(call(Plain())), {}
        for name, form in FORMS.items():
            form.numbered = True
            try:
                result, expected = flat(call(form)), form.array(plain, axes)
            except ValueError as error:
                if not any(words in str(error) for words in ("found", "unknown state")):
                    wrong[name] = error
            except Exception as error:
                wrong[name] = error
            else:
                same = np.shape(result) == np.shape(expected) and np.isclose(
                    result, expected, rtol=1e-9, atol=1e-12
                )
                if not np.all(same | (np.isnan(result) & (name == "missing"))):
                    wrong[name] = result
    assert wrong == {}


def flat(result):
    """Numbers, or a list of arrays of several lengths one after the other."""
    if isinstance(result, list) and len({np.shape(part) for part in result}) > 1:
        result = np.concatenate(result)
    return np.asarray(result, dtype=float)


#: Public names that take no numbers or states: readers of files, and what only comes as a result.
WITHOUT = {"read_xes", "read_log_csv", "Release"}


def test_the_table_of_forms_holds_every_public_name():
    rooms = (tpl, markov, sip, dphmm, eventlog, mechanisms, tf, tr)
    public = {name: getattr(room, name) for room in rooms for name in room.__all__}
    errors = {
        name
        for name, thing in public.items()
        if inspect.isclass(thing) and issubclass(thing, Exception)
    }
    called = {name for name, thing in public.items() if callable(thing)} - errors
    tested = {part for name, *_ in ROWS for part in (name, *re.split(", |[.]", name))}
    assert called - tested == WITHOUT, "add a row to ROWS"


def test_labels_keep_their_order_and_place_or_are_refused():
    P = tpl.TransitionMatrix(STEPS, states=[10, 3, 7])
    by_label = pd.Series(START, [10, 3, 7]).sort_index()
    chain = sip.SymbolChain.first_order(by_label, P)
    assert (chain.states, chain.initial.tolist()) == ([10, 3, 7], START.tolist())
    assert sip.batch_chain(by_label, P, 2).states[:2] == [(10, 10), (10, 3)]
    coded = markov.as_sequences([[10, 3, 7, 7, 10]])
    with pytest.raises(
        ValueError, match="chain and sequences must have the same states in the same order"
    ):
        sip.release_sequences(coded, CRR, chain, rng=RNG())
    # A symbol that never occurs keeps its place, or the table is refused.
    far = np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0]])
    assert sip.observed_batches([[0, 2], [2, 0]], 1, n_symbols=3).distance(far)(0, 1) == 3.0
    assert (
        sip.observed_batches([[0, 2]], 1).distance(pd.DataFrame(far).drop(1).drop(columns=1))(0, 1)
        == 3.0
    )
    with pytest.raises(
        ValueError, match=r"distances between 2 symbols must have shape \(2, 2\), found \(3, 3\)"
    ):
        sip.observed_batches([[0, 2], [2, 0]], 1).distance(far)
    places = np.arange(8.0).reshape(4, 2)
    for walks in (markov.as_sequences([[0, 3, 0]]), (np.array(walk) for walk in [[0, 3, 0]])):
        setting = setting_from_sequences(walks, places, 3, 1.0, 1.0)
        assert setting.counts.sum(axis=0).tolist() == [2, 0, 0, 1]
    large = [2**53, 2**53 + 1]  # equal as floats, which NumPy makes of int64 and uint64 together
    assert (
        markov.as_sequences([np.array(large), np.array(large, np.uint64)]).labels.tolist() == large
    )
    with pytest.raises(ValueError, match=r"numbered 0..2, found 1.0 in row 0"):
        dphmm.PolicyGraph.transition(tpl.TransitionMatrix(STEPS, states=[1.0, 0.0, 2.0]))
    for call in (
        P.__matmul__,
        lambda other: markov.forward_backward(LIKELIHOODS, [P, other], START),
    ):
        with pytest.raises(ValueError, match=r"same order, found \[10, 3, 7\] and \[3, 7, 10\]"):
            call(tpl.TransitionMatrix(STEPS, states=[3, 7, 10]))
    exact = sip.release_sequences(
        markov.as_sequences([[10, 3, 7]], states=chain.states), CRR, chain, rng=RNG()
    )
    assert 1.5 < exact.largest_leakage < 1.76


def test_whole_numbers_that_were_seen_are_labels_and_rows_with_labels_keep_them():
    seen = tpl.TransitionMatrix.from_sequences(WALKS)
    frame = pd.DataFrame(STEPS, [0, 1, 2], [0, 1, 2])
    others = tpl.TransitionMatrix.from_sequences([[0, 1, 3, 0, 3, 1, 0]], smoothing=1.0)
    for P in (seen, tpl.TransitionMatrix(frame), tpl.TransitionMatrix.from_counts(frame)):
        assert P.states == [0, 1, 2]
        for other in (others, tpl.TransitionMatrix.from_sequences(WALKS, states=[2, 0, 1])):
            with pytest.raises(ValueError, match=r"same order, found \[0, 1, 2\] and "):
                tpl.temporal_privacy_leakage([0.1] * 3, P, other)
    for P in (
        tpl.TransitionMatrix.from_sequences(WALKS, 3),
        tpl.TransitionMatrix(frame.reset_index(drop=True)),
    ):
        assert (P @ others).states == [0, 1, 3]  # positions fit any labels
    P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], ["home", "work"])
    rows = [pd.Series({"work": 0.0, "home": 1.0}), pd.Series({"work": 1.0, "home": 1.0})]
    assert P.__rmatmul__(rows[0]).tolist() == [0.8, 0.2]
    assert tpl.condition_on(P, [0.5, 0.5], rows).forward[0].to_numpy().tolist() == [
        [0.8, 0.2],
        [0.8, 0.2],
    ]
    with pytest.raises(
        ValueError, match=r"rows and columns must have the states .*, found \[0, 1\]"
    ):
        tpl.TransitionMatrix([pd.Series({"work": 0.2, "home": 0.8})] * 2, ["home", "work"])
