"""Loss functions as JSON, and what files of accounts of version 0.3 held."""

import json
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tplrepro.leakage.loss_function import PrivacyLossFunction
from tplrepro.leakage.prior_free import PriorFreeLoss
from tplrepro.markov.transition import TransitionMatrix

LOSSES = {"PrivacyLossFunction": PrivacyLossFunction, "PriorFreeLoss": PriorFreeLoss}


def stored(loss: PrivacyLossFunction | None) -> dict | None:
    """A loss function by its kind, its matrix, the labels of its states, and its hull if that is of
    more."""
    if loss is None:
        return None
    states, values = loss.matrix.states, loss.matrix.probabilities
    for label in states:
        if not isinstance(label, (str, int, float, np.generic)):
            raise ValueError(
                f"labels of states must be text or numbers to be stored, found {label!r}; rename them"
            )
    labels = states.stop if isinstance(states, range) else [*states]
    content: dict = {"loss": type(loss).__name__, "states": labels}
    if not loss.of_matrix:
        content["hull"] = loss.hull
    if loss.matrix.is_sparse:
        parts = {"data": values.data, "indices": values.indices, "indptr": values.indptr}
        content |= parts | {"background": loss.matrix.background}
    else:
        content["rows"] = values
    return json.loads(json.dumps(content, allow_nan=False, default=lambda array: array.tolist()))


def loss_of(content: dict | None) -> PrivacyLossFunction | None:
    """The loss function that `stored` describes."""
    if content is None:
        return None
    states = None if isinstance(content["states"], int) else content["states"]
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


def old_account(path: str | Path) -> tuple[dict, list[tuple[float, int]]]:
    """Settings (alpha, floor, backward, forward) and entries (budget, count) of an account's file
    of version 0.3.

    ValueError if it is damaged, or holds releases that are no budgets.
    """
    *complete, last = Path(path).read_bytes().split(b"\n")
    try:
        lines = [*map(json.loads, complete)]
    except ValueError:
        raise ValueError(
            f"each line of {path} must be JSON, found another; restore a copy"
        ) from None
    with suppress(ValueError):  # of what is cut off the release was never made
        lines.append(json.loads(last))
    header = lines[0] if lines and isinstance(lines[0], dict) else {}
    if header.get("format") != "tplrepro account":
        raise ValueError(f"{path} must be an account's file, found another; check its name")
    content = {name: header[name] for name in ("settings", "sides")}
    digest, entries = header["digest"], []
    if _digest(content) != digest:
        raise ValueError(
            f"the first line of {path} must have its digest, found another; restore a copy"
        )
    for number, (release, count, *found) in enumerate(lines[1:], 2):
        if header["version"] == 2:
            digest = _digest([digest, [release, count]])[:16]
            if found != [digest]:
                raise ValueError(
                    f"line {number} of {path} must be as it was written, found another; restore a copy"
                )
        if not isinstance(release, (int, float)):
            raise ValueError(
                f"releases must be budgets to be converted, found {str(release)[:40]} in line {number}"
            )
        entries.append((float(release), count))
    sides = {name: loss_of(side) for name, side in content["sides"].items()}
    return {
        "alpha": content["settings"]["alpha"],
        "floor": content["settings"]["floor"],
        **sides,
    }, entries


def _digest(content: Any) -> str:
    return sha256(
        (json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n").encode()
    ).hexdigest()
