"""One file, every command: `rules`, `import`, and those that replay it read the same objects of it."""

from __future__ import annotations

import gzip
import json
import lzma
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.kit.cli.rules.object_files import read_objects
from evictstream.kit.inputs.opening import kept
from evictstream.kit.recordings import Entry, open_recordings
from evictstream.kit.replay.sources import open_source
from tests.harness.examples import examples
from tests.kit.inputs.test_any_layout import printed
from tests.streams.feed.samples import Object, node, pod

CREATED = "2026-11-20T00:00:00Z"
NAMES = st.text(alphabet='ab{}[]",:\\ä', min_size=1, max_size=6)
LABELS = st.dictionaries(NAMES, NAMES, max_size=3)


def labelled(found: Object, labels: dict[str, str]) -> Object:
    return found | {"metadata": found["metadata"] | {"labels": labels, "creationTimestamp": CREATED}}


OBJECTS = st.lists(
    st.tuples(st.sampled_from([node(), pod()]), LABELS).map(lambda made: labelled(made[0], made[1])), max_size=4
).map(lambda found: [one | {"metadata": one["metadata"] | {"uid": f"u-{n}"}} for n, one in enumerate(found)])

SHAPES: list[Callable[[list[Object]], list[Any]]] = [
    lambda found: [{"kind": "List", "apiVersion": "v1", "items": found}],
    lambda found: [{"items": [one], "kind": f"{one['kind']}List", "apiVersion": "v1"} for one in found],
    lambda found: [found],
    lambda found: found,
]
PACKINGS: list[Callable[[str], bytes]] = [
    str.encode,
    lambda text: text.encode("utf-8-sig"),
    lambda text: text.encode("utf-16"),
    lambda text: gzip.compress(text.encode()),
    lambda text: lzma.compress(text.encode()),
]


@st.composite
def files(draw: st.DrawFn) -> tuple[list[Object], bytes]:
    """Draw objects, and a file that holds them."""
    found = draw(OBJECTS)
    documents = draw(st.sampled_from(SHAPES))(found)
    if draw(st.booleans()):
        text = "\n".join(draw(printed(one)) for one in documents)
    else:
        flow = draw(st.sampled_from([None, False]))
        apart = json.loads(json.dumps(documents))  # of what is one object in Python, YAML writes an alias
        text = yaml.safe_dump_all(apart, allow_unicode=draw(st.booleans()), default_flow_style=flow)
        found, text = (found, text) if documents else ([], "")
    return found, draw(st.sampled_from(PACKINGS))(text)


def by_rules(name: str) -> list[Object]:
    return [json.loads(json.dumps(found.value)) for found in read_objects(name)]


def by_import(name: str) -> list[Object]:
    with open_recordings([name]) as items:
        return [json.loads(bytes(item.object)) for item in items if isinstance(item, Entry)]


def by_replay(name: str) -> list[Object]:
    with tempfile.TemporaryDirectory() as folder:
        source = open_source(list(kept([name], Path(folder))), cluster="lab", partitions=1)
        found = [json.loads(record.value or b"")["object"] for record in source.read()]
        assert not source.unreadable
    return found


@settings(max_examples=examples(30), deadline=None)
@given(made=files())
def test_the_same_objects_for_every_command(made: tuple[list[Object], bytes]) -> None:
    expected, data = made
    with tempfile.TemporaryDirectory() as folder:
        name = str(Path(folder) / "f")
        Path(name).write_bytes(data)
        assert by_import(name) == by_replay(name) == expected
        if expected:
            assert by_rules(name) == expected
