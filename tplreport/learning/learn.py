"""Learn a chain from private data with a budget.

One user's whole training series is protected: replacing it changes the probability of any model by
a factor of at most e^epsilon. The model then counts as one release of the time before the first
(docs/theory/private_model.md). Nothing that is published is computed in the clear, and what is
drawn is drawn once.
"""

from __future__ import annotations
import os
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from tplreport.learning.first_steps import FirstSteps
from tplreport.learning.model import FLOOR, MATRIX, PrivateModel, Request
from tplreport.learning.noisy_counts import add_noise, largest_noise
from tplreport.learning.sufficient import do_not_suffice, needed
from tplreport.learning.training_time import stored_training_time
from tplreport.publishing.losses_as_json import as_json, check_labels
from tplrepro.markov.cycle import Cycle
from tplrepro.validation import (
    as_scalar,
    check_choice,
    check_epsilon,
    check_horizon,
    check_level,
    check_probability,
    warn_caller,
)

#: Of all steps from a state, if states are equally frequent: with as much noise nothing is known.
HOPELESS = 0.5


class RepeatedModelWarning(UserWarning):
    """A model was learned before: it is returned again, whatever the data are now."""


def learn_privately(
    sequences: Any,
    *,
    path: str | os.PathLike,
    states: Any = None,
    steps_per_user: SupportsIndex,
    epsilon: float,
    alpha: float | None = None,
    method: str | None = None,
    confidence: float = 0.95,
    until: Any = None,
    elsewhere: Any = None,
) -> PrivateModel:
    """Learn a chain with a budget about each person's whole training series, and keep it in a file.

    The file is written once: with the same settings a second call returns what it holds, with a
    `RepeatedModelWarning`, since a second draw would be a second release. A model of the same
    people under another name adds its epsilon.

    Parameters
    ----------
    sequences : Sequences, DataFrame, mapping or iterable of sequences
        As `read_sequences` returns, or `TransitionMatrix.from_sequences` takes them. A user under
        two names is two users, and is protected half as much.
    path : str or path-like
        The file of the model, which must not exist; all of it may be published.
    states : sequence of labels, or int
        All states that are possible, by what is public: which of them occur is private.
    steps_per_user : int
        How many steps of each user count, the first ones; a public guess of a usual number. More
        steps need more noise and have less sampling error: the noise matters by
        users times epsilon alone.
    epsilon : float
        The budget of the model, nats.
    alpha : float, optional
        The level of every time that will be published, nats; needed by method "floor".
    method : "matrix" or "floor", optional
        Noisy counts, or one number: the budget of every time for ever. By default the one that
        needs fewer users for so many states, "floor" from about eight on if alpha is given.
    confidence : float, optional
        Of both promises, over the recorded steps and the noise.
    until : date, text of a date in full or number, optional
        The last training time, by what is public; a publisher's first time must come after it. A
        day counts up to its end.
    elsewhere : label, optional
        One of the states, which stands for all values that are none of them.

    Returns
    -------
    PrivateModel

    Raises
    ------
    ValueError
        Without states, for values that are none of them, or too few users for any floor. Such a
        message is about private data if it is about values: it must not be published.
    FileNotFoundError
        If there is no folder for the file.

    Examples
    --------
    >>> import tempfile
    >>> import tplrepro as tpl
    >>> rng = np.random.default_rng(0)
    >>> P = tpl.TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], states=["home", "work"])
    >>> weeks = [P.sample(21, rng=rng) for _ in range(5000)]
    >>> path = tempfile.mkdtemp() + "/model.json"
    >>> settings = dict(path=path, states=["home", "work"], steps_per_user=20, alpha=1.0)
    >>> model = learn_privately(weeks, epsilon=0.5, **settings)
    >>> 0.05 < model.floor < tpl.allocate_by_upper_bound(1.0, P.reverse(), P)
    True
    >>> model.matrix.toarray().round(1).tolist()
    [[0.8, 0.2], [0.1, 0.9]]
    """
    if isinstance(sequences, Cycle):
        raise ValueError("sequences must be data, found a Cycle; a known chain needs no learning")
    steps_per_user = check_horizon(steps_per_user, "steps_per_user")
    counted = FirstSteps.of(sequences, states, steps_per_user, elsewhere)
    request = Request(
        method=_method_for(method, len(counted.states), alpha),
        states=_plain(counted.states),
        users=counted.users,
        steps_per_user=steps_per_user,
        epsilon=as_scalar(check_epsilon(epsilon), "epsilon"),
        confidence=float(check_probability(confidence, "confidence", one=False)),
        alpha=None if alpha is None else check_level(alpha),
        until=stored_training_time(until),
        step=counted.step,
    )
    if Path(path).exists():
        return _stored_model(path, request)
    model = _draw(request, counted.counts)
    if not model.write_once(path):
        return _stored_model(path, request)
    return model


def _method_for(method: str | None, n: int, alpha: float | None) -> str:
    """The method that was asked for, or the one that needs fewer users for n states."""
    check_choice(method, "method", (None, MATRIX, FLOOR))
    if method == FLOOR and alpha is None:
        raise ValueError(
            "method='floor' needs the level that every time keeps, found none; give alpha="
        )
    if method is not None:
        return method
    if alpha is None or needed(n, MATRIX) <= needed(n, FLOOR):
        return MATRIX
    return FLOOR


def _plain(states: list) -> list:
    """Labels as JSON has them; ValueError for one that is neither text nor a number."""
    check_labels(states, "states")
    return as_json(states)


def _draw(request: Request, counts: np.ndarray) -> PrivateModel:
    """A new model of counts (n, n); ValueError, and nothing is drawn, if the public numbers tell
    that the floor would be 0."""
    _check_is_below_alpha(request)
    failure = (1.0 - request.confidence) / 2.0
    if request.method == FLOOR:
        return _draw_floor(request, counts, failure)
    n = len(request.states)
    noise = largest_noise(n, 2 * request.steps_per_user / request.epsilon, failure)
    _check_may_suffice(request, noise)
    noisy = add_noise(counts, request.epsilon, request.steps_per_user)
    return PrivateModel(request, noisy_counts=noisy, noise=noise)


def _draw_floor(request: Request, counts: np.ndarray, failure: float) -> PrivateModel:
    """A model of one number, which fails with at most this probability over the draw."""
    from tplreport.learning.floor import Budget, draw_floor, levels_of

    n = len(request.states)
    alpha = request.alpha or 0.0
    levels = levels_of(n, request.users, request.epsilon, alpha, failure)
    _check_may_suffice(request, levels.users * request.steps_per_user)
    budget = Budget(alpha, request.epsilon, request.confidence_of_side)
    floor = draw_floor(counts, levels, budget, request.steps_per_user)
    return PrivateModel(request, drawn_floor=floor)


def _check_is_below_alpha(request: Request) -> None:
    if request.alpha is not None and request.epsilon >= request.alpha:
        raise ValueError(
            f"epsilon must be below alpha = {request.alpha:g}, as the model is a release itself, "
            f"found {request.epsilon:g}; give less, or learn from people who are not published, "
            "without alpha"
        )


def _check_may_suffice(request: Request, noise: float) -> None:
    """ValueError if the noise is too large for any data of so many users."""
    n = len(request.states)
    if n * noise >= HOPELESS * request.users * request.steps_per_user:
        reason = do_not_suffice(n, request.users, request.epsilon)
        raise ValueError(f"{reason}; nothing was drawn")


def _stored_model(path: str | os.PathLike, request: Request) -> PrivateModel:
    """The model of a file that is there; ValueError for one with other settings."""
    model = PrivateModel.read(path)
    different = [
        name for name, value in vars(request).items() if vars(model.request)[name] != value
    ]
    if model.request.step is None and "step" in different:
        different.remove("step")  # of a file of before
    if different:
        raise ValueError(
            f"{path} holds a model that was learned with other {', '.join(different)}; use it, "
            "or take another name, whose epsilon adds to that of this one "
            "for the same people"
        )
    warn_caller(
        f"{path} was learned before: the same model is returned again, and the data that are given "
        "now were not compared with those of then",
        RepeatedModelWarning,
    )
    return model
