"""How much one record may ask for. Beyond it an object is undecidable: it is known, left alone, and said to be so.

A step costs near linear work in its record: tolerations are found by key, taints are carried over by key. Two things
still multiply, so each has a limit. Real objects are far below: a pod has two to ten tolerations, a node up to a dozen
taints and a hundred pods.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from evictstream.models.kubernetes.taints import Taint
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages.envelope import DECODE_ERRORS

LARGEST_LIST: Final = 1_000
"""Entries in the taints, or conditions, of a node, or in the tolerations of a pod. One decision looks at all taints of
a node and all tolerations of a pod, in one go: with this many of both it takes some two milliseconds."""

LARGEST_WORK: Final = 100_000
"""`NoExecute` taints times pods of one node, and the tolerations of those with long lists. One change of a node's
taints decides about each of its pods by each of them, in slices: this many look-ups are a tenth of a second of work."""

LONGEST_TEXT: Final = 1_024
"""Characters of a taint, and of a toleration. One of each stands in rows and messages of each pod that a node evicts;
Kubernetes lets through some 400."""

MOST_DEPARTED: Final = 32
"""Earlier nodes of one name that are remembered, in the node's row: those that left last. Each change of the node
writes that row."""

LONG_LIST: Final = 64
"""Tolerations from which on a list is work that counts; real ones are shorter."""

_BRACES, _COMMAS = 4, 16  # for each entry, far more than any has

_entries: Final = msgspec.json.Decoder(list[msgspec.Raw])


def is_too_long(text: bytes, opening: bytes = b"{") -> bool:
    """Tell whether a JSON list has more than `LARGEST_LIST` entries, without making objects of them.

    Args:
        text: the list, or null; what is no list is not too long, whoever reads it will say what is wrong.
        opening: what each entry begins with. It may stand in texts too, so where there are not far too many of them the
            entries are counted.
    """
    if len(text) <= LARGEST_LIST or (count := text.count(opening)) <= LARGEST_LIST:
        return False
    if count > _BRACES * LARGEST_LIST or text.count(b",") > _COMMAS * LARGEST_LIST:
        return True
    try:
        return len(_entries.decode(text)) > LARGEST_LIST
    except DECODE_ERRORS:
        return False


def has_long_text(found: Iterable[Taint] | Iterable[Toleration]) -> bool:
    """Tell whether one of these taints, or tolerations, is longer than `LONGEST_TEXT`."""
    return any(
        len(one.key) + len(one.value) + len(one.effect) > LONGEST_TEXT
        or (isinstance(one, Toleration) and len(one.operator) > LONGEST_TEXT)
        for one in found
    )
