"""How large an object may be. Beyond these limits it is undecidable: it is known, left alone, and a dead letter.

Real objects are far below: a pod has two to ten tolerations, a node up to a dozen taints.
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

LONGEST_TEXT: Final = 1_024
"""Characters of a taint, and of a toleration. One of each stands in rows and messages of each pod that a node evicts;
Kubernetes lets through some 400."""

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
