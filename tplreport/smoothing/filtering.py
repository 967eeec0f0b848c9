"""What Kalman filters have in common: from time to time they predict, then learn from what is seen.

Several settings are tried side by side, S at a time.
"""

from __future__ import annotations
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tplreport.smoothing.model import CountModel, Settings


@dataclass(frozen=True)
class Beliefs:
    """What S filters believe about the counts of one time: means (S, n), and covariances (S, n, n)
    or variances (S, n)."""

    means: np.ndarray
    spreads: np.ndarray


@dataclass(frozen=True)
class Lesson:
    """What the noisy counts of a time taught: the beliefs after it, their log likelihoods (S,) and
    surprises (S,), which have as mean the number of values if the model is right. A smoother needs
    the `precisions` of the values and their product with the errors of prediction, `weighted`."""

    beliefs: Beliefs
    log_likelihoods: np.ndarray
    surprises: np.ndarray
    precisions: np.ndarray
    weighted: np.ndarray


class Filter(Protocol):
    """A filter of a model's counts."""

    @property
    def model(self) -> CountModel:
        """What it filters."""

    def first(self, settings: Settings) -> Beliefs:
        """Beliefs about the first time, before anything was seen."""

    def predict(self, beliefs: Beliefs, time: int, settings: Settings) -> Beliefs:
        """Beliefs about a time, from those about the one before."""

    def learn(self, beliefs: Beliefs, time: int, settings: Settings) -> Lesson:
        """What the noisy counts of a time teach."""

    def filtered(self, track: Track, settings: Settings) -> Estimates:
        """The counts of each time, by it and the earlier ones."""

    def smoothed(self, track: Track, settings: Settings) -> Estimates:
        """The counts of each time, by all of them."""


@dataclass(frozen=True)
class Track:
    """What one filter believed before and after each time, and what each time taught it, None
    where nothing was seen."""

    predicted: list[Beliefs]
    lessons: list[Lesson | None]

    def after(self, time: int) -> Beliefs:
        """The beliefs after a time."""
        lesson = self.lessons[time]
        if lesson is None:
            return self.predicted[time]
        return lesson.beliefs

    def estimates(self) -> Estimates:
        """The beliefs after each time."""
        after = [self.after(time) for time in range(len(self.lessons))]
        means = np.array([beliefs.means[0] for beliefs in after])
        return Estimates(means, np.array([beliefs.spreads[0] for beliefs in after]))


@dataclass(frozen=True)
class Estimates:
    """Means (T, n) of the counts, and their covariances (T, n, n) or variances (T, n)."""

    means: np.ndarray
    spreads: np.ndarray

    @property
    def variances(self) -> np.ndarray:
        """Those of each count, (T, n)."""
        if self.spreads.ndim == 2:
            return self.spreads
        return np.einsum("tii->ti", self.spreads)


@dataclass(frozen=True)
class Fit:
    """How well S filters predict each time by the earlier ones, (T, S) each."""

    log_likelihoods: np.ndarray
    surprises: np.ndarray


def fit(filter: Filter, settings: Settings) -> Fit:
    """How well a filter predicts with each of these settings."""
    shape = (len(filter.model), len(settings))
    log_likelihoods = np.zeros(shape)
    surprises = np.zeros(shape)
    for time, _, lesson in _passes(filter, settings):
        if lesson is not None:
            log_likelihoods[time] = lesson.log_likelihoods
            surprises[time] = lesson.surprises
    return Fit(log_likelihoods, surprises)


def follow(filter: Filter, settings: Settings) -> Track:
    """All that a filter with one setting believes."""
    track = Track([], [])
    for _, predicted, lesson in _passes(filter, settings):
        track.predicted.append(predicted)
        track.lessons.append(lesson)
    return track


def learn_separately(
    beliefs: Beliefs, values: np.ndarray, variances: np.ndarray, seen: np.ndarray
) -> Lesson:
    """What noisy values teach about uncorrelated counts, those at the places `seen`; `values` (k,)
    and `variances` (k,) or (S, k) are theirs."""
    of_values = beliefs.spreads[:, seen] + variances
    precisions = 1.0 / of_values
    errors = values - beliefs.means[:, seen]
    weighted = precisions * errors
    surprises = errors * weighted
    log_likelihoods = -0.5 * (np.log(2.0 * np.pi * of_values) + surprises).sum(axis=1)
    means = beliefs.means.copy()
    means[:, seen] += beliefs.spreads[:, seen] * weighted
    spreads = beliefs.spreads.copy()
    spreads[:, seen] *= variances * precisions
    return Lesson(
        Beliefs(means, spreads), log_likelihoods, surprises.sum(axis=1), precisions, weighted
    )


def _passes(filter: Filter, settings: Settings) -> Iterator[tuple[int, Beliefs, Lesson | None]]:
    """Each time, what was believed before it, and what it taught."""
    beliefs = filter.first(settings)
    for time in range(len(filter.model)):
        if time > 0:
            beliefs = filter.predict(beliefs, time, settings)
        lesson = None
        predicted = beliefs
        if filter.model.seen(time).size > 0:
            lesson = filter.learn(beliefs, time, settings)
            beliefs = lesson.beliefs
        yield time, predicted, lesson
