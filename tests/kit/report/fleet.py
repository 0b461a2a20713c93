"""A recorded outage of any size, and its report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.replay_report import report_of
from evictstream.kit.report.report_files import ReportFile
from evictstream.models.instants import instant_text
from evictstream.streams.settings import Settings

FIRST_MS = 1_790_000_000_000
OUTAGE_MS = 10_000
CLUSTER = "lab"


def outage(*, nodes: int, pods: int, name: str = "p", taint: str = "maintenance") -> Iterator[RecordedRecord]:
    """Give nodes of three zones with some pods each, of which every second tolerates the taint that all nodes get."""
    version = 0

    def record(topic: str, node: int, thing: dict[str, object], at_ms: int) -> RecordedRecord:
        nonlocal version
        version += 1
        metadata = thing["metadata"]
        assert isinstance(metadata, dict)
        metadata["resourceVersion"] = str(version)
        event = {
            "cluster": CLUSTER,
            "type": "ADDED",
            "observedAt": instant_text(at_ms * 1_000),
            "object": {"apiVersion": "v1", **thing},
        }
        return RecordedRecord(
            topic="nodes" if topic == "nodes" else "pods",
            partition=0,
            offset=version,
            timestamp=at_ms,
            key=CLUSTER.encode(),
            value=json.dumps(event).encode(),
        )

    def node_object(number: int, taints: list[object]) -> dict[str, object]:
        labels = {"topology.kubernetes.io/zone": f"z-{number % 3}"}
        metadata = {"name": f"n-{number}", "uid": f"node-{number}", "labels": labels}
        return {"kind": "Node", "metadata": metadata, "spec": {"taints": taints}}

    for number in range(nodes):
        yield record("nodes", number, node_object(number, []), FIRST_MS)
        for each in range(pods):
            tolerations = [{"key": taint, "operator": "Exists", "tolerationSeconds": 5}] if each % 2 else []
            uid = f"uid-{number}-{each}"
            metadata = {"namespace": "shop", "name": f"{name}-{number}-{each}", "uid": uid}
            spec = {"nodeName": f"n-{number}", "tolerations": tolerations}
            yield record("pods", number, {"kind": "Pod", "metadata": metadata, "spec": spec}, FIRST_MS)
    for number in range(nodes):
        taints: list[object] = [{"key": taint, "value": "<b>now</b>", "effect": "NoExecute"}]
        yield record("nodes", number, node_object(number, taints), FIRST_MS + OUTAGE_MS + number)


def write_report(records: list[RecordedRecord], page: Path, title: str = "outage") -> None:
    """Replay, and write the page."""
    files = ReportFile(page)
    found = report_of(
        Settings(),
        lambda: files.watched(records),
        partitions=1,
        plays_executor=True,
        run_on_seconds=30,
        against="upstream",
        keep=files.take,
    )
    files.write(found, title=title)
