"""The fields of nodes and pods, taken from the models of the Kubernetes client: `python -m tests.deploy.known_fields`.

The client is made from Kubernetes' own OpenAPI document. Its import takes a second, so the names are kept in a file.
"""

from __future__ import annotations

import importlib.metadata
import re
import textwrap
from collections.abc import Iterator

import kubernetes.client.models

from tests.deploy.pages import ROOT

FILE = ROOT / "kit" / "rules" / "validation" / "known_fields.py"
ROOTS = ("V1Node", "V1Pod")
LINE = 120
VERSION = f"1.{importlib.metadata.version('kubernetes').split('.')[0]}"

HEAD = f'''"""The fields of nodes and pods in Kubernetes {VERSION}; made by `python -m tests.deploy.known_fields`."""

from typing import Final

KUBERNETES: Final = "{VERSION}"

FIELDS: Final = {{
'''


def text() -> str:
    """Make the file: for each type its fields, each with its type where that has fields of its own."""
    found: dict[str, str] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name not in found:
            fields = list(_fields(name))
            found[name] = " ".join(f"{field}:{_short(type_)}" if type_ else field for field, type_ in fields)
            waiting += [type_ for _, type_ in fields if type_]
    return HEAD + "".join(_entry(_short(name), found[name]) for name in sorted(found)) + "}\n"


def _fields(name: str) -> Iterator[tuple[str, str]]:
    model = getattr(kubernetes.client.models, name)
    for attribute, type_ in model.openapi_types.items():
        inner = re.sub(r"^List\[(.*)\]$", r"\1", type_)
        is_model = hasattr(kubernetes.client.models, inner)
        yield model.attribute_map[attribute], inner if is_model else ""


def _short(name: str) -> str:
    return name.removeprefix("V1").removeprefix("CoreV1")


def _entry(name: str, fields: str) -> str:
    one = f'    "{name}": "{fields}",\n'
    if len(one) <= LINE + 1:
        return one
    width = LINE - 11 if len(fields) > LINE - 10 else LINE  # all lines but the last end with a space
    *lines, last = textwrap.wrap(fields, width, break_long_words=False, break_on_hyphens=False)
    return f'    "{name}": (\n' + "".join(f'        "{line} "\n' for line in lines) + f'        "{last}"\n    ),\n'


if __name__ == "__main__":
    FILE.write_text(text())
