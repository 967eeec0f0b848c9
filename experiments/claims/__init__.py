"""Claims as code: a statement of a paper, the recorded numbers that decide it, and the verdict.

``docs/claims/<paper>.yaml`` holds the statements; CONTRIBUTING.md says what they may hold. `judge`
evaluates a statement's predicate, a Python expression over recorded numbers, notebook parameters
and `FUNCTIONS`, on a record written by `experiments.figures`; `verdicts` shows those of one
notebook in its last cell.
"""

from experiments.claims.intervals import mean_with_interval, share_with_interval
from experiments.claims.judging import Kind, Verdict, judge, printed_in_words
from experiments.claims.numbers import FUNCTIONS, paths_of, recorded
from experiments.claims.statement import Claim, ClaimError, claims_of, read_claims
from experiments.claims.verdicts import head_of, markdown_table, verdicts

__all__ = [
    "FUNCTIONS",
    "Claim",
    "ClaimError",
    "Kind",
    "Verdict",
    "claims_of",
    "head_of",
    "judge",
    "markdown_table",
    "mean_with_interval",
    "paths_of",
    "printed_in_words",
    "read_claims",
    "recorded",
    "share_with_interval",
    "verdicts",
]
