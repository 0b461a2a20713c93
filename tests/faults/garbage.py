"""Records that cannot be read, of every kind that the contract names."""

from __future__ import annotations

import json
import random

from evictstream.kit.oracle.records import InputTopic
from tests.faults.objects import Json, Node, Pod
from tests.faults.plan import Change

INPUTS: tuple[InputTopic, ...] = ("nodes", "pods", "results")


def draw_garbage(chance: random.Random, node: Node, at_us: int) -> Change:
    """Draw a record that becomes a dead letter, about some node or none."""
    topic = chance.choice(INPUTS)
    cluster, name, key = node.cluster, node.name, node.key
    uid = f"garbage-{at_us}"
    good = _event(topic, cluster, name, uid)
    value: bytes | None = _text(good)
    if chance.random() < 0.1:
        key = chance.choice([b"a/b", b"\xff\xfe", b"a\0b", b""])
    else:
        exploded: Json = {"outcome": "Exploded"} if topic == "results" else {"type": "EXPLODED"}
        value = chance.choice(
            [
                None,
                b"{not json",
                b'["a", "list"]',
                _text({**good, "cluster": "another"}),
                _text({field: told for field, told in good.items() if field != "cluster"}),
                _text({**good, "observedAt": "yesterday"}),
                _text({**good, **exploded}),
                _text({**good, "object": {"kind": "Shoe"}}),
                _text(_event(topic, cluster, f"{name}/other", uid)),
            ]
        )
    return Change(at_us, topic, key, value)


def too_large(node: Node, at_us: int, size_bytes: int) -> Change:
    """Give a pod that is larger than the limit."""
    event = _event("pods", node.cluster, node.name, f"large-{at_us}")
    event["padding"] = "x" * size_bytes
    return Change(at_us, "pods", node.key, _text(event))


def misplaced(node: Node, at_us: int, partition: int) -> Change:
    """Give a node that stands in a partition to which its cluster may not belong."""
    event = _event("nodes", node.cluster, node.name, node.uid)
    return Change(at_us, "nodes", node.key, _text(event), partition)


def _text(event: Json) -> bytes:
    return json.dumps(event).encode()


def _event(topic: InputTopic, cluster: str, name: str, uid: str) -> Json:
    if topic == "nodes":
        return {"cluster": cluster, "type": "MODIFIED", "object": Node(cluster, name, uid).shown(1)}
    if topic == "pods":
        shown = Pod(cluster, "ns", f"garbage-{uid}", uid, name).shown(1)
        return {"cluster": cluster, "type": "MODIFIED", "object": shown}
    return {
        "apiVersion": "evictstream.io/v1",
        "kind": "EvictionResult",
        "evictionId": "0" * 32,
        "attempt": 1,
        "cluster": cluster,
        "namespace": "ns",
        "pod": "garbage",
        "podUid": uid,
        "node": name,
        "outcome": "Succeeded",
    }
