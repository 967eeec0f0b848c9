"""docs/map.md leads from a paper's numbers to the notebooks that use our code for them."""

import re

import pytest

from experiments.claims import claims_of
from workflow.configuration import ROOT
from workflow.publishing.code_map import Figure, figures_in, read_table
from workflow.publishing.judging import read_pages
from workflow.publishing.used_code import code_used_by

#: Written by hand, with the notebooks open: by title of a section and item, the notebooks.
BY_HAND = {
    ("[1]", "Algorithm 1"): "fig6a fig6c fig6d lp_agreement authors_program",
    ("[1]", "Algorithm 6"): "fig5 authors_program",
    ("[1]", "Theorem 5"): "fig4 real_correlations",
    ("[1]", "Definition 8"): "fig8 fig9 real_correlations",
    ("[1]", "Eq. (19)"): "fig6a fig6c fig6d lp_agreement",
    ("[1]", "Fig. 6"): "fig6a fig6b fig6c fig6d",
    ("[2]", "Algorithm 2"): "fig7 fig8",
    ("[2]", "Table 2"): "fig3",
    ("[3]", "Algorithm 2"): "fig5",
    ("[3]", "Definition 6"): "table1",
    ("[4]", "Eq. (1)"): "authors_series leakage_per_release published_rule states_and_runtime",
    ("[4]", "Eq. (2)"): "published_rule",
    ("[5]", "Algorithm 2"): "fig10 fig11 fig12 fig13",
    ("[5]", "Theorem 4.1"): "fig10 fig11 fig12 fig13",
    ("[5]", "Theorem 5.2"): "running_example",
}


@pytest.mark.parametrize(("paper", "item"), BY_HAND)
def test_the_map_links_the_notebooks_that_use_the_code(paper, item):
    page = (ROOT / "docs/map.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {re.escape(paper)}.*?(?=^## |\Z)", page, re.M | re.S)
    (row,) = re.findall(rf"^\| {re.escape(item)} \| (.*) \|$", section, re.M)
    _, notebooks, _ = row.split(" | ")
    assert set(re.findall(r"\[(\w+)\]", notebooks)) == set(BY_HAND[paper, item].split())


#: What the place of a claim names by numbers, unless it says "of" another paper after them.
NAMED = re.compile(
    r"\b(Algorithm|Theorem|Definition|Eq)s?\.? "
    r"((?:\(?\d+(?:\.\d)?\)?(?:, | and | to )?)+)(?!\d| of \[)"
)


def items_in(place):
    """The algorithms, theorems, definitions and equations that a place names.

    >>> sorted(items_in("Footnote 3, Algorithms 2 to 4; Eq. (13), after Theorem 5 of [1]"))
    ['Algorithm 2', 'Algorithm 3', 'Algorithm 4', 'Eq. (13)']
    """
    items = set()
    for kind, words in NAMED.findall(place):
        numbers = re.findall(r"\d+(?:\.\d)?", words)
        if " to " in words:
            numbers = [str(number) for number in range(int(numbers[0]), int(numbers[-1]) + 1)]
        for number in numbers:
            items.add(f"Eq. ({number})" if kind == "Eq" else f"{kind} {number}")
    return items


def test_each_claim_stands_in_the_rows_of_what_its_place_names():
    pages = read_pages()
    for paper, rows in read_table().items():
        named = {row.item: row.claims for row in rows}
        for claim in claims_of(pages[paper]):
            for item in items_in(claim.place or "") & set(named):
                assert claim.id in named[item], (paper, item, claim.id)


def test_a_name_is_followed_to_the_module_that_defines_it():
    used = code_used_by("from tplrepro import published\npublished.algorithm_2([[1]])")
    assert "tplrepro.leakage.published.algorithm_2" in used
    assert "tplrepro.allocation.conference.algorithm_2" not in used


def test_what_experiments_call_counts_and_what_stands_beside_it_does_not():
    used = code_used_by("from experiments import estimated\nestimated.budget(1, None, None)")
    assert "tplrepro.allocation.published.allocate_by_upper_bound" in used
    assert "tplfrontier.chains.confidence.loss_from_counts" not in used


def test_a_method_counts_for_classes_that_are_at_hand():
    named = "import tplrepro as tpl\nloss = tpl.PrivacyLossFunction([[1]])\nloss.supremum(1)\n"
    used = code_used_by(named)
    assert "tplrepro.leakage.loss_function.PrivacyLossFunction.supremum" in used
    assert "tplrepro.leakage.prior_free.PriorFreeLoss.supremum" not in used


def test_figures_are_read_from_the_places_of_claims():
    assert figures_in("Section 8.3, Figs. 12(a) and 13(b)") == {
        Figure("Fig", 12),
        Figure("Fig", 13),
    }
    assert figures_in("Table II, Section III.C") == {Figure("Table", 2)}
