"""Which pods are judged on which nodes: each on its own, or on all with `--all-nodes` or if no pod is bound."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from evictstream.kit.cli.rules.checked_objects import NodeSubject, PodSubject
from evictstream.kit.rules.selectors import Requirement, SelectorError, parse_selector, selects
from evictstream.streams.errors import WrongUseError


class Selection(NamedTuple):
    """The options that choose pods and nodes.

    Attributes:
        namespace: only its pods; None for those of all.
        pods: selector of pods, as a text.
        nodes: selector of nodes, as a text.
        all_nodes: judge each pod on each node, wherever it runs.
    """

    namespace: str | None = None
    pods: str = ""
    nodes: str = ""
    all_nodes: bool = False


class Unplaced(enum.StrEnum):
    """Why a pod is on none of the nodes."""

    NOT_BOUND = "NotBound"
    NODE_NOT_FOUND = "NodeNotFound"
    NODE_REFUSED = "NodeRefused"


class Placement:
    """The chosen pods and nodes, and on which nodes each pod is judged.

    Attributes:
        pods: the chosen pods, in their order.
        nodes: all nodes, chosen or not.
        chosen: places of the chosen nodes in their order.
    """

    def __init__(
        self,
        pods: Sequence[PodSubject],
        nodes: Sequence[NodeSubject],
        selection: Selection,
        *,
        refused: Iterable[str] = (),
    ) -> None:
        """Select pods and nodes.

        Args:
            pods: all that can be judged.
            nodes: all on which can be judged.
            selection: which of both.
            refused: names of nodes that the API server would refuse.

        Raises:
            WrongUseError: a selector is malformed.
        """
        for_pods, for_nodes = _selector(selection.pods), _selector(selection.nodes)
        self.pods = [
            pod for pod in pods if selection.namespace in (None, pod.namespace) and selects(for_pods, pod.labels)
        ]
        self.nodes = nodes
        self._refused = frozenset(refused)
        self.chosen = [index for index, node in enumerate(nodes) if selects(for_nodes, node.labels)]
        self._is_chosen = frozenset(self.chosen)
        self._is_everywhere = selection.all_nodes or not any(pod.node_name for pod in self.pods)
        self._named: defaultdict[str, list[int]] = defaultdict(list)  # a file may hold several of one name
        for index, node in enumerate(nodes):
            self._named[node.name].append(index)

    def places(self, pod: PodSubject) -> Sequence[int] | Unplaced:
        """Return where a pod is judged, which may be nowhere by selection, or why its node is not known."""
        if self._is_everywhere:
            return self.chosen
        if not pod.node_name:
            return Unplaced.NOT_BOUND
        own = self._named.get(pod.node_name)
        if own is None:
            return Unplaced.NODE_REFUSED if pod.node_name in self._refused else Unplaced.NODE_NOT_FOUND
        return [index for index in own if index in self._is_chosen]

    def unplaced(self) -> Iterator[tuple[PodSubject, Unplaced]]:
        """Yield the pods that are on none of the nodes, each with the reason."""
        for pod in self.pods:
            if isinstance(places := self.places(pod), Unplaced):
                yield pod, places


def _selector(text: str) -> tuple[Requirement, ...]:
    try:
        return parse_selector(text)
    except SelectorError as error:
        raise WrongUseError(str(error), next_step="for example app=web,tier!=cache") from error
