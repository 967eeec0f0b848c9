"""What somebody meant who wrote a name or a parameter that does not exist; read only when an error is shown."""

import inspect
import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from importlib import import_module

# Public names of 0.2 that 0.3 renamed -> what to use instead; the errors of accesses to old names say so.
# Keys are "tpl.old" for a name of the package itself, "sip.old" for one of a room, "gowalla.old" for one of a
# module in a room, "PolicyGraph.old" for a member of a class, and "function(old=)" for a parameter.
RENAMED: dict[str, str] = {
    "tpl.random_matrix": "tplrepro.TransitionMatrix.random(n, rng=numpy.random.default_rng(seed))",
    "markov.random_matrix": "tplrepro.TransitionMatrix.random(n, rng=numpy.random.default_rng(seed))",
    "published.theorem_11": "published.algorithm_6(epsilon, tables), which evaluates the theorem",
    "TransitionMatrix.propagate": "distribution @ P",
    "tpl.TemporalPrivacyAccountant": "tplrepro.TemporalAccountant, which takes dp_accounting's events",
    "tpl.TemporalRenyiLeakage": "tplrepro.temporal_privacy_profile",
    "tpl.temporal_renyi_leakage": "tplrepro.temporal_privacy_profile, which takes dp_accounting.ZCDpEvent",
    "leakage_interval(level=)": "confidence",
    "LeakageInterval.level": "LeakageInterval.confidence",
    "BatchResponse(method=)": "experiments.sip.gradient.GradientResponse, in the repository",
    "sip.BatchDistance": "tplrepro.sip.batches.BatchDistance",
    "sip.Batches": "tplrepro.sip.batches.Batches",
    "sip.BeliefMechanism": "tplrepro.sip.response.BeliefMechanism",
    "sip.Response": "tplrepro.sip.response.Response",
    "sip.release_sequence": "sip.release(sequence, mechanism, chain, rng=rng)",
    "sip.encode_batches": "numpy.ravel_multi_index",
    "sip.decode_batch": "numpy.unravel_index(batch, (n_symbols,) * width)",
    "sip.expected_release": "experiments.sip.expected_release.expected_release, in the repository",
    "sip.grid_distance": "experiments.sip.setups.cell_distance, in the repository",
    "sip.release_tops": "experiments.sip.tops.release_tops, in the repository",
    "eventlog.check_log": "eventlog.TransitionSystem.from_log, which checks its log",
    "eventlog.ReleaseStep": "tplrepro.eventlog.transition_system.StepMatrices",
    "eventlog.prepare": "experiments.datasets.event_logs.prepare_logs, in the repository",
    "eventlog.synthetic": "experiments.datasets.event_logs.synthetic_log, in the repository",
    "tpl.explore": "the folder page/ of the repository",
    "mechanisms.KaryRandomizedResponse": "experiments.comparison.local.Reports, in the repository",
    "mechanisms.UnaryEncoding": "experiments.comparison.local.Reports, in the repository",
    "dphmm.possible_states": "numpy.flatnonzero(prior)",
    "dphmm.is_protectable": "dphmm.exposed_states(...).size == 0",
    "dphmm.unbounded_dp_factor": "dphmm.sensitivity_hull(policy, answers).norm(answers).max()",
    "PolicyGraph.neighbors": "policy.graph.neighbors(state)",
    "dphmm.Protection": "dphmm.protection.Protection, which dphmm.protect returns",
    "dphmm.ReleaseStep": "dphmm.data_release.ReleasedAnswer, which dphmm.release yields",
}

# A module of the repository -> the public names of 0.2, written as above, that moved there.
MOVED: dict[str, tuple[str, ...]] = {
    "experiments.datasets.preparation": ("datasets.prepare", "datasets.joint_record", "datasets.Prepared"),
    "experiments.datasets.event_logs": ("eventlog.PreparedLogs", "eventlog.recorded_logs"),
    "experiments.datasets.geolife": ("geolife.synthetic",),
    "experiments.datasets.gowalla": ("gowalla.synthetic",),
    "experiments.datasets.kosarak": ("kosarak.synthetic",),
    "experiments.datasets.gaze": ("gaze.synthetic",),
    "experiments.datasets.hidden": ("markov.fit_hidden_chain",),
    "experiments": ("tpl.comparison", "tpl.claims", "tpl.figures", "tpl.timing", "tpl.provenance"),
    "experiments.dphmm": ("dphmm.drawing", "dphmm.evaluation", "dphmm.mobility", "dphmm.running_example"),
    "experiments.dphmm.local_mechanism": ("dphmm.LocalMechanism",),
    "experiments.sip.setups": (
        "sip.cell_distance",
        "sip.gaze_cells",
        "sip.halves",
        "sip.least_leakage",
        "sip.second_beliefs",
        "sip.two_step_noise",
    ),
    "experiments.sip.identification": (
        "sip.MarkovClassifier",
        "sip.RecurrentClassifier",
        "sip.identification_rate",
        "sip.smoothed_symbols",
    ),
}
for _module, _names in MOVED.items():
    RENAMED |= {name: f"{_module}.{name.partition('.')[2]}, in the repository" for name in _names}

# A word of our names -> the words that others use for it.
SYNONYMS = {
    "accountant": {"filter", "ledger", "odometer"},
    "allocate": {"budget", "budgets", "calibrate", "epsilon", "plan", "schedule", "split"},
    "alpha": {"bound", "level", "target"},
    "backward": {"b", "past"},
    "bpl": {"backward"},
    "compose": {"add", "record", "spend"},
    "confidence": {"level", "probability"},
    "counts": {"add"},
    "delta": {"failure"},
    "epsilon": {"budget", "budgets", "eps", "privacy"},
    "forward": {"f", "future"},
    "fpl": {"forward"},
    "horizon": {"length", "n", "periods", "steps", "t", "times"},
    "inverse": {"invert"},
    "noise": {"mechanism", "sigma", "std"},
    "policy": {"graph"},
    "population": {"people", "users"},
    "privacy": {"compute", "loss"},
    "probabilities": {"data", "matrix", "plot", "values"},
    "read": {"load", "open"},
    "release": {"noise", "noisy", "perturb", "publish"},
    "remaining": {"left"},
    "reverse": {"backward", "bayes", "forward", "inverse", "t", "transpose"},
    "rng": {"generator", "random", "seed", "state"},
    "sensitivity": {"hull"},
    "sequences": {"csv", "data", "dataframe", "estimate", "fit", "learn", "load", "train"},
    "smoothing": {"alpha", "laplace", "prior", "pseudo"},
    "states": {"labels", "n", "names", "order", "size"},
    "stationary": {"equilibrium", "steady"},
    "supremum": {"asymptote", "limit", "max", "sup"},
    "temporal": {"bpl", "fpl", "quantify", "tpl"},
    "tpl": {"leakage", "max", "maximum", "temporal", "worst"},
    "transition": {"chain", "estimate", "fit", "markov", "train"},
    "xes": {"log"},
}

# Where a word is written -> the word -> what to write instead, if none of our names is enough by itself.
ESTIMATE = "TransitionMatrix.from_sequences(sequences)"
INSTEAD = {
    "tpl": {
        **dict.fromkeys(("dataframe", "estimate", "fit", "learn", "train"), ESTIMATE),
        **dict.fromkeys(("bound", "limit", "sup", "supremum"), "PrivacyLossFunction(P).supremum(epsilon)"),
        "accountant": "tplrepro.TemporalAccountant",
        "event": "temporal_privacy_leakage(epsilons, backward, forward).w_event(w)",
        "release": "tplrepro.release_counts(series, epsilons, sensitivity)",
    },
    "TransitionMatrix": {
        **dict.fromkeys(("array", "matrix", "numpy"), "TransitionMatrix(rows)"),
        **dict.fromkeys(("identity", "strongest"), "tplrepro.strongest(n)"),
        "plot": "matplotlib.pyplot.imshow(P.probabilities)",
        **dict.fromkeys(("power", "step", "steps"), "tplrepro.markov.every_kth(P, k)"),
        "smooth": "tplrepro.smoothed(P, s)",
        "uniform": "TransitionMatrix(np.full((n, n), 1 / n))",
    },
    "PrivacyLossFunction": {
        **dict.fromkeys(("call", "evaluate", "loss", "value"), "PrivacyLossFunction(P)(alpha)"),
        "matrix": "PrivacyLossFunction(P)",
    },
    "TemporalLeakage": {
        **dict.fromkeys(("sum", "total"), "TemporalLeakage.user_level"),
        "max": "TemporalLeakage.tpl.max()",
    },
    "TemporalAccountant": dict.fromkeys(("spent", "sum", "total"), "TemporalAccountant.leakage.user_level"),
}
LEAST_RATIO = 0.8  # of letters that two spellings share
MOST = 4  # suggestions in one sentence


def for_name(owner: str | type, name: str) -> str:
    """The end of a sentence about a name that a module (by its own name) or a class does not have."""
    if name.startswith("_"):
        return ""
    if isinstance(owner, type):
        places = [parent.__name__ for parent in owner.__mro__]
        fields = [field for parent in owner.__mro__ for field in vars(parent).get("__annotations__", {})]
        names = sorted({member for member in [*dir(owner), *fields] if not member.startswith("_")})
        near = [f"{owner.__name__}.{member}" for member in _nearest(name, names)]
    else:
        places = [owner.rpartition(".")[2].replace("tplrepro", "tpl")]
        names = _public_names()
        near = _nearest(name, names, owner)
        names = [public for public in names if public.rpartition(".")[0] == owner]
    for place in places:
        if f"{place}.{name}" in RENAMED:
            return f", which was renamed in 0.3: use {RENAMED[f'{place}.{name}']}"
    instead = [INSTEAD[place].get(word) for place in places if place in INSTEAD for word in _words(name)]
    suggestions = list(dict.fromkeys([*filter(None, instead), *near]))
    return _did_you_mean(suggestions) or f"; it has {', '.join(names) or 'no public names'}"


def check_arguments(function, arguments: tuple, keywords: dict) -> None:
    """TypeError that names the right parameters if a call does not fit the signature of a function."""
    signature = inspect.signature(function)
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        name = function.__qualname__.removesuffix(".__init__")
        parameters = [parameter for parameter in signature.parameters if parameter not in ("self", "cls")]
        unknown = [keyword for keyword in keywords if keyword not in signature.parameters]
        if not unknown:
            message = f"{name}: {error}; its parameters are {', '.join(parameters)}"
        elif (key := f"{name}({unknown[0]}=)") in RENAMED:
            message = f"parameter {unknown[0]!r} of {name} was renamed in 0.3: use {RENAMED[key]}"
        else:
            near = _did_you_mean([f"{parameter}=" for parameter in _nearest(unknown[0], parameters)])
            message = f"{name} has no parameter {unknown[0]!r}{near or '; it has ' + ', '.join(parameters)}"
        raise TypeError(message) from None


def _public_names() -> list[str]:
    """The public names of all rooms, in full: those of the package itself first."""
    package = import_module("tplrepro")
    rooms = [package]
    for room in package._MODULES:
        try:
            rooms.append(getattr(package, room))
        except ModuleNotFoundError:  # an extra that is not installed
            continue
    return [f"{room.__name__}.{name}" for room in rooms for name in getattr(room, "_EXPORTS", ())]


def _nearest(wanted: str, names: Iterable[str], room: object = None) -> list[str]:
    """The names that share a word with the one wanted, or are spelt like it: the nearest first, at most four."""
    words, ranked = _words(wanted), []
    stems = _stems([*words, *(word for word, others in SYNONYMS.items() if others.intersection(words))])
    for position, name in enumerate(names):
        place, _, last = name.rpartition(".")
        likeness = len(stems & _stems(_words(last)))
        likeness += SequenceMatcher(None, wanted.lower(), last.lower()).ratio() > LEAST_RATIO
        if likeness:
            ranked.append((-likeness - 0.5 * (place == room), position, name))
    return [name for *_, name in sorted(ranked)[:MOST]]


def _words(name: str) -> list[str]:
    """The words of a name in lower case, whether it is written with underscores or in capitals."""
    return [word.lower() for word in re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def _stems(words: Iterable[str]) -> set[str]:
    """The first letters of words, so that "budget" is "budgets"."""
    return {word[:6] for word in words} - {"by", "from", "get", "of", "the", "to"}


def _did_you_mean(suggestions: list[str]) -> str:
    *others, last = suggestions[:MOST] or [""]
    if not last:
        return ""
    return f"; did you mean {', '.join(others)}{' or ' if others else ''}{last}?"
