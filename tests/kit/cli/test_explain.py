"""`evictstream explain`: what it prints of recordings and of a running service, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from evictstream.kit.cli.explain_output import ExplainAnswer, print_explanation
from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.recordings.recording_folder import RecordingWriter
from evictstream.kit.replay.asked_pod import AskedPod
from evictstream.kit.replay.explanation import Explainer
from evictstream.kit.replay.story import Teller
from evictstream.models.messages.codec import encode
from evictstream.models.messages.vocabulary import DecisionKind, Verdict
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.harness.rows import State
from tests.kit.replay.test_explanation import due_web, of_web, recorded
from tests.kit.replay.test_story import COVERS, LATER, decision
from tests.streams.cli.running import run

INCIDENT = "examples/incidents/manual-taints-no-evictor/events.jsonl.gz"
NOWHERE = Settings.model_validate({"bootstrap_servers": "127.0.0.1:1", "partitions": 3})
EDITED = "lab/addtol.20-seconds-to-6-n-004-0"


def lines_of(*arguments: str, settings: Settings = NOWHERE) -> list[str]:
    result = run(settings, "explain", *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode().splitlines()


def found_in(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = run(NOWHERE, "explain", *arguments, "-o", "json")
    assert result.returncode == code, result.stderr
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def folder_of(folder: Path, records: list[RecordedRecord]) -> str:
    with RecordingWriter(folder, partitions=1) as writer:
        for one in records:
            writer.write(one)
    return str(folder)


def listed(folder: Path) -> str:
    """What `kubectl get nodes,pods -A -o json` prints of two pods, one of them bound to no node."""
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "2"},
            "spec": spec,
        }
        for name, spec in (("web-0", {"nodeName": "n"}), ("new-0", {}))
    ]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "n", "resourceVersion": "1"}}
    file = folder / "now.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, *pods]}))
    return str(file)


def test_the_story_says_that_it_is_a_replays() -> None:
    lines = lines_of(EDITED, INCIDENT)
    assert "has no decisions; a replay shows" in lines[0]
    assert lines[1].startswith(EDITED)
    assert [line.split()[1] for line in lines[3:]] == ["replay", "replay", "replay", "played"]
    assert "for 20 s since" in lines[3]
    assert "because of a change of the pod" in lines[4]
    assert "issued, on time" in lines[5]


def test_the_story_for_programs_by_uid() -> None:
    uid = "35549bfc-eebe-4701-ba99-943a57034eac"
    found = found_in(uid, INCIDENT)
    assert (found["answer"], found["recorded"]["decisions"], found["results"]) == ("Story", 0, "played")
    told = [(one["from"], one["decision"]["decision"]) for one in found["decisions"]]
    assert told == [("replay", "Scheduled"), ("replay", "Moved"), ("replay", "Issued"), ("played", "Completed")]
    assert all(one["decision"]["podUid"] == uid for one in found["decisions"])


def test_a_pod_that_is_not_known_is_no_answer() -> None:
    asked = "lab/addtol.20-seconds-to-6-n-004-9"
    result = run(NOWHERE, "explain", asked, INCIDENT, "-o", "json")
    assert (result.returncode, f"has no pod {asked}".encode() in result.stderr) == (1, True)
    found = json.loads(result.stdout)
    assert (found["answer"], EDITED in found["alike"]) == ("Unknown", True)


def test_a_pod_without_a_decision_says_why(tmp_path: Path) -> None:
    file = listed(tmp_path)
    lines = lines_of("web-0", file, "--cluster", "lab", "--at", LATER)
    assert lines[-3] == "The service decided nothing about it."
    assert lines[-1] == f"{LATER}  recorded  Its node n has no NoExecute taint."


def test_a_pod_of_no_node_is_known(tmp_path: Path) -> None:
    found = found_in("new-0", listed(tmp_path), "--cluster", "lab", "--at", LATER)
    (pod,) = found["pods"]
    assert (found["answer"], pod["node"]) == ("Nothing", None)
    assert pod["cases"] == [{"at": LATER, "from": "recorded", "case": "Unbound", "text": "It is not bound to a node."}]


def test_what_was_recorded_is_told_as_what_happened(tmp_path: Path) -> None:
    late = of_web(DecisionKind.ISSUED, 11, attempt=1)
    lines = lines_of("web", folder_of(tmp_path / "r", recorded(due_web(), late)), "--allow", "listing")
    assert lines[0].startswith("The recording has the decisions of the service from ")
    told = [(line.split()[1], line.partition("The eviction")[1]) for line in lines[3:-1]]
    assert told == [("replay", ""), ("replay", "The eviction"), ("recorded", "The eviction"), *[("replay", "")] * 2]
    assert "issued, 10.0 s after its deadline; these records do not show why" in lines[5]
    assert lines[-1] == "All other decisions of a replay are the same within a second."


def test_an_end_stands_behind_the_evict_that_it_answers(tmp_path: Path) -> None:
    issued = of_web(DecisionKind.ISSUED, 2, attempt=1)
    over = of_web(DecisionKind.COMPLETED, 1.5, attempt=1, verdict=Verdict.POD_TERMINATING)
    told = lines_of("web", folder_of(tmp_path / "r", recorded(due_web(), issued, over)), "--allow", "listing")
    ours = [line for line in told if "  recorded  " in line]
    assert ["The eviction is issued" in ours[0], "The eviction is over" in ours[1]] == [True, True]


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("last", "is_pending"), [(DecisionKind.DUE, True), (DecisionKind.COMPLETED, False), (DecisionKind.CANCELLED, False)]
)
def test_a_pending_eviction_is_said_to_be_one(
    last: DecisionKind,
    is_pending: bool,  # noqa: FBT001 - a case
    capsys: pytest.CaptureFixture[str],
) -> None:
    explainer = Explainer(AskedPod("u"))
    explainer.take(encode(decision(last)), 0, Teller.RECORDED)
    print_explanation(ExplainAnswer(explanation=explainer.explanation(), recorded=1, recorded_us=(0, 0)))
    assert ("evictstream describe pod" in capsys.readouterr().out) is is_pending


def test_the_story_from_a_running_service(settings: Settings) -> None:
    declare_topics(settings)
    state = State(settings)
    state.node("c", "n")
    state.pod("c", "n", "quiet")
    state.write()
    producer = KafkaProducer(bootstrap_servers=settings.bootstrap_servers)
    for told in (
        decision(DecisionKind.SCHEDULED),
        decision(DecisionKind.SCHEDULED, pod_uid="another"),
        decision(DecisionKind.CANCELLED, verdict=Verdict.TAINT_REMOVED),
    ):
        producer.send(settings.decisions_topic, key=b"c", value=encode(told), partition=0)
    producer.send(settings.decisions_topic, key=b"c", value=b'{"podUid":"u"}', partition=0)
    producer.close()
    texts = [line.split("  ", 2)[-1].strip() for line in lines_of("u", "--cluster", "c", settings=settings)[2:]]
    assert [text.partition(" This came at ")[0] for text in texts] == [
        f"{COVERS} It has to leave at {LATER}.",
        "The eviction is cancelled 20.0 s before its deadline: the taint k=v:NoExecute is gone.",
    ]
    lines = lines_of("quiet", settings=settings)
    assert lines[0] == "x/quiet (quiet) on n of c"
    assert lines[1] == "The service decided nothing about it, as far as the decisions topic reaches back."
    assert lines[3].endswith("  recorded  Its node n has no NoExecute taint.")
    result = run(settings, "explain", "x/quite")
    assert (result.returncode, b"the service has no pod x/quite; did you mean x/quiet?" in result.stderr) == (1, True)
