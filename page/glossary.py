"""The words of the page, a sentence each: beside the mouse wherever they stand, and all of them in a list."""

import re
from html import escape

__all__ = ["GLOSSARY", "about", "explained", "glossary_html"]

#: Word -> what it means, after [1].
GLOSSARY = {
    "ε": "The privacy budget of one release in nats: what it leaks of one time point if nothing is correlated.",
    "BPL": "Backward privacy leakage: what this and all earlier releases tell of a user's value at this time.",
    "FPL": "Forward privacy leakage: what this and all later releases tell of a user's value at this time.",
    "TPL": "Temporal privacy leakage, BPL + FPL − ε: what all releases together tell of a user's value at this time.",
    "event level": "Protects a user's value at one time point, whichever it is: the largest TPL.",
    "user level": "Protects all values of a user over time together: the sum of the budgets.",
    "target α": "The level that is promised: no TPL may be above it. Budgets are allocated for it.",
    "L": "The privacy loss function: what correlation carries over of the leakage at the neighbouring release.",
    "breakpoints": "Where L changes from one pair of rows, or set of columns, of the matrix to another.",
    "leakage − ε": "Where L lies below this line a leakage still grows; where they meet it stays.",
    "supremum": "The least number that a leakage never exceeds, however long one goes on releasing at the largest ε.",
    "α/T": "Equal parts of α, which keep all releases together within it: safe under any correlation, with most noise.",
    "Algorithm 7": "One budget for each release, under which TPL stays within α however many releases there will be.",
    "Algorithm 8": "For a known T: larger budgets at the first and the last release, so that each TPL is α.",
    "smallest error": "For a known T: of all budgets that keep TPL within α, those with the least mean error.",
    "the chosen budgets": "Those that the controls give: ε at each release, or the ones typed or taken from a scheme.",
    "sensitivity": "What one user's value at one time can change of all counts in sum: 2 where she moves between two.",
    "δ": "The probability with which the bound on ε may fail.",
}

# A longer word goes before one that is part of it.
WORDS = re.compile(rf"\b({'|'.join(map(re.escape, sorted(GLOSSARY, key=len, reverse=True)))})\b", re.IGNORECASE)


def about(text: str) -> str:
    """What the first word means that a text holds of the glossary; nothing for a text that says itself what it means.

    >>> about("Algorithm 7 (any T)")
    'One budget for each release, under which TPL stays within α however many releases there will be.'
    """
    found = WORDS.search(text)
    return next((GLOSSARY[word] for word in GLOSSARY if found and word.lower() == found[0].lower()), "")


def explained(text: str) -> str:
    """A text as HTML in which each word of the glossary tells what it means where the mouse rests on it."""
    return WORDS.sub(lambda word: f"<abbr title='{escape(about(word[0]))}'>{word[0]}</abbr>", escape(text))


def glossary_html() -> str:
    """All words in a list that is opened by a click."""
    entries = "".join(f"<dt>{escape(word)}</dt><dd>{escape(sentence)}</dd>" for word, sentence in GLOSSARY.items())
    return f"<details class='tplr-glossary'><summary>What the words mean</summary><dl>{entries}</dl></details>"
