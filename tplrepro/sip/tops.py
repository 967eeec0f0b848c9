"""ToPS, as far as section VI-A of [3] describes it: threshold, perturbation, smoothing.

The paper names the phases and no parameter, and its reference (Wang et al., CCS 2021) treats counts, not
symbols. Here symbols are numbers 0..n-1:

1. threshold: the first m symbols are released with Laplace noise of scale (n - 1)/eps, and a quantile of
   them is the threshold;
2. perturbation: later symbols are cut off at the threshold t and go through a binary hierarchy over 0..t,
   randomised response with an equal share of the budget at each level;
3. smoothing: an exponential moving average over the outputs, rounded.

Each symbol is touched by one release of budget eps, so a sequence of T symbols is (T eps)-LDP; smoothing is
post-processing.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

import numpy as np

from tplrepro.validation import check_horizon, check_level

__all__ = ["release_tops"]


def release_tops(
    sequence,
    n_symbols: int,
    epsilon: float,
    rng: np.random.Generator,
    *,
    warm_up: int = 5,
    quantile: float = 0.95,
    smoothing: float = 0.5,
) -> np.ndarray:
    """Release a sequence of symbols 0..n-1 with ToPS.

    Parameters
    ----------
    sequence : array-like (T,)
    n_symbols : int
    epsilon : float, budget of one symbol, nats
    rng : numpy Generator
    warm_up : int, m, symbols spent on the threshold
    quantile : float in (0, 1], of the noisy first symbols
    smoothing : float in (0, 1], weight of the newest output; 1: no smoothing

    Returns
    -------
    int array (T,)

    Raises
    ------
    ValueError
        For an empty sequence, symbols out of range, or a parameter out of range.

    Examples
    --------
    >>> release_tops([3] * 8, 8, 50.0, np.random.default_rng(0)).tolist()
    [3, 3, 3, 3, 3, 3, 3, 3]
    """
    budget, n = check_level(epsilon, "epsilon"), check_horizon(n_symbols, "n_symbols")
    symbols = np.asarray(sequence, dtype=np.int64)
    if symbols.ndim != 1 or symbols.size == 0:
        raise ValueError(f"a sequence must hold at least one symbol, found shape {symbols.shape}; leave empty ones out")
    if symbols.min() < 0 or symbols.max() >= n:
        raise ValueError(f"symbols must be 0..{n - 1}, found {symbols.min()} to {symbols.max()}; check them")
    for name, value in (("quantile", quantile), ("smoothing", smoothing)):
        if not 0 < value <= 1:
            raise ValueError(f"{name} must be in (0, 1], found {value}; give such as 0.5")
    first = symbols[:warm_up]
    noisy = first + rng.laplace(0.0, max(n - 1, 1) / budget, first.size)
    threshold = int(np.clip(np.ceil(np.quantile(noisy, quantile)), 1, n - 1)) if n > 1 else 0
    perturbed = np.concatenate([np.clip(noisy, 0, n - 1), _hierarchy(symbols[warm_up:], threshold, budget, rng)])
    smooth = np.empty(symbols.size)
    state = perturbed[0]
    for k, value in enumerate(perturbed):
        state += smoothing * (value - state)
        smooth[k] = state
    return np.clip(np.rint(smooth), 0, n - 1).astype(np.int64)


def _hierarchy(symbols, threshold, epsilon, rng):
    """Binary digits of the truncated symbols, each flipped by randomised response with an equal share of the budget."""
    if not symbols.size or threshold == 0:
        return np.zeros(symbols.size)
    levels = int(threshold).bit_length()
    digits = np.minimum(symbols, threshold)[:, None] >> np.arange(levels) & 1
    flip = rng.random(digits.shape) < 1.0 / (1.0 + np.exp(epsilon / levels))
    return np.minimum(((digits ^ flip) << np.arange(levels)).sum(axis=1), threshold).astype(float)
