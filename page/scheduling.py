"""When to compute: once for a burst of changes, and slow parts only when the changes have stopped."""

import asyncio
from collections.abc import Callable

REST = 0.15  # seconds without a change after which the long calculations begin


def run_later(delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle | None:
    """Call back after `delay` seconds on the running event loop, or at once if none is running."""
    try:
        return asyncio.get_running_loop().call_later(delay, callback)
    except RuntimeError:
        callback()
        return None


class Scheduler:
    """Turns any number of changes into one update, followed by one completion when the changes stop."""

    def __init__(self, update: Callable[[], None], complete: Callable[[], None]):
        self._update, self._complete = update, complete
        self._requested = False
        self._rest: asyncio.TimerHandle | None = None

    def request(self, *_) -> None:
        """Ask for an update; takes and ignores the arguments of any observer."""
        if self._rest is not None:
            self._rest.cancel()
        if not self._requested:
            self._requested = True
            run_later(0.0, self._run)

    def _run(self) -> None:
        self._requested = False
        self._update()
        if not self._requested:  # otherwise the update itself changed something, and runs once more
            self._rest = run_later(REST, self._complete)
