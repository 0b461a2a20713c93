"""Policies that guard, and the incidents that a service has published, as their records say it (docs/messages.md).

Of `for` only `clusters`, `taints` and `namespaces` are known here, and no `except`: schedules draw no others.
"""

from __future__ import annotations

import fnmatch
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from evictstream.kit.oracle.guard_parts import OWNERS, CountedPart
from evictstream.kit.oracle.limits import SECOND_US
from evictstream.kit.oracle.reading import Json, to_us
from evictstream.kit.oracle.records import KeyedRecord

NEVER_US: Final = 1 << 62
"""An instant that does not come."""


class Answer(NamedTuple):
    """What a person has said of an incident: since when it counts, and until when an approval does."""

    is_approval: bool
    from_us: int
    expires_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRevision:
    """A policy from one record of its key to the next.

    Attributes:
        from_us: append time of the record.
        to_us: since when readers have the next one.
        number: its revision; 0 if it has none.
        spec: what it does; None if it is deleted.
        spread_us: over how long what only an earlier revision held is spread.
        earlier: earlier revisions and when they ended.
        answers: to incidents, by id.
        lost: incidents that an earlier revision answers, and this one does not. A worker that has read that revision
            waits for a person, even after the incident would be let go.
    """

    from_us: int
    to_us: int
    number: int = 0
    spec: Json | None = None
    spread_us: int = 0
    earlier: tuple[tuple[Json, int], ...] = ()
    answers: Mapping[str, Answer]
    lost: frozenset[str] = frozenset()

    def guard_of(self, cluster: str, taint: str, namespace: str | None = None) -> Json | None:
        """Give its guard, if it is about such evictions; without a namespace, of some namespace.

        A guard of owners has the policy's `for` with it: it selects which owners count.
        """
        return _guard_of(self.spec, cluster, taint, namespace)

    def guarded_until_us(self, cluster: str, taint: str, namespace: str) -> Iterator[int]:
        """Give when earlier revisions with a guard ended that were about such evictions."""
        return (ended_us for spec, ended_us in self.earlier if _guard_of(spec, cluster, taint, namespace) is not None)

    def share_us(self, uid: str) -> int:
        """Give how long after the beginning of a spread a pod may go."""
        return self.spread_us * zlib.crc32(uid.encode()) // (1 << 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenIncident:
    """An incident as it was published.

    Attributes:
        cluster: which.
        policy: name of the policy.
        taint: key of the taint.
        part: the nodes that it holds, as its first record says.
        from_us: when the first of its taints came, as its first record says.
        earliest_us: the same, as any of its records says: late records let it begin earlier.
        opened_us: when it was found, by the clock of the worker.
        first_us: append time of its first record.
        ended_us: append time of the record that says that it has ended.
        said: append time and content of each record before that.
    """

    id: str
    cluster: str
    policy: str
    taint: str
    part: CountedPart
    from_us: int
    earliest_us: int
    opened_us: int
    first_us: int
    ended_us: int
    said: tuple[tuple[int, Json], ...]


def guard_revisions(records: Iterable[KeyedRecord]) -> dict[str, list[GuardRevision]]:
    """Give the revisions of each policy by name, each list from the beginning of time to its end."""
    by_key: defaultdict[str, list[KeyedRecord]] = defaultdict(list)
    for record in records:
        by_key[record.key.decode()].append(record)
    found = {}
    for name, of_key in by_key.items():
        times = [*(record.settled_us for record in of_key), NEVER_US]
        found[name] = revisions = [GuardRevision(from_us=0, to_us=times[0], answers={})]
        answered: set[str] = set()
        for record, next_us in zip(of_key, times[1:], strict=True):
            revision = _revision(record, next_us)
            revisions.append(replace(revision, lost=frozenset(answered - revision.answers.keys())))
            answered.update(revision.answers)
    return found


def seen_incidents(records: Iterable[KeyedRecord]) -> Iterator[SeenIncident]:
    """Give the incidents that were published; an id that comes back after its end is another one."""
    said: dict[bytes, list[tuple[int, Json]]] = {}
    for record in records:
        if record.value is not None:
            said.setdefault(record.key, []).append((record.append_at_us, json.loads(record.value)))
        elif record.key in said:
            yield _incident(said.pop(record.key), record.append_at_us)
    yield from (_incident(one, NEVER_US) for one in said.values())


def _incident(said: list[tuple[int, Json]], ended_us: int) -> SeenIncident:
    first_us, fields = said[0]
    return SeenIncident(
        id=fields["id"],
        cluster=fields["cluster"],
        policy=fields["policy"],
        taint=fields["taint"],
        part=CountedPart(fields.get("zone"), fields.get("node")),
        from_us=to_us(fields["since"]),
        earliest_us=min(to_us(content["since"]) for _, content in said),
        opened_us=to_us(fields["openedAt"]),
        first_us=first_us,
        ended_us=ended_us,
        said=tuple(said),
    )


def _revision(record: KeyedRecord, next_us: int) -> GuardRevision:
    if record.value is None:
        return GuardRevision(from_us=record.append_at_us, to_us=next_us, answers={})
    fields = json.loads(record.value)

    def instant_us(text: str | None, otherwise_us: int) -> int:
        return otherwise_us if text is None else to_us(text)

    return GuardRevision(
        from_us=record.append_at_us,
        to_us=next_us,
        number=fields.get("revision", 0),
        spec=fields.get("spec"),
        spread_us=fields.get("spreadSeconds", 60) * SECOND_US,
        earlier=tuple(
            (one["spec"], instant_us(one.get("endedAt"), record.append_at_us)) for one in fields.get("earlier", ())
        ),
        answers={
            one["incident"]: Answer(
                one["verdict"] == "Approved",
                instant_us(one.get("countsFrom"), record.append_at_us),
                instant_us(one.get("expiresAt"), NEVER_US),
            )
            for one in fields.get("answers", ())
        },
    )


def _guard_of(spec: Json | None, cluster: str, taint: str, namespace: str | None) -> Json | None:
    if spec is None or "guard" not in spec:
        return None
    selected, asked = spec.get("for", {}), {"clusters": cluster, "taints": taint, "namespaces": namespace}
    for field, value in asked.items():
        patterns = selected.get(field)
        if patterns and value is not None and not any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns):
            return None
    guard: Json = spec["guard"]
    return guard | {"for": selected} if guard.get("of") == OWNERS else guard
