"""The JSON Schemas of the messages, made from their definitions.

The files beside this module are for programs in other languages; a test compares them with the definitions. To write
them again: `python -m evictstream.models.messages.schemas`.
"""

import json
from typing import Final

import msgspec

from evictstream.models.messages.brake import Brake
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.dead_letter import DeadLetterHeaders
from evictstream.models.messages.decision import DecisionRecord
from evictstream.models.messages.executor_report import ExecutorReport
from evictstream.models.messages.fleet import FleetCluster, FleetLevel
from evictstream.models.messages.incident import Incident
from evictstream.models.messages.policy import Policy
from evictstream.models.messages.result import EvictionResult
from evictstream.models.messages.vocabulary import API_VERSION
from evictstream.models.messages.watch_event import NodeOfFeed, PodOfFeed, WatchEvent
from evictstream.models.messages.workload import FleetWorkload

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

VERSION: Final = API_VERSION.rpartition("/")[2]

MESSAGES: Final[dict[str, type[msgspec.Struct]]] = {
    "brake": Brake,
    "command": EvictionCommand,
    "dead-letter-headers": DeadLetterHeaders,
    "decision": DecisionRecord,
    "executor-report": ExecutorReport,
    "fleet-cluster": FleetCluster,
    "fleet-level": FleetLevel,
    "incident": Incident,
    "fleet-workload": FleetWorkload,
    "policy": Policy,
    "result": EvictionResult,
    "watch-event": WatchEvent,
}
"""File name without its ending, and the message that it describes."""

_NAMED_IN: Final[dict[str, tuple[type[msgspec.Struct], ...]]] = {"watch-event": (NodeOfFeed, PodOfFeed)}
"""Further types that a schema needs, because its definition leaves a part of the message as raw JSON."""


def schema_texts() -> dict[str, str]:
    """Make the schemas.

    Returns:
        File name to content, which ends in a line break.
    """
    return {f"{name}.json": _schema_text(name) for name in MESSAGES}


def _schema_text(name: str) -> str:
    message = MESSAGES[name]
    _, parts = msgspec.json.schema_components([message, *_NAMED_IN.get(name, ())], ref_template="#/$defs/{name}")
    schema = {"$schema": DIALECT, "$id": f"urn:evictstream:{VERSION}:{name}", **parts.pop(message.__name__)}
    if parts:
        schema["$defs"] = parts
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
