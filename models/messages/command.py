"""The commands topic: what executors have to do. Key: the cluster's name.

Read with `isolation.level=read_committed`. The same eviction keeps its `evictionId`; `revision` grows when its
deadline moves, and a higher revision withdraws every lower `Evict`; `attempt` grows when an attempt is repeated. A
command may be delivered more than once: `evictionId`, `revision` and `attempt` together identify it.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from evictstream.models.kubernetes.taints import BareTaint
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages import codec
from evictstream.models.messages.fields import (
    ApiVersion,
    Count,
    EvictionIdText,
    InstantText,
    NonEmptyText,
    Revision,
)
from evictstream.models.messages.vocabulary import Action, Verdict

COMMAND_KIND: Final = "EvictionCommand"


class CommandReason(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Why a command was sent."""

    verdict: Annotated[Verdict, Meta(description="Why the pod has to leave; for a `Cancel` why it need not any more.")]
    taint: Annotated[BareTaint, Meta(description="The taint that decided.")]
    toleration: Annotated[
        Toleration | None,
        Meta(description="The toleration in use for that taint; absent if it was not tolerated."),
    ] = None


class EvictionCommand(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename="camel",
    omit_defaults=True,
    kw_only=True,
):
    """One command to the executors."""

    api_version: ApiVersion
    kind: Annotated[str, Meta(extra_json_schema={"const": COMMAND_KIND})]
    action: Annotated[
        Action,
        Meta(
            description="`Schedule`: the pod will be evicted at `deadline` unless cancelled; not sent for what is due"
            " at once. `Evict`: do it now. `Cancel`: what was scheduled or issued is withdrawn."
        ),
    ]
    eviction_id: Annotated[
        EvictionIdText,
        Meta(
            description="Hash over cluster, pod UID and the count of evictions opened for this pod before. Never used"
            " again after a `Cancel`."
        ),
    ]
    revision: Annotated[Revision, Meta(description="Grows when the deadline moves.")]
    attempt: Annotated[Count, Meta(description="Attempts issued so far, this one included; 0 before the first.")]
    cluster: Annotated[NonEmptyText, Meta(description="Cluster of the pod.")]
    cluster_uid: Annotated[
        NonEmptyText | None,
        Meta(
            description="UID of that cluster's namespace `kube-system`, as its feed said it: an executor writes to no"
            " other cluster. Absent if no feed has said it."
        ),
    ] = None
    namespace: Annotated[str, Meta(description="Namespace of the pod.")]
    pod: Annotated[str, Meta(description="Name of the pod: an address, not an identity.")]
    pod_uid: Annotated[NonEmptyText, Meta(description="UID of the pod: the precondition of the delete.")]
    node: Annotated[NonEmptyText, Meta(description="Name of the node.")]
    node_uid: Annotated[str, Meta(description="UID of the node.")]
    reason: Annotated[CommandReason, Meta(description="Why.")]
    window_start: Annotated[
        InstantText,
        Meta(description="Since when pod and taint are together, with this value if the toleration hangs on it."),
    ]
    deadline: Annotated[InstantText, Meta(description="When the pod has to leave, or had to.")]
    issued_at: Annotated[InstantText, Meta(description="When this command was decided.")]
    delete_after: Annotated[
        InstantText | None,
        Meta(
            description="Of an `Evict`, by a policy: from then on a disruption budget keeps the pod no longer. An"
            " executor that knows it puts it in the place of its own setting."
        ),
    ] = None


_decoder: Final = msgspec.json.Decoder(EvictionCommand)


def decode_command(text: bytes | str) -> EvictionCommand:
    """Read a command, and refuse what its JSON Schema refuses.

    Raises:
        Unreadable: it is not a command.
    """
    command = codec.decode(_decoder, text)
    codec.check_kind(command.api_version, command.kind, COMMAND_KIND)
    codec.check_instants(windowStart=command.window_start, deadline=command.deadline, issuedAt=command.issued_at)
    if command.delete_after is not None:
        codec.check_instants(deleteAfter=command.delete_after)
    return command
