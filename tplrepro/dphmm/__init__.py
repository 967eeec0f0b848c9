"""DPHMM: release answers about the state of a Markov chain with differential privacy on a policy graph.

One room for each concept of [5]: `policy_graph` (section 4.2), `constraint` (Definition 4.1, Theorem 4.1), `hull` and
`geometry` (section 5.1), `protection` (section 5.2), `protectable` (section 6.1), `mechanisms` and `sampling`
(section 3.1), `inference` (section 3.3), `data_release` (section 6.2), `statements` (sections 5.3, 7, 11.6), `local_dp`
(section 11.5), `published` (Algorithm 4 as printed), `mobility` and `evaluation` (section 8), `running_example`.

Submodules are imported on first use.

References
----------
[5] Y. Xiao, Y. Shen, J. Liu, L. Xiong, H. Jin, X. Xu: DPHMM: Customizable Data Release with Differential Privacy via
    Hidden Markov Model. 2016.
"""

from tplrepro.lazy import lazy_names as _lazy_names

_EXPORTS = {
    "PolicyGraph": "policy_graph",
    "NUMERICAL_ZERO": "constraint",
    "possible_states": "constraint",
    "delta_location_set": "constraint",
    "NoPrivacyError": "errors",
    "ImpossibleReleaseError": "errors",
    "SensitivityHull": "hull",
    "sensitivity_hull": "hull",
    "l1_sensitivity": "hull",
    "cross_polytope": "hull",
    "degree_of_protection": "protection",
    "exposed_states": "protection",
    "is_protectable": "protection",
    "protectable_graph": "protectable",
    "uniform_points": "sampling",
    "k_norm_noise": "sampling",
    "LaplaceMechanism": "mechanisms",
    "KNormMechanism": "mechanisms",
    "PlanarIsotropicMechanism": "mechanisms",
    "posterior": "inference",
    "forward_backward": "inference",
    "ForwardBackward": "inference",
    "release": "data_release",
    "release_step": "data_release",
    "ReleaseStep": "data_release",
    "PrivacyStatement": "statements",
    "constrained_dp_factor": "statements",
    "existence_factors": "statements",
    "compose_queries": "statements",
    "compose_times": "statements",
    "AdversaryStatement": "statements",
    "against_adversary": "statements",
    "LocalMechanism": "local_dp",
}
_MODULES = (
    "constraint",
    "data_release",
    "drawing",
    "errors",
    "evaluation",
    "geometry",
    "hull",
    "inference",
    "local_dp",
    "mechanisms",
    "mobility",
    "policy_graph",
    "protectable",
    "protection",
    "published",
    "running_example",
    "sampling",
    "statements",
)

__getattr__, __dir__, __all__ = _lazy_names(__name__, _EXPORTS, _MODULES)
