"""Mechanisms that release an answer in R^d with noise fitted to a policy graph (section 3.1 of
[5]).

The Laplace mechanism adds noise of scale S/epsilon to each coordinate, S the l1 sensitivity; the
K-norm mechanism draws from Eq. (1) on f(s) plus the span of K. The planar isotropic mechanism of
the paper's reference [27] draws K-norm noise for T K, T linear, and maps it back by T^-1: since ||T
v||_{TK} = ||v||_K, it has the law of the K-norm mechanism.

Noise is drawn in floating point, which is not safe against an adversary who sees the lowest bits of
the released numbers: round them before publication. That costs no privacy if it ignores the true
state, except on a flat hull, where a grid would tell the lines apart.
"""

from __future__ import annotations
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from tplrepro.dphmm.constraint import as_answers, as_vectors
from tplrepro.dphmm.hull import SensitivityHull, l1_sensitivity, sensitivity_hull
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import NoPrivacyError, exposed_states
from tplrepro.mechanisms.k_norm import SLACK, KNormNoise
from tplrepro.mechanisms.laplace import LaplaceNoise
from tplrepro.validation import FrozenArrays, RngLike, as_generator, check_horizon, check_level


@dataclass(frozen=True, eq=False)
class _Origins:
    """Points of the answers' space from which the noise of a flat body is measured."""

    tree: cKDTree  # the possible answers, off the span
    radius: float  # the distance that is rounding there
    of_state: np.ndarray  # (c,), the possible state whose answer is the origin of each


class KNormMechanism(FrozenArrays):
    """Noise of density proportional to exp(-epsilon ||z||_K), of one law for all states (Eq. (1) of
    [5]).

    Parameters
    ----------
    policy : PolicyGraph over N states
        Constrained to the possible states.
    answers : array-like (N, d) or (N,)
        f.
    epsilon : float
        The loss between connected states in nats, > 0.
    hull : SensitivityHull, optional
        K(policy, answers), if known.

    Raises
    ------
    NoPrivacyError
        Without edges, where answers would be released as they are, unless no state is exposed.
    ValueError
        If the answers are not finite or not those of N states, or epsilon is not positive.

    Examples
    --------
    Example 5.2 of [5]: noise along a segment; s_5 (index 4) gives itself away.

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([1, 2, 4])
    >>> mechanism = KNormMechanism(G, f, epsilon=1.0)
    >>> mechanism.log_density([[3, 0], [4, 2]], f[1]).round(6).tolist()
    [-2.039721, -inf]
    """

    def __init__(
        self,
        policy: PolicyGraph,
        answers: ArrayLike,
        epsilon: float,
        hull: SensitivityHull | None = None,
    ):
        self.policy = policy
        self.answers = as_answers(answers, policy.n_states)
        self.epsilon = check_level(epsilon, "epsilon")
        if hull is not None:
            d = self.answers.shape[1]
            if hull.ambient_dimension != d:
                found = f"{d} dimensions, found {hull.ambient_dimension}"
                raise ValueError(
                    f"hull must be that of the policy and answers, in {found}; leave it out"
                )
            self.hull = hull
        if self._is_without_noise and exposed_states(policy, self.answers).size:
            raise NoPrivacyError(
                f"a mechanism needs a policy that connects some of its {policy.possible.size} "
                "possible states, with different answers, found no such edge; call "
                "protectable_graph first"
            )

    @property
    def _is_without_noise(self) -> bool:
        """Whether no two connected states differ in their answers."""
        if self.policy.is_complete and self.policy.possible.size > 1:
            return False  # then no state is exposed
        return not self.policy.differences(self.answers).any()

    @cached_property
    def hull(self) -> SensitivityHull:
        return sensitivity_hull(self.policy, self.answers)

    @property
    def body(self) -> SensitivityHull:
        """The body in whose norm the distance of two answers, times epsilon, is the loss between
        them."""
        return self.hull

    @property
    def error(self) -> float:
        """Root mean square error, sqrt(E||z - f(s)||_2^2) (Eq. (3) of [5]), in the unit of the
        answers."""
        return float(np.sqrt(self._noise.mean_square))

    def sample(self, answer: ArrayLike, size: int | None = None, *, rng: RngLike) -> np.ndarray:
        """Draw released values.

        Parameters
        ----------
        answer : array-like (d,)
            The true answer.
        size : int, optional
            How many values, by default one.
        rng : int, numpy.random.Generator or None
            A seed, a generator, or None for draws that nobody can repeat.

        Returns
        -------
        array (d,), or (size, d)

        Raises
        ------
        ValueError
            If the answer is not one finite vector.
        """
        centre = as_vectors(answer, self.answers.shape[1])
        if centre.ndim != 1:
            raise ValueError(
                f"a sample needs one true answer, found shape {centre.shape}; give one at a time"
            )
        n_draws = 1
        if size is not None:
            n_draws = check_horizon(size, "size")
        noise = self._draw(n_draws, as_generator(rng))
        origin, shifts = self._from_origins(centre, noise)
        if size is None:
            return origin + shifts[0]
        return origin + shifts

    def _draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return self._noise.sample(size, rng=rng)

    def log_density(self, z: ArrayLike, answer: ArrayLike) -> np.ndarray:
        """Log-density of released values, with respect to Lebesgue measure on the answer plus the
        span of the noise.

        Parameters
        ----------
        z : array-like (..., d)
            Released values.
        answer : array-like (..., d)
            The true answers; broadcast against z.

        Returns
        -------
        array (...)
            Nats; -inf off that span.

        Raises
        ------
        ValueError
            If a vector is not finite, or has other than d coordinates.
        """
        d = self.answers.shape[1]
        released = as_vectors(z, d)
        origins, shifts = self._from_origins(as_vectors(answer, d), np.zeros(d))
        # in this order nothing is rounded far from 0
        return self._noise.log_density(released - origins - shifts)

    def _from_origins(
        self, answers: np.ndarray, noise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Answers (..., d) plus noise as the sum of origins and shifts; for a flat body the shifts
        lie in its span.

        Off the span noise would leave the last bits of an answer as they are, which may tell states
        apart. So all states that are linked, by edges or by a difference off the span that is
        rounding, share an origin.
        """
        d = self.answers.shape[1]
        if self.hull.dimension == d:
            return answers, noise
        rows = answers.reshape(-1, d)
        possible = self.answers[self.policy.possible]
        distances, nearest = self._origins.tree.query(self.hull.beside(rows - possible[0]))
        is_linked = distances[:, None] <= self._origins.radius
        shared = possible[self._origins.of_state[nearest]]
        origins = np.where(is_linked, shared, rows).reshape(answers.shape)
        shifts = answers - origins
        in_span = self._project(shifts)
        # A second time: a long shift was rounded where the span is thin.
        in_span += self._project(shifts - in_span)
        return origins, in_span + self._project(noise)

    def _project(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors (..., d) without what lies off the span of the hull."""
        return self.hull.vector(self.hull.coordinates(vectors))

    @cached_property
    def _origins(self) -> _Origins:
        possible = self.policy.possible
        from_first = self.answers[possible] - self.answers[possible[0]]
        off_span = self.hull.beside(from_first)
        radius = self.hull.rounding(from_first).max()
        tree = cKDTree(off_span)
        if self.policy.is_complete or np.linalg.norm(off_span, axis=1).max() <= radius:
            return _Origins(tree, radius, np.zeros(possible.size, dtype=int))
        close_pairs = possible[tree.query_pairs(radius, output_type="ndarray")]
        links = np.vstack([close_pairs, self.policy.edge_array])
        n = self.policy.n_states
        graph = coo_array((np.ones(len(links)), links.T), shape=(n, n))
        _, component = connected_components(graph, directed=False)
        _, first, number = np.unique(component[possible], return_index=True, return_inverse=True)
        return _Origins(tree, radius, first[number])

    @cached_property
    def _noise(self) -> Any:  # KNormNoise, or LaplaceNoise in each coordinate
        return KNormNoise(self.hull, self.epsilon)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={self.epsilon:g}, {self.policy!r})"


class LaplaceMechanism(KNormMechanism):
    """Laplace noise of scale l1_sensitivity / epsilon on each coordinate.

    It has the law of the K-norm mechanism of a cross polytope (Theorem 5.1 of [5]), without its
    many facets.

    Parameters
    ----------
    policy : PolicyGraph over N states
        Constrained to the possible states.
    answers : array-like (N, d) or (N,)
        f.
    epsilon : float
        The loss between connected states in nats, > 0.
    hull : SensitivityHull, optional
        K(policy, answers), if known.

    Raises
    ------
    NoPrivacyError
        Without edges, where answers would be released as they are, unless no state is exposed.
    ValueError
        If the answers are not finite or not those of N states, or epsilon is not positive.

    Examples
    --------
    >>> mechanism = LaplaceMechanism(PolicyGraph.complete(3), [0, 1, 2], epsilon=0.5)
    >>> round(mechanism.error, 6)
    5.656854
    """

    @property
    def body(self) -> SensitivityHull:
        radius = l1_sensitivity(self.policy, self.answers)
        return SensitivityHull(radius * np.eye(self.answers.shape[1]))

    @property
    def error(self) -> float:
        return float(np.sqrt(self.answers.shape[1] * self._noise.mean_square))

    @cached_property
    def _noise(self) -> LaplaceNoise:
        return LaplaceNoise((1 + SLACK) * l1_sensitivity(self.policy, self.answers) / self.epsilon)

    def _draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return self._noise.sample((size, self.answers.shape[1]), rng=rng)

    def _from_origins(
        self, answers: np.ndarray, noise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return answers, noise

    def log_density(self, z: ArrayLike, answer: ArrayLike) -> np.ndarray:
        return super().log_density(z, answer).sum(axis=-1)


class PlanarIsotropicMechanism(KNormMechanism):
    """The mechanism of the paper's reference [27]: the law of `KNormMechanism`, for answers in the
    plane only.

    Parameters
    ----------
    policy : PolicyGraph over N states
        Constrained to the possible states.
    answers : array-like (N, 2)
        f.
    epsilon : float
        The loss between connected states in nats, > 0.
    hull : SensitivityHull, optional
        K(policy, answers), if known.

    Raises
    ------
    NoPrivacyError
        Without edges, where answers would be released as they are, unless no state is exposed.
    ValueError
        If the answers are not finite or not those of N states, or epsilon is not positive.
    """

    def __init__(
        self,
        policy: PolicyGraph,
        answers: ArrayLike,
        epsilon: float,
        hull: SensitivityHull | None = None,
    ):
        super().__init__(policy, answers, epsilon, hull)
        if self.answers.shape[1] != 2:
            found = self.answers.shape[1]
            raise ValueError(
                f"planar isotropic noise needs answers in the plane, found d = {found}; use k-norm"
            )


#: The mechanisms by name.
MECHANISMS: dict[str, type[KNormMechanism]] = {
    "k-norm": KNormMechanism,
    "laplace": LaplaceMechanism,
    "planar isotropic": PlanarIsotropicMechanism,
}
