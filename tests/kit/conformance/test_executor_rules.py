"""Each rule for executors on evidence without Kafka: held by what the contract wants, broken by one fault."""

from __future__ import annotations

import dataclasses

import pytest

from evictstream.kit.conformance.brake_rules import BRAKE_CASE
from evictstream.kit.conformance.command_writer import partition_of_key
from evictstream.kit.conformance.executor_play import OTHER_CLUSTER
from evictstream.kit.conformance.executor_rules import EXECUTOR_RULES
from evictstream.kit.conformance.fake_faults import ApiWrite
from evictstream.kit.conformance.findings import JudgedRule, Standing
from evictstream.kit.conformance.playground import CLUSTER, PARTITIONS
from evictstream.kit.conformance.process_rules import ProcessEvidence
from evictstream.models.messages.command import decode_command
from evictstream.streams.partition.messages import COMMAND_HEADERS
from tests.kit.conformance.telling import DELETE, KILLED_AT, Spoil, ToldExecutor, without_fault

ALL = [rule.name for rule in EXECUTOR_RULES]


def writes(**fields: object) -> Spoil:
    """Let all deletes of the first plain pod have these fields."""

    def changed(one: ApiWrite) -> ApiWrite:
        is_it = one.name == "plain-0" and one.what == DELETE
        return dataclasses.replace(one, **fields) if is_it else one  # type: ignore[arg-type] # the test's own mistake

    def spoil(told: ToldExecutor) -> None:
        told.writes = [changed(one) for one in told.writes]

    return spoil


def answers_later(told: ToldExecutor) -> None:
    late = told.of("cut-before")
    told.results = [
        dataclasses.replace(one, at=late.at + 31) if one.body.get("evictionId") == late.eviction_id else one
        for one in told.results
    ]


def deletes_after_the_kill(told: ToldExecutor) -> None:
    told.now = KILLED_AT + 10
    told.write(told.of("kill"), status=404, done_to=None)


def cancels_too_late(told: ToldExecutor) -> None:
    told.forget_answers(told.of("cancelled"))
    told.do(told.of("cancelled"))


def asks_for_what_moved(told: ToldExecutor) -> None:
    told.write(told.of("moved"), status=500, done_to=None)


def tries_often(told: ToldExecutor) -> None:
    at = told.of("500").at
    for _ in range(12):
        told.write(told.of("500"), status=500, done_to=None, at=at)


def never_deletes_the_next(told: ToldExecutor) -> None:
    told.writes = [one for one in told.writes if not (one.name == "500" and one.done_to)]


def never_lets_go(told: ToldExecutor) -> None:
    told.writes = [one for one in told.writes if one.name != BRAKE_CASE]


def answers_only_the_last(told: ToldExecutor) -> None:
    told.results = [
        one for one in told.results if not (one.body.get("pod") == "overtaken" and one.body["attempt"] == 1)
    ]


def does_the_repeated(told: ToldExecutor) -> None:
    told.write(told.of("repeated"), status=404, done_to=None)


def does_not_repeat(told: ToldExecutor) -> None:
    told.results = [
        one for one in told.results if one.body.get("pod") != "repeated" or one.at < told.of("repeated", 1).at
    ]


def no_patches(told: ToldExecutor) -> None:
    told.writes = [one for one in told.writes if one.what == DELETE]


def end(**fields: object) -> Spoil:
    def spoil(told: ToldExecutor) -> None:
        told.more["process"] = ProcessEvidence(**fields)  # type: ignore[arg-type] # the test's own mistake

    return spoil


SPOILT: list[tuple[str, Spoil]] = [
    ("evicts", lambda told: told.answer(told.of("plain"), "Succeeded", at=KILLED_AT - 1)),
    ("evicts", lambda told: told.change_answers(told.of("plain"), outcome="Failed")),
    ("evicts", writes(done_to=None)),
    ("answers", lambda told: told.forget_answers(told.of("cut-before"))),
    ("answers", answers_later),
    ("result-form", lambda told: told.answer(told.of("absent"), "Gone", key=b"absent")),
    ("result-form", lambda told: told.answer(told.of("absent"), "Gone", partition=7)),
    ("result-form", lambda told: told.answer(told.of("absent"), "Gone", problem="WrongType: attempt")),
    ("result-form", lambda told: told.change_answers(told.of("absent"), attempt=2)),
    ("result-form", lambda told: told.change_answers(told.of("absent"), podUid="another")),
    ("reports", lambda told: told.report(told.of("429"), key=b"429")),
    ("reports", lambda told: told.report(told.of("429"), read_to_us=2**50)),
    ("precondition", writes(uid=None)),
    ("precondition", writes(uid="another")),
    ("truth", lambda told: told.change_answers(told.of("403"), outcome="Succeeded")),
    ("other-uid", lambda told: told.write(told.of("other-uid"), done_to="another")),
    ("other-uid", lambda told: told.change_answers(told.of("other-uid"), outcome="Failed")),
    ("absent", lambda told: told.forget_answers(told.of("absent"))),
    ("repeated", does_the_repeated),
    ("repeated", does_not_repeat),
    ("next-attempt", never_deletes_the_next),
    ("cancelled", cancels_too_late),
    ("moved", asks_for_what_moved),
    ("overtaken", answers_only_the_last),
    ("overtaken", lambda told: told.answer(told.of("overtaken"), "Succeeded", at=KILLED_AT - 1)),
    ("committed-only", lambda told: told.answer(told.of("uncommitted"), "Succeeded")),
    ("committed-only", lambda told: told.write(told.of("uncommitted"))),
    ("owed-nothing", lambda told: told.answer(told.of("schedule"), "Observed")),
    ("own-cluster", lambda told: told.write(told.of("foreign"))),
    ("refused-429", lambda told: told.change_answers(told.of("429"), outcome="Obsolete")),
    ("refused-500", lambda told: told.change_answers(told.of("500"), outcome="Gone")),
    ("refused-403", lambda told: told.change_answers(told.of("403"), outcome="Gone")),
    ("cut-before", lambda told: told.forget_answers(told.of("cut-before"))),
    ("cut-after", lambda told: told.forget_answers(told.of("cut-after"))),
    ("slow", lambda told: told.forget_answers(told.of("slow"))),
    ("unreadable", lambda told: told.forget_answers(told.of("unreadable"))),
    ("newer", lambda told: told.forget_answers(told.of("newer"))),
    ("newer", lambda told: told.change_answers(told.of("newer"), outcome="Failed")),
    ("held", lambda told: told.write(told.of(BRAKE_CASE), at=told.of(BRAKE_CASE).at + 0.05)),
    ("held", lambda told: told.change_answers(told.of(BRAKE_CASE), heldBy="another")),
    ("released", never_lets_go),
    ("nothing-lost", lambda told: told.forget_answers(told.of("kill", 2))),
    ("not-twice", deletes_after_the_kill),
    ("stays", end(ended_by_itself="exit code 1")),
    ("begins", lambda told: told.forget_reports()),
    ("few-tries", tries_often),
    ("taint-gone", lambda told: told.do(told.of("untainted"))),
    ("disruption-target", no_patches),
    ("new-token", lambda told: told.change_answers(told.of("token"), outcome="Failed")),
    ("stops", end(stop_seconds=None)),
]


def test_what_the_contract_wants_holds_every_rule() -> None:
    assert without_fault().standings() == dict.fromkeys(ALL, "held")


@pytest.mark.parametrize(("rule", "spoil"), SPOILT)
def test_one_fault_breaks_its_rule(rule: str, spoil: Spoil) -> None:
    told = without_fault()
    spoil(told)
    assert told.standings()[rule] == "BROKEN"


def test_every_rule_can_be_broken() -> None:
    assert {rule for rule, _ in SPOILT} == set(ALL)


def test_who_knows_no_brakes_is_not_judged_by_them() -> None:
    told = without_fault()
    told.write(told.of(BRAKE_CASE), at=told.of(BRAKE_CASE).at + 0.05)
    told.change_answers(told.of(BRAKE_CASE), heldBy=None)
    shown = told.standings()
    assert (shown["held"], shown["released"]) == ("not shown", "not shown")


def test_another_cluster_is_in_the_partition_that_is_read() -> None:
    own, other = (partition_of_key(name.encode(), PARTITIONS) for name in (CLUSTER, OTHER_CLUSTER))
    assert own == other


def test_nothing_recorded_shows_nothing() -> None:
    told = ToldExecutor()
    told.more = {"process": ProcessEvidence(is_ours=False)}
    assert set(told.standings().values()) == {"not shown"}


def test_what_cannot_be_told_is_not_shown() -> None:
    told = without_fault()
    told.more["killed_at"] = None
    told.forget_answers(told.of("uncommitted-later"))
    told.forget_answers(told.of("repeated"))
    shown = told.standings()
    names = ("nothing-lost", "not-twice", "committed-only", "repeated")
    assert {name: shown[name] for name in names} == dict.fromkeys(names, "not shown")


def test_accepted_alone_answers_a_refused_delete() -> None:
    told = without_fault()
    told.change_answers(told.of("429"), outcome="Accepted")
    assert told.standings()["refused-429"] == "held"
    assert told.standings()["answers"] == "held"


def test_a_report_alone_answers_a_refused_delete() -> None:
    told = without_fault()
    told.forget_answers(told.of("500"))
    told.report(told.of("500"))
    assert told.standings()["refused-500"] == "BROKEN", "the next attempt was there"
    told.report(told.of("500"), at=told.of("500").at + 0.05)
    assert told.standings()["refused-500"] == "held"


def test_a_report_does_not_answer_what_it_does_not_have() -> None:
    told = without_fault()
    told.forget_answers(told.of("cut-before"))
    told.report(told.of("absent"))
    assert told.standings()["answers"] == "BROKEN"


def test_a_killed_executor_may_answer_all_again() -> None:
    told = without_fault()
    for case in ("plain", "overtaken", "500"):
        told.answer(told.of(case), "Gone")
    assert told.standings() == dict.fromkeys(ALL, "held")


def test_an_eviction_sets_the_condition_by_itself() -> None:
    """The API server does, with the reason EvictionByEvictionAPI."""
    told = without_fault()
    no_patches(told)
    told.writes = [dataclasses.replace(one, what="create pods/eviction") for one in told.writes]
    assert told.standings()["disruption-target"] == "held"


def test_a_dry_run_is_no_delete() -> None:
    told = without_fault()
    told.write(told.of("cancelled"), is_dry_run=True, done_to=None)
    assert told.standings()["cancelled"] == "held"


def test_only_required_rules_fail_an_end() -> None:
    def found(standing: Standing, *, is_recommended: bool) -> bool:
        return JudgedRule("name", "text", is_recommended, standing, "").is_failure

    assert found(Standing.BROKEN, is_recommended=False)
    assert not found(Standing.BROKEN, is_recommended=True)
    assert not found(Standing.NOT_SHOWN, is_recommended=False)


@pytest.mark.parametrize("action", ["Schedule", "Evict", "Cancel"])
def test_commands_are_what_the_service_writes(action: str) -> None:
    command = dataclasses.replace(ToldExecutor().evict("plain"), action=action)
    found = decode_command(command.value())
    assert (found.action, found.eviction_id, found.pod_uid) == (action, command.eviction_id, command.pod_uid)
    assert (found.deadline > found.issued_at) == (action == "Schedule")
    assert command.headers() == COMMAND_HEADERS
    assert decode_command(dataclasses.replace(command, is_newer=True).value()) == found
