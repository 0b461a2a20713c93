from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from evictstream.kit.demo import recording
from evictstream.kit.demo.recording import DEMO_INCIDENT, demo_incident, read_recording
from evictstream.streams.errors import WrongUseError
from tests.kit.demo.samples import at, node

EXAMPLES = Path(__file__).parents[3] / "examples" / "incidents"


def write(folder: Path, *events: object) -> Path:
    with gzip.open(folder / "events.jsonl.gz", "wt") as lines:
        lines.writelines(json.dumps(event) + "\n" for event in events)
    return folder


def test_the_demos_incident_is_found_in_the_clone() -> None:
    assert demo_incident() == EXAMPLES / DEMO_INCIDENT
    found = read_recording(demo_incident())
    assert len(found.events) == 464
    assert found.clusters == ("lab",)
    assert found.seconds == pytest.approx(58.346)


def test_a_copy_in_the_package_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_PACKAGED", write(tmp_path, node(0)))
    assert demo_incident() == tmp_path


def test_without_either_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_EXAMPLES", tmp_path)
    with pytest.raises(WrongUseError, match="--incident"):
        demo_incident()


@pytest.mark.parametrize("folder", sorted(EXAMPLES.glob("*/")), ids=lambda folder: folder.name)
def test_every_example_can_be_read_and_has_a_title(folder: Path) -> None:
    found = read_recording(folder)
    assert found.events
    assert found.title != found.name
    assert all(event["type"] != "BOOKMARK" for event in found.events)


def test_only_events_are_needed(tmp_path: Path) -> None:
    bookmark = {"cluster": "lab", "type": "BOOKMARK", "observedAt": at(0), "object": {"kind": "Node"}}
    found = read_recording(write(tmp_path, bookmark, node(0), node(3)))
    assert (len(found.events), found.title) == (2, tmp_path.name)


# Ids, because a gzip header has the time in it: processes of one run collect at different times.
@pytest.mark.parametrize(
    "content",
    [b"", b"not gzip", *(gzip.compress(text) for text in (b"{", b"{}\n", b"[]\n"))],
    ids=["empty", "not gzip", "half an object", "no event", "a list"],
)
def test_what_cannot_be_read_is_wrong_use(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "events.jsonl.gz").write_bytes(content)
    with pytest.raises(WrongUseError, match="recorded incident"):
        read_recording(tmp_path)


def test_folder_without_events_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(WrongUseError, match=r"no events\.jsonl\.gz"):
        read_recording(tmp_path)
