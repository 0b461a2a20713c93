"""What files are cut into: documents, values of lists, and what is neither."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Document(NamedTuple):
    """Text whose brackets are balanced, so probably a JSON document.

    Attributes:
        line: on which it begins.
        text: of the document.
        is_list: it is a list, whose values came before, and is without them.
    """

    line: int
    text: bytes
    is_list: bool = False


class ListItem(NamedTuple):
    """One value of a list.

    Attributes:
        line: on which it begins.
        text: of the value.
        head: the list without values, as far as it was read.
    """

    line: int
    text: bytes
    head: bytes


class Broken(NamedTuple):
    """Something that is no document.

    Attributes:
        line: on which it begins.
        problem: what is wrong, for people.
        lines: how many have it, one after the other.
        inside: documents that may have begun in it, with their lines: it may have been cut before them.
    """

    line: int
    problem: str
    lines: int = 1
    inside: tuple[tuple[int, bytes], ...] = ()


InputPiece: TypeAlias = Document | ListItem | Broken
