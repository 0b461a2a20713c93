"""A worker whose event loop stands still for good on SIGUSR1: `python -m tests.harness.blocked_worker`."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading

from evictstream.streams.cli.main import run


def _hold_the_loop(loop: asyncio.AbstractEventLoop) -> None:
    loop.call_soon_threadsafe(threading.Event().wait)


class _Policy(asyncio.DefaultEventLoopPolicy):
    """Tells the first loop how to be held: the later ones are those of Faust's threads."""

    _is_first = True

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        loop = super().new_event_loop()
        if self._is_first:
            self._is_first = False
            signal.signal(signal.SIGUSR1, lambda *_: _hold_the_loop(loop))
        return loop


if __name__ == "__main__":
    asyncio.set_event_loop_policy(_Policy())
    sys.exit(run(["worker"]))
