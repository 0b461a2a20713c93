"""Which nodes of a cluster were Ready, and for how long: while one is, not all zones are down (semantics.md 12.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from evictstream.kit.oracle.reading import Json, ObjectVersion, Statement

NO_VERSION: ObjectVersion = (0, 0)
_EXCLUDED = "node.kubernetes.io/exclude-disruption"


class NodeTurn(NamedTuple):
    """A statement about a node that counts, and the UID of the node from then on; None while it is not there."""

    statement: Statement
    uid: str | None


class ReadySpell(NamedTuple):
    """A node was Ready between two records, which have these offsets, since an instant at or before the first."""

    since_us: int
    begin: int
    end: float


class ReadySpells:
    """The spells of all nodes of one cluster."""

    def __init__(self, by_node: Iterable[Iterable[Statement]]) -> None:
        """Read the statements of the nodes topic about each node, each by offset."""
        self._spells = [spell for statements in by_node for spell in _spells(statements)]

    def cover(self, since_us: int, offset: int) -> bool:
        """Tell whether one of the nodes was Ready at the record of this offset, and ever since that instant."""
        return any(spell.since_us <= since_us and spell.begin < offset < spell.end for spell in self._spells)


NO_SPELLS = ReadySpells(())


def node_turns(statements: Iterable[Statement], *, with_repeats: bool = False) -> Iterator[NodeTurn]:
    """Leave out what is outdated; another UID under the name of a node is the end of the old one, too (12.3).

    What repeats the version that is known counts for nothing but readiness: `with_repeats` gives it, too.
    """
    dead: dict[str, ObjectVersion] = {}
    there: str | None = None
    version = NO_VERSION
    for statement in statements:
        if statement.kind == "LISTED":
            if there is not None and statement.ends(there) and statement.version >= version:
                dead[there], there = statement.version, None
                yield NodeTurn(statement, None)
            continue
        uid, seen = statement.content["metadata"]["uid"], statement.version
        if statement.is_deleted:
            if there == uid and seen >= version:
                dead[uid], there = seen, None
                yield NodeTurn(statement, None)
            elif there != uid:
                dead[uid] = max(seen, dead.get(uid, NO_VERSION))
            continue
        if seen <= dead.get(uid, NO_VERSION) or (there is not None and seen <= version):
            if with_repeats and there == uid and seen == version:
                yield NodeTurn(statement, uid)
            continue
        if there is not None and there != uid:
            dead[there] = seen
            yield NodeTurn(statement, None)
        there, version = uid, seen
        yield NodeTurn(statement, uid)


def ready_status(node: Json) -> str | None:
    """Give the status of a node's condition `Ready`."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return next((condition["status"] for condition in conditions if condition["type"] == "Ready"), None)


def _spells(statements: Iterable[Statement]) -> Iterator[ReadySpell]:
    """Give the spells of one node. A known version with another condition ends a spell; it begins none."""
    since: tuple[int, int] | None = None
    known: ObjectVersion | None = None
    for statement, uid in node_turns(statements, with_repeats=True):
        offset, is_repeat = statement.record.offset, uid is not None and statement.version == known
        labels = statement.content.get("metadata", {}).get("labels") or {}
        is_ready = uid is not None and ready_status(statement.content) == "True" and _EXCLUDED not in labels
        if since is not None and ((statement.is_added and not is_repeat) or not is_ready):
            yield ReadySpell(*since, offset)
            since = None
        if is_ready and since is None and not is_repeat:
            since = statement.at_us, offset
        known = None if uid is None else statement.version
    if since is not None:
        yield ReadySpell(*since, float("inf"))
