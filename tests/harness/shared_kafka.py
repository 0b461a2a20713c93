"""One Kafka for all processes of a test run: the first that needs it starts it, the others use the same."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
from collections.abc import Iterator
from pathlib import Path

from evictstream.streams.broker.locate import Broker, locate
from evictstream.streams.settings import Settings


@contextlib.contextmanager
def shared_kafka(servers: str | None, folder: Path) -> Iterator[Broker]:
    """Yield the Kafka at `servers`, or the one of all processes that name the same folder.

    The process that starts it ends it, after the last user. The operating system drops the locks of a process that
    dies, so nobody waits for one that is gone.
    """
    address = folder / "kafka.json"
    with (folder / "kafka.users").open("w") as users, contextlib.ExitStack() as stack:
        with _locked(folder / "kafka.start"):
            if address.exists():
                broker = Broker(**json.loads(address.read_text()))
            else:
                broker = stack.enter_context(locate(Settings(bootstrap_servers=servers)))
                stack.callback(fcntl.flock, users, fcntl.LOCK_EX)  # waits for the other users
                stack.callback(_forget, address)
                address.write_text(json.dumps(dataclasses.asdict(broker)))
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield broker
        finally:
            fcntl.flock(users, fcntl.LOCK_UN)


def _forget(address: Path) -> None:
    """Let no further process use a Kafka that is about to end."""
    with _locked(address.with_name("kafka.start")):
        address.unlink()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
