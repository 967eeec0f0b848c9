"""The verdict on a claim, by a record or by the outcomes of tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from experiments.claims.numbers import evaluate, fill, names_of
from experiments.claims.statement import Claim, ClaimError, PrintedNumber

#: So many values of a swept choice are listed one by one; more are given by their ends.
MOST_LISTED = 6


class Kind(StrEnum):
    """The kinds of verdict, in the order of the pages."""

    REPRODUCED = "reproduced"
    WITH_ERRATUM = "reproduced with an erratum"
    IN_PART = "in part"
    NOT_OBSERVED = "not observed on other data"
    NOT_REPRODUCED = "not reproduced"
    NOT_CHECKABLE = "not checkable here"


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim."""

    kind: Kind
    words: str  # the same with part, cause and note
    ours: str  # our result
    holding: tuple[bool, ...] = ()  # at each value of a swept choice


@dataclass(frozen=True)
class Point:
    """One value of a swept choice, and the numbers by name as they are there."""

    value: Any
    names: Mapping[str, Any]


def judge(
    claim: Claim, record: Mapping | None = None, outcomes: Mapping[str, str] | None = None
) -> Verdict:
    """The verdict on a claim.

    `record` is what its notebook has recorded; `outcomes` maps the names of tests to "passed",
    "failed" and the like. Raises ClaimError if the record lacks a number, an expression fails, a
    test did not pass, a statement does not hold and no cause is given, or it holds although a cause
    is given.
    """
    names = names_of(claim, record or {})
    ours = our_result(claim, names)
    part = fill(claim, claim.part, names)
    why = fill(claim, claim.why, names)
    note = fill(claim, claim.note, names)
    check_tests(claim, outcomes or {})
    points = points_of(claim, names)
    holding = [holds_at(claim, point) for point in points]
    holds = all(holding)
    check_cause(claim, ours, holds, is_explained=bool(why), is_in_part=bool(part))
    if claim.swept:
        part = sweep_in_words(claim, points, holding)
    kind = kind_of(claim, names, holds, part)
    words = str(kind)
    if kind == Kind.NOT_OBSERVED:
        words += f", {claim.other_data}"
    words += cause_in_words(kind, part, why)
    if note:
        words += f". {note}"
    return Verdict(kind, words, ours, tuple(holding))


def our_result(claim: Claim, names: Mapping[str, Any]) -> str:
    """Our numbers, `names`, in the words of the claim, followed by those that the paper prints."""
    return fill(claim, claim.ours, names) + printed_in_words(claim)


def printed_in_words(claim: Claim) -> str:
    """The numbers that the paper prints, with their tolerances; empty if it prints none."""
    if not claim.printed:
        return ""
    return f" (printed: {', '.join(map(str, claim.printed.values()))})"


def check_tests(claim: Claim, outcomes: Mapping[str, str]) -> None:
    """ClaimError unless the outcome of each test that decides is "passed"."""
    for test in claim.tests:
        outcome = outcomes.get(test, "missing")
        if outcome != "passed":
            raise ClaimError(
                f"{claim.id}: {test} must pass, found {outcome}; "
                "a claim has no verdict without its tests"
            )


def check_cause(
    claim: Claim, ours: str, holds: bool, *, is_explained: bool, is_in_part: bool
) -> None:
    """ClaimError unless a statement that does not hold says why, and one that holds does not.

    `ours` is our result in words, for the message; `is_in_part`: the claim names a part that holds.
    """
    if holds and (is_explained or is_in_part):
        raise ClaimError(
            f"{claim.id}: holds ({ours}), though a cause is given why not; "
            "drop part and why, or look again"
        )
    if not holds and not is_explained:
        raise ClaimError(f"{claim.id}: does not hold ({ours}), and no cause is given; say why")


def points_of(claim: Claim, names: Mapping[str, Any]) -> list[Point]:
    """Each value of a swept choice with the recorded numbers there; a single point with all
    numbers, `names`, if nothing is swept."""
    if not claim.swept:
        return [Point(None, names)]
    values = list(evaluate(claim, str(claim.swept["over"]), names))
    for name in claim.swept["each"]:
        if name not in names or len(names[name]) != len(values):
            raise ClaimError(
                f"{claim.id}: {name} must have a number for each of {len(values)} values; "
                "record them"
            )
    swept = [
        known for name in claim.swept["each"] for known in (name, f"{name}_low", f"{name}_high")
    ]
    points = []
    for place, value in enumerate(values):
        here = {known: names[known][place] for known in swept if known in names}
        points.append(Point(value, {**names, **here, "value": value}))
    return points


def holds_at(claim: Claim, point: Point) -> bool:
    """Whether the statement holds there: by its tests, or by its predicate and printed numbers."""
    if claim.test:
        return not claim.why
    if not claim.by_record:
        return False
    for expression, text in (claim.printed or {}).items():
        printed = PrintedNumber.parse(claim.id, text)
        ours = np.asarray(evaluate(claim, expression, point.names))
        if not np.all(np.abs(ours - printed.value) <= printed.allowed * (1 + 1e-12)):
            return False
    if claim.predicate is None:
        return True
    return bool(evaluate(claim, claim.predicate, point.names))


def kind_of(claim: Claim, names: Mapping[str, Any], holds: bool, part: str) -> Kind:
    """The kind of verdict on a statement.

    `names` are the recorded numbers by name; `part` names, in words, what of the statement holds
    although the whole does not, "" for nothing.
    """
    if holds and claim.erratum:
        return Kind.WITH_ERRATUM
    if holds:
        return Kind.REPRODUCED
    if not claim.by_record and not claim.test:
        return Kind.NOT_CHECKABLE
    if part and (claim.part_if is None or evaluate(claim, claim.part_if, names)):
        return Kind.IN_PART
    if claim.other_data:
        return Kind.NOT_OBSERVED
    return Kind.NOT_REPRODUCED


def cause_in_words(kind: Kind, part: str, why: str) -> str:
    """What follows the kind: `part`, which holds, and `why` the rest does not."""
    holds = kind in (Kind.REPRODUCED, Kind.WITH_ERRATUM)
    if holds and not part:
        return ""
    if holds:
        return f", {part}"
    if kind == Kind.IN_PART:
        return f": {part}; {why}"
    return f": {why}"


def sweep_in_words(claim: Claim, points: Sequence[Point], holding: Sequence[bool]) -> str:
    """At which values of the swept choice the statement holds, by `holding`, one bool for each of
    the `points`; "" if at none."""
    assert claim.swept
    what = claim.swept["what"]
    are_numbers = not any(isinstance(point.value, str) for point in points)
    everywhere = runs_in_words(points, [True] * len(points))
    yes = runs_in_words(points, holding)
    no = runs_in_words(points, [not holds for holds in holding])
    if not no:
        return f"at every {what} tried: {everywhere}"
    if not yes:
        return ""
    if are_numbers:
        return f"at {what} = {yes}, not at {no}"
    return f"for {what} {yes}, not for {no}"


def runs_in_words(points: Sequence[Point], chosen: Sequence[bool]) -> str:
    """The chosen values of a swept choice, such as "0.1 and 1 to 3" if 1, 2 and 3 follow each other
    among those tried; texts that hold commas are enclosed."""
    runs: list[list[Any]] = []
    continues = False
    for point, is_chosen in zip(points, chosen, strict=True):
        if is_chosen and continues:
            runs[-1].append(point.value)
        elif is_chosen:
            runs.append([point.value])
        continues = is_chosen and not isinstance(point.value, str)
    texts = [text for run in runs for text in texts_of_run(run)]
    if any("," in text for text in texts):
        return f"({'; '.join(texts)})"
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def texts_of_run(values: Sequence[Any]) -> list[str]:
    """Each of the values that follow each other among those tried; or one text with both ends of
    three and more, if nothing between them was left out or they are too many to list."""
    if isinstance(values[0], str):
        return list(values)
    are_consecutive = bool(np.all(np.diff(values) == 1))
    if len(values) > MOST_LISTED or (len(values) > 2 and are_consecutive):
        return [f"{values[0]:g} to {values[-1]:g}"]
    return [f"{value:g}" for value in values]
