"""Records that cannot be read, of every kind that the contract names."""

from __future__ import annotations

import json
import random

from evictstream.kit.oracle.records import InputTopic
from tests.faults.objects import Json, Node, Pod
from tests.faults.plan import Change

INPUTS: tuple[InputTopic, ...] = ("nodes", "pods", "results")


def draw_garbage(chance: random.Random, key: bytes, at_us: int) -> Change:
    """Draw a record that becomes a dead letter, under the key of some node."""
    topic = chance.choice(INPUTS)
    cluster, _, name = key.decode().partition("/")
    uid = f"garbage-{at_us}"
    good = _event(topic, cluster, name, uid)
    value: bytes | None = _text(good)
    if chance.random() < 0.1:
        key = chance.choice([b"no-slash", b"\xff\xfe/x", b"a/b/c", b"/node"])
    else:
        exploded: Json = {"outcome": "Exploded"} if topic == "results" else {"type": "EXPLODED"}
        value = chance.choice(
            [
                None,
                b"{not json",
                b'["a", "list"]',
                _text({**good, "cluster": "another"}),
                _text({**good, "shoeSize": 43}),
                _text({**good, "observedAt": "yesterday"}),
                _text({**good, **exploded}),
                _text({**good, "object": {"kind": "Shoe"}}),
                _text(_event(topic, cluster, f"{name}-other", uid)),
            ]
        )
    return Change(at_us, topic, key, value)


def too_large(key: bytes, at_us: int, size_bytes: int) -> Change:
    """Give a pod that is larger than the limit."""
    cluster, _, name = key.decode().partition("/")
    event = _event("pods", cluster, name, f"large-{at_us}")
    event["padding"] = "x" * size_bytes
    return Change(at_us, "pods", key, _text(event))


def misplaced(key: bytes, at_us: int, partition: int) -> Change:
    """Give a node that stands in a partition to which its key does not belong."""
    cluster, _, name = key.decode().partition("/")
    event = _event("nodes", cluster, name, f"misplaced-{at_us}")
    return Change(at_us, "nodes", key, _text(event), partition)


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
