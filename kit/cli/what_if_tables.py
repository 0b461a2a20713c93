"""What `evictstream what-if` prints: tables for people, with bounded rows, or all pods as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from evictstream.kit.cli.rules.formatting import taint_json, toleration_json, toleration_words
from evictstream.kit.what_if.places import PlaceToGo
from evictstream.kit.what_if.preview import PodFate, PodOutcome, Preview, fate_of, leaves_us
from evictstream.kit.what_if.totals import (
    Total,
    leaving_times,
    reasons_to_stay,
    total,
    totals_by,
    workload_of,
)
from evictstream.models.eviction import NothingDue
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.kubernetes import taint_text
from evictstream.streams.cli.output import print_long_json, print_table, say

MOST_PODS: Final = 50
MOST_GROUPS: Final = 20
MOST_TIMES: Final = 20
UNKNOWN: Final = "(unknown)"

STAYS: Final[dict[NothingDue, str]] = {
    NothingDue.TERMINATING: "is already terminating",
    NothingDue.FINISHED: "has finished",
    NothingDue.MIRROR: "is a mirror pod",
    NothingDue.NODE_UNKNOWN: "its node is unknown",
    NothingDue.NO_TAINT: "its node has no NoExecute taint",
    NothingDue.TOLERATED: "tolerates all taints forever",
    NothingDue.UNDECIDABLE: "is ignored: too many taints or tolerations",
}
PLACES: Final[dict[PlaceToGo | None, str]] = {
    PlaceToGo.SOMEWHERE: "",
    PlaceToGo.FOR_A_WHILE: "no permanent place",
    PlaceToGo.NOWHERE: "nowhere",
    PlaceToGo.NOT_KNOWN: UNKNOWN,
    None: "",
}
GROUPS: Final[dict[str, Callable[[PodOutcome], str | None]]] = {
    "namespace": lambda one: one.namespace,
    "workload": workload_of,
    "zone": lambda one: one.zone,
}
LOST: Final = (PlaceToGo.NOWHERE, PlaceToGo.FOR_A_WHILE)


def print_preview(found: Preview, cluster: str, unreadable: int, assumed: Iterable[tuple[str, int | str]]) -> None:
    """Print tables for people.

    Args:
        found: the preview.
        cluster: its name.
        unreadable: lines and records that could not be read.
        assumed: what its source has assumed and left out, row by row.
    """
    whole = total(found)
    rows = [*_summary(found, whole, cluster), *([name, str(value)] for name, value in assumed)]
    print_table(["what", "count"], [*rows, ["unreadable", f"{unreadable:,}"]])
    if whole.leaving:
        say()
        _print_bounded(["within seconds", "pods leave"], _times(found), MOST_TIMES)
    if whole.stays:
        say()
        rows = [[STAYS[reason], str(count)] for reason, count in reasons_to_stay(found).items()]
        print_table(["stays because it", "pods"], rows)
    for title, key in GROUPS.items():
        say()
        _print_bounded([title, "at once", "later", "stay", "nowhere to go"], _group_rows(found, key), MOST_GROUPS)
    shown = sorted((one for one in found.outcomes if _is_of_interest(found, one)), key=_order(found))
    if shown:
        say()
        columns = ["pod", "node", "leaves", "without the change", "because", "could go"]
        _print_bounded(columns, (_pod_row(found, one) for one in shown), MOST_PODS)


def _summary(found: Preview, whole: Total, cluster: str) -> Iterator[list[str]]:
    anyway = sum(fate_of(one.before, found.at_us) is not PodFate.STAYS for one in found.outcomes)
    yield ["cluster", cluster]
    yield ["at", instant_text(found.at_us)]
    yield ["nodes chosen", f"{found.chosen:,}"]
    yield ["  that would change", f"{found.changed:,}"]
    yield ["pods on them", f"{whole.pods:,}"]
    yield ["  leave at once", f"{whole.at_once:,}"]
    yield ["  leave later", f"{whole.later:,}"]
    yield ["  stay", f"{whole.stays:,}"]
    yield ["leave without the change too", f"{anyway - whole.spared:,}"]
    if whole.spared:
        yield ["stay, but leave without the change", f"{whole.spared:,}"]
    yield ["leave, with nowhere to go", f"{whole.nowhere:,}"]
    if whole.undrainable:
        yield ["stay, with nowhere else to go", f"{whole.undrainable:,}"]
    if whole.not_known:
        yield ["unknown where they could go", f"{whole.not_known:,}"]
    if found.unlabelled:
        yield ["nodes with incomplete labels", f"{found.unlabelled:,}"]


def _times(found: Preview) -> Iterator[list[str]]:
    for seconds, count in leaving_times(found).items():
        yield [f"{seconds:,}", f"{count:,}"]


def _group_rows(found: Preview, key: Callable[[PodOutcome], str | None]) -> Iterator[list[str]]:
    for name, group in totals_by(found, key).items():
        numbers = (group.at_once, group.later, group.stays, group.nowhere + group.undrainable)
        yield [UNKNOWN if name is None else name, *(f"{number:,}" for number in numbers)]


def _print_bounded(columns: list[str], rows: Iterable[list[str]], most: int) -> None:
    everything = list(rows)
    print_table(columns, everything[:most])
    if len(everything) > most:
        say(f"and {len(everything) - most:,} more; -o json has all")


def _is_of_interest(found: Preview, one: PodOutcome) -> bool:
    return found.fate(one) is not PodFate.STAYS or found.is_moved(one) or one.place in LOST


def _order(found: Preview) -> Callable[[PodOutcome], tuple[bool, float, str]]:
    """Give those without a place first, then by time: these are what a table that ends early has to show."""

    def key(one: PodOutcome) -> tuple[bool, float, str]:
        seconds = found.seconds(one)
        return one.place not in LOST, float("inf") if seconds is None else seconds, one.address

    return key


def _pod_row(found: Preview, one: PodOutcome) -> list[str]:
    return [
        one.address,
        one.node,
        _when(leaves_us(one.after, found.at_us), found.at_us),
        _when(leaves_us(one.before, found.at_us), found.at_us),
        _because(one),
        PLACES[one.place],
    ]


def _when(leaves_at_us: int | None, now_us: int) -> str:
    if leaves_at_us is None:
        return "stays"
    seconds = (leaves_at_us - now_us) / SECOND_US
    return f"after {seconds:.1f} s" if seconds else "at once"


def _because(one: PodOutcome) -> str:
    if one.taint is None:
        return STAYS[one.after] if isinstance(one.after, NothingDue) else ""
    taint = taint_text(one.taint)
    return f"{taint}, {'not tolerated' if one.toleration is None else f'tolerated: {toleration_words(one.toleration)}'}"


def print_preview_json(found: Preview, cluster: str, unreadable: int, source: Mapping[str, object]) -> None:
    """Print all pods as JSON; arguments as for `print_preview`, the source's in camelCase."""
    head: dict[str, object] = {
        "cluster": cluster,
        "at": instant_text(found.at_us),
        "nodes": {"chosen": found.chosen, "changed": found.changed, "labelsNotKnown": found.unlabelled},
        "unreadable": unreadable,
        "total": _total_json(total(found)),
        "leavingBySeconds": {str(seconds): count for seconds, count in leaving_times(found).items()},
        "stayingByReason": {_camel(reason): count for reason, count in reasons_to_stay(found).items()},
    } | {
        f"by{title.capitalize()}": [
            {"name": name} | _total_json(group) for name, group in totals_by(found, key).items()
        ]
        for title, key in GROUPS.items()
    }
    head |= source
    print_long_json(head, "pods", (_pod_json(found, one) for one in found.outcomes))


def _total_json(found: Total) -> dict[str, int]:
    return {
        "pods": found.pods,
        "leaveAtOnce": found.at_once,
        "leaveLater": found.later,
        "stay": found.stays,
        "moved": found.moved,
        "spared": found.spared,
        "nowhereToGo": found.nowhere,
        "stayWithNowhereElse": found.undrainable,
        "placeNotKnown": found.not_known,
    }


def _pod_json(found: Preview, one: PodOutcome) -> Mapping[str, object]:
    namespace, _, name = one.address.partition("/")
    after_us, before_us = leaves_us(one.after, found.at_us), leaves_us(one.before, found.at_us)
    return {
        "namespace": namespace,
        "pod": name,
        "podUid": one.uid,
        "node": one.node,
        "zone": one.zone,
        "workload": one.workload,
        "fate": found.fate(one),
        "seconds": found.seconds(one),
        "leavesAt": None if after_us is None else instant_text(after_us),
        "leavesWithoutTheChangeAt": None if before_us is None else instant_text(before_us),
        "staysBecause": _camel(one.after) if isinstance(one.after, NothingDue) else None,
        "taint": taint_json(one.taint),
        "toleration": toleration_json(one.toleration),
        "couldGo": one.place,
    }


def _camel(reason: NothingDue) -> str:
    return "".join(word.capitalize() for word in reason.name.split("_"))
