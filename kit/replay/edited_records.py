"""Recorded pods as they would have been with other tolerations, to see what would have come of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.models.kubernetes.shapes import TOLERATIONS_ANNOTATION
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.streams.errors import WrongUseError

_decode: Final = msgspec.json.Decoder(dict).decode
_decode_entries: Final = msgspec.json.Decoder(list[dict[str, Any]]).decode
_encode: Final = msgspec.json.Encoder().encode


def read_seconds(texts: Iterable[str]) -> dict[str, int]:
    """Read `KEY=SECONDS`.

    Raises:
        WrongUseError: one is not of that form.
    """
    by_key = {}
    for text in texts:
        key, is_given, seconds = text.rpartition("=")
        if not key or not is_given or not seconds.isdecimal():
            problem = f"--toleration-seconds {text} is not KEY=SECONDS"
            raise WrongUseError(problem, next_step="for example node.kubernetes.io/unreachable=600")
        by_key[key] = int(seconds)
    return by_key


def with_toleration_seconds(records: Iterable[RecordedRecord], seconds: Mapping[str, int]) -> Iterable[RecordedRecord]:
    """Give every toleration of a key, if it has a time at all, the time that is given for the key."""
    return _with_seconds(records, seconds) if seconds else records


def _with_seconds(records: Iterable[RecordedRecord], seconds: Mapping[str, int]) -> Iterator[RecordedRecord]:
    for record in records:
        edited = _edited(record.value, seconds) if record.topic == "pods" and record.value is not None else None
        yield record if edited is None else msgspec.structs.replace(record, value=edited)


def _edited(value: bytes, seconds: Mapping[str, int]) -> bytes | None:
    """Return the changed event; None if nothing is changed, or what it is cannot be read."""
    try:
        event: dict[str, Any] = _decode(value)
        pod = event["object"]
        moved = _edited_annotation(pod["metadata"].get("annotations"), seconds)
        is_changed = moved is not None
        for toleration in pod["spec"]["tolerations"]:
            key, spec = toleration.get("key"), toleration.get("tolerationSeconds")
            if key in seconds and spec is not None:
                toleration["tolerationSeconds"] = (moved or {}).get((key, spec), seconds[key])
                is_changed = True
        return _encode(event) if is_changed else None
    except (*DECODE_ERRORS, KeyError, TypeError, AttributeError):
        return None


def _edited_annotation(annotations: Any, seconds: Mapping[str, int]) -> dict[tuple[str, int], int] | None:
    """Change the seconds that were moved; None if there are none.

    Returns:
        By key and seconds of the spec the seconds that it would have: as much later as before.
    """
    text = (annotations or {}).get(TOLERATIONS_ANNOTATION)
    try:
        entries: list[dict[str, Any]] = [] if text is None else _decode_entries(text)
    except DECODE_ERRORS:  # it counts as absent
        return None
    instead: dict[tuple[str, int], int] | None = None
    for entry in entries:
        key, before, built_in = entry.get("key"), entry.get("tolerationSeconds"), entry.get("builtInSeconds")
        if key is None or key not in seconds or before is None:
            continue
        instead = {} if instead is None else instead
        entry["tolerationSeconds"] = seconds[key]
        if built_in is not None:
            entry["builtInSeconds"] = built_in + seconds[key] - max(before, 0)
            instead[key, built_in] = entry["builtInSeconds"]
    if instead is not None:
        annotations[TOLERATIONS_ANNOTATION] = _encode(entries).decode()
    return instead
