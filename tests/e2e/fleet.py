"""A real cluster, by default with its own evictor off, and feed, worker and executor beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.e2e.api_client import ApiClient
from tests.e2e.control_plane import QUICK_NODE_MONITOR, SHORT_DEFAULT_TOLERATIONS, ControlPlane
from tests.e2e.hollow_nodes import HollowNodes
from tests.e2e.objects import NODES, pods, taint
from tests.e2e.processes import executor, feed, grant
from tests.harness.product_process import ProductProcess

KEY = "maintenance"
NAMES = ("n-0", "n-1", "n-2", "n-3")


class Fleet(NamedTuple):
    """A cluster that evicts through the product."""

    plane: ControlPlane
    client: ApiClient
    nodes: HollowNodes
    feed: ProductProcess
    worker: ProductProcess
    executor: ProductProcess

    def alive(self) -> set[str]:
        """Names of pods that do not terminate."""
        return {
            one["metadata"]["name"] for one in self.client.items(pods()) if "deletionTimestamp" not in one["metadata"]
        }

    def taint(self, node: str, *keys: str) -> None:
        """Give a node these taints and no others."""
        self.client.patch(f"{NODES}/{node}", {"spec": {"taints": [taint(key) for key in keys] or None}})

    def deleted(self) -> list[str]:
        """Names of pods that the executor has deleted, in order."""
        return [one["objectRef"]["name"] for one in self.plane.deletes() if one["user"]["username"] == "executor"]


@contextlib.contextmanager
def evicting(
    settings: Settings,
    folder: Path,
    mode: str = "delete",
    users: Sequence[str] = (),
    *,
    taint_eviction: bool = False,
    apiserver_flags: Sequence[str] = (),
    executor_flags: Sequence[str] = (),
    executor_port: int = 0,
) -> Iterator[Fleet]:
    """Start everything, in one mode of the executor; gives the cluster with its nodes `NAMES` ready.

    `users` are more users of the control plane, who may do nothing yet. `taint_eviction` is whether the cluster's own
    evictor runs. With `--delete-after` among `executor_flags` the executor may delete too. `executor_port` is that of
    its health endpoint.
    """
    declare_topics(settings)
    with contextlib.ExitStack() as stack:
        plane = stack.enter_context(
            ControlPlane(
                folder / "plane",
                taint_eviction=taint_eviction,
                users=["feed", "executor", *users],
                apiserver_flags=[*SHORT_DEFAULT_TOLERATIONS, *apiserver_flags],
                controller_manager_flags=QUICK_NODE_MONITOR,
            )
        )
        client = plane.client()
        grant(client, "feed.yaml", "feed")
        for granted in {mode, *(["delete"] if "--delete-after" in executor_flags else ())}:
            grant(client, f"executor-{granted}.yaml", "executor")
        nodes = stack.enter_context(HollowNodes(client))
        nodes.add(NAMES)
        nodes.wait_ready(NAMES)
        yield Fleet(
            plane,
            client,
            nodes,
            stack.enter_context(feed(settings, plane)),
            stack.enter_context(ProductProcess(settings, "worker")),
            stack.enter_context(
                executor(settings.model_copy(update={"health_port": executor_port}), plane, mode, *executor_flags)
            ),
        )
