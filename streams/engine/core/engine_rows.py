"""The rows that the engine itself keeps in the changelog: input positions and the number of the transaction.

Positions say where to read on after a takeover. They are written in the same transaction as the rows and messages that
the records before them caused, so the state after any crash is that of a prefix of the inputs. Committed group offsets
are never read positions: they lag behind by up to a commit interval, and serve lag tools and one check at takeover.

The transaction's number serves to end transactions that a broker has left without a marker, see `engine.core.markers`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

POSITIONS_KEY = b"\x00positions"
"""Row key of the positions. Keys that begin with NUL are the engine's, all others belong to the logic."""

TRANSACTION_KEY = b"\x00transaction"
"""Row key of the number of the transaction that wrote it; the last row of each. By partition, numbers only grow."""

TRANSACTION_HEADER = "transaction"
"""Header of each message: the transactional id and the number, for several applications may write to one topic."""


def encode_positions(positions: Mapping[str, int]) -> bytes:
    """Write the next offset to read, by topic."""
    return msgspec.json.encode(dict(positions), order="deterministic")


def decode_positions(value: bytes) -> dict[str, int]:
    """Read what `encode_positions` wrote; raises `msgspec.DecodeError` on anything else."""
    return msgspec.json.decode(value, type=dict[str, int])


def encode_number(number: int) -> bytes:
    """Write the number of a transaction for its row."""
    return b"%d" % number


def decode_number(value: bytes | None) -> int:
    """Read what `encode_number` wrote; 0 without a row."""
    return int(value or 0)


def encode_header(transactional_id: str, number: int) -> bytes:
    """Write the number of a transaction for its messages."""
    return b"%b/%d" % (transactional_id.encode(), number)
