"""Checks with the API server, before any command is read, that this executor has the rights of its mode."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from evictstream.models.execution.eviction_requests import REQUESTS_PLURAL, REQUESTS_VERSION
from evictstream.streams.errors import ApiUnreachableError, MissingRightsError
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.kubernetes.connection import Connection

REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

Right = tuple[str, str]
"""A verb and a resource of the core group, as `pods/eviction`, or of `REQUESTS_GROUP`."""

REQUESTS_GROUP: Final = REQUESTS_VERSION.partition("/")[0]

READ_RIGHTS: Final[tuple[Right, ...]] = (("get", "pods"), ("get", "nodes"))
LISTS: Final[Right] = ("list", "pods")
"""For one look at the pods of a node, where the write has a resource version as precondition, or there is none."""
OF_MODE: Final[dict[ExecutorMode, tuple[Right, ...]]] = {
    ExecutorMode.OBSERVE: (LISTS,),
    ExecutorMode.DELETE: (LISTS, ("patch", "pods/status"), ("delete", "pods")),
    ExecutorMode.EVICT: (("create", "pods/eviction"),),
    ExecutorMode.REQUEST: (
        LISTS,
        ("create", "pods/eviction"),  # for members of a PodGroup
        *((verb, REQUESTS_PLURAL) for verb in ("create", "get", "list", "watch", "patch", "delete")),
    ),
}
CREATES_EVENTS: Final[Right] = ("create", "events")
EVENT_RIGHTS: Final[dict[ExecutorMode, tuple[Right, ...]]] = {
    ExecutorMode.OBSERVE: (CREATES_EVENTS,),
    ExecutorMode.DELETE: (CREATES_EVENTS, ("patch", "events")),
    ExecutorMode.EVICT: (CREATES_EVENTS, ("patch", "events")),
    ExecutorMode.REQUEST: (CREATES_EVENTS, ("patch", "events")),
}


class _Status(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct, tag_field="kind", tag="SelfSubjectAccessReview"):
    status: _Status


_reviews: Final = msgspec.json.Decoder(_Review)


def check_rights(
    cluster: str, connection: Connection, mode: ExecutorMode, *, writes_events: bool, deletes_late: bool
) -> None:
    """Check the rights that a mode needs.

    Args:
        cluster: its name.
        connection: to its API server.
        mode: of the executor.
        writes_events: whether it writes Events.
        deletes_late: whether the modes `evict` and `request` delete after `--delete-after`.

    Raises:
        MissingRightsError: a right is missing.
        KubernetesError: the API server does not answer.
    """
    needed = [*READ_RIGHTS, *OF_MODE[mode]]
    if deletes_late:
        needed += OF_MODE[ExecutorMode.DELETE]
    if writes_events:
        needed += EVENT_RIGHTS[mode]
    missing = _missing(connection, needed)
    if missing:
        lacks_own = any(f"{verb} {resource}" in missing for verb, resource in OF_MODE[mode])
        file = f"executor-{mode if lacks_own or not deletes_late else ExecutorMode.DELETE}.yaml"
        raise MissingRightsError(cluster=cluster, missing=missing, mode=mode, file=file)


def lacks_for_patience(connection: Connection, mode: ExecutorMode) -> list[str]:
    """Return the rights that the patience of a policy needs and that are missing, as `delete pods`.

    Whether any policy has a patience is not known at the start.

    Raises:
        KubernetesError: the API server does not answer.
    """
    if mode not in {ExecutorMode.EVICT, ExecutorMode.REQUEST}:
        return []
    late = [right for right in OF_MODE[ExecutorMode.DELETE] if right != LISTS]
    return _missing(connection, late)


def _missing(connection: Connection, rights: Iterable[Right]) -> list[str]:
    return [f"{verb} {resource}" for verb, resource in rights if not _is_allowed(connection, verb, resource)]


def _is_allowed(connection: Connection, verb: str, resource: str) -> bool:
    name, _, sub = resource.partition("/")
    group = REQUESTS_GROUP if name == REQUESTS_PLURAL else ""
    attributes = {"verb": verb, "group": group, "resource": name, "subresource": sub}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = connection.send("POST", REVIEWS, body=body)
    if not answer.is_done:
        raise connection.refusal(REVIEWS, answer)
    try:
        return _reviews.decode(answer.body).status.allowed
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiUnreachableError(host=connection.host, reason="its answer is not a SelfSubjectAccessReview") from error
