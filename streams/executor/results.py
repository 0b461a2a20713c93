"""What an executor says on the results topic."""

from __future__ import annotations

import datetime as dt
from typing import Final

import msgspec

from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.result import RESULT_KIND, EvictionResult
from evictstream.models.messages.vocabulary import API_VERSION

LONGEST_REASON: Final = 1_000
"""Characters of a reason: a webhook may answer with a page."""


def result_text(command: EvictionCommand, answer: CommandAnswer) -> bytes:
    """Write the answer to a command."""
    result = EvictionResult(
        api_version=API_VERSION,
        kind=RESULT_KIND,
        eviction_id=command.eviction_id,
        attempt=command.attempt,
        cluster=command.cluster,
        namespace=command.namespace,
        pod=command.pod,
        pod_uid=command.pod_uid,
        node=command.node,
        outcome=answer.outcome,
        reason=answer.reason[:LONGEST_REASON],
        observed_at=dt.datetime.now(dt.UTC),
    )
    return msgspec.json.encode(result)
