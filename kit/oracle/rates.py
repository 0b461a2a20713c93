"""Limits of policies: between two instants no more is issued than rate * span + burst (docs/policies.md#limit).

A limit stands here as a brake with the field `limit`. It holds nothing for sure, and may let everything wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from evictstream.kit.oracle.commands import SeenCommand
from evictstream.kit.oracle.limits import SECOND_US
from evictstream.kit.oracle.records import Violation, shown
from evictstream.kit.oracle.standing_brakes import BrakeSpell


def check_rates(
    commands: Iterable[SeenCommand], spells: Sequence[Sequence[BrakeSpell]], *, early_us: int
) -> Iterator[Violation]:
    """Find evictions that were issued too soon after others, while every worker knew the limit.

    Args:
        commands: of all partitions, each partition's in their order.
        spells: of all brakes.
        early_us: how much the clocks of two workers may differ.
    """
    evicts = [command for command in commands if command.action == "Evict"]
    for of_key in spells:
        for spell in of_key:
            if spell.fields and "limit" in spell.fields:
                yield from _of_spell(evicts, spell, early_us)


def _of_spell(evicts: Iterable[SeenCommand], spell: BrakeSpell, early_us: int) -> Iterator[Violation]:
    limit = (spell.fields or {})["limit"]
    by_scope: defaultdict[tuple[str, str], list[SeenCommand]] = defaultdict(list)
    for one in evicts:
        is_known = spell.is_surely_known(one.issued_at_us, one.at_us)
        if is_known and spell.matches(one.cluster, one.pod.partition("/")[0], one.taint):
            by_scope[one.cluster, one.node if limit["per"] == "node" else ""].append(one)
    for of_scope in by_scope.values():
        of_scope.sort(key=lambda one: one.issued_at_us)
        for first in range(len(of_scope)):
            for last in range(first + limit["burst"], len(of_scope)):
                one, span_us = of_scope[last], of_scope[last].issued_at_us - of_scope[first].issued_at_us + early_us
                allowed = span_us * limit["evictions"] / (limit["inSeconds"] * SECOND_US) + limit["burst"]
                if last - first + 1 > allowed:
                    since = shown(of_scope[first].issued_at_us)
                    text = f"{one}: {last - first + 1} since {since}, under {limit}"
                    yield Violation("over the limit", text, cluster=one.cluster, node=one.node, pod_uid=one.pod_uid)
                    return
