"""Limits of how many may be in flight at once (docs/policies.md#limit): no more than these at each `Evict`.

Such a clause stands here as a brake with the field `inFlight`. It holds nothing for sure, and may let everything wait.
What may be gone counts as gone: a worker knows it later, never sooner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from evictstream.kit.oracle.commands import SeenCommand
from evictstream.kit.oracle.limits import SECOND_US
from evictstream.kit.oracle.reading import Json, Statement
from evictstream.kit.oracle.records import Violation
from evictstream.kit.oracle.standing_brakes import READ_WITHIN_US, BrakeSpell

_FINISHED = ("Succeeded", "Failed")


def check_flying(
    commands: Sequence[SeenCommand],
    statements: Iterable[Statement],
    spells: Sequence[Sequence[BrakeSpell]],
    *,
    early_us: int,
) -> Iterator[Violation]:
    """Find evictions that were issued while too many were in flight, and every worker knew the limit.

    Args:
        commands: of all partitions, each partition's in their order.
        statements: of all inputs.
        spells: of all brakes.
        early_us: how much the clocks of two workers may differ.
    """
    limits = [spell for of_key in spells for spell in of_key if spell.fields and "inFlight" in spell.fields]
    if not limits:
        return
    said: defaultdict[str, list[Statement]] = defaultdict(list)
    for statement in statements:
        if statement.record.topic != "nodes":
            said[statement.cluster].append(statement)
    of_clusters: defaultdict[str, list[SeenCommand]] = defaultdict(list)
    for command in commands:
        of_clusters[command.cluster].append(command)
    for cluster, of_cluster in of_clusters.items():
        for spell in limits:
            yield from _of_spell(of_cluster, said[cluster], spell, early_us)


def _of_spell(
    commands: Sequence[SeenCommand], said: Sequence[Statement], spell: BrakeSpell, early_us: int
) -> Iterator[Violation]:
    limit: Json = (spell.fields or {})["inFlight"]
    first: dict[str, SeenCommand] = {}
    flying: dict[str, SeenCommand] = {}
    told = _first_results(said)
    for one in commands:
        if one.action != "Evict":
            first.pop(one.eviction_id, None)
            flying.pop(one.eviction_id, None)
            continue
        is_first = one.eviction_id not in first or _was_observed(told, flying[one.eviction_id], one)
        if is_first:
            first[one.eviction_id] = one
        flying[one.eviction_id] = one
        is_known = spell.is_surely_known(one.issued_at_us, one.at_us)
        if not (is_first and is_known and _matches(spell, one)):
            continue
        units = {
            other.node if limit["of"] == "nodes" else other.pod_uid
            for other in flying.values()
            if _matches(spell, other)
            and (limit["per"] == "cluster" or other.node == one.node)
            and one.issued_at_us - first[other.eviction_id].issued_at_us + early_us < limit["countsSeconds"] * SECOND_US
            and not any(_ends(statement, first[other.eviction_id], other, one) for statement in said)
        }
        if len(units) > limit["count"]:
            text = f"{one}: {len(units)} are in flight, under {limit}"
            yield Violation("too many in flight", text, cluster=one.cluster, node=one.node, pod_uid=one.pod_uid)


def _first_results(said: Sequence[Statement]) -> dict[tuple[str, int], Statement]:
    found: dict[tuple[str, int], Statement] = {}
    for statement in said:
        if statement.kind == "Result":
            found.setdefault((statement.content["evictionId"], statement.content["attempt"]), statement)
    return found


def _was_observed(told: dict[tuple[str, int], Statement], before: SeenCommand, now: SeenCommand) -> bool:
    """Tell whether the attempt before was only observed, as the worker knew: this one then needs a slot."""
    result = told.get((before.eviction_id, before.attempt))
    return (
        result is not None
        and result.content["outcome"] == "Observed"
        and result.record.append_at_us + READ_WITHIN_US < now.issued_at_us
    )


def _matches(spell: BrakeSpell, one: SeenCommand) -> bool:
    return spell.matches(one.cluster, one.pod.partition("/")[0], one.taint)


def _ends(statement: Statement, first: SeenCommand, other: SeenCommand, now: SeenCommand) -> bool:
    """Tell whether a pod may be gone, or was only observed, when another one was issued."""
    if statement.record.append_at_us > now.at_us:
        return False
    content = statement.content
    if statement.kind == "Result":
        result = content["evictionId"], content["attempt"], content["outcome"]
        return result == (other.eviction_id, other.attempt, "Observed")
    if statement.kind != "Pod":
        return (
            statement.kind not in {"HEARTBEAT", "Report", "BOOKMARK"}
            and statement.record.append_at_us >= first.at_us - SECOND_US
        )
    meta = content["metadata"]
    if f"{meta['namespace']}/{meta['name']}" != other.pod:
        return False
    is_finished = (content.get("status") or {}).get("phase") in _FINISHED
    return meta["uid"] != other.pod_uid or statement.is_deleted or is_finished
