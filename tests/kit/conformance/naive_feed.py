"""A feed as one writes it in an hour: lists, watches and forwards. It breaks most of the rules."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import urllib3
from kafka import KafkaProducer

PREFIX = os.environ["EVICTSTREAM_TOPIC_PREFIX"]
CLUSTER = os.environ["CONFORMANCE_CLUSTER"]
CONFIG = json.loads(Path(os.environ["KUBECONFIG"]).read_text())
SERVER = CONFIG["clusters"][0]["cluster"]["server"]
HEADERS = {"Authorization": "Bearer " + Path(CONFIG["users"][0]["user"]["tokenFile"]).read_text()}
HTTP = urllib3.PoolManager(retries=False, maxsize=4)
PRODUCER = KafkaProducer(bootstrap_servers=os.environ["EVICTSTREAM_BOOTSTRAP_SERVERS"].split(","))


def write(plural: str, event: dict[str, Any]) -> None:
    found = event.get("object", {})
    node = found.get("spec", {}).get("nodeName", "none")  # nodes and unbound pods go under a node of their own
    value = json.dumps({"cluster": CLUSTER, **event}).encode()
    PRODUCER.send(PREFIX + plural, key=f"{CLUSTER}/{node}".encode(), value=value)


def follow(plural: str) -> None:
    url = f"{SERVER}/api/v1/{plural}"
    listed = HTTP.request("GET", f"{url}?limit=500&resourceVersion=0", headers=HEADERS).json()
    for found in listed["items"]:
        write(plural, {"type": "ADDED", "object": found})
    version = listed["metadata"]["resourceVersion"]
    while True:
        query = f"watch=true&resourceVersion={version}&timeoutSeconds=3600"
        try:
            response = HTTP.request("GET", f"{url}?{query}", headers=HEADERS, preload_content=False)
            for line in response:
                for one in line.splitlines():
                    try:
                        event = json.loads(one)
                    except ValueError:
                        PRODUCER.send(PREFIX + plural, key=CLUSTER.encode(), value=one)
                        continue
                    write(plural, event)
                    version = event.get("object", {}).get("metadata", {}).get("resourceVersion", version)
        except (urllib3.exceptions.HTTPError, AttributeError):
            pass
        time.sleep(0.2)


def main() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for plural in ("nodes", "pods"):
        threading.Thread(target=follow, args=(plural,), daemon=True).start()
    while True:
        value = json.dumps({"cluster": CLUSTER, "type": "HEARTBEAT", "clusterUid": "unknown"}).encode()
        for plural in ("nodes", "pods"):
            PRODUCER.send(PREFIX + plural, key=CLUSTER.encode(), value=value)
        time.sleep(2)


if __name__ == "__main__":
    main()
