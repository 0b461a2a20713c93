"""Removes what runs have made on a Kafka that is not their own: topics and consumer group, by a run's names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from evictstream.streams.broker.admin import admin_client
from evictstream.streams.broker.newest_times import newest_times_us
from evictstream.streams.broker.run_names import delete_own, named
from evictstream.streams.errors import FoundProblemError
from evictstream.streams.settings import Settings

PREFIX: Final = "evictstream-demo-"
"""Begins the names of all that a run makes; eight hexadecimal digits of its own follow."""

SILENT_US: Final = 600_000_000
"""A run whose input has had no record for ten minutes was killed: while it plays there is one every few seconds."""

_NAME = re.compile(rf"({PREFIX}[0-9a-f]{{8}})[.-].*")


def remove_leftovers(settings: Settings, topics: Iterable[str], now_us: int) -> Iterator[str]:
    """Remove what killed runs have left among these topics; give a sentence for each run that was found.

    One that may be running still is only named, and so is one that cannot be removed.
    """
    for name in sorted({match[1] for topic in topics if (match := _NAME.fullmatch(topic))}):
        run = named(settings, name)
        try:
            newest_us = _newest_us(run)
            if newest_us is None or now_us - newest_us < SILENT_US:
                yield f"topics {name}* belong to another demo; if it is not running, delete them"
                continue
            delete_own(run)
        except FoundProblemError as error:
            yield f"topics {name}* of a killed demo could not be deleted: {error}"
        else:
            yield f"deleted the topics {name}* of a killed demo"


def _newest_us(run: Settings) -> int | None:
    """Return when the newest record of a run's nodes was appended, microseconds since 1970; None without any."""
    topic = run.nodes_topic
    with admin_client(run, "list topics of earlier demos") as client:
        if topic not in client.list_topics():
            return None
        numbers = [partition["partition_index"] for partition in client.describe_topics([topic])[0]["partitions"]]
    return max(newest_times_us(run, [(topic, number) for number in numbers]).values(), default=None)
