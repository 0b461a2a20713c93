"""The eviction job as one writes it from Faust's manual: agents, tables in memory, a timer. Settings are Faust's own.

A table cannot be changed from a timer, so the timer sends what is due to a topic of the program's own, and an agent on
that topic decides. Run as a program, with `worker` as its argument, in `programs.Program.environment`.
"""

from __future__ import annotations

import datetime as dt
import heapq
import os
import time
import uuid
from collections import defaultdict
from typing import Any

import faust

TIMER_SECONDS = 0.1
_SECOND_US = 1_000_000
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

Json = dict[str, Any]

app = faust.App(
    os.environ["PEER_APPLICATION"],
    broker=f"kafka://{os.environ['PEER_SERVERS']}",
    store="memory://",
    datadir=os.environ["PEER_FOLDER"],
    topic_partitions=int(os.environ["PEER_PARTITIONS"]),
    web_enabled=False,
)


def _topic(name: str, **more: Any) -> Any:
    return app.topic(name, key_type=bytes, key_serializer="raw", value_serializer="json", **more)


nodes_topic = _topic(os.environ["PEER_NODES"])
pods_topic = _topic(os.environ["PEER_PODS"])
commands_topic = _topic(os.environ["PEER_COMMANDS"])
due_topic = _topic(f"{os.environ['PEER_APPLICATION']}-due", internal=True, partitions=app.conf.topic_partitions)

nodes: Any = app.Table("nodes")
pods: Any = app.Table("pods")
# What tables cannot tell: which pods a node has, and what is due next. Made from the table after each recovery.
uids_by_node: defaultdict[str, set[str]] = defaultdict(set)
timers: list[tuple[int, str]] = []


@pods.on_recover  # type: ignore[untyped-decorator]  # tables say nothing of types
async def rebuild() -> None:
    uids_by_node.clear()
    timers.clear()
    for uid, pod in pods.items():
        uids_by_node[pod["node"]].add(uid)
        if pod["state"] == "scheduled":
            timers.append((pod["deadline"], uid))
    heapq.heapify(timers)


@app.agent(nodes_topic)
async def on_node(stream: Any) -> None:
    async for key, event in stream.items():
        found = event.get("object")
        if found is None:
            continue
        node = f"{key.decode()}/{found['metadata']['name']}"
        old = nodes.get(node)
        if old is not None and int(found["metadata"]["resourceVersion"]) <= old["version"]:
            continue
        taints = _taints(found, old, _observed_us(event))
        if event["type"] == "DELETED":
            nodes.pop(node)
        elif old is not None and taints == old["taints"] and found["metadata"]["uid"] == old["uid"]:
            continue
        else:
            meta = found["metadata"]
            nodes[node] = {"version": int(meta["resourceVersion"]), "uid": meta["uid"], "taints": taints}
        for uid in list(uids_by_node[node]):
            await decide(uid, pods[uid])


@app.agent(pods_topic)
async def on_pod(stream: Any) -> None:
    async for key, event in stream.items():
        found = event.get("object")
        if found is None:
            continue
        node, meta = f"{key.decode()}/{found['spec']['nodeName']}", found["metadata"]
        uid, version = meta["uid"], int(meta["resourceVersion"])
        old = pods.get(uid)
        if event["type"] == "DELETED":
            if old is not None:
                uids_by_node[node].discard(uid)
                pods.pop(uid)
                if old["state"] == "scheduled":
                    await send("Cancel", uid, old, "PodGone")
            continue
        tolerations = found.get("spec", {}).get("tolerations") or []
        is_leaving = _is_leaving(found)
        if old is not None:
            if version <= old["version"] or (old["tolerations"] == tolerations and old["leaving"] == is_leaving):
                continue
            pod = {**old, "version": version, "tolerations": tolerations, "leaving": is_leaving}
        else:
            pod = {
                "node": node,
                "namespace": meta["namespace"],
                "name": meta["name"],
                "version": version,
                "tolerations": tolerations,
                "leaving": is_leaving,
                "since": _observed_us(event),
                "state": "",
                "opened": 0,
                "revision": 0,
                "deadline": 0,
                "window": 0,
                "taint": "",
            }
            uids_by_node[node].add(uid)
        pods[uid] = pod
        await decide(uid, pod)


@app.timer(TIMER_SECONDS)  # type: ignore[untyped-decorator]  # it does not say what it decorates
async def fire() -> None:
    now_us = _now_us()
    while timers and timers[0][0] <= now_us:
        _, uid = heapq.heappop(timers)
        if (pod := pods.get(uid)) is not None:
            await due_topic.send(key=_cluster(pod), value=uid)


@app.agent(due_topic)
async def on_due(stream: Any) -> None:
    async for uid in stream:
        if (pod := pods.get(uid)) is not None:
            await decide(uid, pod)


async def decide(uid: str, pod: Json) -> None:
    node, now_us = nodes.get(pod["node"]), _now_us()
    reason: Json | None = None
    due_us: float = float("inf")
    if node is not None and not pod["leaving"]:
        for taint in node["taints"]:
            until_us = _until_us(pod, taint)
            if until_us < due_us:
                reason, due_us = taint, until_us
    if reason is None:
        if pod["state"]:
            is_owed = pod["state"] == "scheduled" or not pod["leaving"]
            pods[uid] = {**pod, "state": ""}
            if is_owed:
                await send("Cancel", uid, pod, "TaintRemoved")
        return
    is_due = due_us <= now_us
    if pod["state"] == "issued" if is_due else (pod["state"] == "scheduled" and pod["deadline"] == due_us):
        return
    window_us = max(reason["since"], pod["since"])
    pod = {
        **pod,
        "state": "issued" if is_due else "scheduled",
        "deadline": int(due_us) or window_us,
        "window": window_us,
        "taint": reason["key"],
        "opened": pod["opened"] + (not pod["state"]),
        "revision": pod["revision"] + 1 if pod["state"] else 1,
    }
    pods[uid] = pod
    if not is_due:
        heapq.heappush(timers, (pod["deadline"], uid))
    await send("Evict" if is_due else "Schedule", uid, pod, "TolerationExpires" if due_us else "NotTolerated")


async def send(action: str, uid: str, pod: Json, verdict: str) -> None:
    cluster, node = pod["node"].split("/")
    command = {
        "apiVersion": "evictstream.io/v1",
        "kind": "EvictionCommand",
        "action": action,
        "evictionId": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{cluster}/{uid}/{pod['opened']}")),
        "revision": pod["revision"],
        "attempt": 0,
        "cluster": cluster,
        "namespace": pod["namespace"],
        "pod": pod["name"],
        "podUid": uid,
        "node": node,
        "reason": {"taint": {"key": pod["taint"], "effect": "NoExecute"}, "verdict": verdict},
        "windowStart": _text(pod["window"]),
        "deadline": _text(pod["deadline"]),
        "issuedAt": _text(_now_us()),
    }
    await commands_topic.send(key=_cluster(pod), value=command)


def _cluster(pod: Json) -> bytes:
    """Give the key of a pod's records."""
    name: str = pod["node"].partition("/")[0]
    return name.encode()


def _until_us(pod: Json, taint: Json) -> float:
    """Give when a pod has to leave because of one taint: 0 is at once."""
    for toleration in pod["tolerations"]:
        if _tolerates(toleration, taint):
            seconds = toleration.get("tolerationSeconds")
            if seconds is None:
                return float("inf")
            return float(max(taint["since"], pod["since"]) + max(0, seconds) * _SECOND_US)
    return 0.0


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in {None, "", "NoExecute"}:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    return operator == "Exists" or (operator == "Equal" and (toleration.get("value") or "") == taint["value"])


def _taints(found: Json, old: Json | None, at_us: int) -> list[Json]:
    since = {taint["key"]: taint["since"] for taint in old["taints"]} if old is not None else {}
    return [
        {"key": taint["key"], "value": taint.get("value") or "", "since": since.get(taint["key"], at_us)}
        for taint in found.get("spec", {}).get("taints") or []
        if taint["effect"] == "NoExecute"
    ]


def _is_leaving(found: Json) -> bool:
    meta = found["metadata"]
    return (
        found.get("status", {}).get("phase") in {"Succeeded", "Failed"}
        or meta.get("deletionTimestamp") is not None
        or "kubernetes.io/config.mirror" in (meta.get("annotations") or {})
    )


def _observed_us(event: Json) -> int:
    return (dt.datetime.fromisoformat(event["observedAt"]) - _EPOCH) // dt.timedelta(microseconds=1)


def _text(at_us: int) -> str:
    return (_EPOCH + dt.timedelta(microseconds=at_us)).isoformat().replace("+00:00", "Z")


def _now_us() -> int:
    return time.time_ns() // 1000


if __name__ == "__main__":
    app.main()
