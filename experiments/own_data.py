"""The publisher that a run on own data keeps beside a file of counts."""

from pathlib import Path

from tplreport import Publisher


def publisher_path(counts: str | Path) -> Path:
    """The file that knows what the counts spent."""
    return Path(counts).with_name(f"{Path(counts).stem}.sqlite")


def check_same_promise(
    counts: str | Path, *, alpha: float, sensitivity: float, horizon: int
) -> None:
    """ValueError if the counts are published with another promise than the one reported on.

    Parameters
    ----------
    counts : path of the file of counts
    alpha : float, the level of the report, nats
    sensitivity : float
    horizon : int, number of releases

    Raises
    ------
    ValueError if the publisher of these counts was made with another of these numbers.
    """
    path = publisher_path(counts)
    if not path.exists():
        return
    settings = Publisher(path).settings
    made = {
        "alpha": settings["alpha"],
        "sensitivity": settings["sensitivity"],
        "horizon": len(settings["plan"] or ()),
    }
    for name, value in {"alpha": alpha, "sensitivity": sensitivity, "horizon": horizon}.items():
        if value != made[name]:
            raise ValueError(
                f"{name} must be {made[name]:g}, with which {path} was made, found {value:g}; give that, or a copy of "
                "the counts under another name, whose releases add to those that were made"
            )
