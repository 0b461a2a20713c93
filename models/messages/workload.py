"""What a fleet publishes of owners that are about to lose pods: topic `evictstream.workloads`, compacted.

A record is a level, as those of the topic `fleet` are: the newest of each key is all there is to know. The key is
`<cluster>/<namespace>/<kind>/<name>`. A record without a value, a tombstone, says that no pod of the owner leaves.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from evictstream.models.messages import codec
from evictstream.models.messages.fields import ApiVersion, Count, InstantText, NonEmptyText

WORKLOAD_KIND: Final = "FleetWorkload"

MOST_NAMES_OF_WORKLOAD: Final = 20
"""Zones, and taints, that a record lists, the first ones by name."""


MOST_STEPS_OF_WORKLOAD: Final = 16
"""Steps that a record lists, the first ones; the last of these stands for all that come later."""


class PodLosses(msgspec.Struct, frozen=True, gc=False, rename="camel", kw_only=True):
    """Pods of an owner."""

    bound: Annotated[
        int,
        Meta(ge=1, description="On nodes, as the feed has told; without those that terminate or have finished."),
    ]
    leaving: Annotated[int, Meta(ge=1, description="Of these, those with an open eviction.")]
    held: Annotated[Count, Meta(description="Of these, those that are due and that a brake or policy holds.")]


class LossStep(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """A deadline at which an owner loses pods."""

    at: Annotated[InstantText, Meta(description="The deadline.")]
    until: Annotated[
        InstantText | None,
        Meta(description="The last deadline, where a step stands for several; absent if it stands for one."),
    ] = None
    left: Annotated[Count, Meta(description="Bound pods that are left once those have left that leave by then.")]


class FleetWorkload(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """An owner of pods of which some leave. `pods.bound` is no count of what it wants: compare with your own."""

    api_version: ApiVersion
    kind: Annotated[str, Meta(extra_json_schema={"const": WORKLOAD_KIND})]
    cluster: Annotated[NonEmptyText, Meta(description="Its name, as the key begins.")]
    namespace: Annotated[NonEmptyText, Meta(description="Of the owner and its pods.")]
    owner_kind: Annotated[NonEmptyText, Meta(description="Of the controller of the pods: `ReplicaSet`, `StatefulSet`.")]
    owner_name: Annotated[NonEmptyText, Meta(description="Of the controller.")]
    sequence: Annotated[
        int,
        Meta(
            ge=1,
            description="Grows with each record of a key, also over workers. The record counts if it is not less than"
            " `workloadsFrom` of the cluster's `FleetLevel`.",
        ),
    ]
    at: Annotated[InstantText, Meta(description="When it was so, by the clock of the worker.")]
    pods: PodLosses
    first_deadline: Annotated[InstantText, Meta(description="When the first of the leaving pods has to leave.")]
    loses_all_at: Annotated[
        InstantText | None,
        Meta(description="When the last of all its bound pods has to leave; absent if some of them stay."),
    ] = None
    steps: Annotated[
        tuple[LossStep, ...],
        Meta(
            max_length=MOST_STEPS_OF_WORKLOAD,
            description="How its bound pods grow fewer, the first deadline first. Pods that are held have no instant"
            " and stay in `left`; absent if all that leave are held.",
        ),
    ] = ()
    zones: Annotated[
        tuple[NonEmptyText, ...],
        Meta(max_length=MOST_NAMES_OF_WORKLOAD, description="Of the nodes of the leaving pods, as far as known."),
    ] = ()
    taints: Annotated[
        tuple[str, ...],
        Meta(max_length=MOST_NAMES_OF_WORKLOAD, description="Keys of the taints for which they leave."),
    ] = ()


_decoder: Final = msgspec.json.Decoder(FleetWorkload)


def decode_fleet_workload(text: bytes | str) -> FleetWorkload:
    """Read what becomes of an owner's pods.

    Raises:
        Unreadable: it is no such record.
    """
    workload = codec.decode(_decoder, text)
    codec.check_kind(workload.api_version, workload.kind, WORKLOAD_KIND)
    codec.check_instants(at=workload.at, firstDeadline=workload.first_deadline, losesAllAt=workload.loses_all_at)
    for step in workload.steps:
        codec.check_instants(at=step.at, until=step.until)
    return workload
