"""What brakes mean for one pod (docs/messages.md#brakes): when it may not be evicted, and for how long nothing is owed.

A service reads the brakes a little late, and not all at the same instant; a record counts from its append on, but a
reader may lack it until its writer has heard that it stands there. So an eviction is wrong only if each set of
brakes that could have been known then holds it, and what is owed may wait as long as any of them does.

Zones are not the service's: brakes with zones are left out. One with a `limit`, `inFlight` or `while` stands for such a
clause of a policy: what it is about may wait, and need not (`rates.py`, `flying.py`, `outages.py`).
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from evictstream.kit.oracle.limits import SECOND_US, Stretch
from evictstream.kit.oracle.reading import Json, to_us
from evictstream.kit.oracle.records import KeyedRecord

READ_WITHIN_US: Final = 4 * SECOND_US
"""Whoever has not known for 3 s that its brakes are the newest issues nothing; the rest is the round trip before."""

_MAY_WAIT: Final = {"limit", "inFlight", "while"}
"""Clauses of policies that hold nothing for sure."""

_LONGEST_SPREAD: Final = 86_400
"""Seconds; more than a day counts as a day."""

_FOREVER: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakeSpell:
    """A brake from one record of its key to the next.

    Attributes:
        from_us: append time of the record.
        settled_us: since when readers have it.
        next_us: append time of the next one.
        to_us: since when readers have the next one.
        fields: what it says; None if it removes the brake. What cannot be read holds all.
    """

    from_us: int
    settled_us: int
    next_us: int
    to_us: int
    fields: Json | None

    def is_surely_known(self, issued_at_us: int, append_at_us: int) -> bool:
        """Tell whether a worker that issued an eviction between two instants had it as the newest, and not ended."""
        return self.settled_us + READ_WITHIN_US < issued_at_us and append_at_us < min(self.next_us, self.end_us)

    def matches(self, cluster: str, namespace: str, taint: str) -> bool:
        """Tell whether it is about evictions of this kind."""
        if self.fields is None or self.fields.get("zones"):
            return False
        asked = {"clusters": cluster, "namespaces": namespace, "taints": taint}
        return all(not self.fields.get(name) or value in self.fields[name] for name, value in asked.items())

    @property
    def is_unreadable(self) -> bool:
        """Whether no worker can read it: while it is the newest of its key, they issue nothing, nor look at guards."""
        return self.fields == {}

    @property
    def end_us(self) -> int:
        """When it ends."""
        fields = self.fields or {}
        ends_us = to_us(fields["endsAt"]) if fields.get("endsAt") else _FOREVER
        return min(ends_us, self.from_us) if fields.get("releasedBy") else ends_us

    def until_us(self, uid: str) -> int:
        """Until when a pod that was due before the end waits."""
        spread_us = min(int((self.fields or {}).get("spreadSeconds", 60)), _LONGEST_SPREAD) * SECOND_US
        return self.end_us + spread_us * zlib.crc32(uid.encode()) // (1 << 32)


def brake_spells(records: Iterable[KeyedRecord]) -> list[list[BrakeSpell]]:
    """Give the spells of each brake, each list from the beginning of time to its end."""
    by_key: dict[bytes, list[KeyedRecord]] = defaultdict(list)
    for record in records:
        by_key[record.key].append(record)
    spells = []
    for of_key in by_key.values():
        begins = [(0, 0), *((record.append_at_us, record.settled_us) for record in of_key), (_FOREVER, _FOREVER)]
        fields = [None, *map(_fields, of_key)]
        spells.append(
            [
                BrakeSpell(from_us=from_us, settled_us=settled_us, next_us=next_us, to_us=to_us, fields=said)
                for (from_us, settled_us), (next_us, to_us), said in zip(begins, begins[1:], fields, strict=False)
            ]
        )
    return spells


def _fields(record: KeyedRecord) -> Json | None:
    if record.value is None:
        return None
    try:
        fields: Json = json.loads(record.value)
    except ValueError:
        return {}
    return fields if fields.get("kind") == "Brake" else {}


@dataclass(frozen=True, slots=True)
class PodBrakes:
    """The brakes, as seen by one pod."""

    cluster: str = ""
    namespace: str = ""
    uid: str = ""
    spells: Sequence[Sequence[BrakeSpell]] = field(default=())

    def hold(self, taint: str, due_us: int, from_us: int, to_us: int) -> bool:
        """Tell whether one brake holds it, whatever between two instants was the newest that was known.

        Args:
            taint: key of the reason.
            due_us: since when it is surely due.
            from_us: the brakes that were known are not older.
            to_us: they are not newer, and the eviction was issued by then.
        """
        return any(
            all(
                spell.matches(self.cluster, self.namespace, taint)
                and not _MAY_WAIT & set(spell.fields or ())
                and (to_us < spell.end_us or (due_us <= spell.end_us and to_us < spell.until_us(self.uid)))
                for spell in of_key
                if spell.from_us <= to_us and spell.to_us >= from_us
            )
            for of_key in self.spells
        )

    def lost_us(self, taint: str, since_us: int, until_us: int, others: Iterable[Stretch] = ()) -> int:
        """Give for how long between two instants it may have been held, by brakes or in other stretches."""
        lost_us, done_us = 0, since_us
        for start_us, stop_us in sorted([*self._stretches(taint), *others]):
            start_us, stop_us = max(start_us, done_us), min(stop_us, until_us)  # noqa: PLW2901 - what is new of it
            if stop_us > start_us:
                lost_us, done_us = lost_us + stop_us - start_us, stop_us
        return lost_us

    def _stretches(self, taint: str) -> Iterator[Stretch]:
        for of_key in self.spells:
            for spell in of_key:
                if spell.matches(self.cluster, self.namespace, taint):
                    yield spell.from_us, min(spell.to_us, spell.until_us(self.uid)) + READ_WITHIN_US


UNBRAKED_POD: Final = PodBrakes()
