"""How much work one record may ask for. Beyond it an object is undecidable: it is known, left alone, and said to be so.

A step costs near linear work in its record: tolerations are found by key, taints are carried over by key. Two things
still multiply, so each has a limit. Real nodes are far below: they have up to a dozen taints and a hundred pods. How
large an object itself may be stands in `evictstream.models.messages.object_limits`.
"""

from typing import Final

LARGEST_WORK: Final = 100_000
"""`NoExecute` taints times pods of one node, and the tolerations of those with long lists. One change of a node's
taints decides about each of its pods by each of them, in slices: this many look-ups are a tenth of a second of work."""

MOST_DEPARTED: Final = 32
"""Earlier nodes of one name that are remembered, in the node's row: those that left last. Each change of the node
writes that row."""

LONG_LIST: Final = 64
"""Tolerations from which on a list is work that counts; real ones are shorter."""
