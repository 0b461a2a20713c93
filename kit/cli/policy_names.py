"""Names in policies that fit nothing that is known: the policies stand all the same, and stderr says so."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from evictstream.streams.cli.output import warn
from evictstream.streams.errors import EvictstreamError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evictstream.models.messages.policy import Policy
    from evictstream.streams.settings import Settings


def warn_of_unknown(settings: Settings, changed: Iterable[Policy]) -> None:
    """Say which patterns of clusters match none that is known here; at a centre those of all regions are."""
    from evictstream.streams.broker.feed_states import read_fed
    from evictstream.streams.broker.published_names import read_published

    patterns = {pattern for policy in changed if policy.spec is not None for pattern in policy.spec.selected.clusters}
    if not patterns:
        return
    try:
        known = {*read_fed(settings), *read_published(settings)}
    except EvictstreamError as error:  # the policies stand, whatever happens here
        warn(f"it could not be checked whether these clusters exist: {error}")
        return
    for pattern in sorted(patterns):
        if not any(fnmatch.fnmatchcase(name, pattern) for name in known):
            warn(f"no known cluster matches {pattern}")
