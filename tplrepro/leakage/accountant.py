"""An online account of temporal privacy leakage: compose releases as they happen, read the leakages at any time.

Contract. `compose` validates first and changes the account second, costs O(1) and returns the account. Composing adds
to the backward leakage of the new releases and **raises the forward leakage, and with it the TPL, of all past ones**: a
past release that satisfied alpha-DP_T need not satisfy it any more (Example 3 of [1]). Budgets are part of the public
mechanism; they must not depend on the data.

References
----------
[1] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
    Correlations. IEEE TKDE, 2019.
"""

from __future__ import annotations

from itertools import groupby
from math import inf, ulp

import numpy as np

from tplrepro.leakage.quantification import TemporalLeakage
from tplrepro.leakage.recursion import accumulate, as_loss_function
from tplrepro.validation import check_epsilon, check_horizon

__all__ = ["TemporalAccountant"]


class TemporalAccountant:
    """Account of the leakages of releases so far against one adversary.

    Parameters
    ----------
    backward, forward : TransitionMatrix, array-like (n, n) or PrivacyLossFunction, optional
        Pr(l^{t-1} | l^t) and Pr(l^t | l^{t-1}); None where the adversary does not know that side.

    Examples
    --------
    >>> account = TemporalAccountant(backward=[[0.8, 0.2], [0, 1]], forward=[[0.8, 0.2], [0, 1]])
    >>> account.compose(0.1, count=2).tpl.round(4).tolist()
    [0.1808, 0.1808]
    >>> account.compose(0.1).tpl.round(4).tolist()  # the third release raised the leakage of the first two
    [0.2471, 0.2616, 0.2471]
    >>> account.ledger
    ((0.1, 2), (0.1, 1))
    """

    def __init__(self, backward=None, forward=None):
        self._backward = as_loss_function(backward)
        self._forward = as_loss_function(forward)
        self._ledger: list[tuple[float, int]] = []
        self._read = 0  # entries of the ledger that the lists below hold
        self._epsilons: list[float] = []
        self._bpl: list[float] = []
        self._fpl: list[float] = []

    def __repr__(self) -> str:
        return f"TemporalAccountant({len(self)} releases, {sum(e * n for e, n in self._ledger):.6g} nats spent)"

    def __len__(self) -> int:
        """The number of releases so far, T."""
        return sum(count for _, count in self._ledger)

    def compose(self, epsilon: float, count: int = 1) -> TemporalAccountant:
        """Add `count` releases of budget `epsilon` (nats); this raises the forward leakage of the releases before.

        Raises
        ------
        ValueError
            If epsilon is not a positive finite number or count is not a whole number >= 1; nothing is added then.
        """
        if not (type(epsilon) is float and 0.0 < epsilon < inf):  # the full checks cost more than all the rest
            value = check_epsilon(epsilon)
            if value.ndim:
                raise ValueError(f"epsilon must be one budget, found shape {value.shape}; compose each budget in turn")
            epsilon = float(value)
        count = check_horizon(count, "count")
        self._ledger.append((epsilon, count))
        return self

    @property
    def ledger(self) -> tuple[tuple[float, int], ...]:
        """What was composed, in order: pairs (epsilon, count)."""
        return tuple(self._ledger)

    @property
    def epsilons(self) -> np.ndarray:
        """The budget of each release, (T,), nats."""
        self._update()
        return np.array(self._epsilons)

    @property
    def bpl(self) -> np.ndarray:
        """Backward privacy leakage of each release, (T,), nats."""
        self._update()
        return np.array(self._bpl)

    @property
    def fpl(self) -> np.ndarray:
        """Forward privacy leakage of each release as of now, (T,), nats."""
        self._update()
        return np.array(self._fpl)

    @property
    def tpl(self) -> np.ndarray:
        """Temporal privacy leakage of each release as of now, (T,), nats."""
        return self.leakage.tpl

    @property
    def leakage(self) -> TemporalLeakage:
        """All leakages as of now, with their compositions."""
        return TemporalLeakage(self.epsilons, self.bpl, self.fpl)

    def _update(self) -> None:
        new = self._ledger[self._read :]
        if not new:
            return
        # Nothing below raises, so that an account is never left half updated.
        runs = [(epsilon, sum(n for _, n in group)) for epsilon, group in groupby(new, key=lambda entry: entry[0])]
        bpl = accumulate(self._backward and self._backward.at, runs, self._bpl[-1] if self._bpl else None)
        fpl = accumulate(self._forward and self._forward.at, runs[::-1])[::-1]
        old = len(self._epsilons)
        if self._forward is not None:
            following = fpl[0]
            for t in range(old - 1, -1, -1):
                following = self._forward.at(following) + self._epsilons[t]
                if abs(following - self._fpl[t]) < ulp(following):
                    break  # and so do all before it
                self._fpl[t] = following
        self._bpl += bpl
        self._fpl += fpl
        for epsilon, count in runs:
            self._epsilons += [epsilon] * count
        self._read = len(self._ledger)
