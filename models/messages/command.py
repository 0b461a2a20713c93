"""The contract of the commands topic: what executors are told. Key: `<cluster>/<node>`.

Read with `isolation.level=read_committed`. The same eviction keeps its `evictionId`; `revision` grows when its
deadline moves, and a higher revision withdraws every lower `Evict`; `attempt` grows when an attempt is repeated. A
delivery may be repeated, so `evictionId` and `attempt` together are the key for doing a thing once.
"""

from typing import Literal

from pydantic import Field

from evictstream.models.messages.parts import Contract, Instant, TaintPart, TolerationPart
from evictstream.models.messages.vocabulary import Action, Verdict


class CommandReason(Contract):
    """Why a command was sent."""

    verdict: Verdict = Field(description="Why the pod has to leave; for a `Cancel` why it need not any more.")
    taint: TaintPart = Field(description="The taint that decided.")
    toleration: TolerationPart | None = Field(
        default=None, description="The toleration in use for that taint; absent if it was not tolerated."
    )


class CommandContract(Contract):
    """One command to the executors."""

    api_version: Literal["evictstream.io/v1"]
    kind: Literal["EvictionCommand"]
    action: Action = Field(
        description="`Schedule`: the pod will be evicted at `deadline` unless cancelled; not sent for what is due at"
        " once. `Evict`: do it now. `Cancel`: what was scheduled or issued is withdrawn."
    )
    eviction_id: str = Field(
        pattern="^[0-9a-f]{32}$",
        description="Hash over cluster, pod UID and the count of evictions opened for this pod before. Never used"
        " again after a `Cancel`.",
    )
    revision: int = Field(ge=1, description="Grows when the deadline moves.")
    attempt: int = Field(ge=0, description="Attempts issued so far, this one included; 0 before the first.")
    cluster: str = Field(min_length=1, description="Cluster of the pod.")
    namespace: str = Field(description="Namespace of the pod.")
    pod: str = Field(description="Name of the pod: an address, not an identity.")
    pod_uid: str = Field(min_length=1, description="UID of the pod: the precondition of the delete.")
    node: str = Field(min_length=1, description="Name of the node.")
    node_uid: str = Field(description="UID of the node.")
    reason: CommandReason = Field(description="Why.")
    window_start: Instant = Field(description="Since when pod and taint are together.")
    deadline: Instant = Field(description="When the pod has to leave, or had to.")
    issued_at: Instant = Field(description="When this command was decided.")
