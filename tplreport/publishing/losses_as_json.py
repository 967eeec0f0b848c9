"""Loss functions as JSON."""

import json
from collections.abc import Iterable

import numpy as np

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.prior_free import PriorFreeLoss
from tplrepro.markov.transition import TransitionMatrix

LOSSES = {"PrivacyLossFunction": PrivacyLossFunction, "PriorFreeLoss": PriorFreeLoss}


def loss_to_json(loss: PrivacyLossFunction | None) -> dict | None:
    """A loss function by its kind, its matrix, the labels of its states, and its hull if that is of
    more."""
    if loss is None:
        return None
    states = loss.matrix.states
    values = loss.matrix.probabilities
    _check_labels(states)
    content: dict = {"loss": type(loss).__name__, "states": [*states]}
    if isinstance(states, range):
        content["states"] = states.stop
    if not loss.of_matrix:
        content["hull"] = loss.hull
    if loss.matrix.is_sparse:
        parts = {"data": values.data, "indices": values.indices, "indptr": values.indptr}
        content |= parts | {"background": loss.matrix.background}
    else:
        content["rows"] = values
    return json.loads(json.dumps(content, allow_nan=False, default=lambda array: array.tolist()))


def _check_labels(states: Iterable) -> None:
    """ValueError for a label that JSON does not hold."""
    for label in states:
        if not isinstance(label, (str, int, float, np.generic)):
            raise ValueError(
                f"labels of states must be text or numbers to be stored, found {label!r}; rename "
                "them"
            )


def loss_from_json(content: dict | None) -> PrivacyLossFunction | None:
    """The loss function that `loss_to_json` describes."""
    if content is None:
        return None
    states = content["states"]
    if isinstance(states, int):  # their number
        states = None
    if "rows" in content:
        matrix = TransitionMatrix(content["rows"], states)
    else:
        from scipy.sparse import csr_array

        n = len(content["background"])
        parts = csr_array((content["data"], content["indices"], content["indptr"]), shape=(n, n))
        matrix = TransitionMatrix(parts, states, background=content["background"])
    if "hull" in content:
        return PrivacyLossFunction.of_hull(matrix, np.array(content["hull"]))
    return LOSSES[content["loss"]](matrix)
