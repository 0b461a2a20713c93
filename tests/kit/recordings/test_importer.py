from __future__ import annotations

import dataclasses
import io
import json
from typing import Any

import pytest

from evictstream.kit.recordings import AuditChange, Flaw, read_items
from evictstream.kit.recordings.importer import ImportCallbacks, ImportCounts, Importer, ImportOptions
from evictstream.models.instants import instant_text
from evictstream.models.messages.decoding import read_node_record, read_pod_record
from evictstream.models.messages.events import NodeEvent, Origin, PodEvent
from evictstream.models.messages.signals import Unbound
from evictstream.streams.errors import FoundProblemError, WrongUseError
from evictstream.streams.settings import Settings
from tests.streams.feed.clocks import NOW_US, StandingClock
from tests.streams.feed.samples import kubectl_line, line, node, pod

RECENT = [instant_text(NOW_US + second * 1_000_000) for second in range(10)]
OLD = "2020-01-01T00:00:00.000000Z"
ORIGIN = Origin("t", 0, 0)
KUBECTL = ImportOptions(cluster="lab")


@dataclasses.dataclass
class Played:
    """What became of an import."""

    counts: ImportCounts
    records: list[tuple[str, bytes, bytes]]
    sent_at: list[float]
    flaws: list[Flaw]
    notes: list[str]
    steps: int

    @property
    def values(self) -> list[dict[str, Any]]:
        return [json.loads(value) for _, _, value in self.records]


def play(
    data: bytes,
    options: ImportOptions | None = None,
    stop_after: int | None = None,
    fed: dict[str, int] | None = None,
    **settings: object,
) -> Played:
    standing = StandingClock()
    records: list[tuple[str, bytes, bytes]] = []
    sent_at: list[float] = []
    flaws: list[Flaw] = []
    notes: list[str] = []
    steps: list[int] = []

    class Sink:
        def send(self, topic: str, key: bytes, value: bytes) -> None:
            records.append((topic, key, value))
            sent_at.append(round(standing.seconds, 6))

    callbacks = ImportCallbacks(flaws.append, notes.append, lambda: steps.append(1), lambda: len(records) == stop_after)
    importer = Importer(Settings.model_validate(settings), options or ImportOptions(), standing.clock, callbacks)
    items = (item for item in read_items("f", io.BytesIO(data)) if not isinstance(item, AuditChange))
    importer.play(items, Sink(), fed or {})
    return Played(importer.counts, records, sent_at, flaws, notes, len(steps))


class TestRecords:
    def test_topics_keys_and_values(self) -> None:
        data = line(node(), RECENT[0]) + line(pod(), RECENT[1], "MODIFIED") + line(pod("p-2", None), RECENT[1])
        played = play(data)
        assert [(topic, key) for topic, key, _ in played.records] == [
            ("evictstream.nodes", b"lab"),
            ("evictstream.pods", b"lab"),
            ("evictstream.pods", b"lab"),
        ]
        assert played.values[1] == {
            "cluster": "lab",
            "type": "MODIFIED",
            "observedAt": RECENT[1],
            "object": pod(),
        }

    def test_the_service_reads_them(self) -> None:
        played = play(kubectl_line(node()) + kubectl_line(pod()) + kubectl_line(pod("p-2", None)), KUBECTL)
        (_, *first), (_, *second), (_, *third) = played.records
        assert isinstance(read_node_record(first[0], first[1], NOW_US, ORIGIN), NodeEvent)
        assert isinstance(read_pod_record(second[0], second[1], NOW_US, ORIGIN), PodEvent)
        assert isinstance(read_pod_record(third[0], third[1], NOW_US, ORIGIN), Unbound)

    def test_names_of_any_alphabet(self) -> None:
        played = play(kubectl_line(node("n-ä")), ImportOptions(cluster="büro"))
        assert played.records[0][1] == "büro".encode()
        assert played.flaws == []

    def test_no_time_is_made_up(self) -> None:
        assert "observedAt" not in play(kubectl_line(node()), KUBECTL).values[0]

    def test_trimmed(self) -> None:
        assert play(line(pod(), RECENT[0]), ImportOptions(trim=True)).values[0]["object"]["spec"] == {"nodeName": "n-1"}


class TestCluster:
    def test_overrides_what_is_recorded(self) -> None:
        played = play(line(node(), RECENT[0], cluster="other"), KUBECTL)
        assert played.records[0][1] == b"lab"
        assert played.values[0]["cluster"] == "lab"
        assert played.counts.clusters == {"lab"}

    def test_is_needed(self) -> None:
        with pytest.raises(WrongUseError, match="--cluster"):
            play(kubectl_line(node()))

    def test_one_line_without_is_a_flaw(self) -> None:
        played = play(line(node(), RECENT[0]) + kubectl_line(node()) + line(node("n-2"), RECENT[1]))
        assert [flaw.line for flaw in played.flaws] == [2]
        assert len(played.records) == 2

    @pytest.mark.parametrize("name", ["", "a/b", "a\0b"])
    def test_names_that_keys_cannot_carry(self, name: str) -> None:
        with pytest.raises(WrongUseError, match="cannot be the name of a cluster"):
            play(b"", ImportOptions(cluster=name))


class TestFlaws:
    def test_what_would_be_a_dead_letter_is_not_sent(self) -> None:
        nameless = node("")
        cut = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}}
        odd = pod(tolerations=[{"tolerationSeconds": "300"}])
        data = b"".join(map(kubectl_line, (nameless, cut, odd, node("a/b"), node("fine"))))
        played = play(data, KUBECTL)
        assert [(flaw.line, flaw.problem.partition(":")[0]) for flaw in played.flaws] == [
            (1, "MissingField"),
            (2, "MissingField"),
            (3, "WrongType"),
            (4, "BadName"),
        ]
        assert [value["object"]["metadata"]["name"] for value in played.values] == ["fine"]
        assert played.counts.flaws == 4

    def test_an_object_beyond_the_limit(self) -> None:
        played = play(kubectl_line(node(providerID="x" * 2_000)), KUBECTL, max_object_bytes=2_000)
        assert "Oversized" in played.flaws[0].problem
        assert play(kubectl_line(node(providerID="x" * 1_000)), KUBECTL, max_object_bytes=2_000).flaws == []

    def test_trimming_comes_before_the_limit(self) -> None:
        options = ImportOptions(cluster="lab", trim=True)
        assert play(kubectl_line(node(providerID="x" * 2_000)), options, max_object_bytes=2_000).flaws == []


def test_counts() -> None:
    bookmark = b'{"type":"BOOKMARK","object":{"kind":"Pod"}}\n'
    data = line(node(), RECENT[3]) + bookmark * 2 + b"broken\n" + line(pod(), RECENT[5]) + line(pod(), RECENT[1])
    played = play(data)
    assert (played.counts.flaws, played.counts.clusters) == (1, {"lab"})
    assert played.counts.first_us == NOW_US + 1_000_000
    assert played.counts.last_us == NOW_US + 5_000_000
    assert played.counts.handed_over == {"Node": 1, "Pod": 2}
    assert played.counts.skipped == {"BOOKMARK": 2}
    assert played.steps == 6


class TestTimes:
    DATA = line(node("a"), RECENT[0]) + line(node("b"), RECENT[2]) + line(node("c"), RECENT[5])

    def test_recorded_pace_is_the_default(self) -> None:
        assert play(self.DATA).sent_at == [0, 2, 5]

    def test_fast(self) -> None:
        assert play(self.DATA, ImportOptions(pace=None)).sent_at == [0, 0, 0]

    def test_broken_lines_have_no_pace(self) -> None:
        nameless = line(node(""), "2030-01-01T00:00:00Z")
        assert play(nameless + self.DATA).sent_at == [0, 2, 5]

    def test_restamping_moves_the_first_to_now_and_keeps_distances(self) -> None:
        old = b"".join(line(node(), f"2020-01-01T00:00:0{second}Z") for second in (0, 2, 5))
        played = play(old, ImportOptions(restamp=True))
        assert [value["observedAt"] for value in played.values] == [RECENT[0], RECENT[2], RECENT[5]]
        assert played.sent_at == [0, 2, 5]
        assert played.notes == []

    def test_stop_while_waiting_sends_nothing_more(self) -> None:
        played = play(self.DATA, stop_after=1)
        assert len(played.records) == 1
        assert played.counts.handed_over.total() == 1


class TestNotes:
    def test_old_times(self) -> None:
        played = play(line(node(), OLD) * 2)
        (note,) = played.notes
        assert f"the first is {OLD}" in note
        assert "60 s before it is appended" in note
        assert "--restamp" in note

    def test_times_within_the_limit_need_none(self) -> None:
        at_the_limit = instant_text(NOW_US - 60_000_000)
        beyond = instant_text(NOW_US - 60_000_001)
        assert play(line(node(), at_the_limit)).notes == []
        assert len(play(line(node(), beyond)).notes) == 1

    def test_the_limit_is_a_setting(self) -> None:
        assert "5 s before" in play(line(node(), OLD), max_event_delay_seconds=5).notes[0]

    def test_faster_than_recorded_and_restamped(self) -> None:
        assert "append times count" in play(line(node(), OLD), ImportOptions(restamp=True, pace=2.0)).notes[0]
        assert "append times count" in play(line(node(), OLD), ImportOptions(restamp=True, pace=None)).notes[0]

    def test_no_times(self) -> None:
        assert "no recorded times" in play(kubectl_line(node()), KUBECTL).notes[0]
        assert play(kubectl_line(node()), ImportOptions(cluster="lab", pace=None)).notes == []


class TestAClusterThatIsFed:
    """A feed follows the cluster: nothing recorded may be taken for its nodes and pods."""

    def test_nothing_is_sent_under_its_name(self) -> None:
        with pytest.raises(FoundProblemError, match="lab is a cluster that a feed follows"):
            play(line(node(), OLD), fed={"lab": NOW_US})
        with pytest.raises(FoundProblemError, match="other is a cluster that a feed follows"):
            play(line(node(), OLD), ImportOptions(cluster="other"), fed={"other": NOW_US})

    def test_another_name_is_sent(self) -> None:
        played = play(line(node(), OLD), ImportOptions(cluster="lab-recorded", pace=None), fed={"lab": NOW_US})
        assert played.counts.clusters == {"lab-recorded"}
