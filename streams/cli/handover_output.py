"""What the commands of a handover print: lines and a table for people, one object for programs."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any

from evictstream.streams.cli.output import print_json, print_table, say, warn
from evictstream.streams.handover.acting import ActingPolicy
from evictstream.streams.handover.checking import HandoverReport, excluded, opted_out
from evictstream.streams.handover.pod_changes import ChangeOutcome, ChangeReport
from evictstream.streams.handover.pod_states import MEANINGS, HandoverState


def acting_text(acting: ActingPolicy | None) -> str:
    """Say what the policy does."""
    if acting is None:
        return "off: new pods stay as they are"
    if acting.more is None:
        return "handover: the built-in controller never evicts what is moved"
    return f"backstop: the built-in controller evicts {acting.more} s later"


def print_check(report: HandoverReport, *, as_text: bool) -> None:
    """Print what `check` has found."""
    if not as_text:
        print_json(_check_json(report))
        return
    say(f"policy    {acting_text(report.acting)}")
    for each in report.policies:
        say(f"          {each.name}, version {each.version or 'unknown'}")
    say(f"guard     {'on' if report.is_guarded else 'off'}")
    say(f"excluded  {', '.join(excluded(report.rules)) or '-'}")
    say(f"opted out {', '.join(opted_out(report.rules)) or '-'}")
    say()
    print_table(
        ["NAMESPACE", "MOVED", "TO MOVE", "NOT MOVED", "WHY"],
        [_row(namespace, counts) for namespace, counts in report.namespaces.items()],
    )
    say()
    for state, count in sorted(report.totals.items(), key=lambda each: list(HandoverState).index(each[0])):
        say(f"{count} pods {state}: {MEANINGS[state]}")
    for problem in report.problems():
        warn(problem)


def print_changes(report: ChangeReport, *, done: str, is_dry_run: bool, as_text: bool) -> None:
    """Print what `move` or `restore` has done.

    Args:
        report: the counts.
        done: the word for it, such as `moved`.
        is_dry_run: whether nothing was written.
        as_text: for people.
    """
    counts = report.outcomes
    if not as_text:
        print_json(
            {
                done: counts[ChangeOutcome.CHANGED],
                **{name.value: counts[name] for name in ChangeOutcome if name is not ChangeOutcome.CHANGED},
                "left": dict(sorted(report.left.items())),
                "loosened": report.loosened,
                "failures": [{"pod": pod, "reason": reason} for pod, reason in report.failures],
                "isDryRun": is_dry_run,
                "isWhole": report.is_whole,
            }
        )
        return
    for pod, reason in report.failures:
        warn(f"{pod}: {reason}")
    if counts[ChangeOutcome.FAILED] > len(report.failures):
        warn(f"and {counts[ChangeOutcome.FAILED] - len(report.failures)} more")
    parts = [f"{counts[ChangeOutcome.CHANGED]} pods {f'would be {done}' if is_dry_run else done}"]
    parts += [
        f"{counts[outcome]} {text}"
        for outcome, text in (
            (ChangeOutcome.UNCHANGED, "stayed as they are"),
            (ChangeOutcome.GONE, "were gone"),
            (ChangeOutcome.FAILED, "failed"),
        )
        if counts[outcome]
    ]
    left = ", ".join(f"{count} {why}" for why, count in sorted(report.left.items()))
    say(", ".join(parts) + (f"; not asked: {left}" if left else ""))
    if report.loosened:
        warn(
            f"{report.loosened} pods have no seconds until they are restored, and the built-in controller does not"
            " evict them: repeat the command"
        )
    if not report.is_whole:
        warn("stopped before the end: the same command goes on where this one was")


def _check_json(report: HandoverReport) -> dict[str, Any]:
    acting = report.acting
    return {
        "acting": None if acting is None else {"variant": acting.variant.value, "more": acting.more},
        "probedNamespace": report.probed,
        "policies": [
            {
                "name": each.name,
                "version": each.version,
                "variant": each.variant,
                "more": each.more,
                "isOlder": each.is_older,
                "isEdited": each.is_edited,
            }
            for each in report.policies
        ],
        "isBound": report.is_bound,
        "isGuarded": report.is_guarded,
        "edited": list(report.edited),
        "excludedNamespaces": excluded(report.rules),
        "optedOutNamespaces": opted_out(report.rules),
        "totals": _counts(report.totals),
        "namespaces": {namespace: _counts(counts) for namespace, counts in report.namespaces.items()},
        "problems": report.problems(),
    }


def _counts(counts: Mapping[HandoverState, int]) -> dict[str, int]:
    return {state.value: counts[state] for state in HandoverState if counts.get(state)}


def _row(namespace: str, counts: collections.Counter[HandoverState]) -> list[str]:
    others = {
        state: counts[state] for state in HandoverState if state not in (HandoverState.MOVED, HandoverState.TO_MOVE)
    }
    why = ", ".join(f"{count} {state}" for state, count in others.items() if count)
    return [
        namespace,
        str(counts[HandoverState.MOVED]),
        str(counts[HandoverState.TO_MOVE]),
        str(sum(others.values())),
        why or "-",
    ]
