"""Loss functions as JSON: one for all steps, or those of a cycle, each of them once.

Of a loss function that is known by its hull alone, such as that of counts, the matrix is not
written: it may hold the shares of private data, and nothing is computed from it. Files that
were made before hold it, and are read.
"""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.near_habit import NearHabitLoss
from tplrepro.leakage.prior_free import PriorFreeLoss
from tplrepro.leakage.temporal import LossCycle
from tplrepro.markov.transition import TransitionMatrix

LOSSES = {"PrivacyLossFunction": PrivacyLossFunction, "PriorFreeLoss": PriorFreeLoss}
NEAR_HABIT = NearHabitLoss.__name__


def side_to_json(side: LossCycle) -> dict | None:
    """The loss functions of one side: a single one if all steps have it, else each of them once,
    and the number of that of each step."""
    only = side.steps[0]
    if side.is_constant and not isinstance(only, NearHabitLoss):
        return loss_to_json(only)
    losses = _DistinctLosses()
    steps = [losses.number_of(loss) for loss in side.steps]
    first = [losses.number_of(loss) for loss in side.first]
    return {"losses": losses.contents, "steps": steps, "first": first}


def side_from_json(content: dict | None, p: int) -> LossCycle:
    """The loss functions of one side at each of p phases, as `side_to_json` describes them."""
    if content is None or "losses" not in content:
        return LossCycle([loss_from_json(content)] * p, [])
    made: list[PrivacyLossFunction] = []
    for each in content["losses"]:
        made.append(_loss_of_several(each, made))
    return LossCycle(_numbered(content["steps"], made), _numbered(content["first"], made))


class _DistinctLosses:
    """Loss functions as JSON, each once; those that are made of others come after them."""

    def __init__(self) -> None:
        self.contents: list[dict] = []
        self._number_of_content: dict[str, int] = {}
        #: By identity; the loss function keeps it alive.
        self._known: dict[int, tuple[PrivacyLossFunction, int]] = {}

    def number_of(self, loss: PrivacyLossFunction | None) -> int | None:
        if loss is None:
            return None
        if id(loss) not in self._known:
            self._known[id(loss)] = loss, self._add(self._content_of(loss))
        return self._known[id(loss)][1]

    def _content_of(self, loss: PrivacyLossFunction) -> dict | None:
        if not isinstance(loss, NearHabitLoss):
            return loss_to_json(loss)
        return {
            "loss": NEAR_HABIT,
            "of_habit": self.number_of(loss.of_habit),
            "of_any_law": self.number_of(loss.of_any_law),
            "distance": loss.distance,
        }

    def _add(self, content: Any) -> int:
        text = json.dumps(content)
        if text not in self._number_of_content:
            self._number_of_content[text] = len(self.contents)
            self.contents.append(content)
        return self._number_of_content[text]


def _loss_of_several(content: dict, made: list) -> Any:
    """A loss function by its content, which may name the numbers of others in `made`."""
    if content["loss"] != NEAR_HABIT:
        return loss_from_json(content)
    of_habit = made[content["of_habit"]]
    of_any_law = made[content["of_any_law"]]
    return NearHabitLoss(of_habit, of_any_law, content["distance"])


def _numbered(numbers: list[int | None], made: list) -> list:
    """The loss functions of these numbers in `made`; None stays None."""
    return [None if number is None else made[number] for number in numbers]


def side_without_matrices_of_hulls(content: dict | None, p: int) -> dict | None:
    """What `side_to_json` writes of a side, of which a file of before may hold more."""
    if content is None:
        return None
    losses = content.get("losses", [content])
    if any("hull" in loss and _has_matrix(loss) for loss in losses):
        return side_to_json(side_from_json(content, p))
    return content


def _has_matrix(content: dict) -> bool:
    return "rows" in content or "indptr" in content


def loss_to_json(loss: PrivacyLossFunction | None) -> dict | None:
    """A loss function by its kind, the labels of its states, and its matrix, or its hull if that is
    of more."""
    if loss is None:
        return None
    states = loss.matrix.states
    values = loss.matrix.probabilities
    check_labels(states, "states")
    content: dict = {"loss": type(loss).__name__, "states": [*states]}
    if isinstance(states, range):
        content["states"] = states.stop
    if not loss.of_matrix:
        content["hull"] = loss.hull
    elif loss.matrix.is_sparse:
        parts = {"data": values.data, "indices": values.indices, "indptr": values.indptr}
        content |= parts | {"background": loss.matrix.background}
    else:
        content["rows"] = values
    return as_json(content)


def as_json(content: Any) -> Any:
    """The same content with lists in place of arrays, and with Python's numbers."""
    return json.loads(json.dumps(content, allow_nan=False, default=lambda array: array.tolist()))


def check_labels(labels: Iterable, of: str) -> None:
    """ValueError for a label that JSON does not hold."""
    for label in labels:
        if not isinstance(label, (str, int, float, np.generic)):
            raise ValueError(
                f"labels of {of} must be text or numbers to be stored, found {label!r}; rename them"
            )


def loss_from_json(content: dict | None) -> PrivacyLossFunction | None:
    """The loss function that `loss_to_json` describes."""
    if content is None:
        return None
    states = content["states"]
    if isinstance(states, int):  # their number
        states = range(states)
    if "hull" in content:
        return PrivacyLossFunction.of_hull(_names_of(states), np.array(content["hull"]))
    if "rows" in content:
        matrix = TransitionMatrix(content["rows"], states)
    else:
        from scipy.sparse import csr_array

        n = len(content["background"])
        parts = csr_array((content["data"], content["indices"], content["indptr"]), shape=(n, n))
        matrix = TransitionMatrix(parts, states, background=content["background"])
    return LOSSES[content["loss"]](matrix)


def _names_of(states: Any) -> TransitionMatrix:
    """A matrix that names the states of a hull, and says nothing else: its rows are equal."""
    from scipy.sparse import csr_array

    n = len(states)
    return TransitionMatrix(csr_array((n, n)), states, background=np.full(n, 1.0 / n))
