"""Mechanisms that release an answer in R^d with noise fitted to a policy graph (section 3.1 of [5]).

The Laplace mechanism adds noise of scale S/epsilon to each coordinate, S the l1 sensitivity; the K-norm mechanism draws
from Eq. (1) on f(s) plus the span of K. Densities are as public as samples: the adversary's inference needs them.

The planar isotropic mechanism of the paper's reference [27] maps K by a linear T to isotropic position, draws K-norm
noise there and maps it back. A norm is invariant under that, ||T v||_{TK} = ||v||_K, so its law is the K-norm
mechanism's whatever T, and it has no implementation of its own.

Samples are drawn in floating point with NumPy's generators, which is not safe against an adversary who sees the lowest
bits of the released numbers; round them before publication (rounding costs no privacy if it ignores the true state,
except on a flat hull, where a grid would tell the lines apart).
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.dphmm.constraint import as_answers, as_vectors
from tplrepro.dphmm.hull import SensitivityHull, l1_sensitivity, sensitivity_hull
from tplrepro.dphmm.policy_graph import PolicyGraph
from tplrepro.dphmm.protection import NoPrivacyError, Protection, is_protectable, protect
from tplrepro.markov.filtering import condition, log_probabilities
from tplrepro.mechanisms.k_norm import SLACK, KNormNoise
from tplrepro.mechanisms.laplace import LaplaceNoise
from tplrepro.validation import check_choice, check_distribution, check_level

__all__ = ["MECHANISMS", "KNormMechanism", "LaplaceMechanism", "LocalMechanism", "PlanarIsotropicMechanism"]


class KNormMechanism:
    """Noise of density proportional to exp(-epsilon ||z||_K), of one law for all states.

    Parameters
    ----------
    policy : PolicyGraph over N states, constrained to the possible ones
    answers : array-like (N, d) or (N,), f
    epsilon : float > 0, nats: the loss between connected states

    `added_edges` are the pairs of states that `protecting` added to the policy, `gap` that of `Protection`.
    NoPrivacyError if the policy has no edge: answers would be released as they are (allowed where states share each
    answer).

    Example 5.2 of [5]: noise along a segment; s_5 (index 4) gives itself away.

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.categorical([[0], [1, 2], [3, 4, 5]]).constrain([1, 2, 4])
    >>> mechanism = KNormMechanism(G, f, epsilon=1.0)
    >>> mechanism.log_density([3, 0], f[1:3]).round(6).tolist()
    [-2.039721, -1.039721]
    >>> mechanism.log_density([4, 2], f[1:3]).tolist()
    [-inf, -inf]
    """

    def __init__(self, policy: PolicyGraph, answers: ArrayLike, epsilon: float):
        self.policy = policy
        self.answers = as_answers(answers, policy.n_states)
        self.epsilon = check_level(epsilon, "epsilon")
        self.added_edges: list[tuple[int, int]] = []
        self.gap = np.nan
        if policy.n_edges == 0 and not is_protectable(policy, self.answers):
            raise NoPrivacyError(
                f"a mechanism needs a policy that connects some of its {policy.possible.size} possible states, "
                "found no edge; call protectable_graph first"
            )

    @classmethod
    def protecting(
        cls,
        policy: PolicyGraph,
        answers: ArrayLike,
        epsilon: float,
        method: str = "greedy",
        insisted: PolicyGraph | Iterable = (),
    ) -> Self:
        """The mechanism of a policy made protectable; parameters and errors also as in `protectable_graph`."""
        return cls.fitted(protect(policy, answers, method, insisted), answers, epsilon)

    @classmethod
    def fitted(cls, protection: Protection, answers: ArrayLike, epsilon: float) -> Self:
        """The mechanism of what `protect` found for the same answers."""
        mechanism = cls(protection.policy, answers, epsilon)
        mechanism.hull = protection.hull
        mechanism.added_edges, mechanism.gap = protection.added_edges, protection.gap
        return mechanism

    @cached_property
    def hull(self) -> SensitivityHull:
        """K(G, f)."""
        return sensitivity_hull(self.policy, self.answers)

    @property
    def body(self) -> SensitivityHull:
        """The body of the noise: the loss between two answers is epsilon times its norm of their difference."""
        return self.hull

    @property
    def error(self) -> float:
        """Root mean square Euclidean error, sqrt(E||z - f(s)||_2^2) (Eq. (3) of [5]); exact, in the answers' unit."""
        return float(np.sqrt(self._noise.mean_square))

    def adversarial_epsilon(self, prior: ArrayLike) -> float:
        """max log(Pr(s_i | z) / Pr(s_i)) over outputs z and the states of a prior (N,): Definition 11.2 of [5]; nats.

        Exact: the ratio is largest at z = f(s_i), where no state's loss exceeds its largest. It is less than the
        constrained DP level between these states, and comes arbitrarily close to it as the prior varies on them, which
        is the equivalence of Theorem 11.4: for one prior there is none.

        >>> mechanism = KNormMechanism(PolicyGraph.complete(2), [0, 1], epsilon=1.0)
        >>> [round(mechanism.adversarial_epsilon([share, 1 - share]), 4) for share in (0.5, 0.001)]
        [0.3799, 0.9983]
        """
        p = check_distribution(prior, self.policy.n_states, "prior")
        states = np.flatnonzero(p)
        norms = (1 + self.body.slack) * self.body.pairwise_norms(self.answers[states], self.answers[states])
        return float(-np.log(np.exp(-self.epsilon * norms) @ p[states]).min())

    def sample(self, answer: ArrayLike, size: int | None = None, rng: np.random.Generator | None = None) -> np.ndarray:
        """Released values z for the true answer (d,): (d,), or (size, d) if `size` is given; `rng` is required."""
        centre = as_vectors(answer, self.answers.shape[1])
        if centre.ndim != 1 or not isinstance(rng, np.random.Generator):
            raise ValueError(
                f"a sample needs one true answer, shape ({centre.shape[-1]},), and a numpy.random.Generator, "
                f"found shape {centre.shape} and rng = {rng}; call once for each, with rng=default_rng(seed)"
            )
        values = centre + self._draw(1 if size is None else size, rng)
        return values[0] if size is None else values

    def log_density(self, z: ArrayLike, answer: ArrayLike) -> np.ndarray:
        """Logarithm of the density of z (..., d) given the true answer (..., d), broadcast against each other.

        Nats, with respect to Lebesgue measure on the answer plus the span of the noise; -inf off that span.
        """
        released, true = (as_vectors(values, self.answers.shape[1]) for values in (z, answer))
        return self._log_noise_density(released - true)

    @cached_property
    def _noise(self) -> KNormNoise | LaplaceNoise:
        return KNormNoise(self.hull, self.epsilon)

    def _draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return self._noise.sample(size, rng)

    def _log_noise_density(self, noise: np.ndarray) -> np.ndarray:
        return self._noise.log_density(noise)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={self.epsilon:g}, {self.policy!r})"


class LaplaceMechanism(KNormMechanism):
    """Laplace noise of scale l1_sensitivity / epsilon on each coordinate; parameters as in `KNormMechanism`.

    In law the K-norm mechanism of the cross polytope (Theorem 5.1 of [5]), which has too many facets to be built where
    answers have many coordinates.

    >>> mechanism = LaplaceMechanism(PolicyGraph.complete(3), [0, 1, 2], epsilon=0.5)
    >>> round(float(mechanism.log_density(2.0, 2.0) - mechanism.log_density(2.0, 0.0)), 6)
    0.5
    >>> round(mechanism.error, 6)
    5.656854
    """

    @property
    def body(self) -> SensitivityHull:
        return SensitivityHull(l1_sensitivity(self.policy, self.answers) * np.eye(self.answers.shape[1]))

    @property
    def error(self) -> float:
        return float(np.sqrt(self.answers.shape[1] * self._noise.mean_square))

    @cached_property
    def _noise(self) -> LaplaceNoise:
        return LaplaceNoise((1 + SLACK) * l1_sensitivity(self.policy, self.answers) / self.epsilon)

    def _draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return self._noise.sample((size, self.answers.shape[1]), rng)

    def _log_noise_density(self, noise: np.ndarray) -> np.ndarray:
        return self._noise.log_density(noise).sum(axis=-1)


class PlanarIsotropicMechanism(KNormMechanism):
    """The mechanism of the paper's reference [27], in law the K-norm mechanism; ValueError unless d = 2."""

    def __init__(self, policy: PolicyGraph, answers: ArrayLike, epsilon: float):
        super().__init__(policy, answers, epsilon)
        if self.answers.shape[1] != 2:
            raise ValueError(
                "the planar isotropic mechanism needs answers in the plane, "
                f"found d = {self.answers.shape[1]}; use KNormMechanism, of the same law in every dimension"
            )


#: The mechanisms by name.
MECHANISMS: dict[str, type[KNormMechanism]] = {
    "k-norm": KNormMechanism,
    "laplace": LaplaceMechanism,
    "planar isotropic": PlanarIsotropicMechanism,
}


class LocalMechanism:
    """Noise fitted to the neighbourhood of the true state alone, to be attacked, not to be used.

    It is epsilon-LocalDP (Definition 11.1 of [5]), but the shape of its noise depends on the secret: where
    neighbourhoods span different lines, K-norm noise tells which one it lies on, and with it the state. Laplace noise
    fills the space, but its scale differs, and far from the answers the likelihood ratio exceeds every bound.
    Parameters as in `KNormMechanism`, but each possible state has a neighbour; `mechanism` is "k-norm", "laplace" or
    "planar isotropic", and `mechanisms` holds that of each state.

    Example 11.2 of [5]: the value released for s_4 (index 3) lies on the line through f(s_4) and f(s_6).

    >>> f = [[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]]
    >>> G = PolicyGraph.from_edges(6, [(3, 5), (4, 5)]).constrain([3, 4, 5])
    >>> local = LocalMechanism(G, f, epsilon=1.0)
    >>> z = local.sample(3, np.random.default_rng(0))
    >>> local.posterior(z, [0, 0, 0, 1 / 3, 1 / 3, 1 / 3]).tolist()
    [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    """

    def __init__(self, policy: PolicyGraph, answers: ArrayLike, epsilon: float, mechanism: str = "k-norm"):
        check_choice(mechanism, "mechanism", MECHANISMS)
        self.policy = policy
        self.answers = as_answers(answers, policy.n_states)
        # Definition 11.1 compares any two states of the neighbourhood, not the true one with each.
        complete = PolicyGraph.complete(policy.n_states)
        self.mechanisms = {
            state: MECHANISMS[mechanism](complete.constrain(policy.neighbors(state)), self.answers, epsilon)
            for state in policy.possible.tolist()
        }

    def sample(self, state: int, rng: np.random.Generator) -> np.ndarray:
        """A released value (d,) for the true state."""
        if state not in self.mechanisms:
            raise ValueError(f"the true state must be possible, found {state}; it is outside the constraint")
        return self.mechanisms[state].sample(self.answers[state], rng=rng)

    def log_likelihood(self, z: ArrayLike) -> np.ndarray:
        """Log-density of z (d,) given each state, (N,), on the smallest span that holds z; -inf given other states.

        A value on a line has probability 0 under noise that fills the plane.
        """
        logs = np.full(self.policy.n_states, -np.inf)
        for state, mechanism in self.mechanisms.items():
            logs[state] = mechanism.log_density(z, self.answers[state])
        dimensions = {state: self.mechanisms[state].body.dimension for state in np.flatnonzero(np.isfinite(logs))}
        logs[[state for state in dimensions if dimensions[state] > min(dimensions.values())]] = -np.inf
        return logs

    def posterior(self, z: ArrayLike, prior: ArrayLike) -> np.ndarray:
        """What the adversary knows after seeing z (d,), (N,): Eq. (2) of [5]. ImpossibleOutputError if none fits."""
        p = check_distribution(prior, self.policy.n_states, "prior")
        return np.exp(condition(log_probabilities(p), self.log_likelihood(z))[0])
