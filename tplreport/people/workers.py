"""Tasks for workers, and workers of Dask on this machine for as long as a block of code runs."""

from __future__ import annotations
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tplrepro.lazy import optional_import
from tplrepro.validation import check_horizon


def run_tasks(function: Callable[..., Any], tasks: Iterable[tuple]) -> Iterator[Any]:
    """What the function returns for the arguments of each task, in order.

    joblib runs them: one after the other in this process, or as `joblib.parallel_config` says.
    """
    from joblib import Parallel, delayed

    calls = (delayed(function)(*arguments) for arguments in tasks)
    yield from Parallel(return_as="generator")(calls)


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
