from __future__ import annotations

import dataclasses
import datetime as dt
import json
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from msgspec import inspect

from evictstream.models.eviction import Origin, RuleParameters
from evictstream.models.instants import SECOND_US, instant_text, microseconds
from evictstream.models.kubernetes.shapes import NodeObject, PodObject
from evictstream.models.messages.brake import decode_brake
from evictstream.models.messages.cluster_names import LONGEST_CLUSTER_NAME, LONGEST_NODE_NAME
from evictstream.models.messages.codec import encode
from evictstream.models.messages.command import decode_command
from evictstream.models.messages.dead_letter import DeadLetterHeaders
from evictstream.models.messages.decision import decode_decision
from evictstream.models.messages.decoding import read_node_record, read_pod_record
from evictstream.models.messages.executor_report import decode_report
from evictstream.models.messages.fleet import decode_fleet_cluster, decode_fleet_level
from evictstream.models.messages.incident import decode_incident
from evictstream.models.messages.policy import decode_policy
from evictstream.models.messages.result import decode_result
from evictstream.models.messages.schemas import MESSAGES, schema_texts
from evictstream.models.messages.signals import AcceptGap, Forget, Heartbeat, Listed, Unbound
from evictstream.models.messages.unreadable import Unreadable, UnreadableReason
from evictstream.models.messages.vocabulary import (
    Action,
    DecisionKind,
    DecisionWarning,
    Outcome,
    Verdict,
    WatchEventType,
)
from evictstream.models.messages.watch_event import decode_watch_event
from evictstream.models.messages.workload import decode_fleet_workload
from evictstream.streams.broker.topic_specs import CLEANUP_POLICY, TIMESTAMP_TYPE, TopicSpec, topic_specs
from evictstream.streams.compression import Unusable
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.executor.command_answers import REPORT_SECONDS
from evictstream.streams.partition.dead_letters import CUT_BYTES, put_dead_letter
from evictstream.streams.partition.messages import MessageWriter
from evictstream.streams.worker.service_config import partition_config
from tests.deploy.command_line import parse
from tests.deploy.pages import ROOT, Example, examples, page, section
from tests.deploy.story import SETTINGS, Story

TEXT = page("messages.md")
WORDS = " ".join(TEXT.split())
EXAMPLES = examples(TEXT)
STORY = examples(section(TEXT, "One eviction from beginning to end"))
JSON = [example for example in EXAMPLES if example.words[0] == "json" and example.words[1] in MESSAGES]
DECODERS: dict[str, Callable[[str], object]] = {
    "brake": decode_brake,
    "policy": decode_policy,
    "incident": decode_incident,
    "command": decode_command,
    "decision": decode_decision,
    "executor-report": decode_report,
    "fleet-cluster": decode_fleet_cluster,
    "fleet-level": decode_fleet_level,
    "fleet-workload": decode_fleet_workload,
    "result": decode_result,
    "watch-event": decode_watch_event,
}
CLUSTER, NODE = "prod-eu-1", "node-0123"
KEY = CLUSTER.encode()
NOWHERE = Origin("", 0, 0)
HOURS_A_DAY = 24
MILLISECONDS_A_DAY = HOURS_A_DAY * 3_600_000

every_example = pytest.mark.parametrize("example", JSON, ids=lambda example: f"line {example.line}")


@dataclasses.dataclass(frozen=True)
class Consumed:
    """A record as the service gets it."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int = 0


def one(*words: str) -> Example:
    (found,) = [example for example in EXAMPLES if example.words == words]
    return found


def shown_headers(example: Example) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (line.partition(": ") for line in example.text.splitlines())]


def as_text(headers: list[tuple[str, bytes]]) -> list[tuple[str, str]]:
    return [(name, value.decode()) for name, value in headers]


class TestExamples:
    def test_every_contract_of_a_value_has_one(self) -> None:
        assert {example.words[1] for example in JSON} == MESSAGES.keys() - {"dead-letter-headers"}

    def test_their_functions_in_python_are_named(self) -> None:
        assert DECODERS.keys() == {example.words[1] for example in JSON}
        assert [decode for decode in DECODERS.values() if f"`{decode.__name__}`" not in TEXT] == []

    def test_nothing_is_shown_that_nobody_looks_at(self) -> None:
        kinds = {example.words[:2] for example in EXAMPLES} - {("json", contract) for contract in MESSAGES}
        assert kinds == {("text", "headers"), ("json", "refused")}

    @every_example
    def test_keeps_its_contract(self, example: Example) -> None:
        DECODERS[example.words[1]](example.text)

    @every_example
    def test_keeps_its_schema(self, example: Example) -> None:
        schema = json.loads(schema_texts()[f"{example.words[1]}.json"])
        jsonschema.Draft202012Validator(schema).validate(json.loads(example.text))


def test_story_is_what_really_happens() -> None:
    """Every command and decision on the page has to come out as it is shown, and no other command."""
    story = Story(CLUSTER, NODE)
    for example in STORY:
        assert story.tell(example) == json.loads(example.text)
    assert story.is_complete
    assert [command.action for command, _ in story.sent] == ["Schedule", "Schedule", "Evict", "Evict", "Cancel"]


def test_headers_are_those_that_are_written() -> None:
    story = Story(CLUSTER, NODE)
    for example in STORY:
        story.tell(example)
    changes = next(changes for command, changes in story.sent if command.action is Action.EVICT)
    outbox = Outbox()
    plan = partition_config(SETTINGS, SETTINGS.max_message_bytes)
    MessageWriter(plan.commands_topic, plan.decisions_topic).put(changes, outbox, story.cluster)
    (command,), (decision,) = outbox.messages[SETTINGS.commands_topic], outbox.messages[SETTINGS.decisions_topic]
    assert as_text(command.headers) == shown_headers(one("text", "headers", "command"))
    assert f"`{dict(as_text(decision.headers))['type']}`" in TEXT


class TestSignals:
    def test_heartbeat(self) -> None:
        found = read_node_record(KEY, one("json", "watch-event", "nodes", "heartbeat").text.encode(), 0, NOWHERE)
        assert isinstance(found, Heartbeat)
        assert found.listed_at_us is not None

    def test_listed(self) -> None:
        text = one("json", "watch-event", "pods", "listed").text.encode()
        found = read_pod_record(KEY, text, 0, NOWHERE)
        assert isinstance(found, Listed)
        assert found.covers("node-0123")
        assert len(found.uids["node-0123"]) == 2

    def test_forget(self) -> None:
        found = read_node_record(KEY, one("json", "watch-event", "nodes", "forget").text.encode(), 0, NOWHERE)
        assert isinstance(found, Forget)

    def test_accept_gap(self) -> None:
        text = one("json", "watch-event", "nodes", "accept-gap").text.encode()
        assert read_node_record(KEY, text, 7, NOWHERE) == AcceptGap(CLUSTER, 7)


class TestEndThatWasMissed:
    """The smallest `DELETED`: all of it is needed, and it is enough."""

    GONE = one("json", "watch-event", "pods", "gone")

    def changed(self, path: str, value: str | None) -> Example:
        """Put something else, or nothing, into one field of the example's object."""
        record = json.loads(self.GONE.text)
        *above, name = path.split(".")
        fields = record["object"]
        for each in above:
            fields = fields[each]
        fields[name] = value
        return dataclasses.replace(self.GONE, words=self.GONE.words[:3], text=json.dumps(record))

    @pytest.mark.parametrize(
        "path",
        ["kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"],
    )
    def test_nothing_can_be_left_out(self, path: str) -> None:
        with pytest.raises(Unreadable):
            read_pod_record(KEY, self.changed(path, None).text.encode(), 0, NOWHERE)

    def test_without_a_node_it_is_ignored(self) -> None:
        text = self.changed("spec.nodeName", None).text.encode()
        assert read_pod_record(KEY, text, 0, NOWHERE) == Unbound(CLUSTER)

    @pytest.mark.parametrize(
        ("version", "ends"),
        [
            pytest.param("182760455", True, id="of the listing"),
            pytest.param("182742001", True, id="the last one told"),
            pytest.param("182742000", False, id="below the last one told"),
        ],
    )
    def test_it_ends_what_is_owed(self, version: str, *, ends: bool) -> None:
        story = Story(CLUSTER, NODE)
        for example in STORY:
            story.tell(example)
            if story.sent and story.sent[-1][0].action is Action.EVICT:
                break
        assert story.is_owed
        story.tell(self.changed("metadata.resourceVersion", version))
        assert story.is_owed is not ends
        story.tell(self.changed("metadata.resourceVersion", version))
        assert story.is_owed is not ends, "told twice"


class TestDeadLetters:
    def written(self) -> tuple[Example, list[tuple[str, bytes]]]:
        """The refused record of the page, and the headers that the service writes about it."""
        refused = one("json", "refused", "pods")
        value = refused.text.strip().encode()
        with pytest.raises(Unreadable) as error:
            read_pod_record(KEY, value, 0, NOWHERE)
        shown = dict(shown_headers(one("text", "headers", "dead-letter")))
        topic, partition, offset = shown["ce_id"].split("/")
        outbox = Outbox()
        put_dead_letter(
            outbox,
            SETTINGS.dead_letters_topic,
            record=Consumed(int(offset), KEY, value),
            origin=(topic, int(partition)),
            reason=error.value.reason,
            detail=error.value.detail,
            limit_bytes=SETTINGS.max_record_bytes,
        )
        (message,) = outbox.messages[SETTINGS.dead_letters_topic]
        assert (message.key, message.value) == (KEY, value)
        return refused, message.headers

    def test_headers_are_those_that_are_written(self) -> None:
        _, headers = self.written()
        assert as_text(headers) == shown_headers(one("text", "headers", "dead-letter"))

    def test_headers_keep_their_contract(self) -> None:
        _, headers = self.written()
        DeadLetterHeaders.from_headers(headers)

    def test_the_record_is_refused_by_the_contract_too(self) -> None:
        refused, _ = self.written()
        with pytest.raises(Unreadable):
            decode_watch_event(refused.text)

    def test_every_reason_is_explained(self) -> None:
        rows = section(TEXT, "Dead letters")
        assert [
            each for each in [*UnreadableReason, *Unusable, "WrongPartition", "Undecidable"] if f"`{each}`" not in rows
        ] == []

    def test_cut(self) -> None:
        assert CUT_BYTES == 64 * 1024
        assert "cut to its first 64 KiB" in WORDS


class TestTables:
    @pytest.mark.parametrize("spec", topic_specs(SETTINGS), ids=lambda spec: spec.name)
    def test_topics(self, spec: TopicSpec) -> None:
        (row,) = [line for line in TEXT.splitlines() if line.startswith(f"| `{spec.name}` |")]
        *_, stamps, kept = (cell.strip() for cell in row.strip("|").split("|"))
        assert stamps == ("append time" if spec.configs.get(TIMESTAMP_TYPE) == "LogAppendTime" else "free")
        if spec.configs[CLEANUP_POLICY] == "compact":
            assert kept == "compacted"
        else:
            assert kept == f"{int(spec.configs['retention.ms']) // MILLISECONDS_A_DAY} days"

    @pytest.mark.parametrize(
        ("title", "words"),
        [
            ("Commands", [*Action, *Verdict]),
            ("Results", [*Outcome]),
            ("Decisions", [*DecisionKind, *DecisionWarning]),
            ("Watch events", [*WatchEventType]),
        ],
    )
    def test_every_word_is_explained(self, title: str, words: list[str]) -> None:
        text = section(TEXT, title)
        assert [word for word in words if f"`{word}`" not in text] == []

    @pytest.mark.parametrize("shape", [NodeObject, PodObject])
    def test_every_field_in_use_is_named(self, shape: Any) -> None:
        text = section(TEXT, "Watch events")
        unused = (
            {"metadata.namespace", "metadata.deletionTimestamp", "metadata.annotations"}
            if shape is NodeObject
            else set()
        )
        assert [path for path in _paths(shape) if path not in unused and f"`{path}`" not in text] == []

    @pytest.mark.parametrize(
        ("sentence", "value"),
        [
            ("no repeat for {:g} s", SETTINGS.success_grace_seconds),
            ("no repeat for {:g} s", SETTINGS.accepted_silence_seconds),
            ("up to {:g} s", SETTINGS.accepted_limit_seconds),
            ("send a [report](#reports) of all of them every {:g} s", REPORT_SECONDS),
            ("not repeated for {:g} s from the append time", RuleParameters().report_silence_us / SECOND_US),
            ("next attempt after {:g} s", SETTINGS.retry_base_seconds),
            ("at most {:g} s", SETTINGS.retry_ceiling_seconds),
            ("No answer within {:g} s", SETTINGS.result_silence_seconds),
            ("not more than {:g} s (`EVICTSTREAM_MAX_EVENT_DELAY_SECONDS`) before", SETTINGS.max_event_delay_seconds),
            ("on nodes or on pods, is older than {:g} s", SETTINGS.feed_silence_limit_seconds),
            ("Stay under {:g} MiB", SETTINGS.max_object_bytes / 1_048_576),
            ("Commands are kept for {:g} days", SETTINGS.command_retention_hours / HOURS_A_DAY),
            ("any text of 1 to {:g} bytes", LONGEST_CLUSTER_NAME),
            ("{:g} bytes of a node's name", LONGEST_NODE_NAME),
        ],
    )
    def test_numbers_are_the_defaults(self, sentence: str, value: float) -> None:
        assert sentence.format(value) in WORDS


def test_instants_are_written_as_they_are_shown() -> None:
    for example in JSON:
        if example.words[1] == "command":
            shown = decode_command(example.text)
            instants = {shown.window_start, shown.deadline, shown.issued_at}
            assert {instant_text(microseconds(dt.datetime.fromisoformat(text))) for text in instants} == instants
            assert json.loads(encode(shown)) == json.loads(example.text)


@pytest.mark.parametrize("name", ["messages.md", "settings.md"])
def test_commands_on_the_pages_exist(name: str) -> None:
    found = re.findall(r"`evictstream ([^`]+)`", page(name))
    assert found
    for line in found:
        parse(shlex.split(line))


@pytest.mark.parametrize("name", ["messages.md", "settings.md"])
def test_links_lead_somewhere(name: str) -> None:
    here = ROOT / "docs" / name
    for target in re.findall(r"\]\(([^)]+)\)", page(name)):
        file, _, anchor = target.partition("#")
        linked = (here.parent / file).resolve() if file else here
        assert linked.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {title.lower().replace(" ", "-") for title in titles}, target


def _paths(shape: Any, prefix: str = "") -> Iterator[str]:
    """Fields in use of an object, two levels deep: what is below is the value's own shape."""
    for field in inspect.type_info(shape).fields:  # type: ignore[attr-defined]
        below = [each for each in _types(field.type) if isinstance(each, inspect.StructType)]
        if below and not prefix:
            yield from _paths(below[0].cls, f"{field.encode_name}.")
        else:
            yield f"{prefix}{field.encode_name}"


def _types(found: Any) -> tuple[Any, ...]:
    return getattr(found, "types", (found,))
