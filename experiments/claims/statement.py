"""A statement of a paper with what decides it, as it stands in ``docs/claims/<paper>.yaml``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.parameters import load_yaml

#: The keys of the fields that are mappings.
KEYS = {"swept": {"what", "over", "each"}, "breaks": {"in", "from", "to"}}


class ClaimError(ValueError):
    """An incomplete claim, or one whose record lacks a number that it needs."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper; texts may hold ``{expression:format}`` of its numbers."""

    id: str
    place: str  # in the paper, or the panel of our own figure; may be empty
    statement: str  # in our words
    record: str | None = None  # "tkde2019/fig3"
    # name -> key of the record's results, or [key, key below it, ...], or {of: [such, ...]}, or
    # {each: [key, ...], then: key below each of them}, or {below: key, each: [keys below it]}
    numbers: Mapping | None = None
    predicate: str | None = None  # whether the statement holds
    # expression -> "11 ± 1" or "256 ± 20 %": the paper's number and our tolerance
    printed: Mapping | None = None
    # {what: words, over: values, each: names}: judged at each value of an open choice
    swept: Mapping | None = None
    # why the verdict stays the same whatever ``make claims-mutate`` does to the numbers, a sentence
    invariant: str = ""
    # "tests/tplrepro/leakage/test_published.py::test_name", where tests decide
    test: str | list | None = None
    # {in: file, from: code, to: code}: a change of code that makes a test fail
    breaks: Mapping | None = None
    compares: str = ""  # which independent things the tests compare
    about: str = "the paper"  # or "ours": a statement about our own method, counted apart
    # the name of our data, where those of the paper are not published and ours show something else
    other_data: str = ""
    # "tkde2019#example-1": the same statement in another paper, counted there
    same_as: str | None = None
    ours: str = ""  # our result
    erratum: str | None = None  # "errata.md#anchor" below docs: true only once this is corrected
    part: str = ""  # the part that holds
    part_if: str | None = None  # predicate of the part
    why: str = ""  # the cause, where it is not reproduced in full or not checkable
    note: str = ""
    quick: bool = False  # the predicate is meaningful at the quick profile's size

    def __post_init__(self):
        self._check_one_way()
        if self.about not in ("the paper", "ours"):
            raise ClaimError(
                f"{self.id}: about must be 'the paper' or 'ours', found {self.about!r}; correct it"
            )
        self._check_keys()
        if self.swept and self.part:
            raise ClaimError(
                f"{self.id}: part must be empty, because swept renders it, found {self.part!r}; "
                "drop it"
            )
        for text in (self.printed or {}).values():
            PrintedNumber.parse(self.id, text)

    def _check_keys(self) -> None:
        for field, wanted in KEYS.items():
            held = getattr(self, field)
            if held and set(held) != wanted:
                raise ClaimError(
                    f"{self.id}: {field} must have {sorted(wanted)}, found {sorted(held)}; "
                    "correct it"
                )

    def _check_one_way(self) -> None:
        """ClaimError unless the claim has one and only one of these: a record that decides it,
        a test that does, or the reason why nothing can."""
        only_says_why = bool(self.why) and not self.by_record and not self.test
        ways = [self.by_record, bool(self.test), only_says_why]
        lacks_record = self.by_record and not self.record
        if sum(ways) != 1 or lacks_record:
            raise ClaimError(
                f"{self.id}: must have a record with a predicate or printed numbers, or a test, "
                "or only why it is not checkable; name what decides"
            )

    @property
    def place_and_statement(self) -> str:
        """The statement in words, after its place if it has one."""
        if not self.place:
            return self.statement
        return f"{self.place}: {self.statement}"

    @property
    def by_record(self) -> bool:
        """Whether recorded numbers decide; a claim that nothing decides may show some, too."""
        return bool(self.predicate or self.printed)

    @property
    def tests(self) -> list[str]:
        """The tests that decide."""
        if isinstance(self.test, str):
            return [self.test]
        return list(self.test or ())


@dataclass(frozen=True)
class PrintedNumber:
    """A number that a paper prints, and how far ours may be from it."""

    value: float
    allowed: float

    @classmethod
    def parse(cls, claim_id: str, text: object) -> "PrintedNumber":
        """From "11 ± 1" or "256 ± 20 %"."""
        match = re.fullmatch(r"(-?[\d.,]+) ± ([\d.]+)( %)?", str(text))
        if not match:
            raise ClaimError(
                f"{claim_id}: printed must be like '11 ± 1' or '256 ± 20 %', found {text!r}; "
                "correct it"
            )
        number, tolerance, percent = match.groups()
        value = float(number.replace(",", ""))
        allowed = float(tolerance)
        if percent:
            allowed = abs(value) * allowed / 100
        return cls(value, allowed)


def read_claims(path: Path) -> dict:
    """Read ``docs/claims/<paper>.yaml``: title, introduction, and sections with their lists of
    claims."""
    content = load_yaml(path.read_text(encoding="utf-8"))
    for section in content["sections"]:
        section["claims"] = [_claim_of(facts, path.name) for facts in section["claims"]]
    names = [claim.id for claim in claims_of(content)]
    if len(set(names)) < len(names):
        raise ClaimError(
            f"{path.name}: ids must differ, found {max(names, key=names.count)} twice; rename one"
        )
    return content


def _claim_of(facts: Mapping, file_name: str) -> Claim:
    unknown = sorted(set(facts) - set(Claim.__annotations__))
    if unknown:
        raise ClaimError(
            f"{file_name}: {facts.get('id')} may not say {', '.join(unknown)}; correct it"
        )
    given: dict[str, Any] = {"place": "", **facts}
    return Claim(**given)


def claims_of(content: Mapping) -> list[Claim]:
    """All claims of a paper, in order."""
    return [claim for section in content["sections"] for claim in section["claims"]]
