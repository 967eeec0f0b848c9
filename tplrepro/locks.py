"""A lock that a fork waits for: a child of another thread's fork would find it locked for ever."""

import os
from contextlib import suppress
from threading import RLock
from typing import Any


class ForkLock:
    """A lock for what all threads of a process share, and its forked children go on with.

    It is for one module as a whole, since what runs before a fork can never be taken back. A
    signal's handler that runs within the lock cannot take it again: RuntimeError.

    >>> lock = ForkLock()
    >>> with lock:
    ...     lock.is_held
    True
    >>> lock.is_held
    False
    """

    def __init__(self) -> None:
        self._lock = RLock()
        if hasattr(os, "register_at_fork"):
            # The last that is registered runs first: `_insist` follows the plain attempt.
            os.register_at_fork(before=self._insist)
            os.register_at_fork(
                before=self._lock.acquire,
                after_in_parent=self._lock.release,
                after_in_child=self._lock.release,
            )

    @property
    def is_held(self) -> bool:
        """Whether this thread holds it."""
        return self._lock._is_owned()  # type: ignore[attr-defined]

    def _insist(self) -> None:
        """Wait again if a signal's handler ended the wait by an exception: Python forks all the
        same."""
        while not self.is_held:
            with suppress(BaseException):
                self._lock.acquire()

    def __enter__(self) -> None:
        if self.is_held:
            raise RuntimeError(
                "a lock must be taken once by a thread, found it taken by the call that a signal "
                "interrupted; do in the handler only what that call does not use"
            )
        self._lock.acquire()

    def __exit__(self, *raised: Any) -> None:
        self._lock.release()


#: Held while a kernel is compiled.
COMPILING = ForkLock()
