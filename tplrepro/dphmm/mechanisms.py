"""Mechanisms that release an answer in R^d with noise fitted to a policy graph (section 3.1 of [5]).

Densities are as public as samples: the adversary's inference needs them (`inference`).

The Laplace mechanism adds independent noise of scale S/epsilon to each coordinate, S the l1 sensitivity. The K-norm
mechanism has density exp(-epsilon ||z - f(s)||_K) / (Gamma(d + 1) vol(K/epsilon)), Eq. (1), on f(s) plus the span of K.
Flat hulls (Example 5.2) take d and the volume of the span.

The planar isotropic mechanism of the paper's reference [27] maps K by a linear T to isotropic position, draws K-norm
noise there and maps it back. A norm is invariant under that, ||T v||_{TK} = ||v||_K, so its law is the K-norm
mechanism's whatever T, and it has no implementation of its own.

Samples are drawn in floating point with NumPy's generators, which is not safe against an adversary who sees the lowest
bits of the released numbers; round them before publication (rounding costs no privacy if it ignores the true state,
except on a flat hull, where a grid would tell the lines apart).

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from tplrepro.dphmm.constraint import as_answers
from tplrepro.dphmm.errors import NoPrivacyError
from tplrepro.dphmm.hull import SLACK, SensitivityHull, cross_polytope, l1_sensitivity, sensitivity_hull
from tplrepro.dphmm.protection import is_protectable
from tplrepro.dphmm.sampling import k_norm_noise
from tplrepro.validation import check_level

__all__ = ["KNormMechanism", "LaplaceMechanism", "Mechanism", "PlanarIsotropicMechanism"]


class Mechanism(ABC):
    """Additive noise of one law for all states.

    Parameters
    ----------
    policy : PolicyGraph over N states, constrained to the possible ones
    answers : array-like (N, d) or (N,), f
    epsilon : float > 0, nats: the loss between connected states

    Raises
    ------
    NoPrivacyError
        If the policy has no edge: answers would be released as they are (allowed where states share each answer).
    ValueError
        For answers of the wrong shape or an epsilon that is not positive and finite.
    """

    def __init__(self, policy, answers, epsilon: float):
        self.policy = policy
        self.answers = as_answers(answers, policy.n_states)
        self.epsilon = check_level(epsilon, "epsilon")
        if policy.n_edges == 0 and not is_protectable(policy, self.answers):
            raise NoPrivacyError(
                f"a mechanism needs a policy that connects some of its {policy.possible.size} possible states, found "
                "no edge; make it protectable with protectable_graph first"
            )

    @property
    def ambient_dimension(self) -> int:
        """d, the length of an answer."""
        return self.answers.shape[1]

    def sample(self, answer, size: int | None = None, rng: np.random.Generator | None = None) -> np.ndarray:
        """Released values z for the true answer (d,): (d,), or (size, d) if `size` is given."""
        centre = self._as_values(answer)
        if centre.ndim != 1:
            raise ValueError(f"answer must be one vector of {self.ambient_dimension} numbers, found {centre.shape}; "
                             "call once for each true answer")
        generator = np.random.default_rng() if rng is None else rng
        values = centre + self._noise(1 if size is None else size, generator)
        return values[0] if size is None else values

    def log_density(self, z, answer):
        """Logarithm of the density of z (..., d) given the true answer (..., d), broadcast against each other.

        Nats, with respect to Lebesgue measure on the answer plus the span of the noise; -inf off that span.
        """
        return self._log_noise_density(self._as_values(z) - self._as_values(answer))

    @property
    @abstractmethod
    def error(self) -> float:
        """Root mean square Euclidean error, sqrt(E||z - f(s)||_2^2) (Eq. (3) of [5]); exact, in the answers' unit."""

    @property
    @abstractmethod
    def body(self) -> SensitivityHull:
        """The body K of the noise: the loss between two answers is epsilon times the K-norm of their difference."""

    @abstractmethod
    def _noise(self, size: int, rng: np.random.Generator) -> np.ndarray: ...

    @abstractmethod
    def _log_noise_density(self, noise: np.ndarray): ...

    def _as_values(self, values) -> np.ndarray:
        array = np.asarray(values, dtype=float)
        if array.ndim == 0 and self.ambient_dimension == 1:
            array = array[None]
        if array.shape[-1:] != (self.ambient_dimension,) or not np.isfinite(array).all():
            raise ValueError(
                f"answers and released values must be {self.ambient_dimension} finite numbers each, found shape "
                f"{array.shape}; give shape (..., {self.ambient_dimension})"
            )
        return array

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={self.epsilon:g}, {self.policy!r})"


class LaplaceMechanism(Mechanism):
    """Independent Laplace noise of scale l1_sensitivity / epsilon on each coordinate; parameters as for `Mechanism`.

    Examples
    --------
    >>> from tplrepro.dphmm import PolicyGraph
    >>> mechanism = LaplaceMechanism(PolicyGraph.complete(3), [0, 1, 2], epsilon=0.5)
    >>> round(float(mechanism.log_density(2.0, 2.0) - mechanism.log_density(2.0, 0.0)), 6)
    0.5
    >>> round(mechanism.error, 6)
    5.656854
    """

    def __init__(self, policy, answers, epsilon: float):
        super().__init__(policy, answers, epsilon)
        self.sensitivity = l1_sensitivity(policy, self.answers)
        self.scale = (1 + SLACK) * self.sensitivity / self.epsilon

    @property
    def body(self) -> SensitivityHull:
        return cross_polytope(self.ambient_dimension, self.sensitivity)

    @property
    def error(self) -> float:
        return float(np.sqrt(2 * self.ambient_dimension) * self.scale)

    def _noise(self, size, rng):
        return rng.laplace(size=(size, self.ambient_dimension)) * self.scale

    def _log_noise_density(self, noise):
        distance = np.abs(noise).sum(axis=-1)
        if self.scale == 0:
            return np.where(distance == 0, 0.0, -np.inf)[()]
        return -distance / self.scale - self.ambient_dimension * np.log(2 * self.scale)


class KNormMechanism(Mechanism):
    """Noise of density proportional to exp(-epsilon ||z||_K); parameters as for `Mechanism`.

    Parameters
    ----------
    hull : SensitivityHull, optional, K(G, f) if it is known already

    Examples
    --------
    Example 5.2 of [5]: noise along a segment; s_5 (index 4) gives itself away.

    >>> from tplrepro.dphmm import PolicyGraph
    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([1, 2, 4])
    >>> mechanism = KNormMechanism(G, f, epsilon=1.0)
    >>> mechanism.log_density([3, 0], f[1:3]).round(6).tolist()
    [-2.039721, -1.039721]
    >>> mechanism.log_density([4, 2], f[1:3]).tolist()
    [-inf, -inf]
    """

    def __init__(self, policy, answers, epsilon: float, hull: SensitivityHull | None = None):
        super().__init__(policy, answers, epsilon)
        self.hull = sensitivity_hull(policy, self.answers) if hull is None else hull
        r = self.hull.dimension
        # log(Gamma(r + 1) vol(K / epsilon)), with log Gamma(r + 1) = log r!
        self._log_normalizer = (
            float(np.log(np.arange(1, r + 1)).sum()) + np.log(self.hull.volume) - r * np.log(self.epsilon / (1 + SLACK))
        )

    @property
    def body(self) -> SensitivityHull:
        return self.hull

    @property
    def error(self) -> float:
        # E r^2 = (d + 1)(d + 2) / epsilon^2 of the Gamma radius, times E||u||^2 of a uniform point.
        r = self.hull.dimension
        mean_square = (r + 1) * (r + 2) * np.trace(self.hull.second_moment())
        return float((1 + SLACK) * np.sqrt(mean_square) / self.epsilon)

    def _noise(self, size, rng):
        return k_norm_noise(self.hull, self.epsilon, size, rng)

    def _log_noise_density(self, noise):
        return -self.epsilon * self.hull.norm(noise) - self._log_normalizer


class PlanarIsotropicMechanism(KNormMechanism):
    """The mechanism of the paper's reference [27] for answers in the plane: in law the K-norm mechanism.

    Parameters as for `KNormMechanism`; `transform` is the map T to isotropic position, which plays no part.

    Raises
    ------
    ValueError
        If the answers are not in the plane.
    """

    def __init__(self, policy, answers, epsilon: float, hull: SensitivityHull | None = None):
        super().__init__(policy, answers, epsilon, hull)
        if self.ambient_dimension != 2:
            raise ValueError(
                f"the planar isotropic mechanism needs answers in the plane, found d = {self.ambient_dimension}; "
                "use KNormMechanism, which has the same law in every dimension"
            )

    @property
    def transform(self) -> np.ndarray:
        """T (2, 2), the inverse square root of E[u u^T], u uniform in K: T K is in isotropic position (K not flat)."""
        values, vectors = np.linalg.eigh(self.hull.second_moment())
        if self.hull.dimension < 2:
            raise ValueError(f"a hull of dimension {self.hull.dimension} has no isotropic position in the plane; "
                             "the noise needs none")
        return (vectors / np.sqrt(values)) @ vectors.T
