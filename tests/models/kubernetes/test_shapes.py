"""The views of nodes and pods agree about which fields are in use."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from msgspec import inspect

from evictstream.models.kubernetes.forwarded_shapes import ForwardedNode, ForwardedPod
from evictstream.models.kubernetes.shapes import (
    LIST_OF,
    SHOWS_WHOLE,
    DisruptedPod,
    NodeFactsObject,
    NodeObject,
    PodFactsObject,
    PodObject,
)
from evictstream.models.messages.watch_event import NodeOfFeed, PodOfFeed

Shape = type[msgspec.Struct]
ANNOTATIONS = {
    "metadata.annotations.kubernetes.io/config.mirror",
    "metadata.annotations.evictstream.io/tolerations",
}
NOT_OF_A_NODE = {"metadata.namespace", "metadata.deletionTimestamp", *ANNOTATIONS}


def paths(found: inspect.Type, prefix: str = "") -> Iterator[str]:
    match found:
        case inspect.UnionType(types=types):
            for each in types:
                if not isinstance(each, inspect.NoneType):
                    yield from paths(each, prefix)
        case inspect.StructType(fields=fields):
            for field in fields:
                yield from paths(field.type, f"{prefix}.{field.encode_name}")
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            yield from paths(item, f"{prefix}.[]")
        case inspect.Metadata(extra=extra) if extra and LIST_OF in extra:
            yield from paths(inspect.type_info(extra[LIST_OF]), f"{prefix}.[]")
        case inspect.Metadata(extra=extra) if extra and SHOWS_WHOLE in extra:
            return
        case _:
            yield prefix.removeprefix(".")


def read_by(shape: Shape) -> set[str]:
    return set(paths(inspect.type_info(shape))) - (NOT_OF_A_NODE if issubclass(shape, NodeObject) else set())


def is_in(path: str, view: set[str]) -> bool:
    """One of two views may hold undecoded what the other one takes apart."""
    return any(f"{path}.".startswith(f"{kept}.") or kept.startswith(f"{path}.") for kept in view)


@pytest.mark.parametrize(
    ("shape", "view"),
    [(NodeFactsObject, ForwardedNode), (PodFactsObject, ForwardedPod), (DisruptedPod, ForwardedPod)],
    ids=["node", "pod", "disrupted"],
)
def test_feeds_forward_every_field_that_is_read(shape: Shape, view: Shape) -> None:
    assert [path for path in read_by(shape) if not is_in(path, set(paths(inspect.type_info(view))))] == []


@pytest.mark.parametrize(("shape", "view"), [(NodeObject, NodeOfFeed), (PodObject, PodOfFeed)], ids=["node", "pod"])
def test_every_field_that_decides_is_published(shape: Shape, view: Shape) -> None:
    published = set(paths(inspect.type_info(view))) | {"kind", *ANNOTATIONS}
    assert [path for path in read_by(shape) if not is_in(path, published)] == []
