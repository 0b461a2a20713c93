"""The compose file as Compose reads it without an engine: YAML, merged anchors, variables with defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import yaml  # type: ignore[import-untyped]
from pydantic import TypeAdapter

from tests.deploy.pages import ROOT

FILE = ROOT / "docker-compose.yml"

_VARIABLE = re.compile(r"\$\{(?P<name>[A-Z_]+):-(?P<default>[^}]*)\}")


class _Loader(yaml.SafeLoader):  # type: ignore[misc] # the library has no types
    """Refuses a key that is there twice, as Compose does; PyYAML would take the last one."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - the library's signature
        keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.YAMLError(f"twice in one mapping: {sorted(twice)}, {node.start_mark}")
        return super().construct_mapping(node, deep=deep)


def compose(variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read the file with the variables of a shell; by default without any."""
    text = FILE.read_text(encoding="utf-8")
    given = variables or {}
    text = _VARIABLE.sub(lambda found: given.get(found["name"]) or found["default"], text)
    assert "${" not in text, "a variable without a default"
    found: dict[str, Any] = yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a SafeLoader
    return found


def seconds(duration: str) -> float:
    """Read `40s` or `1m30s`."""
    return TypeAdapter(timedelta).validate_python(f"PT{duration.upper()}").total_seconds()
