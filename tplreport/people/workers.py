"""Workers of Dask on this machine, for as long as a block of code runs."""

from __future__ import annotations
from collections.abc import Iterator
from contextlib import contextmanager

from tplrepro.lazy import optional_import
from tplrepro.validation import check_horizon


@contextmanager
def local_workers(number: int | None) -> Iterator[None]:
    """Tasks of joblib go to so many processes of Dask, each of which is replaced if it dies; None:
    they run in this process.

    ValueError for a number below 1.
    """
    if number is None:
        yield
        return
    number = check_horizon(number, "workers")
    with optional_import():
        from distributed import Client, LocalCluster
    import joblib

    with (
        LocalCluster(
            n_workers=number, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        yield
