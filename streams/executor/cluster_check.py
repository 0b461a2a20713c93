"""The check of a cluster before its commands are read: the executor's rights, and the cluster's identity."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import structlog

from evictstream.streams.broker.feed_states import read_state
from evictstream.streams.errors import ApiRefusedError, ClusterNameTakenError, MissingRightsError
from evictstream.streams.executor.access_review import check_rights, lacks_for_patience
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.executor.orders import ClusterOrder, ExecutionOptions
from evictstream.streams.executor.request_calls import check_requests_served
from evictstream.streams.kubernetes.connection import Connection
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

RIGHTS_SECONDS: Final = 10.0
"""How long missing rights are checked again: an API server that has just started knows no roles for some seconds."""

RIGHTS_PAUSE_SECONDS: Final = 1.0


def check_cluster(
    order: ClusterOrder,
    options: ExecutionOptions,
    connection: Connection,
    *,
    settings: Settings,
    is_stopped: Callable[[], bool],
) -> str:
    """Check one cluster; returns the UID of its namespace `kube-system`.

    Raises:
        ApiNotServedError: the mode needs EvictionRequests, which the API server does not serve.
        MissingRightsError: the mode needs more rights.
        ClusterNameTakenError: another cluster is fed under the name.
        KubernetesError: the API server does not answer, or refuses.
        BrokerError: the feed's state of the cluster cannot be read.
    """
    if order.mode is ExecutorMode.REQUEST:
        check_requests_served(order.name, connection)
    give_up_at = time.monotonic() + RIGHTS_SECONDS
    while True:
        try:
            check_rights(
                order.name,
                connection,
                order.mode,
                writes_events=options.events != "none",
                deletes_late=options.delete_after_seconds is not None,
            )
            break
        except (MissingRightsError, ApiRefusedError):
            if time.monotonic() > give_up_at or is_stopped():
                raise
            time.sleep(RIGHTS_PAUSE_SECONDS)
    if options.delete_after_seconds is None and (missing := lacks_for_patience(connection, order.mode)):
        log.info("late deletes are not allowed", cluster=order.name, missing=missing, grant="executor-delete.yaml")
    uid = connection.cluster_uid()
    state = read_state(settings, order.name)
    if state is not None and state.cluster_uid != uid:
        raise ClusterNameTakenError(cluster=order.name, uid=uid, other_uid=state.cluster_uid)
    return uid
