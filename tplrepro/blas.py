"""BLAS with one thread: small matrix products are up to 40 times slower where several threads wait
for each other."""

from functools import cache


def one_blas_thread():
    """A context in which BLAS takes one thread."""
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
