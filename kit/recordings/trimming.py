"""Objects reduced to the fields in use, which are a tenth of what Kubernetes sends.

Which fields those are is read off the models, so a field that comes into use there is kept here at once. Values are
passed on byte by byte: numbers beyond any machine's size and odd spellings stay as they are.
"""

from __future__ import annotations

from functools import cache
from typing import Final, TypeAlias

import msgspec
from msgspec import inspect

from evictstream.models.kubernetes.shapes import LIST_OF, NULL, SHOWS_WHOLE, Kind, NodeFactsObject, PodFactsObject
from evictstream.models.messages.envelope import DECODE_ERRORS

_Tree: TypeAlias = "dict[str, _Tree] | list[_Tree] | None"
"""Fields to keep by name, the items' fields of a list, or None for a value that is kept as it is."""

_SHAPES: Final[dict[Kind, type[msgspec.Struct]]] = {"Node": NodeFactsObject, "Pod": PodFactsObject}
"""What the service decides by, and what people ask for."""

_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items: Final = msgspec.json.Decoder(list[msgspec.Raw])


def trimmed(kind: Kind, raw: msgspec.Raw) -> msgspec.Raw:
    """Keep what is used of an object. Nulls are left out; what has another shape than it should is left alone."""
    return _trimmed(raw, _tree_of(kind))


def _trimmed(raw: msgspec.Raw, tree: _Tree) -> msgspec.Raw:
    try:
        if isinstance(tree, dict):
            fields = _fields.decode(raw)
            kept = {name: _trimmed(fields[name], below) for name, below in tree.items() if name in fields}
            return msgspec.Raw(msgspec.json.encode({name: value for name, value in kept.items() if value != NULL}))
        if isinstance(tree, list):
            return msgspec.Raw(msgspec.json.encode([_trimmed(item, tree[0]) for item in _items.decode(raw)]))
    except DECODE_ERRORS:
        return raw  # the reader says what is wrong with it
    return raw


@cache
def _tree_of(kind: Kind) -> _Tree:
    return _tree(inspect.type_info(_SHAPES[kind]))


def _tree(type_: inspect.Type) -> _Tree:
    match type_:
        case inspect.UnionType(types=types):
            trees = [tree for tree in map(_tree, types) if tree is not None]
            return trees[0] if trees else None
        case inspect.StructType(fields=fields):
            return {field.encode_name: _tree(field.type) for field in fields if not _shows_whole(field.type)}
        case inspect.ListType(item_type=item):
            return [_tree(item)]
        case inspect.Metadata(extra=extra) if extra and LIST_OF in extra:
            return [_tree(inspect.type_info(extra[LIST_OF]))]
        case _:
            return None


def _shows_whole(type_: inspect.Type) -> bool:
    return isinstance(type_, inspect.Metadata) and SHOWS_WHOLE in (type_.extra or {})
