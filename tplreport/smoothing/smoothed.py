"""Estimates of counts, beside the noisy ones that they were made of."""

from __future__ import annotations
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import ndtri

from tplrepro.display import count_noun, format_number, frame_as_html, plot_frame
from tplrepro.validation import FrozenArrays

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHAIN = "chain"
RANDOM_WALK = "random walk"
FAST = "FAST"
CONSTANT = "constant"


@dataclass(frozen=True, eq=False)
class SmoothedCounts(FrozenArrays):
    """Estimates of n counts at T times from noisy ones, with their errors; T rows and n columns.

    Parameters
    ----------
    noisy, variances : array (T, n)
        What was released, NaN where nothing was, and the variances of its noise.
    means, errors : array (T, n)
        The mean of each count given what was released, and its standard deviation.
    counts : array (T, n)
        The means without negative ones, or with a sum that is known, or whole.
    covariances : array (T, n, n) or None
        Those of the means, None where counts were estimated each by itself.
    level : float
        Of the bands.
    online : bool
        Whether each estimate uses what was released up to its time alone.
    spread, turnover : float
        The extra noise: the factor of the variance of people who move by the chain, and the
        variance of those who enter, leave or move together, over the count.
    surprise : float
        How many standard deviations the errors of prediction are larger, by the chain as it is,
        than they should be; NaN without a chain.
    log_likelihoods : dict
        Mean log likelihood of a noisy count, predicted by the earlier ones: by the chain, and by
        rivals that know none.
    columns, index : labels
    """

    noisy: np.ndarray
    variances: np.ndarray
    means: np.ndarray
    errors: np.ndarray
    counts: np.ndarray
    covariances: np.ndarray | None
    level: float
    online: bool
    spread: float
    turnover: float
    surprise: float
    log_likelihoods: dict[str, float]
    columns: pd.Index = field(repr=False)
    index: pd.Index = field(repr=False)

    def _frame(self, values: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(values, self.index, self.columns, copy=True)

    @property
    def estimate(self) -> pd.DataFrame:
        """The counts, none of them negative. Add up `of_sum`, not these: without negative values
        a sum is too large."""
        return self._frame(self.counts)

    @property
    def error(self) -> pd.DataFrame:
        """One standard deviation of each. Those of different counts and times are dependent."""
        return self._frame(self.errors)

    @property
    def lower(self) -> pd.DataFrame:
        """The lower ends of the bands, each of which holds its true count with the level."""
        ends = np.maximum(self.means - self._width * self.errors, 0.0)
        return self._frame(np.fmin(ends, self.counts))

    @property
    def upper(self) -> pd.DataFrame:
        """The upper ends of the bands."""
        ends = np.maximum(self.means + self._width * self.errors, 0.0)
        return self._frame(np.fmax(ends, self.counts))

    @property
    def _width(self) -> float:
        """Half the width of a band, in standard deviations."""
        return float(ndtri(0.5 + 0.5 * self.level))

    @property
    def against(self) -> pd.Series:
        """How well each model predicts a noisy count by the earlier ones: its mean log likelihood.
        The larger, the better; compare them by their differences."""
        return pd.Series(self.log_likelihoods, name="log likelihood", dtype=float)

    @property
    def preferred(self) -> str:
        """The model of the largest likelihood."""
        return str(self.against.idxmax())

    @property
    def gain(self) -> float:
        """How much larger the errors of the noisy counts are than those of the estimates, where
        both are, by their variances."""
        seen = np.isfinite(self.variances) & np.isfinite(self.errors)
        if not seen.any():
            return float("nan")
        return float(np.sqrt(self.variances[seen].mean() / (self.errors[seen] ** 2).mean()))

    def covariance(self, time: int) -> pd.DataFrame:
        """The covariance of the errors of all counts of a time, which counts from 0; ValueError
        where counts were estimated each by itself."""
        return pd.DataFrame(self._known_covariances()[time], self.columns, self.columns, copy=True)

    def _known_covariances(self) -> np.ndarray:
        if self.covariances is None:
            raise ValueError(
                "a covariance needs counts that were estimated together, found each by itself: too "
                "many states, or no chain; add up fewer cells before, and smooth their sum"
            )
        return self.covariances

    def of_sum(self, columns: Iterable[Hashable] | None = None) -> pd.DataFrame:
        """The sum of some counts at each time, with its band.

        Parameters
        ----------
        columns : labels, optional
            By default all columns.

        Returns
        -------
        DataFrame of estimate, error, lower and upper

        Raises
        ------
        ValueError
            For unknown columns, or where counts were estimated each by itself.
        """
        places = self._places(columns)
        covariances = self._known_covariances()
        means = self.means[:, places].sum(axis=1)
        variances = covariances[:, places][:, :, places].sum(axis=(1, 2))
        errors = np.sqrt(np.maximum(variances, 0.0))
        table = {
            "estimate": np.maximum(means, 0.0),
            "error": errors,
            "lower": np.maximum(means - self._width * errors, 0.0),
            "upper": np.maximum(means + self._width * errors, 0.0),
        }
        return pd.DataFrame(table, self.index)

    def _places(self, columns: Iterable[Hashable] | None) -> list[int]:
        if columns is None:
            return [*range(len(self.columns))]
        labels = list(columns)
        places = self.columns.get_indexer(labels)
        if (places < 0).any() or len(set(labels)) < len(labels):
            raise ValueError(
                f"columns must be those of the counts, once each, found {labels[:5]}; give some of "
                f"{self.columns.tolist()[:5]}"
            )
        return places.tolist()

    def to_frame(self) -> pd.DataFrame:
        """All estimates with their bands: columns such as home, home lower and home upper."""
        tables = {"": self.estimate, " lower": self.lower, " upper": self.upper}
        columns = {}
        for column in self.columns:
            for ending, table in tables.items():
                columns[f"{column}{ending}"] = table[column]
        return pd.DataFrame(columns, self.index)

    def plot(self, column: Hashable | None = None, ax: Axes | None = None) -> Axes:
        """Draw the estimates of a column, the first by default, with their band and the noisy
        counts, on Matplotlib's axes `ax` or new ones; returns the axes."""
        if column is None:
            column = self.columns[0]
        (place,) = self._places([column])
        frame = pd.DataFrame({"estimate": self.estimate.iloc[:, place]})
        axes = plot_frame(frame, ax, color="C0", marker="", ylabel=str(column))
        times = axes.lines[-1].get_xdata()
        lower = self.lower.iloc[:, place]
        upper = self.upper.iloc[:, place]
        band = f"{100 * self.level:g} % band"
        axes.fill_between(times, lower, upper, color="C0", alpha=0.25, linewidth=0, label=band)
        style = {"color": "0.4", "linestyle": "", "marker": ".", "markersize": 4}
        axes.plot(times, self.noisy[:, place], label="noisy", zorder=1, **style)
        axes.legend()
        return axes

    def __len__(self) -> int:
        return len(self.counts)

    def __str__(self) -> str:
        how = "smoothed"
        if self.online:
            how = "filtered, never revised"
        size = f"{count_noun(len(self), 'time')} of {count_noun(len(self.columns), 'count')}"
        share = format_number(100.0 / self.gain)
        lines = [f"SmoothedCounts: {size}, {how}; expected error {share} % of that of the noise"]
        ranking = self.against.dropna().sort_values(ascending=False)
        shown = ", ".join(f"{name} {value:.4f}" for name, value in ranking.items())
        extra = f"spread {self.spread:g}, turnover {self.turnover:g}"
        lines.append(f"log likelihood of a noisy count: {shown or 'not judged'}; {extra}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return frame_as_html(str(self), self.to_frame())
