"""What `evictstream what-if` prints: tables for people, with bounded rows, or all pods as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from evictstream.kit.cli.governed_words import governed_json, governed_rows, governed_words
from evictstream.kit.cli.rules.formatting import taint_json, toleration_json, toleration_words
from evictstream.kit.replay.policy_preview import GovernedPreview
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

_MOST_PODS: Final = 50
MOST_GROUPS: Final = 20
MOST_TIMES: Final = 20
_UNKNOWN: Final = "(unknown)"

STAYS: Final[dict[NothingDue, str]] = {
    NothingDue.TERMINATING: "is already terminating",
    NothingDue.FINISHED: "has finished",
    NothingDue.MIRROR: "is a mirror pod",
    NothingDue.NODE_UNKNOWN: "its node is unknown",
    NothingDue.NO_TAINT: "its node has no NoExecute taint",
    NothingDue.TOLERATED: "tolerates all taints forever",
    NothingDue.UNDECIDABLE: "is ignored: too many taints or tolerations",
    NothingDue.BUILT_IN: "is evicted by Kubernetes' own controller",
}
PLACES: Final[dict[PlaceToGo | None, str]] = {
    PlaceToGo.SOMEWHERE: "",
    PlaceToGo.FOR_A_WHILE: "no permanent place",
    PlaceToGo.NOWHERE: "nowhere",
    PlaceToGo.NOT_KNOWN: _UNKNOWN,
    None: "",
}
GROUPS: Final[dict[str, Callable[[PodOutcome], str | None]]] = {
    "namespace": lambda one: one.namespace,
    "workload": workload_of,
    "zone": lambda one: one.zone,
}
LOST: Final = (PlaceToGo.NOWHERE, PlaceToGo.FOR_A_WHILE)


def print_preview(
    preview: Preview,
    cluster: str,
    unreadable: int,
    assumed: Iterable[tuple[str, int | str]],
    *,
    has_change: bool = True,
    governed: GovernedPreview | None = None,
) -> None:
    """Print tables for people.

    Args:
        preview: the preview.
        cluster: its name.
        unreadable: lines and records that could not be read.
        assumed: what its source has assumed and left out, row by row.
        has_change: whether a change is previewed at all; without one nothing is said of it.
        governed: what brakes and policies make of it; None if nobody asks.
    """
    whole = total(preview)
    rows = [*_summary(preview, whole, cluster, has_change=has_change), *([name, str(value)] for name, value in assumed)]
    if governed is not None:
        rows += governed_rows(preview, governed)
    print_table(["what", "count"], [*rows, ["unreadable", f"{unreadable:,}"]])
    if whole.leaving:
        say()
        _print_bounded(["within seconds", "pods leave"], _times(preview), MOST_TIMES)
    if whole.stays:
        say()
        rows = [[STAYS[reason], str(count)] for reason, count in reasons_to_stay(preview).items()]
        print_table(["stays because it", "pods"], rows)
    for title, key in GROUPS.items():
        say()
        _print_bounded([title, "at once", "later", "stay", "nowhere to go"], _group_rows(preview, key), MOST_GROUPS)
    shown = sorted((one for one in preview.outcomes if _is_of_interest(preview, one)), key=_order(preview))
    if shown:
        say()
        columns = ["pod", "node", "leaves", "without the change", "because", "could go"]
        rows = [_pod_row(preview, one) for one in shown]
        if not has_change:
            columns, rows = _without_change(columns), [_without_change(row) for row in rows]
        if governed is not None:
            columns.insert(3, "evicted")
            for one, row in zip(shown, rows, strict=True):
                row.insert(3, governed_words(preview, governed, one))
        _print_bounded(columns, rows, _MOST_PODS)


def _without_change(cells: list[str]) -> list[str]:
    return [*cells[:3], *cells[4:]]


def _summary(preview: Preview, whole: Total, cluster: str, *, has_change: bool) -> Iterator[list[str]]:
    anyway = sum(fate_of(one.before, preview.at_us) is not PodFate.STAYS for one in preview.outcomes)
    yield ["cluster", cluster]
    yield ["at", instant_text(preview.at_us)]
    yield ["nodes chosen", f"{preview.chosen:,}"]
    if has_change:
        yield ["  that would change", f"{preview.changed:,}"]
    yield ["pods on them", f"{whole.pods:,}"]
    yield ["  leave at once", f"{whole.at_once:,}"]
    yield ["  leave later", f"{whole.later:,}"]
    yield ["  stay", f"{whole.stays:,}"]
    if has_change:
        yield ["leave without the change too", f"{anyway - whole.spared:,}"]
    if whole.spared:
        yield ["stay, but leave without the change", f"{whole.spared:,}"]
    yield ["leave, with nowhere to go", f"{whole.nowhere:,}"]
    if whole.undrainable:
        yield ["stay, with nowhere else to go", f"{whole.undrainable:,}"]
    if whole.not_known:
        yield ["unknown where they could go", f"{whole.not_known:,}"]
    if preview.unlabelled:
        yield ["nodes with incomplete labels", f"{preview.unlabelled:,}"]


def _times(preview: Preview) -> Iterator[list[str]]:
    for seconds, count in leaving_times(preview).items():
        yield [f"{seconds:,}", f"{count:,}"]


def _group_rows(preview: Preview, key: Callable[[PodOutcome], str | None]) -> Iterator[list[str]]:
    for name, group in totals_by(preview, key).items():
        numbers = (group.at_once, group.later, group.stays, group.nowhere + group.undrainable)
        yield [_UNKNOWN if name is None else name, *(f"{number:,}" for number in numbers)]


def _print_bounded(columns: list[str], rows: Iterable[list[str]], most: int) -> None:
    everything = list(rows)
    print_table(columns, everything[:most])
    if len(everything) > most:
        say(f"and {len(everything) - most:,} more; -o json has all")


def _is_of_interest(preview: Preview, outcome: PodOutcome) -> bool:
    return preview.fate(outcome) is not PodFate.STAYS or preview.is_moved(outcome) or outcome.place in LOST


def _order(preview: Preview) -> Callable[[PodOutcome], tuple[bool, float, str]]:
    """Give those without a place first, then by time: these are what a table that ends early has to show."""

    def key(one: PodOutcome) -> tuple[bool, float, str]:
        seconds = preview.seconds(one)
        return one.place not in LOST, float("inf") if seconds is None else seconds, one.address

    return key


def _pod_row(preview: Preview, outcome: PodOutcome) -> list[str]:
    return [
        outcome.address,
        outcome.node,
        _when(leaves_us(outcome.after, preview.at_us), preview.at_us),
        _when(leaves_us(outcome.before, preview.at_us), preview.at_us),
        _because(outcome),
        PLACES[outcome.place],
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


def print_preview_json(
    preview: Preview,
    cluster: str,
    unreadable: int,
    source: Mapping[str, object],
    *,
    governed: GovernedPreview | None = None,
) -> None:
    """Print all pods as JSON; arguments as for `print_preview`, the source's in camelCase."""
    head: dict[str, object] = {
        "cluster": cluster,
        "at": instant_text(preview.at_us),
        "nodes": {"chosen": preview.chosen, "changed": preview.changed, "labelsNotKnown": preview.unlabelled},
        "unreadable": unreadable,
        "total": _total_json(total(preview)),
        "leavingBySeconds": {str(seconds): count for seconds, count in leaving_times(preview).items()},
        "stayingByReason": {_camel(reason): count for reason, count in reasons_to_stay(preview).items()},
    } | {
        f"by{title.capitalize()}": [
            {"name": name} | _total_json(group) for name, group in totals_by(preview, key).items()
        ]
        for title, key in GROUPS.items()
    }
    head |= source
    if governed is not None:
        head["governedSeconds"] = governed.seconds
    pods = (dict(_pod_json(preview, one)) | governed_json(governed, one) for one in preview.outcomes)
    print_long_json(head, "pods", pods)


def _total_json(total: Total) -> dict[str, int]:
    return {
        "pods": total.pods,
        "leaveAtOnce": total.at_once,
        "leaveLater": total.later,
        "stay": total.stays,
        "moved": total.moved,
        "spared": total.spared,
        "nowhereToGo": total.nowhere,
        "stayWithNowhereElse": total.undrainable,
        "placeNotKnown": total.not_known,
    }


def _pod_json(preview: Preview, outcome: PodOutcome) -> Mapping[str, object]:
    namespace, _, name = outcome.address.partition("/")
    after_us, before_us = leaves_us(outcome.after, preview.at_us), leaves_us(outcome.before, preview.at_us)
    return {
        "namespace": namespace,
        "pod": name,
        "podUid": outcome.uid,
        "node": outcome.node,
        "zone": outcome.zone,
        "workload": outcome.workload,
        "fate": preview.fate(outcome),
        "seconds": preview.seconds(outcome),
        "leavesAt": None if after_us is None else instant_text(after_us),
        "leavesWithoutTheChangeAt": None if before_us is None else instant_text(before_us),
        "staysBecause": _camel(outcome.after) if isinstance(outcome.after, NothingDue) else None,
        "taint": taint_json(outcome.taint),
        "toleration": toleration_json(outcome.toleration),
        "couldGo": outcome.place,
    }


def _camel(reason: NothingDue) -> str:
    return "".join(word.capitalize() for word in reason.name.split("_"))
