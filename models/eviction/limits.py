"""How much one record may ask for. Beyond it an object is undecidable: it is known, left alone, and said to be so.

A step costs near linear work in its record: tolerations are found by key, taints are carried over by key. Two things
still multiply, so each has a limit. Real objects are far below: a pod has two to ten tolerations, a node up to a dozen
taints and a hundred pods.
"""

from typing import Final

import msgspec

LARGEST_LIST: Final = 1_000
"""Entries in the taints, or conditions, of a node, or in the tolerations of a pod. One decision looks at all taints of
a node and all tolerations of a pod, in one go: with this many of both it takes some two milliseconds."""

LARGEST_WORK: Final = 100_000
"""`NoExecute` taints times pods of one node. One change of a node's taints decides about each of its pods by each of
its taints, in slices: this many look-ups are a tenth of a second of work."""

MOST_DEPARTED: Final = 32
"""Earlier nodes of one name that are remembered, in the node's row: those that left last. Each change of the node
writes that row."""

_entries: Final = msgspec.json.Decoder(list[msgspec.Raw])


def is_too_long(text: bytes, opening: bytes = b"{") -> bool:
    """Tell whether a JSON list has more than `LARGEST_LIST` entries, without making objects of them.

    Args:
        text: the list, or null; what is no list is not too long, whoever reads it will say what is wrong.
        opening: what each entry begins with. It may stand elsewhere too, so counting it is only the first look.
    """
    if len(text) <= LARGEST_LIST or text.count(opening) <= LARGEST_LIST:
        return False
    try:
        return len(_entries.decode(text)) > LARGEST_LIST
    except msgspec.DecodeError:
        return False
