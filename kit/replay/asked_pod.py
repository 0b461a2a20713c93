"""Which pod somebody asks about: a UID, NAMESPACE/NAME, or a name as kubectl takes it; and names that are alike."""

from __future__ import annotations

import difflib
import enum
import itertools
from collections.abc import Iterable, Iterator
from typing import Final

KUBECTL_WORDS: Final = frozenset({"pod", "pods", "po"})
"""What kubectl takes before the name of a pod."""

MOST_COMPARED: Final = 100_000
"""Names that are compared with one that is not known; that many take a second."""

MOST_ALIKE: Final = 5
LEAST_LIKENESS: Final = 0.7
"""Of `difflib`: two letters of a name with six may differ."""


class Match(enum.IntEnum):
    """How well a pod matches the name; of several only the best count."""

    NONE = 0
    BY_NAME = 1
    """Its namespace was not named."""
    EXACT = 2


class AskedPod:
    """What was asked for.

    Attributes:
        text: as it was asked.
        needle: bytes that every record about such a pod holds.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.needle = text.rpartition("/")[2].encode()
        head, slash, name = text.partition("/")
        is_name_alone = not slash or head in KUBECTL_WORDS
        self._name = (name if slash else text) if is_name_alone else None

    def match(self, namespace: str, name: str, uid: str) -> Match:
        """Say how well a pod matches. A namespace that is called `pod` comes before kubectl's word."""
        if self.text in (uid, f"{namespace}/{name}"):
            return Match.EXACT
        return Match.BY_NAME if name == self._name else Match.NONE

    def alike(self, addresses: Iterable[str]) -> list[str]:
        """List the addresses (NAMESPACE/NAME) most like the name, the best first, at most `MOST_ALIKE`."""
        names = sorted(set(itertools.islice(addresses, MOST_COMPARED)))
        return list(dict.fromkeys(itertools.islice(self._alike(names), MOST_ALIKE)))

    def _alike(self, names: list[str]) -> Iterator[str]:
        """Give pods with the name, or a name that begins with it, then pods with a similar name."""
        namespace, _, name = self.text.rpartition("/")
        of_name: dict[str, list[str]] = {}
        for one in sorted(names, key=lambda address: not address.startswith(f"{namespace}/")):
            of_name.setdefault(one.rpartition("/")[2], []).append(one)
        yield from of_name.get(name, ())
        for other, addresses in of_name.items():
            if name and other.startswith(name):
                yield from addresses
        for close in difflib.get_close_matches(name, of_name, n=MOST_ALIKE, cutoff=LEAST_LIKENESS):
            yield from of_name[close]
