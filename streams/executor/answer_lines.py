"""What an executor logs about single evictions: a line for each answer, up to a limit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import structlog

from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.kubernetes.taints import taint_text
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.executor.results import LONGEST_REASON

if TYPE_CHECKING:
    from evictstream.models.execution.command_log import CommandAnswer
    from evictstream.models.messages.command import EvictionCommand
    from evictstream.streams.deed_log import DeedLog, Level
    from evictstream.streams.executor.eviction import ExecutorMode

log = structlog.get_logger(__name__)

_EVENT: Final = "eviction answered"
_NEEDING_A_LOOK: Final = frozenset({Outcome.FAILED, Outcome.REFUSED})


def log_answer(deeds: DeedLog, mode: ExecutorMode, command: EvictionCommand, answer: CommandAnswer) -> None:
    """Log what became of a command, and how late that is by its deadline and this machine's clock."""
    level: Level = "warning" if answer.outcome in _NEEDING_A_LOOK else "info"
    if not deeds.takes(_EVENT, command.cluster, level, answer.outcome):
        return
    late_us = time.time_ns() // 1_000 - instant_us(command.deadline)
    (log.info if level == "info" else log.warning)(
        _EVENT,
        cluster=command.cluster,
        namespace=command.namespace,
        pod=command.pod,
        uid=command.pod_uid,
        node=command.node,
        taint=taint_text(command.reason.taint),
        eviction=command.eviction_id,
        attempt=command.attempt,
        mode=str(mode),
        outcome=str(answer.outcome),
        reason=answer.reason[:LONGEST_REASON],
        late_seconds=round(max(0, late_us) / SECOND_US, 3),
    )
