"""A chain that was learned privately: what was published of it, and the file that keeps it.

The file is written once, and no file takes its place: a value is on the disk before anybody sees
it, and who learns again is given what is there.
"""

from __future__ import annotations
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from tplfrontier.chains.confidence import loss_from_counts
from tplreport.learning.sufficient import do_not_suffice
from tplrepro.allocation.published import NoFiniteSupremumError, allocate_by_upper_bound
from tplrepro.leakage.filter import TemporalFilter
from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.markov.transition import TransitionMatrix
from tplrepro.search import largest_within
from tplrepro.validation import FrozenArrays, check_level

FORMAT = "tplreport private model 1"
MATRIX = "matrix"
FLOOR = "floor"


@dataclass(frozen=True)
class Request:
    """What is asked of the data: all of it is public."""

    method: str
    states: list
    users: int
    steps_per_user: int
    epsilon: float
    confidence: float
    alpha: float | None
    until: Any
    step: str | None = None  # how long a step takes, such as "1h", if that is known

    @property
    def confidence_of_side(self) -> float:
        """Half of what may fail is for the noise, a quarter for the steps of each side."""
        return 1.0 - (1.0 - self.confidence) / 4.0


@dataclass(frozen=True, eq=False)
class PrivateModel(FrozenArrays):
    """A chain that was learned with a budget about each person's whole training series.

    All of it may be published. `noisy_counts` (n, n) are the counts of steps with their noise, and
    `noise` is how much that is at most in sum of either sign in a row or column; of the method
    "floor" there is `drawn_floor` alone, nats; 0: the draw was "refuse".
    """

    request: Request
    noisy_counts: np.ndarray | None = None
    noise: int = 0
    drawn_floor: float | None = None

    @property
    def epsilon(self) -> float:
        """The budget about a person's whole training series, nats."""
        return self.request.epsilon

    @property
    def until(self) -> Any:
        """The last training time, if it was given: the first release must come after it."""
        return self.request.until

    @property
    def states(self) -> list:
        """The labels of the states."""
        return self.request.states

    @property
    def matrix(self) -> TransitionMatrix:
        """The noisy shares, Pr(next state | state); equal ones where no count is left."""
        steps = self._clipped_counts()
        empty = steps.sum(axis=1) == 0
        steps[empty] = 1
        return TransitionMatrix(steps, self.states, normalize=True, step=self.request.step)

    @cached_property
    def backward(self) -> PrivacyLossFunction:
        """A loss function that exceeds that of the true backward matrix with the confidence."""
        return self._loss_of(self._clipped_counts().T)

    @cached_property
    def forward(self) -> PrivacyLossFunction:
        """A loss function that exceeds that of the true forward matrix with the confidence."""
        return self._loss_of(self._clipped_counts())

    def _clipped_counts(self) -> np.ndarray:
        if self.noisy_counts is None:
            raise ValueError(
                "a model of method='floor' holds one number, found a question for its matrix; "
                "learn with method='matrix', which is another release"
            )
        return np.maximum(self.noisy_counts, 0)

    def _loss_of(self, counts: np.ndarray) -> PrivacyLossFunction:
        confidence = self.request.confidence_of_side
        loss = loss_from_counts(counts, confidence, self.states, noise=self.noise)
        # without the shares of states that are not left, whose rows mean nothing
        return PrivacyLossFunction.of_hull(self.matrix, loss.hull)

    @cached_property
    def floor(self) -> float:
        """The floor at the level alpha that was given; 0 if the data do not suffice."""
        if self.request.alpha is None:
            raise ValueError(
                "floor needs the level of every time, found none; call floor_for(alpha)"
            )
        return self.floor_for(self.request.alpha)

    def floor_for(self, alpha: float) -> float:
        """The budget that every time after the training may have for ever, nats.

        With the model as a release of the time before the first, every TPL is within `alpha`; 0 if
        the data do not suffice. ValueError for a model of method "floor" and another alpha than its
        own.
        """
        alpha = check_level(alpha)
        if self.request.method == FLOOR:
            if alpha != self.request.alpha:
                raise ValueError(
                    f"alpha must be that of the model, {self.request.alpha:g}, found {alpha:g}; "
                    "another level needs another release"
                )
            return self.drawn_floor or 0.0
        return floor_beside_model(alpha, self.backward, self.forward, self.epsilon)

    def check_suffices(self, alpha: float) -> None:
        """ValueError if the floor is 0, which says that the budget of the model is spent."""
        if not self.floor_for(alpha):
            request = self.request
            reason = do_not_suffice(len(self.states), request.users, request.epsilon)
            raise ValueError(
                f"the floor is 0: {reason}; epsilon {request.epsilon:g} is spent all the same, as "
                f"the model was drawn: alpha/T is (alpha - {request.epsilon:g})/T for its people, "
                "and another model of them adds its epsilon"
            )

    @property
    def statement(self) -> str:
        """What is promised, to be published beside the noisy counts."""
        request = self.request
        level = "alpha"
        if request.alpha is not None:
            level = f"alpha = {request.alpha:g}"
        return (
            f"Promise: {level} about each time, training times included; epsilon = "
            f"{request.epsilon:g} about a person's whole training series (at most "
            f"{request.steps_per_user} steps of each of {request.users:,} users). Both hold for "
            "one chain of order 1 for everybody, and fail with probability at most "
            f"{1.0 - request.confidence:.2g} over the training steps and the noise."
        )

    def __str__(self) -> str:
        return self.statement

    def __repr__(self) -> str:
        return (
            f"PrivateModel({len(self.states)} states, method={self.request.method!r}, "
            f"epsilon={self.epsilon:g})"
        )

    def to_json(self) -> str:
        """All of it as JSON."""
        content: dict = {"format": FORMAT, "request": asdict(self.request)}
        if self.noisy_counts is not None:
            content["noisy_counts"] = self.noisy_counts.tolist()
        content |= {"noise": self.noise, "drawn_floor": self.drawn_floor}
        return json.dumps(content, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The model of a text of `to_json`; ValueError for another text."""
        content = json.loads(text)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError("other content")
        counts = content.get("noisy_counts")
        if counts is not None:
            counts = np.array(counts, np.int64)
        return cls(Request(**content["request"]), counts, content["noise"], content["drawn_floor"])

    @classmethod
    def read(cls, path: str | os.PathLike) -> Self:
        """The model of a file."""
        try:
            return cls.from_json(Path(path).read_text("utf-8"))
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"{path} must be the file of a private model, found something else; check its name"
            ) from None

    def write_once(self, path: str | os.PathLike) -> bool:
        """Write a file that is whole and did not exist; whether it was written, False if another
        one was faster."""
        target = Path(path).resolve()
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self.to_json())
                file.flush()
                os.fsync(file.fileno())
            os.link(name, target)  # unlike a new name, it never takes the place of a file
        except FileExistsError:
            return False
        finally:
            Path(name).unlink(missing_ok=True)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return True


def floor_beside_model(
    alpha: float, backward: PrivacyLossFunction, forward: PrivacyLossFunction, epsilon: float
) -> float:
    """The largest budget of every time for ever that keeps alpha after a first release.

    Parameters
    ----------
    alpha : float > 0
        The level of every TPL, nats.
    backward, forward : PrivacyLossFunction
        Of both sides.
    epsilon : float
        The budget of the first release, which is the model, nats.

    Returns
    -------
    float
        Nats, rounded down; 0 if there is none.

    Raises
    ------
    ValueError
        For a level that is not positive and finite.

    Examples
    --------
    >>> L = PrivacyLossFunction([[0.8, 0.2], [0.1, 0.9]])
    >>> [round(floor_beside_model(1.0, L, L, epsilon), 4) for epsilon in (0.1, 0.5, 0.9)]
    [0.1691, 0.1691, 0.042]
    """
    try:
        most = float(allocate_by_upper_bound(alpha, backward, forward))
    except NoFiniteSupremumError:
        return 0.0

    def leaves_room(floor: float) -> bool:
        account = TemporalFilter(alpha, backward, forward, floor=floor)
        return account.remaining >= epsilon

    if leaves_room(most):
        return most
    if epsilon >= alpha:
        return 0.0
    return largest_within(leaves_room, 0.0, most, tolerance=1e-9)
