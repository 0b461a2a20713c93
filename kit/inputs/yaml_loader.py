"""YAML as Kubernetes reads it, without what can hurt or surprise: no Python objects, no aliases, no repeated keys."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import yaml  # type: ignore[import-untyped]
from yaml.composer import Composer  # type: ignore[import-untyped]
from yaml.constructor import SafeConstructor  # type: ignore[import-untyped]
from yaml.cyaml import CParser  # type: ignore[import-untyped]
from yaml.resolver import Resolver  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from typing import Any

_BOOL = "tag:yaml.org,2002:bool"
_FLOAT = "tag:yaml.org,2002:float"
_INT = "tag:yaml.org,2002:int"
_MAP = "tag:yaml.org,2002:map"
_MERGE = "tag:yaml.org,2002:merge"
_NULL = "tag:yaml.org,2002:null"
_SEQ = "tag:yaml.org,2002:seq"
_STR = "tag:yaml.org,2002:str"

_TRUE = frozenset({"y", "yes", "true", "on"})
_BOOLS = r"y|Y|n|N|yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"
_INTS = r"[-+]?(?:0[bB][01_]+|0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[0-7_]*|[1-9][0-9_]*)"
_FLOATS = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"

_OCTAL = re.compile(r"0[oO]?(?=[0-7])")
_MOST_DIGITS = 400  # more than any field takes; turning longer texts into numbers costs time


class ObjectLoader(Composer, CParser, SafeConstructor, Resolver):  # type: ignore[misc] # the library has no types
    """A safe loader with the scalars of Kubernetes' reader (`sigs.k8s.io/yaml`).

    Text becomes events in C, which is five times as fast; nodes and values are made in Python, where depth is limited.

    Aliases are refused: with them a short text can stand for a huge object, and no tool of Kubernetes writes them.
    """

    # Other tags, such as times, bytes and sets, have no place in JSON and are refused.
    yaml_constructors = {tag: SafeConstructor.yaml_constructors[tag] for tag in (None, _NULL, _STR, _SEQ, _MAP)}  # noqa: RUF012 - shape of the library

    # Own table instead of the inherited one, which knows times and numbers to base 60.
    yaml_implicit_resolvers: dict[Any, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - shape of the library

    def __init__(self, stream: str) -> None:
        CParser.__init__(self, stream)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose one node, unless it is an alias."""
        if self.check_event(yaml.AliasEvent):
            event = self.get_event()
            raise yaml.composer.ComposerError(None, None, f"the alias *{event.anchor} is not read", event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - shape of the library
        """Construct one mapping, unless it has a key twice."""
        seen = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if key.tag != _MERGE and isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    problem = f'the field "{key.value}" appears twice in one object'
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _construct_bool(loader: ObjectLoader, node: Any) -> bool:
    return loader.construct_scalar(node).lower() in _TRUE


def _construct_int(loader: ObjectLoader, node: Any) -> int:
    text = loader.construct_scalar(node).replace("_", "")
    if len(text) > _MOST_DIGITS:
        raise yaml.constructor.ConstructorError(None, None, "a number has too many digits", node.start_mark)
    return int(_OCTAL.sub("0o", text, count=1) if text.lstrip("+-")[:1] == "0" else text, base=0)


def _construct_float(loader: ObjectLoader, node: Any) -> int | float:
    """Read a number; a whole one comes out as an integer, as it does on its way to the API server through JSON."""
    number = float(loader.construct_scalar(node))
    if math.isinf(number):
        raise yaml.constructor.ConstructorError(None, None, "a number is too large", node.start_mark)
    return int(number) if number.is_integer() else number


for tag, pattern, first in (
    (_NULL, r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    (_BOOL, _BOOLS, list("yYnNtTfFoO")),
    (_INT, _INTS, list("-+0123456789")),
    (_FLOAT, _FLOATS, list("-+.0123456789")),
    (_MERGE, r"<<", ["<"]),
):
    ObjectLoader.add_implicit_resolver(tag, re.compile(rf"(?:{pattern})\Z", re.ASCII), first)

ObjectLoader.add_constructor(_BOOL, _construct_bool)
ObjectLoader.add_constructor(_INT, _construct_int)
ObjectLoader.add_constructor(_FLOAT, _construct_float)
