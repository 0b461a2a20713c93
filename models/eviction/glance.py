"""The shortest way for the most frequent input: a pod of which nothing changed but its version.

Five of six events are status changes. They are told from all others at a glance, before the object is flattened and
an event is made, in a third of the time. All else, also what is stale, repeated or malformed, takes the long way.
"""

import msgspec

from models.eviction.accepting import read_version
from models.eviction.state import NodeAggregate
from models.kubernetes.objects import API_VERSION, TERMINAL_PHASES, PodObject
from models.kubernetes.tolerations import read_tolerations


def is_only_newer(aggregate: NodeAggregate, seen: PodObject) -> bool:
    """Take in a pod that is the known one, unmarked, with a newer version and nothing else new.

    Does exactly what `apply_pod` would do for such an event (`ADDED` or `MODIFIED`), or nothing.

    Args:
        aggregate: of the node in the record's key; the pod's version is raised.
        seen: the decoded object, not yet checked.

    Returns:
        Whether that was all; `False` means that the long way has to be taken.
    """
    metadata, spec, status = seen.metadata, seen.spec, seen.status
    if metadata is None or spec is None or status is None or seen.kind != "Pod" or seen.api_version != API_VERSION:
        return False
    pod = aggregate.pods.get(metadata.uid or "")
    if pod is None or pod.marks or metadata.deletion_timestamp or status.phase in TERMINAL_PHASES:
        return False
    annotations = metadata.annotations
    if annotations is not None and annotations.mirror is not msgspec.UNSET:
        return False
    if spec.node_name != aggregate.name or not (metadata.name and metadata.namespace and metadata.resource_version):
        return False
    try:
        if read_tolerations(bytes(spec.tolerations)) is not pod.tolerations:
            return False
    except msgspec.DecodeError:
        return False
    version, known = read_version(metadata.resource_version), pod.version
    if not isinstance(version, int) or not isinstance(known, int) or version <= known:
        return False
    pod.version = version
    return True
