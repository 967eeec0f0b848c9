"""Claims as code: a statement of a paper, the recorded numbers that decide it, and the verdict.

``docs/claims/<paper>.yaml`` holds the statements; CONTRIBUTING.md says what they may hold. `judge`
evaluates a statement's predicate, a Python expression over recorded numbers, notebook parameters
and `FUNCTIONS`, on a record written by `experiments.figures`; `verdicts` shows those of one
notebook in its last cell.
"""

import json
import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from experiments.figures import output_folder
from experiments.parameters import literal_assignments
from experiments.provenance import owner_of, repository_folder

KINDS = (
    "reproduced",
    "reproduced with an erratum",
    "in part",
    "not reproduced",
    "not checkable here",
)
FUNCTIONS = {
    "all": np.all,
    "any": np.any,
    "close": lambda a, b, rtol=1e-9, atol=0.0: bool(np.allclose(a, b, rtol=rtol, atol=atol)),
    **{f.__name__: f for f in (abs, len, list, max, min, range, round, sorted, sum, zip)},
    **{
        f.__name__: f
        for f in (
            np.array,
            np.diff,
            np.exp,
            np.isfinite,
            np.isinf,
            np.log,
            np.mean,
            np.median,
            np.sqrt,
        )
    },
}
PRINTED = re.compile(r"(-?[\d.,]+) ± ([\d.]+)( %)?")


class ClaimError(ValueError):
    """An incomplete claim, or one whose record lacks a number that it needs."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper; texts may hold ``{expression:format}`` of its numbers."""

    id: str
    place: str  # in the paper
    statement: str  # in our words
    record: str | None = None  # "tkde2019/fig3"
    numbers: Mapping | None = (
        # name -> key of the record's results, or [key, key below it, ...], or {of: [such, ...]}
        None
    )
    predicate: str | None = None  # whether the statement holds
    # expression -> "11 ± 1" or "256 ± 20 %": the paper's number and our tolerance
    printed: Mapping | None = None
    # {what: words, over: values, each: names}: judged at each value of an open choice
    swept: Mapping | None = None
    # why the verdict stays the same whatever ``make claims-mutate`` does to the numbers
    invariant: str = ""
    # "tests/tplrepro/leakage/test_published.py::test_name", where tests decide
    test: str | list | None = None
    # {in: file, from: code, to: code}: a change of code that makes a test fail
    breaks: Mapping | None = None
    about: str = "the paper"  # or "ours": a statement about our own method, counted apart
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
        ways = [
            self.by_record,
            bool(self.test),
            bool(self.why) and not self.by_record and not self.test,
        ]
        if sum(ways) != 1 or (self.by_record and not self.record):
            raise ClaimError(
                f"{self.id}: must have a record with a predicate or printed numbers, or a test, or only why it is not "
                "checkable; name what decides"
            )
        if self.about not in ("the paper", "ours"):
            raise ClaimError(
                f"{self.id}: about must be 'the paper' or 'ours', found {self.about!r}; correct it"
            )
        for field, wanted in (
            ("swept", {"what", "over", "each"}),
            ("breaks", {"in", "from", "to"}),
        ):
            held = getattr(self, field)
            if held and set(held) != wanted:
                raise ClaimError(
                    f"{self.id}: {field} must have {sorted(wanted)}, found {sorted(held)}; correct it"
                )
        if self.swept and self.part:
            raise ClaimError(
                f"{self.id}: part must be empty, because swept renders it, found {self.part!r}; drop it"
            )
        for printed in (self.printed or {}).values():
            if not PRINTED.fullmatch(str(printed)):
                raise ClaimError(
                    f"{self.id}: printed must be like '11 ± 1' or '256 ± 20 %', found {printed!r}; correct it"
                )

    @property
    def by_record(self) -> bool:
        """Whether recorded numbers decide; a claim that nothing decides may show some, too."""
        return bool(self.predicate or self.printed)

    @property
    def tests(self) -> list[str]:
        """The tests that decide."""
        return [self.test] if isinstance(self.test, str) else list(self.test or ())


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim: one of `KINDS`, the same in words with part and cause, and our
    result."""

    kind: str
    words: str
    ours: str
    holding: tuple[bool, ...] = ()  # at each value of a swept choice


def read_claims(path: Path) -> dict:
    """Read ``docs/claims/<paper>.yaml``: title, introduction, and sections with their lists of
    claims."""
    import yaml

    # in C, where there is one: ten times as fast
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    content = yaml.load(path.read_text(encoding="utf-8"), loader)
    for section in content["sections"]:
        for facts in section["claims"]:
            unknown = sorted(set(facts) - set(Claim.__annotations__))
            if unknown:
                raise ClaimError(
                    f"{path.name}: {facts.get('id')} may not say {', '.join(unknown)}; correct it"
                )
        section["claims"] = [Claim(**facts) for facts in section["claims"]]
    names = [claim.id for claim in claims_of(content)]
    if len(set(names)) < len(names):
        raise ClaimError(
            f"{path.name}: ids must differ, found {max(names, key=names.count)} twice; rename one"
        )
    return content


def claims_of(content: Mapping) -> list[Claim]:
    """All claims of a paper, in order."""
    return [claim for section in content["sections"] for claim in section["claims"]]


def judge(
    claim: Claim, record: Mapping | None = None, outcomes: Mapping[str, str] | None = None
) -> Verdict:
    """The verdict on a claim, by the `record` of its notebook or by the `outcomes` of its tests
    ("passed", ...).

    Raises ClaimError if the record lacks a number, an expression fails, a test did not pass, a
    statement does not hold and no cause is given, or it holds although a cause is given.
    """
    names = _names(claim, record or {})
    texts = (claim.ours, claim.part, claim.why, claim.note)
    ours, part, why, note = (_Filling(claim).vformat(text, (), names) for text in texts)
    if claim.printed:
        ours += f" (printed: {', '.join(str(text) for text in claim.printed.values())})"
    if claim.test:
        for test in claim.tests:
            outcome = (outcomes or {}).get(test, "missing")
            if outcome != "passed":
                raise ClaimError(
                    f"{claim.id}: {test} must pass, found {outcome}; a claim has no verdict without its tests"
                )
    points = _points(claim, names)
    holding = [
        _holds(claim, point) if claim.by_record else bool(claim.test) and not why
        for _, point in points
    ]
    if all(holding) and (why or part):
        raise ClaimError(
            f"{claim.id}: holds ({ours}), though a cause is given why not; drop part and why, or look again"
        )
    if not all(holding) and not why:
        raise ClaimError(f"{claim.id}: does not hold ({ours}), and no cause is given; say why")
    if claim.swept:
        part = _sweep_in_words(claim, [value for value, _ in points], holding)
    if all(holding):
        kind, cause = KINDS[1 if claim.erratum else 0], f", {part}" if part else ""
    elif not claim.by_record and not claim.test:
        kind, cause = KINDS[4], f": {why}"
    elif part and (claim.part_if is None or _evaluate(claim, claim.part_if, names)):
        kind, cause = KINDS[2], f": {part}; {why}"
    else:
        kind, cause = KINDS[3], f": {why}"
    words = kind + cause + (f". {note}" if note else "")
    return Verdict(kind, words, ours, tuple(holding))


def _points(claim, names):
    """Each value of a swept choice with the names as they are there; a single point if nothing is
    swept."""
    if not claim.swept:
        return [(None, names)]
    values = list(_evaluate(claim, str(claim.swept["over"]), names))
    points = []
    for place, value in enumerate(values):
        here = {}
        for name in claim.swept["each"]:
            for known in (name, f"{name}_low", f"{name}_high"):
                if known in names:
                    here[known] = names[known][place]
            if name not in here or len(names[name]) != len(values):
                raise ClaimError(
                    f"{claim.id}: {name} must have a number for each of {len(values)} values; record them"
                )
        points.append((value, names | here | {"value": value}))
    return points


def _holds(claim, names):
    """Whether the predicate holds, and each printed number is met within its tolerance."""
    for expression, text in (claim.printed or {}).items():
        number, tolerance, percent = PRINTED.fullmatch(str(text)).groups()
        number, tolerance = float(number.replace(",", "")), float(tolerance)
        allowed = abs(number) * tolerance / 100 if percent else tolerance
        if not np.all(
            np.abs(np.asarray(_evaluate(claim, expression, names)) - number)
            <= allowed * (1 + 1e-12)
        ):
            return False
    return claim.predicate is None or bool(_evaluate(claim, claim.predicate, names))


def _sweep_in_words(claim, values, holding):
    """At which values of the swept choice the statement holds."""
    shown = [value if isinstance(value, str) else f"{value:g}" for value in values]
    shown = [f"({value})" if "," in value else value for value in shown]
    yes = [value for value, holds in zip(shown, holding, strict=True) if holds]
    no = [value for value, holds in zip(shown, holding, strict=True) if not holds]
    if not no:
        return f"at every {claim.swept['what']} tried: {', '.join(yes)}"
    return f"at {claim.swept['what']} {', '.join(yes)}, not at {', '.join(no)}" if yes else ""


def mean_with_interval(samples: ArrayLike) -> dict:
    """Mean of independent repeats with Student's 95 % interval, in the form that records and claims
    use.

    >>> {name: round(float(part), 2) for name, part in mean_with_interval([1.0, 2.0, 3.0]).items()}
    {'value': 2.0, 'low': -0.48, 'high': 4.48, 'repeats': 3.0}
    """
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    values = np.asarray(samples, dtype=float).ravel()
    if values.size < 2:
        raise ValueError(
            f"samples must be at least two repeats, found {values.size}; repeat the experiment"
        )
    half = stdtrit(values.size - 1, 0.975) * values.std(ddof=1) / np.sqrt(values.size)
    return {
        "value": values.mean(),
        "low": values.mean() - half,
        "high": values.mean() + half,
        "repeats": values.size,
    }


def share_with_interval(flags: Iterable[bool]) -> dict:
    """Share of the independent repeats that are true, with the exact 95 % interval of Clopper and
    Pearson.

    >>> {name: round(float(part), 3) for name, part in share_with_interval([True] * 20).items()}
    {'value': 1.0, 'low': 0.832, 'high': 1.0, 'repeats': 20.0}
    """
    from scipy.stats import binomtest

    values = np.asarray(list(flags), dtype=bool)
    if not values.size:
        return {"value": np.nan, "low": 0.0, "high": 1.0, "repeats": 0}
    interval = binomtest(int(values.sum()), values.size).proportion_ci(0.95, method="exact")
    return {
        "value": values.mean(),
        "low": interval.low,
        "high": interval.high,
        "repeats": values.size,
    }


@dataclass(frozen=True)
class Verdicts:
    """A table of statements, our results and verdicts, and a link to the published figure, shown by
    notebooks."""

    markdown: str
    count: int

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __repr__(self) -> str:
        return f"{self.count} claims"


def markdown_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Lines of a Markdown table."""
    heads = list(heads)
    cells = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
        for row in cells
    )


def verdicts(name: str) -> Verdicts:
    """Verdicts on the statements that the notebook `name` decides, from the record that it has just
    written.

    Where the parameters differ from those at which a claim is judged, the table has the published
    verdict. Never fails.
    """
    paper, rows = name.split("/")[0], []
    page = repository_folder() / "docs" / "claims" / f"{paper}.yaml"
    record = json.loads((output_folder() / f"{name}.json").read_text(encoding="utf-8"))
    size = _size(record)
    for claim in claims_of(read_claims(page)) if page.is_file() else ():
        if claim.record != name:
            continue
        judged = size == "paper" or (size == "quick" and claim.quick)
        ours, words = (
            "",
            f"Not judged at these parameters. Published verdict: {_published_verdict(claim)}",
        )
        try:
            ours = _Filling(claim).vformat(claim.ours, (), _names(claim, record))
            words = judge(claim, record).words if judged else words
        except ClaimError as problem:
            words = str(problem) if judged else words
        links = f"[claim](../../docs/claims/{paper}.md#{claim.id})"
        if claim.erratum:
            links += f", [erratum](../../docs/{claim.erratum})"
        rows.append((f"{claim.place}: {claim.statement}", ours, f"{words} ({links})"))
    text = markdown_table((head_of(paper), "ours", "verdict"), rows)
    for kind, published in (("figure", f"figures/{name}.png"), ("table", f"figures/{name}.csv")):
        if (repository_folder() / published).is_file():
            text += f"\n\nThe published {kind}: [{published}](../../{published})"
            break
    return Verdicts(text, len(rows))


def _published_verdict(claim):
    path = repository_folder() / "figures" / f"{claim.record}.json"
    try:
        return judge(claim, json.loads(path.read_text(encoding="utf-8"))).kind
    except (ClaimError, OSError):
        return "none"


def head_of(page: str) -> str:
    """The heading of a page's column of statements."""
    return "statement" if page in ("datasets", "explore") else "the paper"


def _size(record):
    """Profile of a record; of one made by hand, the profile with exactly its parameters."""
    if record["profile"] != "interactive":
        return record["profile"]
    root = repository_folder()
    published = root / "figures" / f"{record['name']}.json"
    if published.is_file():
        known = json.loads(published.read_text(encoding="utf-8"))
        if known["parameters"] == record["parameters"]:
            return known["profile"]
    if _quick_parameters(record["name"], root) == record["parameters"]:
        return "quick"
    return "interactive"


def _quick_parameters(name, root):
    """What the quick profile gives to the notebook that saves a record, in the form of a record;
    None if there is no such notebook."""
    entries = _read_yaml(root / "config" / "notebooks.yaml")
    owner = owner_of(name, entries) or name
    facts = entries.get(owner) or {}
    notebook = root / "notebooks" / f"{facts.get('notebook', owner)}.ipynb"
    if not notebook.is_file():
        return None
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if "parameters" in cell["metadata"].get("tags", ()):
            defaults = literal_assignments("".join(cell["source"]))
            quick = _read_yaml(root / "config" / "quick.yaml").get("notebooks", {})
            return json.loads(json.dumps(defaults | (quick.get(owner) or {})))
    return None


def _read_yaml(path):
    """The mapping in a file; empty if there is none."""
    import yaml

    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _names(claim, record):
    """Notebook parameters and the claim's numbers by name; an interval of x (or a list of them)
    adds x_low, x_high."""
    names = dict(record.get("parameters", {}))
    for name in claim.numbers or {}:
        value = recorded(claim, name, record)
        parts = value if isinstance(value, list) and value else [value]
        if all(
            isinstance(part, dict) and {"value", "low", "high"} <= part.keys() for part in parts
        ):
            for end in ("low", "high"):
                ends = [part[end] for part in parts]
                names[f"{name}_{end}"] = _number(ends if parts is value else ends[0])
            value = [part["value"] for part in parts] if parts is value else value["value"]
        names[name] = _number(value)
    return names


def paths_of(claim: Claim, name: str) -> list[list]:
    """The places of a claim's number in the results: one, or those of a list that the claim makes
    of several."""
    given = (claim.numbers or {})[name]
    several = given["of"] if isinstance(given, dict) else [given]
    return [path if isinstance(path, list) else [path] for path in several]


def recorded(claim: Claim, name: str, record: Mapping) -> object:
    """A claim's number as it is in the record."""
    values = []
    for path in paths_of(claim, name):
        value = record.get("results", {})
        for key in path:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                missing = path if len(path) > 1 else path[0]
                raise ClaimError(
                    f"{claim.id}: {claim.record} has no {missing!r} in its results; record it"
                ) from None
        values.append(value)
    return values if isinstance((claim.numbers or {})[name], dict) else values[0]


def _number(value):
    """A list of numbers as an array, and "inf", "-inf", "nan" as floats, because JSON has none;
    else the value."""
    try:
        if isinstance(value, str):
            return float(value)
        if isinstance(value, list):
            return np.array(value, dtype=float)
    except ValueError:  # text
        pass
    return value


def _evaluate(claim, expression, names):
    try:
        return eval(expression.strip(), {"__builtins__": {}} | FUNCTIONS | names)
    except Exception as error:
        raise ClaimError(
            f"{claim.id}: {expression!r} fails: {type(error).__name__}: {error}; correct it"
        ) from None


class _Filling(string.Formatter):
    """Replaces ``{expression:format}``; arrays become lists, and a number with an interval is
    followed by it."""

    def __init__(self, claim):
        self.claim = claim

    def get_field(self, field, args, names):
        value = _evaluate(self.claim, field, names)
        ends = [names.get(f"{field}_{end}") for end in ("low", "high")]
        return (value, None if ends[0] is None else ends), field

    def format_field(self, value_and_interval, spec):
        value, ends = value_and_interval
        try:
            if isinstance(value, np.ndarray | list | tuple):
                parts = np.ravel(value).tolist()
                each = zip(*ends, strict=True) if ends else [None] * len(parts)
                return ", ".join(
                    self.format_field((part, of_part), spec)
                    for part, of_part in zip(parts, each, strict=True)
                )
            text = format(value, spec)
            return (
                text
                if ends is None
                else f"{text} ({' to '.join(format(end, spec) for end in ends)})"
            )
        except (TypeError, ValueError) as error:
            raise ClaimError(
                f"{self.claim.id}: cannot write {value!r} as {spec!r}: {error}; correct it"
            ) from None
