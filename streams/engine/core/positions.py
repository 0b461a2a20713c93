"""Input positions as a row of the changelog: where to read on after a take-over.

They are written in the same transaction as the rows and messages that the records before them caused, so
the state after any crash is that of a prefix of the inputs. Committed group offsets are never read positions;
they lag behind by up to a commit interval and serve lag tools and one check at take-over.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

POSITIONS_KEY = b"\x00positions"
"""Row key of the positions. Keys that begin with NUL are the engine's, all others belong to the logic."""


def encode_positions(positions: Mapping[str, int]) -> bytes:
    """Next offset to read, by topic."""
    return msgspec.json.encode(dict(positions), order="deterministic")


def decode_positions(value: bytes) -> dict[str, int]:
    """Read what :func:`encode_positions` wrote; raises ``msgspec.DecodeError`` on anything else."""
    return msgspec.json.decode(value, type=dict[str, int])
