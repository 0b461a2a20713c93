"""How large an object may be; real ones are far smaller: two to ten tolerations of a pod, a dozen taints of a node.

An object with longer lists or texts is undecidable: it is known, its pods are left alone, and each of its records is
also a dead letter. A record with longer names is a dead letter only.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from evictstream.models.kubernetes.taints import Taint
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages.envelope import DECODE_ERRORS

LARGEST_LIST: Final = 1_000
"""Entries in the taints of a node, or in the tolerations of a pod. One decision looks at all taints of
a node and all tolerations of a pod, in one go: with this many of both it takes some two milliseconds."""

UNDECIDABLE_LIST: Final = b"[" + b",".join([b"{}"] * (LARGEST_LIST + 1)) + b"]"
"""Taints or tolerations that stand for a list which is too large to be written: their object is undecidable."""

LONGEST_TEXT: Final = 1_024
"""Characters of a taint, and of a toleration. Rows and messages of each pod evicted from a node contain one of each;
Kubernetes lets through some 400."""

LONGEST_NAMES: Final = 1_024
"""Characters of a node's UID, and of namespace, name and UID of a pod together; Kubernetes' have at most some 400. All
rows and messages of the object contain them."""

LONGEST_VERSION: Final = 128
"""Characters of a resource version; etcd's have at most 20. A node's row has those of earlier nodes of its name too."""

LONGEST_CLUSTER_UID: Final = 128
"""Characters of a cluster's UID; Kubernetes' have 36. Every command of the cluster contains it."""

# Opening braces and commas per entry, more than any entry has. A list with more of them has too many entries, and is
# not decoded to count them.
_BRACES, _COMMAS = 4, 16

_entries: Final = msgspec.json.Decoder(list[msgspec.Raw])


def is_too_long(text: bytes, opening: bytes = b"{") -> bool:
    """Return whether a JSON list has more than `LARGEST_LIST` entries, without making objects of them.

    Args:
        text: the list, or null. JSON that is no list is not too long; its reader finds the fault.
        opening: what each entry begins with. Texts may contain it too, so the entries are counted unless it occurs far
            too often.
    """
    if len(text) <= LARGEST_LIST or (count := text.count(opening)) <= LARGEST_LIST:
        return False
    if count > _BRACES * LARGEST_LIST or text.count(b",") > _COMMAS * LARGEST_LIST:
        return True
    try:
        return len(_entries.decode(text)) > LARGEST_LIST
    except DECODE_ERRORS:
        return False


def entries_with(text: bytes, word: bytes) -> bytes:
    """Return a JSON list with those entries of another one that have a word in them; what is no list as it is."""
    try:
        return b"[%s]" % b",".join(one for one in map(bytes, _entries.decode(text)) if word in one)
    except DECODE_ERRORS:
        return text


def has_long_text(entries: Iterable[Taint] | Iterable[Toleration]) -> bool:
    """Return whether one of these taints, or tolerations, is longer than `LONGEST_TEXT`."""
    return any(
        len(one.key) + len(one.value) + len(one.effect) > LONGEST_TEXT
        or (isinstance(one, Toleration) and len(one.operator) > LONGEST_TEXT)
        for one in entries
    )
