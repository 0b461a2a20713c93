"""What of recordings is not in an answer, so that it may be wrong: said once for each kind, with its count.

Most of what is left out changes no answer: reads and dry runs in audit logs, bookmarks, services in a list. That is
counted too, and no shortfall.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from evictstream.kit.recordings.audit_log import TOO_LATE, WITHOUT_OBJECT
from evictstream.kit.recordings.audited_objects import UNSEEN_OBJECT
from evictstream.kit.recordings.entries import Flaw, Skipped
from evictstream.kit.recordings.item_reader import EMPTY_FILES

MOST_PROBLEMS: Final = 20
"""Most kinds of unreadable lines; a program that invents problems would have as many as lines."""


class ShortfallKind(enum.StrEnum):
    """Kinds of shortfalls, by the names with which a user takes an answer as it is."""

    UNREADABLE = "unreadable"
    """Lines that cannot be read, and files with nothing in them."""
    OBJECTS = "objects"
    """Changes in audit logs without their object."""
    LATE = "late"
    """Changes in a pipe that come too late to be put in order."""
    LISTING = "listing"
    """Nodes and pods whose state at the beginning is in no recording."""
    NODES = "nodes"
    """Nodes that pods are bound to, and that are in no recording."""
    REFUSED = "refused"
    """Records that the service does not take."""


class Shortfall(NamedTuple):
    """Something that is missing: its kind, how much, and a sentence."""

    kind: ShortfallKind
    amount: int
    text: str

    @property
    def what(self) -> str:
        """Its kind, for a table."""
        return f"missing, {self.kind}"


_OF_SKIPPED: Final[dict[str, tuple[ShortfallKind, str]]] = {
    WITHOUT_OBJECT: (
        ShortfallKind.OBJECTS,
        (
            "changes of nodes or pods are in audit logs without their object: the audit policy must log nodes and"
            " pods, with their subresources, at level RequestResponse"
        ),
    ),
    UNSEEN_OBJECT: (
        ShortfallKind.LISTING,
        (
            "changes in audit logs are about unknown nodes or pods: also give an earlier list of them,"
            " `kubectl get nodes,pods -A -o json`"
        ),
    ),
    TOO_LATE: (
        ShortfallKind.LATE,
        "changes come too late to be sorted: give the log as a file, which is sorted as a whole",
    ),
    EMPTY_FILES: (ShortfallKind.UNREADABLE, "of the files are empty"),
}


class LeftOut:
    """Counts what is left out, and what cannot be read.

    Attributes:
        skipped: what is in order and left out, by its reason.
        unreadable: lines.
    """

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        self.unreadable = 0
        self._lines: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def take(self, item: Flaw | Skipped) -> None:
        """Count one more."""
        if isinstance(item, Skipped):
            self.skipped[item.type] += 1
            return
        self.unreadable += item.lines
        problem = item.problem if len(self._first) < MOST_PROBLEMS or item.problem in self._first else "other problems"
        self._lines[problem] += item.lines
        self._first.setdefault(problem, f"{item.source}, line {item.line}")

    def shortfalls(self) -> Iterator[Shortfall]:
        """Give what is missing for that, unreadable lines first."""
        for problem, lines in self._lines.items():
            many = "line cannot" if lines == 1 else "lines cannot"
            yield Shortfall(
                ShortfallKind.UNREADABLE, lines, f"{lines:,} {many} be read, {self._first[problem]}: {problem}"
            )
        for reason, (kind, text) in _OF_SKIPPED.items():
            if count := self.skipped[reason]:
                yield Shortfall(kind, count, f"{count:,} {text}")
