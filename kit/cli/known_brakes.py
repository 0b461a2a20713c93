"""The brakes for a command that shows what is owed: they say what holds it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from evictstream.streams.cli.output import warn
from evictstream.streams.errors import BrokerRefusedError, BrokerUnreachableError, TopicsDifferError

if TYPE_CHECKING:
    from evictstream.models.steering.brakes import Brakes
    from evictstream.streams.settings import Settings

_PATIENCE_SECONDS: Final = 5.0
"""For the brakes to be read; they take a tenth of a second. Without them the list is shown all the same."""


@contextlib.contextmanager
def known_brakes(settings: Settings) -> Iterator[Callable[[], Brakes]]:
    """Read the brakes; gives what returns the newest. Where this user may not read them, that is said.

    Raises:
        BrokerUnreachableError: no broker answered in time.
    """
    from evictstream.models.steering.brakes import NO_BRAKES
    from evictstream.streams.broker.admin import readable_partitions
    from evictstream.streams.broker.brakes_reader import BrakesReader
    from evictstream.streams.cli.brakes import wait_until

    try:
        readable_partitions(settings, settings.brakes_topic)
    except (BrokerRefusedError, TopicsDifferError) as error:  # a service of an earlier version has no such topic
        if isinstance(error, BrokerRefusedError):
            warn(f"what brakes hold is not shown: {error}")
        yield lambda: NO_BRAKES
        return
    with BrakesReader(settings) as reader:
        try:
            wait_until(settings, lambda: math.isfinite(reader.age_seconds()), _PATIENCE_SECONDS)
        except BrokerUnreachableError:
            warn("what brakes hold is not shown: they were not read in time")
        yield lambda: reader.brakes


def tell_brakes(settings: Settings, cluster: str, now_us: int) -> None:
    """Say on stderr which brakes may hold evictions of a cluster now, microseconds since 1970."""
    with known_brakes(settings) as brakes:
        for standing in brakes().of_cluster(cluster, now_us):
            brake = standing.brake
            warn(f"brake {brake.id} of {brake.by} holds evictions here ({brake.why}): they leave later than shown")
