"""The brake that is played to an executor, and the rules about it. To know brakes is optional.

What shows that an executor knows them is `heldBy` in one of its results. One that never says so is not judged.
"""

from __future__ import annotations

import json
from typing import Final

from evictstream.kit.conformance.executor_evidence import ExecutorEvidence
from evictstream.kit.conformance.findings import Finding, broken, held, not_shown
from evictstream.models.instants import instant_text
from evictstream.streams.broker.clients import our_errors
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.settings import Settings

BRAKE_CASE: Final = "braked"
"""The case whose first `Evict` is written while its cluster is held, and the second one after the release."""

BRAKE_GRACE_SECONDS: Final = 1.0
"""From the append of a brake: nothing that it holds is written later."""


def write_brake(settings: Settings, name: str, cluster: str, **fields: object) -> float:
    """Write a brake for a cluster, in the words of the contract; returns its append time, seconds since 1970.

    Raises:
        BrokerError: Kafka does not take it.
    """
    brake = {
        "apiVersion": "evictstream.io/v1",
        "kind": "Brake",
        "id": name,
        "why": "conformance",
        "by": "conformance",
        "heldAt": instant_text(0),
        "clusters": [cluster],
        "spreadSeconds": 0,
        **fields,
    }
    seconds = settings.request_timeout_seconds
    with (
        open_producer(settings, delivery_seconds=seconds) as producer,
        our_errors(settings, f"write {settings.brakes_topic}"),
    ):
        sent = producer.send(settings.brakes_topic, key=name.encode(), value=json.dumps(brake).encode())
        appended_ms: int = sent.get(seconds).timestamp
    return appended_ms / 1_000


def judge_hold(evidence: ExecutorEvidence) -> Finding:
    """Judge that what a brake holds is not written, and answered with `heldBy`."""
    brake, commands = evidence.brake, evidence.of(BRAKE_CASE)
    if brake is None or not commands:
        return not_shown("not played")
    late = [
        one.at - brake.set_at
        for one in evidence.removals(commands[0].pod)
        if brake.set_at + BRAKE_GRACE_SECONDS < one.at < brake.released_at
    ]
    if not _knows_brakes(evidence):
        return not_shown("it does not know brakes: no result has heldBy")
    if late:
        return broken(f"asked the API server to delete the pod {late[0]:.1f} s after the brake")
    said = [one.body.get("heldBy") for one in evidence.answers(commands[0]) if one.at < brake.released_at]
    return held("not deleted, Accepted with heldBy") if brake.name in said else broken(f"heldBy is {said}")


def judge_release(evidence: ExecutorEvidence) -> Finding:
    """Judge that the next attempt after a release is done."""
    commands = evidence.of(BRAKE_CASE)
    if evidence.brake is None or len(commands) < 2:  # noqa: PLR2004 - the one that is held, and the next
        return not_shown("not played")
    if not _knows_brakes(evidence):
        return not_shown("it does not know brakes: no result has heldBy")
    said = " and ".join(evidence.outcomes(commands[1])) or "no answer"
    is_done = any(one.done_to is not None for one in evidence.removals(commands[1].pod))
    return held(said) if is_done and said == "Succeeded" else broken(said)


def _knows_brakes(evidence: ExecutorEvidence) -> bool:
    return any(result.body.get("heldBy") for result in evidence.results)
