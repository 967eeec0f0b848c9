"""Is a first-order chain that all users share believable? Each check ends in one sentence.

Three checks ask whether a step depends on more than the place before, and the time of day where
habits follow the clock (`time_of_day`): on the past, on the half of the time axis, on the user. The
answer is an e-value (`evidence`): if everybody moves by one chain it exceeds `ALARM` times the
number of questions for any of them in at most 1 / `ALARM` of all data sets. The question with the
largest evidence is answered first, and the others again given its answer: what one difference
explains is not taken for another.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tplreport.reporting.evidence import (
    ALARM,
    UNIT,
    Found,
    Given,
    HabitsOfAll,
    UserEvidence,
    count_tables,
    log_mean_exp,
    look,
    what_is_lacking,
)
from tplreport.reporting.evidence import HALVES as BY_HALVES
from tplreport.reporting.evidence import ORDER as BY_ORDER
from tplreport.reporting.evidence import QUARTERS as BY_QUARTERS
from tplreport.reporting.evidence import STAY as BY_STAY
from tplreport.reporting.steps_of_users import FOLDS, StepBlocks
from tplrepro.display import count_noun

#: A state that is left fewer times is doubtful.
FEW_STEPS = 10.0
#: States left few times, or rows made up, are doubtful where users spend more of their time there.
MUCH_TIME = 0.01
#: More rows than this share made up by half or more are doubtful.
MANY_ROWS = 0.1
#: So are more states than this share that are left few times.
MANY_STATES = 0.5

FINE = "fine"
DOUBTFUL = "doubtful"
REFUSED = "refused"
UNCHECKED = "not checked"
#: Names of the checks of the chain: does it depend on the hour, on more of the past than the last
#: place, on the half of the time, or on the user?
RHYTHM = "time of day and of week"
ORDER = "order of the chain"
HALVES = "first and second half of the time"
USERS = "differences between users"
OF_CHAIN = (RHYTHM, ORDER, HALVES, USERS)


@dataclass(frozen=True)
class Check:
    """One check of the model: `verdict` is "fine", "doubtful", "refused" or "not checked"."""

    name: str
    verdict: str
    sentence: str  # with what to do unless fine
    value: float  # nats of evidence, or a share


#: What may matter beside the place before, and the contexts by which it is asked.
STAYS = "length of stay"
QUESTIONS = {USERS: (), ORDER: (BY_ORDER,), STAYS: (BY_STAY,), HALVES: (BY_HALVES, BY_QUARTERS)}
#: Evidence of so many nats, for any question, is not taken for chance.
LEAST_NATS = float(np.log(ALARM * len(QUESTIONS)))


@dataclass(frozen=True, eq=False)
class Answers:
    """What matters beside the place before, and how much evidence there is of it."""

    nats: dict[str, float]  # by question, given what matters more
    found: tuple[str, ...]  # what matters, the largest evidence first
    users: UserEvidence  # of the round in which users were found, or the last one
    shared_weight: float  # of the habits of all in those of each user, which is the likeliest
    lacking: float  # what the habits of all lack in that round, nats

    @classmethod
    def of(cls, blocks: StepBlocks) -> "Answers":
        """Ask all questions about the steps, the others again whenever one is answered."""
        folds = min(FOLDS, blocks.n_users)
        known = HabitsOfAll.of(count_tables(blocks, folds), blocks.clock)
        given = what_is_lacking(blocks, known)
        found: list[str] = []
        nats: dict[str, float] = {}
        users = None
        lacking = 0.0
        while True:
            seen = look(blocks, known, given)
            asked = _nats_of(seen, blocks.n_users)
            if USERS not in found:
                users = seen.users
                lacking = seen.lacking * UNIT
            nats |= {name: value for name, value in asked.items() if name not in found}
            rest = {name: value for name, value in asked.items() if name not in found}
            name = max(rest, key=rest.__getitem__, default="")
            if not name or rest[name] <= LEAST_NATS:
                break
            found.append(name)
            given = _with_answer(given, name, seen)
        assert users is not None
        return cls(nats, tuple(found), users, users.best_weight, lacking)

    @property
    def place_before_matters(self) -> bool:
        """Whether the place before the last one matters, and more than the length of a stay."""
        if ORDER not in self.found:
            return False
        return STAYS not in self.found or self.nats[STAYS] <= self.nats[ORDER]

    @property
    def variation_of_users(self) -> float:
        """By how much rows of users may vary about the shared ones; see `mean_variation`.

        0 where users are found to differ: then their own steps tell their rows.
        """
        if USERS in self.found or USERS not in self.nats:  # or there is a single one
            return 0.0
        return self.users.variation(self.lacking)


def _nats_of(seen: Found, n_users: int) -> dict[str, float]:
    """The evidence of one round, by question."""
    nats = {}
    for name, contexts in QUESTIONS.items():
        if contexts:
            nats[name] = float(log_mean_exp(np.array([seen.nats_of(one) for one in contexts])))
        elif n_users > 1:
            nats[name] = seen.nats_of_users
    return nats


def _with_answer(given: Given, name: str, seen: Found) -> Given:
    """What is known, with the answer to the question called `name`."""
    contexts = QUESTIONS[name]
    if not contexts:
        return replace(given, users=seen.users)
    best = max(contexts, key=seen.nats_of)
    return replace(given, contexts=(*given.contexts, seen.best_of(best)))


@dataclass(frozen=True)
class CheckedChain:
    """All checks, and what they rest on."""

    checks: tuple[Check, ...]
    answers: Answers


def check_chain(rhythm: Check, blocks: StepBlocks, counts: Any, smoothing: float) -> CheckedChain:
    """All checks, after that of the rhythm.

    `counts` (n, n) are those of the steps at all hours together, to each row of which smoothing
    adds `smoothing` steps.
    """
    answers = Answers.of(blocks)
    order = check_order(answers)
    halves = check_stationarity(answers)
    users = check_users(answers, blocks)
    checks = (rhythm, order, halves, users, *check_amount(counts, smoothing))
    return CheckedChain(checks, answers)


def evidence_in_words(nats: float) -> str:
    """Such as "evidence e^12.3, where e^4.4 would be doubtful"."""
    return f"evidence e^{nats:.1f}, where e^{LEAST_NATS:.1f} may be chance"


def check_order(answers: Answers) -> Check:
    """Does the place before the last one, or how long a user has stayed, matter?"""
    order = answers.nats[ORDER]
    stay = answers.nats[STAYS]
    if STAYS in answers.found and not answers.place_before_matters:
        words = (
            "how long a user has been in a place predicts whether she stays (lengths of 1, 2 to 3 "
            f"and more steps: {evidence_in_words(stay)}): use states that say how "
            "long, such as home for 4 hours or more"
        )
        return Check(ORDER, DOUBTFUL, words, stay)
    if answers.place_before_matters:
        words = (
            "the place before the last one predicts the next as well ("
            f"{evidence_in_words(order)}): use longer steps of time, or, where each single place "
            "is the secret, see whether a chain of order 2 allows more (plans of a report against "
            "one, where all hours are alike)"
        )
        return Check(ORDER, DOUBTFUL, words, order)
    words = (
        "neither the place before the last one nor the length of a stay predicts the next place ("
        f"{evidence_in_words(max(order, stay))})"
    )
    return Check(ORDER, FINE, words, max(order, stay))


def check_stationarity(answers: Answers) -> Check:
    """One chain in both halves of each user's time."""
    nats = answers.nats[HALVES]
    if HALVES in answers.found:
        words = (
            f"the steps of the two halves differ ({evidence_in_words(nats)}): report on the later "
            "half alone, and again when new data come"
        )
        return Check(HALVES, DOUBTFUL, words, nats)
    words = f"one chain predicts both halves ({evidence_in_words(nats)})"
    return Check(HALVES, FINE, words, nats)


def check_users(answers: Answers, blocks: StepBlocks) -> Check:
    """One chain for all users?"""
    if blocks.n_users == 1:
        words = (
            "there is a single user: nothing is known about how others differ; name the column of "
            "users if there is one"
        )
        return Check(USERS, UNCHECKED, words, 0.0)
    nats = answers.nats[USERS]
    if USERS not in answers.found:
        words = f"the shared chain predicts each user ({evidence_in_words(nats)})"
        return Check(USERS, FINE, words, nats)
    odd = answers.users.odd
    who = "users have habits of their own"
    if 0 < len(odd) < blocks.n_users / 2:
        named = ", ".join(str(name) for name in blocks.names[odd[:3]])
        who = f"{count_noun(len(odd), 'user')} ({named}{', ...' if len(odd) > 3 else ''}) "
        who += "have habits of their own"
        if len(odd) == 1:
            who = who.replace(" have ", " has ")
    words = (
        f"{who} ({evidence_in_words(nats)}): releases leak more to somebody who knows the habits "
        "of one user; use α/T, or a plan against the worst user's habits"
    )
    return Check(USERS, DOUBTFUL, words, nats)


def check_amount(counts: Any, smoothing: float) -> list[Check]:
    """Steps from a state, and how much of a row smoothing makes up: by the share of users' time,
    not on average."""
    moves = np.asarray(counts.sum(axis=1)).ravel()
    arrivals = np.asarray(counts.sum(axis=0)).ravel()
    time = (moves + arrivals) / max((moves + arrivals).sum(), 1.0)
    return [_check_steps_of_states(moves, time), _check_made_up(moves, time, smoothing)]


def _check_steps_of_states(moves: np.ndarray, time: np.ndarray) -> Check:
    """How often states are left (n,), and in how much of users' time (n,) they are left seldom."""
    few = moves < FEW_STEPS
    time_in_few = float(time[few].sum())
    words = (
        f"the median state is left {count_noun(float(np.median(moves)), 'time', ',.4g')}; "
        f"{few.mean():.0%} of the states, in which users spend {time_in_few:.1%} of their time, "
        f"fewer than {FEW_STEPS:g} times"
    )
    if time_in_few <= MUCH_TIME and few.mean() <= MANY_STATES:
        return Check("steps a state", FINE, words, time_in_few)
    words += ": use fewer states (larger cells, bins, rare ones together) or more data"
    return Check("steps a state", DOUBTFUL, words, time_in_few)


def _check_made_up(moves: np.ndarray, time: np.ndarray, smoothing: float) -> Check:
    """How much of a row smoothing makes up, if it adds `smoothing` steps to each.

    `moves` (n,) says how often each state is left, `time` (n,) the share of the users' time in it.
    """
    made_up = smoothing / np.maximum(smoothing + moves, 1e-300)
    share = float(made_up.mean())
    half = made_up >= 0.5
    verdict = FINE
    words = (
        f"smoothing makes up {share:.1%} of a row on average, and half or more of "
        f"{half.mean():.0%} of them"
    )
    if share >= 0.5:
        verdict = REFUSED
        words += ": the correlation is a guess; use fewer states or more data"
    elif half.mean() > MANY_ROWS or time[half].sum() > MUCH_TIME:
        verdict = DOUBTFUL
        words += ": what is known of these is a guess; use fewer states or more data"
    return Check("share made up", verdict, words, share)
