"""The terms of the page, each explained in one sentence: in tooltips and in a list."""

import re
from html import escape

#: Term -> its meaning, after [1].
GLOSSARY = {
    "ε": "The privacy budget of one release, in nats: what it leaks if values are uncorrelated.",
    "BPL": "Backward privacy leakage: what this and all earlier releases reveal about a user's value at this time.",
    "FPL": "Forward privacy leakage: what this and all later releases reveal about a user's value at this time.",
    "TPL": "Temporal privacy leakage, BPL + FPL − ε: what all releases reveal about a user's value at this time.",
    "event level": "Protects a user's value at any single time point. Its leakage is the largest TPL.",
    "user level": "Protects all values of a user together. Its pure leakage is the sum of the budgets.",
    "target α": "The promised level: no TPL may exceed it. The schemes allocate budgets for this level.",
    "L": "The privacy loss function: the leakage at the neighbouring release that correlation carries over.",
    "breakpoints": "The leakages at which L switches to other rows or columns of the matrix.",
    "leakage − ε": "A leakage grows while L lies above this line, and stays where the two meet.",
    "supremum": "The smallest bound on the leakage if the largest ε is spent at every release forever.",
    "α/T": "Equal parts of α: all releases together stay within α under any correlation, with the most noise.",
    "Algorithm 7": "One budget for every release that keeps TPL within α for any number of releases.",
    "Algorithm 8": "For a known T: larger budgets at the first and the last release, so that every TPL equals α.",
    "smallest error": "For a known T: of all budgets that keep TPL within α, those with the smallest mean error.",
    "the chosen budgets": "ε at each release, or a list that you type or copy from a scheme.",
    "sensitivity": "How much one user's value can change the counts in total: 2 if a user moves between counts.",
    "δ": "The probability with which the bound on ε may fail.",
}

# Longer terms come before those that they contain.
TERMS = re.compile(rf"\b({'|'.join(map(re.escape, sorted(GLOSSARY, key=len, reverse=True)))})\b", re.IGNORECASE)
MEANINGS = {term.lower(): meaning for term, meaning in GLOSSARY.items()}


def about(text: str) -> str:
    """The meaning of the first term in a text; empty if there is none."""
    match = TERMS.search(text)
    return MEANINGS[match[0].lower()] if match else ""


def explained(text: str) -> str:
    """A text as HTML in which each term has its meaning as a tooltip."""
    return TERMS.sub(lambda term: f"<abbr title='{escape(about(term[0]))}'>{term[0]}</abbr>", escape(text))


def glossary_html() -> str:
    """All terms, in a list that opens on a click."""
    entries = "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in GLOSSARY.items())
    return f"<details class='tplr-glossary'><summary>Glossary</summary><dl>{entries}</dl></details>"
