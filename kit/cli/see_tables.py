"""The tables of `evictstream get`: the columns of each kind, and how an item is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from evictstream.kit.cli.rules.formatting import toleration_words
from evictstream.kit.see.clusters import ListedCluster
from evictstream.kit.see.evictions import OPEN_STATES, ListedEviction, SeenState
from evictstream.kit.see.nodes import ListedNode
from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.kubernetes.taints import BareTaint
from evictstream.streams.cli.command_rows import distance
from evictstream.streams.cli.dead_letter_list import SeenDeadLetter
from evictstream.streams.cli.fitting import cut_domain, cut_end
from evictstream.streams.cli.lists import ListColumn, ListKind

NOTHING: Final = "-"

Present = Callable[[], int]
"""Gives microseconds since 1970."""


def evictions_kind(present_us: Present, *, shows_cluster: bool) -> ListKind[ListedEviction]:
    """Describe the table of evictions; `shows_cluster` where there are several, else only a wide table names it."""
    return ListKind(
        name="Eviction",
        columns=(
            ListColumn("IN", lambda one: until_words(one.at, present_us()), usual=7),
            ListColumn("CLUSTER", lambda one: one.cluster, least=6, rank=2, is_wide=not shows_cluster),
            ListColumn("POD", lambda one: one.address, usual=30, least=14),
            ListColumn("NODE", lambda one: one.node, usual=12, least=8, rank=4),
            ListColumn("TAINT", lambda one: _short(one.taint), usual=20, least=8, rank=3, cut=cut_domain),
            ListColumn("STATE", lambda one: one.state, usual=9),
            ListColumn("GATE/RESULT", gate_or_result, rank=1),
            ListColumn("ATTEMPT", lambda one: str(one.attempt), rank=5),
            ListColumn("WHY", lambda one: one.verdict, is_wide=True),
            ListColumn("TOLERATION", _toleration, is_wide=True),
            ListColumn("DEADLINE", lambda one: one.deadline, is_wide=True),
            ListColumn("NEXT ATTEMPT", lambda one: one.next_attempt_at or NOTHING, is_wide=True),
            ListColumn("BUILT-IN AT", lambda one: one.built_in_at or NOTHING, is_wide=True),
            ListColumn("UID", lambda one: one.pod_uid, is_wide=True),
        ),
        name_of=lambda one: one.address,
        is_alarming=is_alarming,
    )


def gate_or_result(one: ListedEviction) -> str:
    """Say what an eviction waits for, or what became of it."""
    if one.state not in OPEN_STATES:
        return one.verdict if one.state is not SeenState.ENDED else NOTHING
    built_in = "" if one.built_in_at is None else f"built-in at {_clock(one.built_in_at)}"
    if one.held_by is not None:
        return f"held {one.held_by}, {built_in}" if built_in else f"held {one.held_by}"
    if one.gate is not None:
        return f"gate {one.gate}"
    if one.state is SeenState.SCHEDULED:
        return built_in or NOTHING
    if one.state is SeenState.DUE:
        return "worker"  # one that runs issues it within milliseconds, or has a gate of its own
    if one.queued:
        return "queued"
    return one.last_result or "unanswered"


def _clock(at: str) -> str:
    """Write hour and minute of an instant in UTC; a wide table has the day."""
    return f"{at[11:16]}Z"


def is_alarming(one: ListedEviction) -> bool:
    """Whether a pod has to leave, and somebody who should see to it does not; a brake is somebody's wish."""
    is_due = one.state in OPEN_STATES and one.state is not SeenState.SCHEDULED
    return is_due and not one.queued and one.held_by is None


def nodes_kind(present_us: Present, *, shows_cluster: bool) -> ListKind[ListedNode]:
    """Describe the table of nodes."""
    return ListKind(
        name="Node",
        columns=(
            ListColumn("NODE", lambda one: one.node, usual=20, least=12),
            ListColumn("CLUSTER", lambda one: one.cluster, least=6, rank=1, is_wide=not shows_cluster),
            ListColumn("TAINTS", _taints, usual=30, least=10, rank=2, cut=cut_end),
            ListColumn(
                "SINCE",
                lambda one: since_words(min((it.since for it in one.taints), default=None), present_us()),
                rank=4,
            ),
            ListColumn("PODS", lambda one: f"{one.pods}", rank=3),
            ListColumn("PENDING", lambda one: f"{one.pending}"),
            ListColumn(
                "NEXT IN",
                lambda one: NOTHING if one.next_at is None else until_words(one.next_at, present_us()),
                rank=1,
            ),
            ListColumn("OUTAGE", lambda one: since_words(one.outage_since, present_us()), is_wide=True),
            ListColumn("UID", lambda one: one.uid or NOTHING, is_wide=True),
        ),
        name_of=lambda one: one.node,
        is_alarming=lambda one: one.next_at is not None and instant_us(one.next_at) <= present_us(),
    )


def clusters_kind(present_us: Present) -> ListKind[ListedCluster]:
    """Describe the table of clusters."""
    return ListKind(
        name="Cluster",
        columns=(
            ListColumn("CLUSTER", lambda one: one.cluster, usual=20, least=10),
            ListColumn("NODES", lambda one: f"{one.nodes}", rank=5),
            ListColumn("PODS", lambda one: f"{one.pods}", rank=4),
            ListColumn("PENDING", lambda one: f"{one.pending}"),
            ListColumn("DUE", lambda one: f"{one.due}", rank=1),
            ListColumn("UNANSWERED", lambda one: f"{one.unanswered}", rank=2),
            ListColumn("FEED HEARD", lambda one: since_words(one.heard_at, present_us()), rank=3),
            ListColumn("GATE", lambda one: one.gate or NOTHING, rank=1),
            ListColumn("QUEUE REPORTED", lambda one: since_words(one.queue_reported_at, present_us()), is_wide=True),
            ListColumn("PARTITION", lambda one: f"{one.partition}", is_wide=True),
            ListColumn("EPOCH", lambda one: f"{one.epoch}", is_wide=True),
            ListColumn("UID", lambda one: one.uid or NOTHING, is_wide=True),
        ),
        name_of=lambda one: one.cluster,
        is_alarming=lambda one: one.gate is not None or one.unanswered > 0,
    )


def dead_letters_kind(present_us: Present) -> ListKind[SeenDeadLetter]:
    """Describe the table of dead letters."""
    return ListKind(
        name="DeadLetter",
        columns=(
            ListColumn("AGE", lambda one: distance((present_us() - instant_us(one.at)) / SECOND_US), usual=6),
            ListColumn("REASON", lambda one: one.reason, usual=14),
            ListColumn("FROM", lambda one: one.place, usual=16),
            ListColumn("CLUSTER", lambda one: one.key or NOTHING, usual=10, least=6, rank=2),
            ListColumn("SIZE", lambda one: NOTHING if one.size is None else str(one.size), usual=6, rank=3),
            ListColumn("DETAIL", lambda one: one.detail, usual=40, least=12, rank=1, cut=cut_end),
            ListColumn("AT", lambda one: one.at, is_wide=True),
        ),
        name_of=lambda one: one.place,
    )


def _short(taint: BareTaint) -> str:
    """Write a taint without its effect: every one here is `NoExecute`."""
    return f"{taint.key}={taint.value}" if taint.value else taint.key


def _taints(node: ListedNode) -> str:
    if node.undecidable:
        return "(too many or too long)"
    return ",".join(_short(one.taint) for one in node.taints) or NOTHING


def _toleration(one: ListedEviction) -> str:
    return NOTHING if one.toleration is None else toleration_words(one.toleration)


def until_words(at: str, at_us: int) -> str:
    """Write how far ahead of `at_us` an instant is; with a minus, how long ago."""
    return distance((instant_us(at) - at_us) / SECOND_US)


def since_words(at: str | None, at_us: int) -> str:
    """Write how long before `at_us` an instant was."""
    return NOTHING if at is None else f"{distance((at_us - instant_us(at)) / SECOND_US)} ago"
