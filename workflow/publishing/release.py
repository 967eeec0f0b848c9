"""What a person must still fill in before a version is released.

``python -m workflow.publishing.release`` lists it, and ends with 1 while there is anything.
"""

import sys
from dataclasses import dataclass

from workflow.configuration import ROOT

AUTHORS = "The tplrepro contributors"


@dataclass(frozen=True)
class Placeholder:
    """The words that stand in a file until somebody fills in a value, and what the value is."""

    file: str
    words: str
    value: str


PLACEHOLDERS = (
    Placeholder("CITATION.cff", f"name: {AUTHORS}", "names of the authors"),
    Placeholder("CITATION.cff", "# date-released:", "date of the release"),
    Placeholder("CITATION.cff", "# repository-code:", "address of the repository"),
    Placeholder("CITATION.cff", "# url:", "address of the site"),
    Placeholder("CITATION.cff", "# doi:", "identifier that the archive has reserved"),
    Placeholder("CHANGELOG.md", "not yet released", "date of the release"),
    Placeholder(
        "recipe/recipe.yaml", "# url:", "address of the source archive, in place of `path`"
    ),
    Placeholder("recipe/recipe.yaml", "# sha256:", "checksum of the source archive"),
    Placeholder("recipe/recipe.yaml", "the-maintainer", "names of the maintainers on the forge"),
    Placeholder("articles/paper.md", AUTHORS, "names, affiliations and ORCIDs of the authors"),
    Placeholder("articles/paper.md", "not yet submitted", "date of the submission"),
    Placeholder(
        "articles/paper.md",
        "confirm this section",
        "which generative tools were used, and for what",
    ),
    Placeholder("articles/paper.md", "confirm this before", "funding and thanks"),
    Placeholder("articles/preprint.md", AUTHORS, "names of the authors"),
    Placeholder("articles/reproduction-tkde-icde.md", AUTHORS, "names of the authors"),
    Placeholder("articles/reproduction-sip-dphmm-logs.md", AUTHORS, "names of the authors"),
)


@dataclass(frozen=True)
class Unfilled:
    """A value that a person must give, and the line where it belongs."""

    file: str
    line: int
    value: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.value}"


def find_unfilled() -> list[Unfilled]:
    """Each placeholder that is still in its file, with the first line that holds it."""
    found = []
    for one in PLACEHOLDERS:
        lines = (ROOT / one.file).read_text(encoding="utf-8").splitlines()
        holding = [number for number, line in enumerate(lines, start=1) if one.words in line]
        if holding:
            found.append(Unfilled(one.file, holding[0], one.value))
    return found


def main() -> int:
    """List what is unfilled; 1 if there is anything."""
    unfilled = find_unfilled()
    for place in unfilled:
        print(place)
    print(f"{len(unfilled)} values must be filled in before a release")
    return int(bool(unfilled))


if __name__ == "__main__":
    sys.exit(main())
