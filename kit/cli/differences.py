"""How `replay` and `shadow` print the differences of two runs: counted by kind and reason, and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evictstream.kit.replay.comparison import RunDifference


def count_rows(differences: Iterable[RunDifference], words: Mapping[str, str]) -> Iterator[list[str]]:
    """Give a row for each kind and reason, the most frequent first: kind in words, count, row of semantics, reason."""
    counts = Counter((one.kind, one.reason) for one in differences)
    for (kind, reason), count in sorted(counts.items(), key=lambda item: (-item[1], str(item[0]))):
        yield [words[kind], str(count), str((reason and reason.row) or ""), reason.text if reason else ""]


def difference_json(one: RunDifference, *, kind: str, here: str, there: str) -> dict[str, object]:
    """Give a difference as JSON; `here` and `there` name the fields of the two instants."""
    from evictstream.models.instants import instant_text

    first = one.first
    return {
        "kind": kind,
        "cluster": first.cluster,
        "pod": first.name,
        "podUid": first.pod_uid,
        "node": first.node,
        here: None if one.here is None else instant_text(one.here.at_us),
        there: None if one.there is None else instant_text(one.there.at_us),
        "seconds": one.seconds,
        "row": None if one.reason is None else one.reason.row,
        "reason": None if one.reason is None else one.reason.text,
    }
