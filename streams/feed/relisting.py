"""When a kind is listed again although its watch is fine: so that the topics always hold a whole listing.

Topics forget after their retention, and a feed lists when it starts. Without this a recording of a quiet week would
hold no pod that was there before. The listing runs beside the watch, in a thread of its own: the watch goes on, is
proven as before, and no eviction waits.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Final

from evictstream.streams.errors import KubernetesError
from evictstream.streams.feed.listing import CompleteListing

SPREAD: Final = 0.75
"""Each interval is this part of the whole at least, by chance: clusters whose feed began with all others part."""

LISTING_SHARE: Final = 10
"""Between the begins of two listings are at least so many times what the first one took: else a cluster might be listed
without a pause."""

RETRY_SECONDS: Final = 60.0
"""After a listing that the API server did not let come to its end."""

OneListing = Callable[[Callable[[], bool]], CompleteListing | None]


class Relisting:
    """Of one kind; all but the listing itself is called by the kind's thread.

    Attributes:
        failure: an error that is not the API server's; it ends the session.
    """

    def __init__(self, *, name: str, seconds: float, clock: Callable[[], float], run: OneListing) -> None:
        """Wait for the first listing.

        Args:
            name: of the thread.
            seconds: most between the begins of two listings.
            clock: monotonic, in seconds.
            run: lists once, until told to stop; returns None then.
        """
        self.failure: BaseException | None = None
        self._name = name
        self._seconds = seconds
        self._clock = clock
        self._run = run
        self._due_at: float | None = None
        self._began_at = 0.0
        self._thread: threading.Thread | None = None
        self._abandoned = threading.Event()

    def listed(self, seconds: float) -> None:
        """Note that a listing is complete, which took so long."""
        chosen = self._seconds * random.uniform(SPREAD, 1)  # noqa: S311 - no secret
        self._due_at = self._clock() - seconds + max(chosen, LISTING_SHARE * seconds)

    def begin_if_due(self) -> None:
        """Begin a listing if it is time, and none runs."""
        if self._due_at is None or self._clock() < self._due_at or self.is_running:
            return
        self._abandoned = threading.Event()
        self._began_at = self._clock()
        self._thread = threading.Thread(target=self._list, args=(self._abandoned,), name=self._name, daemon=True)
        self._thread.start()

    def abandon(self) -> None:
        """Have a listing that runs write nothing more: all is listed anew, and counts instead of it."""
        self._abandoned.set()
        self._due_at = None

    @property
    def is_running(self) -> bool:
        """Whether a listing runs."""
        return self._thread is not None and self._thread.is_alive()

    def join(self, seconds: float) -> None:
        """Wait for a listing that runs."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _list(self, abandoned: threading.Event) -> None:
        try:
            listing = self._run(abandoned.is_set)
        except KubernetesError:
            listing = None
        except BaseException as error:  # noqa: BLE001 - raised again by the session
            self.failure = error
            return
        if abandoned.is_set():
            return
        if listing is not None:
            self.listed(listing.seconds)
        else:
            now = self._clock()
            self._due_at = now + max(RETRY_SECONDS, LISTING_SHARE * (now - self._began_at))
