"""CITATION.cff as BibTeX, for the page that says how to cite."""

import re
from collections.abc import Mapping
from typing import Any

#: Kinds of the Citation File Format -> kinds of BibTeX.
KINDS = {"article": "article", "conference-paper": "inproceedings", "software": "software"}
#: Fields of the Citation File Format -> fields of BibTeX, in the order in which they are written.
FIELDS = {
    "title": "title",
    "journal": "journal",
    "collection-title": "booktitle",
    "volume": "volume",
    "issue": "number",
    "pages": "pages",
    "year": "year",
    "version": "version",
    "doi": "doi",
    "url": "url",
    "note": "note",
}


def bibtex(citation: Mapping[str, Any]) -> str:
    """An entry for the work of a CITATION.cff, and one for each of its references.

    >>> work = {"type": "software", "title": "R & D", "version": "1.0", "authors": [{"name": "Us"}]}
    >>> print(bibtex(work | {"date-released": "2026-11-28"}), end="")
    @software{us2026r,
      author = {{Us}},
      title = {{R \\& D}},
      year = {2026},
      version = {1.0},
    }
    """
    works = [citation, *citation.get("references", ())]
    return "\n".join(_entry(work) for work in works)


def _entry(work: Mapping[str, Any]) -> str:
    """A work of CITATION.cff as an entry of BibTeX."""
    fields = _with_fields_of_bibtex(work)
    kind = KINDS.get(fields["type"], "misc")
    authors = " and ".join(map(_author, fields["authors"]))
    lines = [f"@{kind}{{{_key(fields)},"]
    lines.append(f"  author = {{{authors}}},")
    for name, written in FIELDS.items():
        if name in fields:
            lines.append(f"  {written} = {{{_escaped(name, fields[name])}}},")
    lines += ["}", ""]
    return "\n".join(lines)


def _with_fields_of_bibtex(work: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a work, with those that BibTeX writes in another way: year, pages and note."""
    fields = dict(work)
    if "date-released" in fields:
        fields["year"] = str(fields["date-released"])[:4]
    if "start" in fields:
        fields["pages"] = f"{fields['start']}--{fields['end']}"
    identifiers = [one["value"] for one in fields.get("identifiers", ())]
    if identifiers:
        fields["note"] = ", ".join(identifiers)
    return fields


def _key(fields: Mapping[str, Any]) -> str:
    """The key of an entry, such as cao2019quantifying."""
    first = fields["authors"][0]
    family = first.get("family-names", first.get("name", ""))
    year = fields.get("year", "")
    first_word = fields["title"].split()[0]
    words = f"{family}{year}{first_word}".lower()
    return re.sub(r"[^a-z0-9]", "", words)


def _author(person: Mapping[str, str]) -> str:
    if "name" in person:  # a group, whose name is not to be taken apart
        return f"{{{person['name']}}}"
    return f"{person['family-names']}, {person['given-names']}"


def _escaped(name: str, value: Any) -> str:
    """The value of a field as BibTeX reads it."""
    text = str(value)
    if name in ("doi", "url"):
        return text
    escaped = re.sub(r"([&%#_])", r"\\\1", text)
    if name == "title":  # capitals stay
        return f"{{{escaped}}}"
    return escaped
