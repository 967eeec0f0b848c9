"""When to compute: once for a burst of changes, and the long calculations only when nothing has changed for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Coalescer", "run_later"]

#: Seconds without a change after which the long calculations begin.
REST = 0.15


class _Done:
    """What `run_later` returns for a callback that has run: there is nothing left to cancel."""

    def cancel(self):
        pass


def run_later(delay: float, callback: Callable[[], None]):
    """Call back after `delay` seconds on the running event loop; at once where none runs, as in a script.

    Returns
    -------
    object with a method `cancel`
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        callback()
        return _Done()
    return loop.call_later(delay, callback)


class Coalescer:
    """Turns any number of changes into one update, followed by one completion when changes have ceased.

    Parameters
    ----------
    update : callable without arguments, run once after a burst of requests
    complete : callable without arguments, run once when nothing was requested for `REST` seconds
    later : callable (delay, callback) that returns an object with `cancel`; default `run_later`

    Examples
    --------
    >>> waiting = []
    >>> coalescer = Coalescer(lambda: print("update"), lambda: print("complete"), lambda _, call: waiting.append(call))
    >>> for _ in range(50):
    ...     coalescer.request()
    >>> waiting.pop()()
    update
    """

    def __init__(self, update: Callable[[], None], complete: Callable[[], None], later=run_later):
        self._update, self._complete, self._later = update, complete, later
        self._waiting = False
        self._running = False
        self._again = False
        self._rest = None

    def request(self, *_) -> None:
        """Ask for an update. Takes the arguments of any observer and ignores them."""
        if self._running:  # a change that the update itself makes: look once more when it is done
            self._again = True
        elif not self._waiting:
            self._waiting = True
            self._later(0.0, self._run)

    def _run(self) -> None:
        self._waiting = False
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        self._running, self._again = True, False
        try:
            self._update()
        finally:
            self._running = False
        if self._again:
            self.request()
        else:
            self._rest = self._later(REST, self._finish)

    def _finish(self) -> None:
        self._rest = None
        if self._waiting:
            return
        self._running = True
        try:
            self._complete()
        finally:
            self._running = False
