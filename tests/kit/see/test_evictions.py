"""What is pending, from the rows that a partition writes, with and without gates, answers and queues."""

from __future__ import annotations

import msgspec
import pytest

from evictstream.kit.cli.see_tables import clusters_kind, evictions_kind, gate_or_result, is_alarming, nodes_kind
from evictstream.kit.see.clusters import listed_clusters
from evictstream.kit.see.evictions import ListedEviction, SeenState, Silences, ended_eviction, pending_evictions
from evictstream.kit.see.nodes import listed_nodes
from evictstream.kit.see.steering import Steering
from evictstream.kit.see.stored_state import StoredState
from evictstream.models.eviction import RuleParameters
from evictstream.models.eviction.backstop import Outlasted, outlasted_by
from evictstream.models.instants import instant_text
from evictstream.models.messages.vocabulary import DecisionKind, Outcome, Verdict
from evictstream.streams.cli.lists import ListTable
from evictstream.streams.settings import Settings
from tests.harness.rows import NOON_US, SECOND_US, State
from tests.kit.replay.test_story import decision
from tests.models.steering.test_brakes import read as brakes_of
from tests.models.steering.test_brakes import record

SILENCES = Silences(feed_us=60 * SECOND_US, report_us=30 * SECOND_US)
SETTINGS = Settings.model_validate({"partitions": 2})
UNREACHABLE: dict[str, object] = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def read(rows: State) -> StoredState:
    """Take the rows over as if they were read, in the order in which they were written."""
    state = StoredState()
    for number, outbox in enumerate(rows.outboxes):
        for key, value in outbox.rows.items():
            state.load(number, key, value)
    return state


@pytest.fixture
def rows() -> State:
    """Two pods with 300 s and 20 s on a tainted node of `lab`, and one on a node without taints."""
    rows = State(SETTINGS)
    rows.node("lab", "n-1", UNREACHABLE)
    rows.node("lab", "n-2")
    rows.pod("lab", "n-1", "slow", 300)
    rows.pod("lab", "n-1", "quick", 20)
    rows.pod("lab", "n-2", "safe", 20)
    return rows


def seen(rows: State, after_seconds: float) -> dict[str, ListedEviction]:
    found = pending_evictions(read(rows), NOON_US + int(after_seconds * SECOND_US), SILENCES)
    return {one.pod: one for one in found}


def lines(rows: State, after_seconds: float, room: int | None, what: str = "evictions") -> list[str]:
    at_us = NOON_US + int(after_seconds * SECOND_US)
    state = read(rows)
    if what == "nodes":
        nodes, of_nodes = listed_nodes(state, at_us, SILENCES), nodes_kind(lambda: at_us, shows_cluster=False)
        table = ListTable(of_nodes, is_wide=False, room=room, first=nodes)
        return [table.titles(), *map(table.row, nodes)]
    if what == "clusters":
        clusters, of_clusters = listed_clusters(state, at_us, SILENCES), clusters_kind(lambda: at_us)
        of_all = ListTable(of_clusters, is_wide=False, room=room, first=clusters)
        return [of_all.titles(), *map(of_all.row, clusters)]
    pending = pending_evictions(state, at_us, SILENCES)
    of_pending = ListTable(evictions_kind(lambda: at_us, shows_cluster=False), is_wide=False, room=room, first=pending)
    return [of_pending.titles(), *map(of_pending.row, pending)]


def test_the_first_to_be_done_comes_first(rows: State) -> None:
    found = seen(rows, 15)
    assert list(found) == ["quick", "slow"]
    assert {one.state for one in found.values()} == {SeenState.SCHEDULED}
    assert found["quick"].taint.key == UNREACHABLE["key"]
    assert found["quick"].toleration is not None


def test_an_edit_that_outlasts_the_backstop_is_shown() -> None:
    rows = State(SETTINGS.model_copy(update={"built_in": "lab"}))
    rows.node("lab", "n-1", UNREACHABLE)
    rows.pod("lab", "n-1", "kept", 20, more=60)
    rows.pod("lab", "n-1", "edited", 20, more=60)
    rows.pod("lab", "n-1", "edited", 900, more=60, event_type="MODIFIED")
    found = seen(rows, 15)
    at = instant_text(NOON_US + (6 + 80) * SECOND_US)
    assert {name: one.built_in_at for name, one in found.items()} == {"kept": None, "edited": at}
    assert gate_or_result(found["edited"]) == "built-in at 12:01Z"
    assert gate_or_result(found["kept"]) == "-"
    brakes = brakes_of(record("b-1", clusters=["lab"]), appended_us=NOON_US)
    nodes = [stored.aggregate for stored in read(rows).nodes()]
    outlasted = outlasted_by(lambda name: brakes.of_cluster(name, NOON_US), nodes, NOON_US, RuleParameters())
    first_us = NOON_US + (4 + 80) * SECOND_US
    assert outlasted == {"b-1": Outlasted(first_us, 2)}


def test_what_a_brake_holds_names_it(rows: State) -> None:
    brakes = brakes_of(record("b-1", clusters=["lab"]), appended_us=NOON_US)
    pending = pending_evictions(read(rows), NOON_US + 60 * SECOND_US, SILENCES, Steering(brakes))
    assert [(one.pod, one.held_by, gate_or_result(one)) for one in pending] == [
        ("quick", "b-1", "held b-1"),
        ("slow", None, "-"),
    ]
    assert not any(map(is_alarming, pending))


@pytest.mark.parametrize(
    ("brake", "goes_on"),
    [
        pytest.param({}, True, id="without-an-end"),
        pytest.param({"endsAt": "2026-11-21T13:02:00.000000Z"}, True, id="ends-after-it"),
        pytest.param({"endsAt": "2026-11-21T12:30:00.000000Z"}, False, id="ends-before-it"),
    ],
)
def test_what_is_held_says_when_it_goes_on(brake: dict[str, str], goes_on: bool) -> None:  # noqa: FBT001 - a case
    rows = State(SETTINGS)
    rows.node("lab", "n-1", UNREACHABLE)
    rows.pod("lab", "n-1", "moved", 20, more=3600)
    rows.pod("lab", "n-1", "not-moved", 20)
    brakes, at_us = brakes_of(record("b-1", **brake), appended_us=NOON_US), NOON_US + 60 * SECOND_US
    found = {one.pod: one for one in pending_evictions(read(rows), at_us, SILENCES, Steering(brakes))}
    at = "2026-11-21T13:00:24.000000Z" if goes_on else None
    assert {name: one.built_in_at for name, one in found.items()} == {"moved": at, "not-moved": None}
    assert gate_or_result(found["moved"]) == ("held b-1, built-in at 13:00Z" if goes_on else "held b-1")
    assert pending_evictions(read(rows), at_us, SILENCES)[0].built_in_at is None


def test_what_is_due_waits_for_a_worker_or_a_gate(rows: State) -> None:
    assert seen(rows, 60)["quick"].state is SeenState.DUE
    assert seen(rows, 60)["quick"].gate is None
    rows.heartbeat("lab")
    assert seen(rows, 60)["quick"].gate is None
    assert seen(rows, 120)["quick"].gate == "feed"
    rows.gap(rows.partition_of("lab"), nodes=1)
    assert seen(rows, 60)["quick"].gate == "gap"


def test_what_was_issued_waits_for_an_answer(rows: State) -> None:
    number = rows.partition_of("lab")
    rows.partitions[number].fire(NOON_US + 60 * SECOND_US, 10, rows.outboxes[number])
    quick = seen(rows, 61)["quick"]
    assert (quick.state, quick.attempt, quick.last_result, quick.gate) == (SeenState.ISSUED, 1, None, None)
    assert quick.unanswered_since is not None


def test_what_was_observed_waits_for_neither_attempt_nor_gate(rows: State) -> None:
    number = rows.partition_of("lab")
    rows.partitions[number].fire(NOON_US + 60 * SECOND_US, 10, rows.outboxes[number])
    rows.heartbeat("lab")
    rows.result("lab", "Observed")
    quick = seen(rows, 10_000)["quick"]
    assert (quick.last_result, quick.next_attempt_at, quick.gate) == ("Observed", None, None)


def test_rows_that_go_take_their_evictions_along(rows: State) -> None:
    rows.node("lab", "n-1", event_type="MODIFIED")
    assert seen(rows, 15) == {}


def test_a_table_of_80_columns_has_every_column(rows: State) -> None:
    titles, quick, slow = lines(rows, 30.5, 80)
    assert titles.split() == ["IN", "POD", "NODE", "TAINT", "STATE", "GATE/RESULT", "ATTEMPT"]
    assert quick.split() == ["-2s", "x/quick", "n-1", "unreachable", "Due", "worker", "0"]
    assert slow.split() == ["4m35s", "x/slow", "n-1", "unreachable", "Scheduled", "-", "0"]
    assert max(map(len, (titles, quick, slow))) <= 80


@pytest.mark.parametrize("what", ["evictions", "nodes", "clusters"])
@pytest.mark.parametrize("room", [20, 40, 80])
def test_no_line_is_longer_than_the_terminal(what: str, room: int, rows: State) -> None:
    rows.node("lab", "a-node-with-a-name-of-a-cloud.eu-west-1.compute.internal", UNREACHABLE)
    rows.pod("lab", "a-node-with-a-name-of-a-cloud.eu-west-1.compute.internal", "payments-api-5f6d8c9b7-x2kq9", 20)
    shown = lines(rows, 60, room, what)
    assert len(shown) > 1
    assert max(map(len, shown)) <= room


def test_nodes_show_taints_and_what_is_pending(rows: State) -> None:
    _, tainted, plain = lines(rows, 15, None, "nodes")
    assert tainted.split() == ["n-1", UNREACHABLE["key"], "13s", "ago", "2", "2", "13s"]
    assert plain.split() == ["n-2", "-", "-", "1", "0", "-"]


def test_clusters_show_feeds_and_what_is_due(rows: State) -> None:
    rows.heartbeat("lab")
    (one,) = listed_clusters(read(rows), NOON_US + 120 * SECOND_US, SILENCES)
    assert (one.nodes, one.pods, one.pending, one.due, one.unanswered, one.gate) == (2, 3, 2, 1, 0, "feed")
    assert one.heard_at is not None


def test_decisions_tell_what_has_ended() -> None:
    assert ended_eviction(decision(DecisionKind.SCHEDULED)) is None
    ended = ended_eviction(decision(DecisionKind.CANCELLED, verdict=Verdict.TAINT_REMOVED))
    assert ended is not None
    assert (ended.state, ended.verdict) == (SeenState.CANCELLED, Verdict.TAINT_REMOVED)
    assert ended.at == ended.ended_at


def test_programs_get_camel_case_and_no_empty_fields(rows: State) -> None:
    found = msgspec.to_builtins(seen(rows, 15)["quick"])
    assert found["podUid"] == "quick"
    assert found["taint"] == UNREACHABLE
    assert "lastResult" not in found
    answered = msgspec.structs.replace(seen(rows, 15)["quick"], last_result=Outcome.FAILED)
    assert msgspec.to_builtins(answered)["lastResult"] == "Failed"
