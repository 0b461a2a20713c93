"""Recorded pods as they would have been with other tolerations, to see what would have come of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.streams.errors import WrongUseError

_decode: Final = msgspec.json.Decoder(dict).decode
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
        tolerations = event["object"]["spec"]["tolerations"]
        is_changed = False
        for toleration in tolerations:
            key = toleration.get("key")
            if key in seconds and toleration.get("tolerationSeconds") is not None:
                toleration["tolerationSeconds"] = seconds[key]
                is_changed = True
        return _encode(event) if is_changed else None
    except (*DECODE_ERRORS, KeyError, TypeError, AttributeError):
        return None
