"""What an API server would add to a pod that has not passed one: both commands about pods assume the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from evictstream.kit.cli.rules.checked_objects import NodeSubject, PodSubject
    from evictstream.kit.rules.admission import AdmittedToleration

ASSUMED_SECONDS = 300
"""A copy of the models' `ASSUMED_SECONDS`, since `--help` should not wait for their import."""

NotReadyOption = Annotated[
    int, typer.Option(help="Value of the API server's --default-not-ready-toleration-seconds.", metavar="SECONDS")
]
"""Declare it as `not_ready_seconds: NotReadyOption = DEFAULT_SECONDS`."""

UnreachableOption = Annotated[
    int, typer.Option(help="Value of the API server's --default-unreachable-toleration-seconds.", metavar="SECONDS")
]
"""Declare it as `unreachable_seconds: UnreachableOption = DEFAULT_SECONDS`."""


class AssumedDefaults(NamedTuple):
    """The flags of the API server's plugin DefaultTolerationSeconds, which runs by default."""

    not_ready_seconds: int
    unreachable_seconds: int

    def admitted(self, pod: PodSubject) -> tuple[AdmittedToleration, ...]:
        """Return the tolerations that a pod without UID has once it is created, with their origins."""
        from evictstream.kit.rules.admission import default_toleration_seconds, written

        return default_toleration_seconds(
            written(pod.tolerations),
            not_ready_seconds=self.not_ready_seconds,
            unreachable_seconds=self.unreachable_seconds,
        )

    def applied(self, pods: Iterable[PodSubject]) -> tuple[list[PodSubject], int]:
        """Return the pods as they are once they are created, and to how many something was added."""
        admitted: list[PodSubject] = []
        count = 0
        for pod in pods:
            if pod.is_stored:
                admitted.append(pod)
                continue
            tolerations = tuple(entry.toleration for entry in self.admitted(pod))
            count += len(tolerations) > len(pod.tolerations)
            admitted.append(pod._replace(tolerations=tolerations))
        return admitted, count

    @staticmethod
    def matter_on(nodes: Iterable[NodeSubject]) -> bool:
        """Return whether a node has a taint that such a toleration is for."""
        from evictstream.models.kubernetes.taints import NOT_READY, UNREACHABLE

        return any(taint.key in (NOT_READY, UNREACHABLE) for node in nodes for taint in node.taints)

    def sentence(self, pods: int) -> str:
        """Say what was assumed of how many pods."""
        which = "1 pod" if pods == 1 else f"{pods} pods"
        return (
            f"assumed for {which} without UID, as DefaultTolerationSeconds adds on creation: not-ready is tolerated"
            f" for {self.not_ready_seconds} s, unreachable for {self.unreachable_seconds} s"
        )
