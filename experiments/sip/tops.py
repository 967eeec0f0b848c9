"""ToPS (threshold, perturbation, smoothing), a baseline that [3] names without parameters.

Its reference (Wang et al., CCS 2021) treats counts, not symbols. Here a sequence of T symbols is (T
eps)-LDP.
"""

from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike

from tplrepro.sip.response import check_symbols
from tplrepro.validation import check_level

#: The quantile of the noisy first symbols at which later ones are cut off.
QUANTILE = 0.95
#: The weight of the newest output in the moving average.
SMOOTHING = 0.5


def release_tops(
    sequence: ArrayLike,
    n_symbols: int,
    epsilon: float,
    *,
    rng: np.random.Generator,
    warm_up: int = 5,
) -> np.ndarray:
    """Release a sequence of symbols 0..n-1 with ToPS; the outputs, an int array (T,).

    The first `warm_up` symbols are released with Laplace noise of scale (n - 1)/eps; a quantile of
    them is the threshold. Later symbols are cut off at the threshold and go through a binary
    hierarchy, randomised response with an equal share of the budget, `epsilon` nats a symbol, at
    each level. Last, a moving average over the outputs is rounded.
    """
    budget = check_level(epsilon, "epsilon")
    symbols = check_symbols(sequence, n_symbols)
    first = symbols[:warm_up]
    largest = n_symbols - 1
    noisy = first + rng.laplace(0.0, max(largest, 1) / budget, first.size)
    quantile = np.ceil(np.quantile(noisy, QUANTILE))
    threshold = int(np.clip(quantile, min(1, largest), largest))
    levels = np.arange(threshold.bit_length())
    digits = np.minimum(symbols[warm_up:], threshold)[:, None] >> levels & 1
    share = budget / max(levels.size, 1)
    flip = rng.random(digits.shape) < 1.0 / (1.0 + np.exp(share))
    later = np.minimum(((digits ^ flip) << levels).sum(axis=1), threshold)
    perturbed = np.append(np.clip(noisy, 0, largest), later)

    def average(state: float, value: float) -> float:
        return state + SMOOTHING * (value - state)

    smooth = list(accumulate(perturbed, average))
    return np.clip(np.rint(smooth), 0, largest).astype(np.int64)
