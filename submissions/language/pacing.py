"""How fast a server is asked: so many requests a minute, evenly spaced, none while it asks for a pause.

It knows nothing of servers, so that tests give it a clock of their own.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from cir_metrics.errors import CallError

_MINUTE = 60.0


class Pace:
    """Lets requests start one by one; shared by all threads of a backend.

    Args:
        per_minute: most requests in any minute; None sets no limit.
        clock: seconds that only grow.
        sleep: waits so many seconds.

    Raises:
        CallError: the limit is not above 0.
    """

    def __init__(
        self,
        per_minute: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """See the class."""
        if per_minute is not None and not (math.isfinite(per_minute) and per_minute > 0):
            raise CallError(
                f"requests_per_minute={per_minute}; it is above 0. Fix: leave it out where there is no limit."
            )
        self._gap = 0.0 if per_minute is None else _MINUTE / per_minute
        self._clock = clock
        self._sleep = sleep
        self._next = -math.inf
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Return when a request may start, and count it as started."""
        while True:
            with self._lock:
                now = self._clock()
                if now >= self._next:
                    self._next = now + self._gap
                    return
                left = self._next - now
            self._sleep(left)

    def pause(self, seconds: float) -> None:
        """Let no request start for so many seconds from now."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)
