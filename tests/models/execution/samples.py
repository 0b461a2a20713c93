"""Commands, pods and nodes for the tests of this folder and of the executor."""

from __future__ import annotations

import uuid
from typing import Any

from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.taints import BareTaint
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages.command import COMMAND_KIND, CommandReason, EvictionCommand
from evictstream.models.messages.vocabulary import API_VERSION, Action, Verdict

T0_US = 1_700_000_000_000_000
TAINT = BareTaint(key="maintenance", effect="NoExecute")


def command(action: Action = Action.EVICT, pod: str = "a", **changes: Any) -> EvictionCommand:
    """Return an untolerated pod's command, issued at `T0_US`; `toleration` makes it `TolerationExpires`."""
    toleration: Toleration | None = changes.pop("toleration", None)
    taint: BareTaint = changes.pop("taint", TAINT)
    verdict = Verdict.UNTOLERATED if toleration is None else Verdict.TOLERATION_EXPIRES
    fields: dict[str, Any] = {
        "api_version": API_VERSION,
        "kind": COMMAND_KIND,
        "action": action,
        "eviction_id": uuid.uuid5(uuid.NAMESPACE_OID, pod).hex,
        "revision": 1,
        "attempt": 1,
        "cluster": "c1",
        "namespace": "shop",
        "pod": pod,
        "pod_uid": f"uid-{pod}",
        "node": "n-1",
        "node_uid": "uid-n-1",
        "reason": CommandReason(verdict, taint, toleration),
        "window_start": instant_text(T0_US),
        "deadline": instant_text(T0_US),
        "issued_at": instant_text(T0_US),
    }
    return EvictionCommand(**(fields | changes))
