from __future__ import annotations

import json
import runpy
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from evictstream.models.messages import schemas
from evictstream.models.messages.codec import encode
from evictstream.models.messages.command import EvictionCommand
from tests.models.messages.test_commands_and_decisions import messages, told

FOLDER = Path(schemas.__file__).parent


def test_files_agree_with_the_definitions() -> None:
    """Write them anew with `python -m evictstream.models.messages.schemas`."""
    files = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert files == schemas.schema_texts()


@pytest.mark.parametrize("name", sorted(schemas.MESSAGES))
def test_schemas_are_schemas(name: str) -> None:
    schema = json.loads(schemas.schema_texts()[f"{name}.json"])
    jsonschema.Draft202012Validator.check_schema(schema)


def test_messages_agree_with_the_schemas() -> None:
    story = told()
    texts = schemas.schema_texts()
    command = jsonschema.Draft202012Validator(json.loads(texts["command.json"]))
    decision = jsonschema.Draft202012Validator(json.loads(texts["decision.json"]))
    for message in messages(story):
        validator = command if isinstance(message, EvictionCommand) else decision
        validator.validate(json.loads(encode(message)))


def test_module_writes_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, str] = {}

    def write(path: Path, text: str, encoding: str) -> None:
        assert encoding == "utf-8"
        assert path.parent == FOLDER
        written[path.name] = text

    monkeypatch.setattr(Path, "write_text", write)
    runpy.run_module("evictstream.models.messages.schemas", run_name="__main__")
    assert written == schemas.schema_texts()
