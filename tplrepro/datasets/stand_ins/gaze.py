"""Writes the stand-in of gaze recordings: fixations on areas of interest, as CSV files of a given layout."""

from __future__ import annotations

import numpy as np

from tplrepro.datasets.stand_ins.places import check_size, cumulative_zipf, draw
from tplrepro.datasets.writing import atomic_folder, line_bytes, mark_synthetic

__all__ = ["write"]


def write(target, n_users, seed, *, seconds=30.0, rate=60.0, n_recordings=1, layout) -> None:
    """Write the stand-in that `tplrepro.datasets.gaze.synthetic` reads back; parameters as there."""
    n_users, n_recordings = check_size(n_users, "n_users"), check_size(n_recordings, "n_recordings")
    samples = check_size(int(seconds * rate), "seconds * rate")
    if not 1 <= rate <= 2000:
        raise ValueError(f"rate must be from 1 to 2000 samples a second, found {rate}; times have four decimals")
    size = np.array([1024.0, 768.0]) if layout.get("unit") == "px" else np.array([1.0, 1.0])
    header = ",".join([layout["time"], layout["x"], layout["y"], *layout.get("extra", ())]).encode() + b"\n"
    with atomic_folder(target) as folder:
        mark_synthetic(folder, {"set": "gaze", "n_users": n_users, "seed": int(seed), "seconds": float(seconds)})
        rng = np.random.default_rng([int(seed), 4])
        spots = rng.uniform(0.05, 0.95, (40, 2))
        pull = np.diff(cumulative_zipf(40), prepend=0)[None, :] * np.exp(
            -3 * np.linalg.norm(spots[:, None] - spots[None], axis=-1)
        )
        cumulative = np.cumsum(pull, axis=1) / pull.sum(axis=1, keepdims=True)
        for user in range(1, n_users + 1):
            for recording in range(1, n_recordings + 1):
                own = np.random.default_rng([int(seed), 4, user, recording])
                place = _scan_path(own, cumulative, samples, rate)
                points = (spots[place] + own.normal(0, 0.004, (samples, 2))).clip(0.001, 0.999) * size
                lost = (own.random(samples // 50 + 1) < 0.03).repeat(50)[:samples]  # blinks
                points[lost] = 0
                columns = {
                    "t": np.round(np.arange(samples) / rate, 4),
                    "x": np.round(points[:, 0], 5),
                    "y": np.round(points[:, 1], 5),
                }
                columns |= {name: np.ones(samples, dtype=np.int8) for name in layout.get("extra", ())}
                data = header + line_bytes(columns, ",")
                (folder / f"P{user}_SYNTHETIC{recording}.csv").write_bytes(data)


def _scan_path(rng, cumulative, samples: int, rate: float) -> np.ndarray:
    """The spot looked at, (samples,)."""
    place = np.empty(samples, dtype=np.int64)
    here, now = 0, 0
    while now < samples:
        stay = max(1, int(rng.gamma(4, 0.075) * rate))
        place[now : now + stay] = here
        here, now = int(draw(rng, cumulative[here], 1)[0]), now + stay
    return place
