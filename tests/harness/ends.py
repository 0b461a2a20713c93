"""Feeds and executors as processes, with signals that reach them, and what Kafka says of their groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafka.admin import KafkaAdminClient

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.settings import Settings
from tests.harness.workers import WorkerProcess

MAIN = "evictstream.streams.cli.main"


def executor_process(settings: Settings, api: FakeApi, folder: Path, *options: str) -> WorkerProcess:
    """Return an executor of the cluster `c1` that deletes; it is not started."""
    file = folder / "kubeconfig-of-c1"
    file.write_text(api.kubeconfig())
    program = (MAIN, "execute", "--kubeconfig", str(file), "--cluster", "c1", "--mode", "delete", *options)
    return WorkerProcess(settings, folder, "executor", program)


def feed_process(settings: Settings, api: FakeApi, folder: Path, *options: str) -> WorkerProcess:
    """Return a feed of the cluster `lab`; it is not started."""
    file = folder / "kubeconfig-of-lab"
    file.write_text(api.kubeconfig())
    program = (MAIN, "feed", "--kubeconfig", str(file), "--cluster", "lab", *options)
    return WorkerProcess(settings, folder, "feed", program)


def group_members(settings: Settings, group: str) -> list[dict[str, Any]]:
    """List the members that Kafka counts in now."""
    admin = KafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    try:
        return list(admin.describe_groups([group])[group]["members"])
    finally:
        admin.close()
