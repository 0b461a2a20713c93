"""The watch cache of upstream's controller: the newest nodes and pods, by name (semantics.md 6.1).

Like client-go's informers, it uses names and not UIDs. The object that was seen last counts; versions are not compared.
"""

from collections.abc import Iterable

from evictstream.models.kubernetes.objects import Node, Pod


def address_of(pod: Pod) -> str:
    """Write the address of a pod, `<namespace>/<name>`: the only identity that upstream's controller uses."""
    return f"{pod.namespace}/{pod.name}"


class WatchCache:
    """The newest state of every node and pod.

    Attributes:
        nodes: by name.
        pods: by address.
    """

    __slots__ = ("_by_node", "nodes", "pods")

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self._by_node: dict[str, dict[str, None]] = {}

    def put_pod(self, pod: Pod) -> Pod | None:
        """Store a pod; returns the pod that its address had before."""
        address = address_of(pod)
        old = self.drop_pod(address)
        self.pods[address] = pod
        self._by_node.setdefault(pod.node_name, {})[address] = None
        return old

    def drop_pod(self, address: str) -> Pod | None:
        """Forget a pod, and return it."""
        old = self.pods.pop(address, None)
        if old is not None:
            on_node = self._by_node[old.node_name]
            del on_node[address]
            if not on_node:
                del self._by_node[old.node_name]
        return old

    def pods_on(self, node_name: str) -> Iterable[Pod]:
        """List the pods bound to a node, in the order in which they were last changed."""
        return [self.pods[address] for address in self._by_node.get(node_name, ())]
