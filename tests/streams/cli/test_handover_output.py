"""What the commands of a handover print for people and for programs."""

from __future__ import annotations

import collections
import json
from collections.abc import Sequence

import pytest

from evictstream.streams.cli.handover_output import print_changes, print_check
from evictstream.streams.handover.acting import ActingPolicy, FoundPolicy
from evictstream.streams.handover.checking import HandoverReport
from evictstream.streams.handover.pod_changes import MOST_EXAMPLES, ChangeOutcome, ChangeReport
from evictstream.streams.handover.pod_states import HandoverState, NamespaceRules
from evictstream.streams.handover.policy_objects import HandoverVariant

FOUND = FoundPolicy(name="evictstream-handover", version=1, variant="backstop", more=3600, is_edited=False)
ACTING = ActingPolicy(variant=HandoverVariant.BACKSTOP, more=3600)


def report(
    acting: ActingPolicy | None = ACTING,
    policies: Sequence[FoundPolicy] = (FOUND,),
    *,
    is_bound: bool = True,
    edited: Sequence[str] = (),
    **pods: int,
) -> HandoverReport:
    labels = {"shop": {}, "off": {"evictstream.io/handover": "off"}}
    return HandoverReport(
        acting=acting,
        probed="shop",
        policies=policies,
        is_guarded=True,
        rules=NamespaceRules(labels=labels),
        is_bound=is_bound,
        edited=edited,
        namespaces={"shop": collections.Counter({HandoverState[name]: count for name, count in pods.items()})},
    )


def test_people_read_what_acts_and_why_pods_stay(capsys: pytest.CaptureFixture[str]) -> None:
    print_check(report(MOVED=7, TO_MOVE=2, MIRROR=3, UNTOLERATED=1), as_text=True)
    shown = capsys.readouterr()
    assert "policy    backstop: the built-in controller evicts 3600 s later\n" in shown.out
    assert "guard     on\n" in shown.out
    assert "opted out off\n" in shown.out
    assert "shop       7      2        4          1 noToleration, 3 mirrorPod\n" in shown.out
    assert "7 pods moved: evictstream's\n" in shown.out
    assert shown.err == "evictstream: 2 pods are still to be moved: `evictstream handover move`\n"


def test_programs_read_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    print_check(report(MOVED=7, TO_MOVE=2), as_text=False)
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found["namespaces"] == {"shop": {"moved": 7, "toMove": 2}}
    assert found["problems"] == ["2 pods are still to be moved: `evictstream handover move`"]
    assert shown.err == ""


OLDER = FoundPolicy(name="evictstream-handover", version=0, variant="", more=None, is_edited=True)
EDITED = FoundPolicy(name="evictstream-handover", version=1, variant="backstop", more=3600, is_edited=True)
SECOND = FoundPolicy(name="second", version=1, variant="handover", more=None, is_edited=False)
PROBLEMS = {
    "none": (report(MOVED=1, NO_SECONDS=1, TOO_MANY=1), []),
    "no-policy": (report(None, ()), ["there is no policy"]),
    "no-binding": (report(None, is_bound=False), ["the policy has no binding"]),
    "does-not-act": (report(None, TO_MOVE=1), ["the policy does not act in the namespace shop"]),
    "older": (report(policies=[OLDER]), ["the policy evictstream-handover is older"]),
    "edited": (report(policies=[EDITED]), ["the policy evictstream-handover was edited"]),
    "guard-edited": (
        report(edited=["ValidatingAdmissionPolicy evictstream-handover-status"]),
        ["the ValidatingAdmissionPolicy evictstream-handover-status was edited"],
    ),
    "several": (report(policies=[FOUND, SECOND]), ["there are several policies (evictstream-handover, second)"]),
    "to-move": (report(TO_MOVE=1), ["1 pods are still to be moved"]),
    "unreadable": (report(UNREADABLE=1), ["1 pods have an annotation that counts as absent"]),
}


@pytest.mark.parametrize(("found", "begin"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_problem_is_what_somebody_has_to_mend(found: HandoverReport, begin: list[str]) -> None:
    assert [problem[: len(text)] for problem, text in zip(found.problems(), begin, strict=True)] == begin


def test_a_summary_counts_and_names_failures(capsys: pytest.CaptureFixture[str]) -> None:
    done = ChangeReport()
    done.outcomes.update({ChangeOutcome.CHANGED: 3, ChangeOutcome.GONE: 1, ChangeOutcome.FAILED: MOST_EXAMPLES + 2})
    done.failures += [(f"shop/p-{number}", "422: no") for number in range(MOST_EXAMPLES)]
    done.left.update({HandoverState.MOVED: 5})
    print_changes(done, done="moved", is_dry_run=False, as_text=True)
    shown = capsys.readouterr()
    assert shown.out == "3 pods moved, 1 were gone, 22 failed; not asked: 5 moved\n"
    assert "evictstream: shop/p-0: 422: no\n" in shown.err
    assert "evictstream: and 2 more\n" in shown.err
    assert "stopped before the end" in shown.err
    print_changes(done, done="moved", is_dry_run=True, as_text=True)
    assert capsys.readouterr().out.startswith("3 pods would be moved, ")


def test_pods_left_without_seconds_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    done = ChangeReport(loosened=3)
    print_changes(done, done="restored", is_dry_run=False, as_text=True)
    assert "3 pods have no seconds until they are restored" in (shown := capsys.readouterr().err)
    assert "repeat the command" in shown
    print_changes(done, done="restored", is_dry_run=False, as_text=False)
    assert json.loads(capsys.readouterr().out)["loosened"] == 3
