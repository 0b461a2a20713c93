"""The JSON Schemas of the contracts, made from the pydantic models.

The files beside this module are what others may read without Python; a test holds them to the models. Write them anew
with `python -m evictstream.models.messages.schemas`.
"""

import json
from typing import Final

from evictstream.models.messages.command import CommandContract
from evictstream.models.messages.dead_letter import DeadLetterHeaders
from evictstream.models.messages.decision import DecisionContract
from evictstream.models.messages.parts import Contract
from evictstream.models.messages.result import ResultContract
from evictstream.models.messages.watch_event import WatchEventContract

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

CONTRACTS: Final[dict[str, type[Contract]]] = {
    "command": CommandContract,
    "dead-letter-headers": DeadLetterHeaders,
    "decision": DecisionContract,
    "result": ResultContract,
    "watch-event": WatchEventContract,
}
"""File name without its ending, and the model that it describes."""


def schema_texts() -> dict[str, str]:
    """Make the schemas.

    Returns:
        File name to content, which ends in a line break.
    """
    return {f"{name}.json": _schema_text(contract) for name, contract in CONTRACTS.items()}


def _schema_text(contract: type[Contract]) -> str:
    schema = {"$schema": DIALECT, **contract.model_json_schema(by_alias=True)}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
