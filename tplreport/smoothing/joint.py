"""The Kalman filter and smoother of all counts of a time together, with their covariances.

Q depends on the true counts, for which the filter takes its own estimates: given what was seen, the
mean of Q(c) is Q of the mean of c. The smoother is that of de Jong (1989), which inverts no
covariance of counts: that is singular where their total is known.
"""

from dataclasses import dataclass

import numpy as np

from tplreport.smoothing.filtering import Beliefs, Estimates, Lesson, Track
from tplreport.smoothing.model import CountModel, Settings


@dataclass(frozen=True)
class JointFilter:
    """A filter whose spreads are covariances (S, n, n)."""

    model: CountModel

    def first(self, settings: Settings) -> Beliefs:
        """What the model knows of the first time."""
        sides = len(settings)
        means = np.tile(self.model.first_mean, (sides, 1))
        return Beliefs(means, np.tile(self.model.first_covariance, (sides, 1, 1)))

    def predict(self, beliefs: Beliefs, time: int, settings: Settings) -> Beliefs:
        """a = P'm and V = P'MP + spread Q(c) + turnover diag(P'c + 1), c being m without what is
        negative."""
        step = self.model.steps[time - 1]
        counts = np.maximum(beliefs.means, 0.0)
        expected = counts @ step
        # one product for P'MP and for Q = diag(P'c) - P' diag(c) P
        within = beliefs.spreads.copy()
        _diagonals(within)[:] -= settings.spread[:, None] * counts
        covariances = _sandwich(within, step)
        _diagonals(covariances)[:] += settings.spread[:, None] * expected
        covariances += self._turnover(expected, settings)
        return Beliefs(beliefs.means @ step, covariances)

    def _turnover(self, expected: np.ndarray, settings: Settings) -> np.ndarray:
        """The covariances (S, n, n) of people who enter and leave: those of independent counts, or
        given their sum, if that never changes."""
        rates = expected + 1.0
        covariances = rates[:, :, None] * np.eye(rates.shape[1])
        if self.model.has_total:
            sums = rates.sum(axis=1)
            covariances -= rates[:, :, None] * rates[:, None, :] / sums[:, None, None]
        return settings.turnover[:, None, None] * covariances

    def learn(self, beliefs: Beliefs, time: int, settings: Settings) -> Lesson:
        """m = a + K(y - a) and M = (I - K)V(I - K)' + KRK' with K = VG, G being the inverse of the
        covariance of y and R that of its noise. The shorter V - KV drowns in rounding where V is
        much larger than R."""
        seen = self.model.seen(time)
        columns = beliefs.spreads
        of_values = columns.copy()
        if seen.size < self.model.n_states:
            columns = columns[:, :, seen]
            of_values = columns[:, seen, :].copy()
        _diagonals(of_values)[:] += self.model.variances[time, seen]
        precisions = _symmetric(np.linalg.inv(of_values))
        log_determinants = 2.0 * np.log(_diagonals(np.linalg.cholesky(of_values))).sum(axis=1)
        errors = self.model.values[time, seen] - beliefs.means[:, seen]
        weighted = np.einsum("sij,sj->si", precisions, errors)
        surprises = np.einsum("si,si->s", errors, weighted)
        log_likelihoods = -0.5 * (log_determinants + surprises + seen.size * np.log(2.0 * np.pi))
        means = beliefs.means + np.einsum("sij,sj->si", columns, weighted)
        gains = columns @ precisions
        kept = self._kept(beliefs.spreads, precisions, time)
        covariances = kept @ beliefs.spreads @ kept.transpose(0, 2, 1)
        noise = self.model.variances[time, seen]
        covariances += (gains * noise) @ gains.transpose(0, 2, 1)
        return Lesson(Beliefs(means, covariances), log_likelihoods, surprises, precisions, weighted)

    def _kept(self, covariances: np.ndarray, precisions: np.ndarray, time: int) -> np.ndarray:
        """I - K (S, n, n), by which an earlier error remains after a time; `covariances` are those
        before it. Of the counts that are seen, I - K = RG, which loses no digits."""
        seen = self.model.seen(time)
        of_seen = self.model.variances[time, seen, None] * precisions
        if seen.size == self.model.n_states:
            return of_seen
        kept = np.tile(np.eye(self.model.n_states), (len(precisions), 1, 1))
        kept[:, :, seen] -= covariances[:, :, seen] @ precisions
        kept[:, seen[:, None], seen] = of_seen
        return kept

    def filtered(self, track: Track, settings: Settings) -> Estimates:
        """The beliefs after each time."""
        return track.estimates()

    def smoothed(self, track: Track, settings: Settings) -> Estimates:
        """What all times together say, from the last to the first."""
        times = len(self.model)
        n = self.model.n_states
        means = np.empty((times, n))
        covariances = np.empty((times, n, n))
        score = np.zeros(n)  # r and R of de Jong: what the later times teach
        information = np.zeros((n, n))
        for time in reversed(range(times)):
            if time < times - 1:
                step = self.model.steps[time]
                score = step @ score
                information = step @ information @ step.T
            after = track.after(time)
            covariance = after.spreads[0]
            means[time] = after.means[0] + covariance @ score
            covariances[time] = covariance - covariance @ information @ covariance
            lesson = track.lessons[time]
            if lesson is not None:
                seen = self.model.seen(time)
                precisions = lesson.precisions
                kept = self._kept(track.predicted[time].spreads, precisions, time)[0]
                score = kept.T @ score
                score[seen] += lesson.weighted[0]
                information = kept.T @ information @ kept
                information[np.ix_(seen, seen)] += precisions[0]
        return Estimates(means, covariances)


def _diagonals(matrices: np.ndarray) -> np.ndarray:
    """A view (S, n) of the diagonals of matrices (S, n, n)."""
    return np.einsum("sii->si", matrices)


def _symmetric(matrices: np.ndarray) -> np.ndarray:
    return 0.5 * (matrices + matrices.transpose(0, 2, 1))


def _sandwich(symmetric: np.ndarray, step: np.ndarray) -> np.ndarray:
    """P' X P for each symmetric X (S, n, n), by two products of whole stacks."""
    shape = symmetric.shape
    n = shape[-1]
    right = (symmetric.reshape(-1, n) @ step).reshape(shape)
    both = (right.transpose(0, 2, 1).reshape(-1, n) @ step).reshape(shape)
    return _symmetric(both)
