"""Objects of Kubernetes as YAML that people read: expressions keep their lines, and nothing is an alias."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

from evictstream.streams.handover.policy_objects import PolicyObject

_NO_FOLDING: Final = 1_000_000
"""Characters of a line: none is broken but where an expression has its own lines."""


@functools.cache
def _dumper() -> Any:
    class _ReadableDumper(yaml.SafeDumper):  # type: ignore[misc] # the library has no types
        def ignore_aliases(self, _data: object) -> bool:
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:  # noqa: ARG002, FBT001, FBT002
            return super().increase_indent(flow, False)  # noqa: FBT003 - items of lists stand below their key

    def _text(dumper: Any, text: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    def _list(dumper: Any, items: list[Any]) -> Any:
        is_short = all(isinstance(each, str) for each in items)
        return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=is_short)

    _ReadableDumper.add_representer(str, _text)
    _ReadableDumper.add_representer(list, _list)
    return _ReadableDumper


def as_yaml(value: object) -> str:
    """Write one value."""
    return str(yaml.dump(value, Dumper=_dumper(), sort_keys=False, width=_NO_FOLDING, allow_unicode=True))


def objects_as_yaml(objects: Iterable[PolicyObject], remark: str) -> str:
    """Write objects as documents of one file, the remark in its first line."""
    return f"# {remark}\n" + "---\n".join(map(as_yaml, objects))
