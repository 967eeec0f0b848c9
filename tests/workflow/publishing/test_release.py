"""The page on the package index, and what a person must fill in before a release."""

import re
import shutil
import subprocess

import pytest

import hatch_build
from tplrepro import __version__
from workflow.configuration import ROOT
from workflow.publishing import release

README = (ROOT / "README.md").read_text()
ADDRESS = "https://example.org/tplrepro"
TARGET = re.compile(r"\]\(([^)]+)\)")
#: Words that stand in the place of a name or an address.
STAND_INS = re.compile(rf"example\.org/tplrepro|{release.AUTHORS}|the-maintainer")


def test_each_link_of_the_page_on_the_index_leads_to_a_file_of_the_tagged_version():
    page = hatch_build.with_absolute_links(README, ADDRESS, "1.2.3")
    assert [target for target in TARGET.findall(page) if not target.startswith("https://")] == []
    for kind, target in re.findall(rf"{ADDRESS}/(blob|raw)/v1.2.3/([^)#]+)", page):
        assert (ROOT / target).exists()
        assert (kind == "raw") == target.endswith(".png")
    assert len(TARGET.findall(page)) == len(TARGET.findall(README))


def test_without_an_address_the_page_on_the_index_has_no_dead_link():
    page = hatch_build.with_absolute_links(README, None, "1.2.3")
    assert [target for target in TARGET.findall(page) if not target.startswith("https://")] == []
    assert "| Leakage over ten releases | Budgets that keep a level |" in page


def test_links_with_an_anchor_and_within_the_page_are_told_apart():
    text = "[a](docs/a.md#b) [c](#d) [e](https://example.org)"
    wanted = f"[a]({ADDRESS}/blob/v1/docs/a.md#b) [c](#d) [e](https://example.org)"
    assert hatch_build.with_absolute_links(text, ADDRESS, "1") == wanted


def test_the_authors_and_addresses_of_the_package_are_those_of_the_citation(tmp_path):
    (tmp_path / "README.md").write_text("[a](b.md)")
    (tmp_path / "CITATION.cff").write_text(
        "version: 3\nrepository-code: https://example.org/code\n"
        "authors: [{given-names: Ada, family-names: King}, {name: Us}]"
    )
    metadata = {}
    hatch_build.CitedMetadata(str(tmp_path), {}).update(metadata)
    assert metadata == {
        "authors": [{"name": "Ada King"}, {"name": "Us"}],
        "urls": {"Source": "https://example.org/code"},
        "readme": {
            "content-type": "text/markdown",
            "text": "[a](https://example.org/code/blob/v3/b.md)",
        },
    }


def test_each_stand_in_for_a_name_or_an_address_is_listed_for_whoever_releases():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so there is no list of tracked files")
    listed = subprocess.check_output(["git", "-C", str(ROOT), "ls-files"], text=True).split("\n")
    texts = {
        name: (ROOT / name).read_text()
        for name in listed
        if name.endswith((".md", ".cff", ".yaml", ".yml", ".toml")) and (ROOT / name).is_file()
    }
    with_stand_ins = {name for name, text in texts.items() if STAND_INS.search(text)}
    by_commands = {"codecheck.yml"}  # make claims writes it, from CITATION.cff
    assert with_stand_ins - by_commands == {
        one.file for one in release.PLACEHOLDERS if one.file != "CHANGELOG.md"
    }
    assert [str(place) for place in release.find_unfilled() if place.file not in listed] == []


def test_a_version_looks_released_only_when_nothing_is_unfilled():
    unfilled = release.find_unfilled()
    newest = re.search(r"^## \[(.*?)\](.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest.group(1) == __version__
    dated = "not yet released" not in newest.group(2)
    dated |= "\ndate-released:" in (ROOT / "CITATION.cff").read_text()
    assert not (dated and unfilled), "\n".join(map(str, unfilled))
