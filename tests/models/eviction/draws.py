"""What random stories are made of: small alphabets, so that things meet."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from evictstream.models.eviction import NodeEvent, PodEvent, ResultEvent
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE, Pod, Toleration
from tests.models.eviction.simple_model import SimpleTaint, SimpleToleration

Event = NodeEvent | PodEvent | ResultEvent

keys = st.sampled_from(["a", "b", NOT_READY, UNREACHABLE])
values = st.sampled_from(["", "x", "5", "9"])
taints = st.builds(
    SimpleTaint,
    keys,
    values,
    st.sampled_from([NO_EXECUTE, NO_EXECUTE, NO_EXECUTE, NO_SCHEDULE]),
    st.sampled_from([None, None, 1, 2, 3]),
)
tolerations = st.builds(
    SimpleToleration,
    st.one_of(keys, st.just("")),
    st.sampled_from(["Exists", "Exists", "Equal", "", "Gt", "Lt", "Near"]),
    values,
    st.sampled_from([NO_EXECUTE, NO_EXECUTE, ""]),
    st.sampled_from([None, -5, 0, 3, 20, 60, 300, 10**13, 10**25]),
)
everything = st.builds(
    lambda seconds: [SimpleToleration("", "Exists", "", NO_EXECUTE, seconds)], st.sampled_from([0, 3, 20, 60])
)
lists_of_tolerations = st.one_of(st.lists(tolerations, max_size=4), everything)
readiness = st.sampled_from(["True", "False", "Unknown", None])
names = st.sampled_from(["web-0", "web-1", "web-2"])


def real_tolerations(simple: list[SimpleToleration]) -> tuple[Toleration, ...]:
    return tuple(Toleration(entry.key, entry.operator, entry.value, entry.effect, entry.seconds) for entry in simple)


def replaced(pod: Pod, **fields: object) -> Pod:

    return msgspec.structs.replace(pod, **fields)


def uid_of(event: Event) -> str:
    if isinstance(event, NodeEvent):
        return event.node.uid
    return event.pod.uid if isinstance(event, PodEvent) else event.pod_uid
