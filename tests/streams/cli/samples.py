"""Eviction commands for tests."""

from __future__ import annotations

import msgspec

from evictstream.models.kubernetes.taints import Taint
from evictstream.models.messages.command import COMMAND_KIND, CommandReason, EvictionCommand
from evictstream.models.messages.vocabulary import API_VERSION, Action, Verdict

_BASE = EvictionCommand(
    api_version=API_VERSION,
    kind=COMMAND_KIND,
    action=Action.SCHEDULE,
    eviction_id="e1" * 16,
    revision=1,
    attempt=0,
    cluster="lab",
    namespace="shop",
    pod="p-1",
    pod_uid="u1",
    node="n-1",
    node_uid="u2",
    reason=CommandReason(Verdict.TOLERATION_EXPIRES, Taint("node.kubernetes.io/unreachable", "", "NoExecute")),
    window_start="2026-11-21T02:15:00.000000Z",
    deadline="2026-11-21T02:20:00.000000Z",
    issued_at="2026-11-21T02:15:00.000000Z",
)


def command(action: Action = Action.SCHEDULE, **changes: object) -> EvictionCommand:
    """An eviction command, changed as the test needs it."""
    return msgspec.structs.replace(_BASE, action=action, **changes)
