"""The one progress bar of the package: on a terminal, if asked for."""

__all__ = ["progress_bar"]


def progress_bar(total: int, show: bool, description: str, unit: str):
    """A tqdm bar over `total` units; it draws nothing unless `show`, nor where stderr is not a terminal."""
    from tqdm import tqdm

    return tqdm(total=total, disable=None if show else True, desc=description, unit=unit, leave=False)
