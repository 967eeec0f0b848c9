"""What CITATION.cff and README.md tell the package index: authors, addresses, and the page."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from hatchling.metadata.plugin.interface import MetadataHookInterface

#: Addresses of a project -> the field of CITATION.cff that has them.
ADDRESSES = {"Source": "repository-code", "Documentation": "url"}
# Relative links have no colon, as in https:, and do not begin with #.
PICTURE = re.compile(r"!\[([^]]*)\]\((?!#)([^):]+)\)")
LINK = re.compile(r"\[((?:[^][]|\[[^]]*\])*)\]\((?!#)([^):]+)\)")


class CitedMetadata(MetadataHookInterface):
    """Fills in what pyproject.toml declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the authors, the addresses and the text of the page to the metadata of a build."""
        root = Path(self.root)
        citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
        readme = (root / "README.md").read_text(encoding="utf-8")
        metadata["authors"] = [{"name": name_of(author)} for author in citation["authors"]]
        metadata["urls"] = {
            name: citation[field] for name, field in ADDRESSES.items() if field in citation
        }
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(
                readme, citation.get("repository-code"), citation["version"]
            ),
        }


def name_of(author: Mapping[str, str]) -> str:
    """The name of a person, or of a group, of CITATION.cff."""
    if "name" in author:
        return author["name"]
    return f"{author['given-names']} {author['family-names']}"


def with_absolute_links(text: str, address: str | None, version: str) -> str:
    """A page whose links and pictures are found from anywhere.

    They lead to the files of the tagged version. Without an address of the repository, a link
    becomes its text and a picture its description, so that nothing is dead.
    """
    if address is None:
        return LINK.sub(r"\1", PICTURE.sub(r"\1", text))
    pictures = f"![\\1]({address}/raw/v{version}/\\2)"
    links = f"[\\1]({address}/blob/v{version}/\\2)"
    return LINK.sub(links, PICTURE.sub(pictures, text))
