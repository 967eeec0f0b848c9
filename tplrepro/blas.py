"""One thread for the products of small matrices, where several wait for each other, up to 40 times as long."""

from functools import cache


def one_blas_thread():
    """A context in which BLAS takes one thread."""
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
