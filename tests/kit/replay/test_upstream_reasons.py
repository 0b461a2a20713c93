"""Each row of semantics.md 13 that a comparison with Kubernetes' own controller names, in the shortest story of it.

`seen` is what the feed of the cluster `c` says of the node `n` and the pod `web`, second by second.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.comparison import DifferenceKind
from evictstream.kit.replay.edited_records import with_toleration_seconds
from evictstream.kit.replay.replay_report import report_of
from evictstream.models.messages.object_limits import LARGEST_LIST
from evictstream.streams.settings import Settings
from tests.faults.generate import VIRTUAL_START_US
from tests.faults.moved_seconds import by_backstop, by_handover
from tests.faults.objects import NOT_READY, UNREACHABLE, Json, Mover, Node, Pod, watch_event
from tests.faults.plan import SECOND_US

SAME, EARLIER, LATER, ONLY_HERE, ONLY_THERE = DifferenceKind
RUN_ON_SECONDS = 1_000.0
OVERFLOWING = 18_446_744_074
"""After so many seconds upstream's clock is at 0.3 s."""


class Seen:
    """What a feed says, as records of one partition."""

    def __init__(self) -> None:
        self.records: list[RecordedRecord] = []
        self.node_uid = "node-1"
        self.pod_uid = "pod-1"
        self.epoch = 0
        self.set_back = 0

    def node(self, at: float, *taints: str | Json, ready: str = "True", kind: str = "MODIFIED") -> Seen:
        """Show the node; a taint is `key` or `key=value`, or as in JSON."""
        node = Node("c", "n", self.node_uid, [_taint(one) for one in taints], ready)
        return self._add(at, "nodes", kind, node.shown(self._version(at)))

    def pod(self, at: float, *tolerations: Json, node: str = "n", kind: str = "MODIFIED", **more: object) -> Seen:
        """Show the pod; `more` are attributes of `Pod`."""
        pod = Pod("c", "shop", "web", self.pod_uid, node, list(tolerations), **more)  # type: ignore[arg-type]
        return self._add(at, "pods", kind, pod.shown(self._version(at)), node)

    def listed(self, at: float, topic: str, *uids: str) -> Seen:
        """Say what a complete listing holds on the node."""
        held = {"n": list(uids)} if uids else {}
        listing = {"resourceVersion": str(self._version(at)), "after": "", "through": None, "uids": held}
        return self._add(at, topic, "LISTED", None, "", listing=listing)

    def beat(self, at: float) -> Seen:
        """Say that the feed is alive."""
        for topic in ("nodes", "pods"):
            self._add(at, topic, "HEARTBEAT", None, "")
        return self

    def as_(self, **attributes: object) -> Seen:
        """Go on with another node, pod or epoch."""
        for name, value in attributes.items():
            setattr(self, name, value)
        return self

    def _version(self, at: float) -> int:
        return 100 + int((at - self.set_back) * 1_000)

    def _add(self, at: float, topic: str, kind: str, shown: Json | None, node: str = "n", **more: object) -> Seen:
        at_us = VIRTUAL_START_US + int(at * SECOND_US)
        more |= {"epoch": self.epoch} if self.epoch else {}
        self.records.append(
            RecordedRecord(
                topic="nodes" if topic == "nodes" else "pods",
                partition=0,
                offset=len(self.records),
                timestamp=at_us // 1_000,
                key=b"c",
                value=watch_event("c", kind, shown, at_us, **more),
            )
        )
        return self


def _taint(one: str | Json) -> Json:
    if not isinstance(one, str):
        return one
    key, _, value = one.partition("=")
    return {"key": key, "value": value, "effect": "NoExecute"}


def added(key: str, at: int) -> Json:
    return {"key": key, "effect": "NoExecute", "timeAdded": f"2026-01-01T00:00:{at:02}Z"}


def tolerate(key: str, seconds: int | None = None, value: str | None = None) -> Json:
    found: Json = {"key": key, "effect": "NoExecute", "operator": "Exists"}
    found |= {} if value is None else {"operator": "Equal", "value": value}
    return found | ({} if seconds is None else {"tolerationSeconds": seconds})


def differences(seen: Seen, *, plays_executor: bool = True) -> list[tuple[DifferenceKind, int | None, float | None]]:
    """Return kind, row and seconds of each difference."""
    found = report_of(
        Settings.model_validate({"partitions": 1}),
        lambda: seen.records,
        partitions=1,
        plays_executor=plays_executor,
        run_on_seconds=RUN_ON_SECONDS,
        against="upstream",
    )
    return [(one.kind, one.reason.row if one.reason else None, one.seconds) for one in found.differences]


def tolerating(*tolerations: Json) -> Seen:
    """Begin with the pod on the clean node."""
    return Seen().node(0).pod(0, *tolerations)


A, A100, B5 = tolerate("a"), tolerate("a", 100), tolerate("b", 5)
BOTH_300 = (tolerate(NOT_READY, 300), tolerate(UNREACHABLE, 300))
TOO_MANY = tuple(tolerate(f"k{number}") for number in range(LARGEST_LIST + 1))

STORIES: dict[str, tuple[Callable[[], Seen], DifferenceKind, int, float | None]] = {
    "a new pod takes the timer over": (
        lambda: tolerating(A100).node(1, "a").as_(pod_uid="pod-2").pod(11, A100),
        LATER,
        8,
        10,
    ),
    "a new pod has less time than the old timer": (
        lambda: tolerating(A100).node(1, "a").as_(pod_uid="pod-2").pod(2, tolerate("a", 10)),
        EARLIER,
        3,
        -89,
    ),
    "the deciding taint goes, another stays": (
        lambda: tolerating(tolerate("a", 30), tolerate("b", 60)).node(1, "a", "b").node(2, "b"),
        LATER,
        4,
        30,
    ),
    "the deciding taint is away for a moment, another stays": (
        lambda: tolerating(tolerate("a", 30), tolerate("b", 60)).node(1, "a", "b").node(11, "b").node(12, "a", "b"),
        LATER,
        4,
        11,
    ),
    "an edit to less": (lambda: tolerating(A100).node(1, "a").pod(11, tolerate("a", 30)), EARLIER, 5, -70),
    "an edit to nothing, in the very instant in which it leaves": (
        lambda: tolerating(A100).node(1, "a").pod(11, tolerate("a", 0)),
        EARLIER,
        5,
        -90,
    ),
    "an edit to more": (lambda: tolerating(tolerate("a", 30)).node(1, "a").pod(11, A100), LATER, 5, 70),
    "an edit from forever to some seconds": (
        lambda: tolerating(A).node(1, "a").pod(11, tolerate("a", 30)),
        EARLIER,
        5,
        -10,
    ),
    "an edit from forever to what is over": (
        lambda: tolerating(A).node(1, "a").pod(61, tolerate("a", 30)),
        EARLIER,
        5,
        -30,
    ),
    "edited to and fro": (
        lambda: tolerating(A100).node(1, "a").pod(11, A).pod(21, A100),
        EARLIER,
        5,
        -20,
    ),
    "a later taint leaves less time": (lambda: tolerating(A100, B5).node(1, "a").node(11, "a", "b"), EARLIER, 6, -85),
    "a missed removal shows in timeAdded": (
        lambda: tolerating(A100).node(1, added("a", 1)).node(11, added("a", 11)),
        LATER,
        7,
        10,
    ),
    "the node is gone": (lambda: tolerating(A100).node(1, "a").node(2, "a", kind="DELETED"), ONLY_THERE, 9, None),
    "the node is registered anew": (
        lambda: tolerating(A100).node(1, "a").as_(node_uid="node-2").node(11, "a"),
        LATER,
        9,
        10,
    ),
    "a finished pod": (
        lambda: tolerating(A100).pod(1, A100, phase="Failed").node(2, "a"),
        ONLY_THERE,
        12,
        None,
    ),
    "a mirror pod": (lambda: Seen().node(0).pod(0, is_mirror=True).node(1, "a"), ONLY_THERE, 13, None),
    "a pod that terminates": (
        lambda: tolerating(A100).node(1, "a").pod(2, A100, deleted_at="2026-01-01T00:00:00Z"),
        ONLY_THERE,
        14,
        None,
    ),
    "a health taint comes back within the gap of an outage": (
        lambda: (
            tolerating(*BOTH_300)
            .node(1, UNREACHABLE, ready="Unknown")
            .node(101, ready="Unknown")
            .node(103, UNREACHABLE, ready="Unknown")
        ),
        EARLIER,
        31,
        -102,
    ),
    "seconds overflow": (lambda: tolerating(tolerate("a", OVERFLOWING)).node(1, "a"), ONLY_THERE, 33, None),
    "another value, another toleration": (
        lambda: tolerating(tolerate("a", 100, "x"), tolerate("a", 10, "y")).node(1, "a=x").node(2, "a=y"),
        EARLIER,
        37,
        None,
    ),
    "the feed is silent": (
        lambda: tolerating(A100).beat(0).node(1, "a").beat(200),
        LATER,
        38,
        99,
    ),
    "beyond a limit": (lambda: tolerating(A100).node(1, "a").pod(2, *TOO_MANY), ONLY_THERE, 39, None),
}


@pytest.mark.parametrize("name", STORIES)
def test_each_difference_has_its_row(name: str) -> None:
    story, kind, row, seconds = STORIES[name]
    (found,) = differences(story())
    assert found[:2] == (kind, row)
    if seconds is not None:
        assert found[2] == pytest.approx(seconds, abs=0.5)


def test_upstream_knows_one_pod_for_each_name() -> None:
    """The end of the first pod is missed: the second one ends it here, and meets its timer there."""
    seen = tolerating(A100).node(1, "a").as_(pod_uid="pod-2").pod(2, A, node="m")
    assert differences(seen) == [(ONLY_THERE, 8, None)]


def test_a_second_eviction_of_one_pod_is_owed_anew() -> None:
    """Nobody carries the first one out here, and upstream's own has deleted the pod."""
    seen = tolerating().node(1, "a").node(50).node(60, "a")
    assert differences(seen, plays_executor=False) == [(ONLY_HERE, 2, None)]


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(
            tolerating(A100).node(1, "a").node(50, "a").listed(51, "nodes", "node-1").listed(51, "pods"),
            id="a pod is gone that no listing holds",
        ),
        pytest.param(
            tolerating(A100).node(1, "a").listed(50, "nodes").listed(51, "pods"),
            id="node and pod are gone",
        ),
        pytest.param(
            tolerating(A100)
            .node(1, "a")
            .as_(epoch=1, set_back=51)
            .node(52)
            .pod(52, A100)
            .listed(53, "nodes", "node-1")
            .listed(53, "pods", "pod-1"),
            id="etcd is restored to before the taint",
        ),
        pytest.param(
            tolerating(A100)
            .as_(epoch=1, set_back=5)
            .node(10)
            .listed(11, "nodes", "node-1")
            .listed(11, "pods")
            .as_(epoch=0, set_back=0)
            .node(12, "a")
            .pod(13),
            id="records of an ended epoch",
        ),
        pytest.param(
            tolerating(A100).node(1, "a").pod(50, A100, kind="DELETED").pod(49, A100),
            id="an older state comes late",
        ),
    ],
)
def test_upstream_is_told_what_the_service_is_told(seen: Seen) -> None:
    assert differences(seen) == []


def test_a_pod_is_deleted_once_though_two_reasons_meet() -> None:
    """Its timer fires and an untolerated taint comes before anything else is recorded."""
    seen = tolerating(tolerate("a", 30)).node(1, "a").node(45, "a", "b").pod(46, tolerate("a", 30))
    assert differences(seen) == []


def moved_story() -> Seen:
    return Seen().node(0).pod(0, A100, moved_by=by_backstop).node(1, "a")


def test_upstream_counts_the_seconds_of_the_spec() -> None:
    assert differences(moved_story()) == [(ONLY_HERE, 40, None)]


def test_report_says_what_would_be_without_the_policy() -> None:
    found = report_of(
        Settings.model_validate({"partitions": 1}),
        lambda: moved_story().records,
        partitions=1,
        plays_executor=True,
        run_on_seconds=RUN_ON_SECONDS,
        against="upstream",
    )
    assert found.without_policy == (1, 0)
    assert found.summary()["withoutPolicy"] == {"same": 1, "different": 0}
    (difference,) = found.differences
    assert difference.reason is not None
    assert "a policy has moved its seconds" in difference.reason.text


@pytest.mark.parametrize("mover", [by_backstop, by_handover])
def test_replaced_seconds_are_moved_as_those_before(mover: Mover) -> None:
    records = Seen().pod(0, A100, B5, moved_by=mover).records
    (edited,) = with_toleration_seconds(records, {"a": 7})
    (expected,) = Seen().pod(0, tolerate("a", 7), B5, moved_by=mover).records
    assert json.loads(edited.value or b"") == json.loads(expected.value or b"")


def test_seconds_are_replaced_beside_an_unreadable_annotation() -> None:
    def unreadable(tolerations: list[Json], _uid: str, _version: int) -> tuple[Json, list[Json]]:
        return {"evictstream.io/tolerations": "nonsense"}, tolerations

    (edited,) = with_toleration_seconds(Seen().pod(0, A100, moved_by=unreadable).records, {"a": 7})
    assert json.loads(edited.value or b"")["object"]["spec"]["tolerations"] == [tolerate("a", 7)]
