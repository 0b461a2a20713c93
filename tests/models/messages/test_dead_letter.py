from __future__ import annotations

import hashlib

import pytest

from evictstream.models.messages.dead_letter import DeadLetterHeaders
from evictstream.models.messages.unreadable import Unreadable


@pytest.mark.parametrize("key", [None, b"", b"prod", b"\xff\x00"])
@pytest.mark.parametrize("value", [None, b"", b'{"cluster"'])
@pytest.mark.parametrize("truncated", [True, False])
def test_headers_read_back(key: bytes | None, value: bytes | None, truncated: bool) -> None:  # noqa: FBT001
    letter = DeadLetterHeaders.describe(
        reason="BadJson", detail="byte 12", topic="t", partition=3, offset=42, key=key, value=value, truncated=truncated
    )
    headers = letter.to_headers()
    assert DeadLetterHeaders.from_headers([*headers, ("ce_id", b"1")]) == letter
    assert all(isinstance(content, bytes) for _, content in headers)


def test_headers_as_text() -> None:
    letter = DeadLetterHeaders.describe(
        reason="BadJson", detail="byte 12", topic="t", partition=3, offset=42, key=b"c", value=b"{", truncated=True
    )
    assert letter.to_headers() == [
        ("reason", b"BadJson"),
        ("detail", b"byte 12"),
        ("originTopic", b"t"),
        ("originPartition", b"3"),
        ("originOffset", b"42"),
        ("originKey", b"Yw=="),
        ("size", b"1"),
        ("sha256", hashlib.sha256(b"{").hexdigest().encode()),
        ("truncated", b"true"),
    ]


def test_missing_header_is_an_error() -> None:
    with pytest.raises(Unreadable):
        DeadLetterHeaders.from_headers([("reason", b"BadJson")])
